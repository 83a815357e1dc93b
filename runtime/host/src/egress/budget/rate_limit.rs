//! Token bucket and pauses of one API host. Pure: the clock is passed in.
//!
//! Three things hold requests back, and all are kept for one API host (scheme, host and port), over all calls of a provider:
//!
//! 1. **The budget** of the grant, as a token bucket: `burst` requests at once, then `requestsPerSecond`.
//! 2. **A pause** that the cloud set with `Retry-After`, at most [`MAX_PAUSE`]. It empties the bucket.
//! 3. **One trial** after a pause: a single request shows whether the cloud is ready. Were all that waited to wake together, they would
//!    run into the same limit again.
//!
//! First come, first served. A request that cannot have a turn in time fails at once and takes no place.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::grants::HttpGrant;

/// Longest pause, whatever the cloud sets: a wrong clock or a typing error must not stop a cluster for a day.
pub const MAX_PAUSE: Duration = Duration::from_secs(300);

/// What is advised when nothing better is known, because a trial is under way.
pub(in crate::egress) const SOON: Duration = Duration::from_secs(1);

/// A token bucket's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Time in which one request becomes possible.
    interval: Duration,
    /// How many are possible at once after a rest.
    burst: u32,
}

impl Rate {
    /// The budget of a grant that is valid; none when it names none.
    pub fn of(grant: &HttpGrant) -> Option<Self> {
        let interval = Duration::try_from_secs_f64(1.0 / grant.requests_per_second?).ok()?;
        let burst = grant.burst().max(1);
        Some(Self { interval, burst })
    }

    /// The smaller of two budgets.
    pub fn smaller(self, other: Self) -> Self {
        Self {
            interval: self.interval.max(other.interval),
            burst: self.burst.min(other.burst),
        }
    }

    /// How far ahead of an even flow a burst may be.
    fn slack(self) -> Duration {
        self.interval * (self.burst - 1)
    }
}

/// A token bucket at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateStatus {
    /// Requests that become possible in a second.
    pub per_second: f64,
    /// Requests that are possible at once after a rest.
    pub burst: u32,
    /// Requests that are possible at once now.
    pub left: u32,
}

/// What holds a request back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Held {
    /// The budget of the grant.
    Budget,
    /// The cloud set a pause, or a trial after one is under way.
    Pause,
}

impl Held {
    /// The metrics' label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Pause => "retry_after",
        }
    }
}

/// The state of a waiting request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Go now. The request counts.
    Go,
    /// Retry then, or when something changed.
    Wait(Instant, Held),
    /// There is no turn in time; there may be one after this long.
    TooLate(Duration, Held),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trial {
    None,
    Due,
    Running(u64),
}

/// The limits of one API host and who waits for them.
#[derive(Debug)]
pub struct RateLimit {
    rate: Option<Rate>,
    /// When the bucket will be full, without another turn until then.
    full_at: Instant,
    paused_until: Instant,
    trial: Trial,
    /// Who waits, the first in front.
    queue: VecDeque<u64>,
    tickets: u64,
}

impl RateLimit {
    /// A full bucket, or none at all.
    pub fn new(rate: Option<Rate>, now: Instant) -> Self {
        Self {
            rate,
            full_at: now,
            paused_until: now,
            trial: Trial::None,
            queue: VecDeque::new(),
            tickets: 0,
        }
    }

    /// Takes the last place of the queue.
    pub fn enter(&mut self) -> u64 {
        self.tickets += 1;
        self.queue.push_back(self.tickets);
        self.tickets
    }

    /// Checks whether it is this ticket's turn. A turn after `latest` is of no use to it.
    pub fn turn(&mut self, ticket: u64, now: Instant, latest: Instant) -> Turn {
        let place = self.queue.iter().take_while(|waiting| **waiting != ticket).count();
        let held = if self.paused_until > now || self.trial_is_running() {
            Held::Pause
        } else {
            Held::Budget
        };
        let at = self.expected(place, now);
        if at > latest {
            return Turn::TooLate(at - now, held);
        }
        if place == 0 && at <= now && !self.trial_is_running() {
            self.go(ticket, now);
            return Turn::Go;
        }
        match at {
            at if at > now && place == 0 => Turn::Wait(at, held),
            // Those in front, or a trial, decide; each of their steps is a change.
            _ if now < latest => Turn::Wait(latest, held),
            _ => Turn::TooLate(SOON, held),
        }
    }

    fn trial_is_running(&self) -> bool {
        matches!(self.trial, Trial::Running(_))
    }

    /// When the one at this place has its turn, if nothing changes and no trial takes long.
    fn expected(&self, place: usize, now: Instant) -> Instant {
        let open = self.paused_until.max(now);
        let Some(rate) = self.rate else { return open };
        let ahead = rate.interval * u32::try_from(place).unwrap_or(u32::MAX);
        let even = self.full_at.max(open) + ahead;
        even.checked_sub(rate.slack()).map_or(open, |at| at.max(open))
    }

    fn go(&mut self, ticket: u64, now: Instant) {
        self.queue.pop_front();
        if let Some(rate) = self.rate {
            self.full_at = self.full_at.max(now) + rate.interval;
        }
        if self.trial == Trial::Due {
            self.trial = Trial::Running(ticket);
        }
    }

    /// The holder of the ticket gave up, or its answer is there.
    pub fn leave(&mut self, ticket: u64) {
        self.queue.retain(|waiting| *waiting != ticket);
        if self.trial == Trial::Running(ticket) {
            self.trial = Trial::None;
        }
    }

    /// A `Retry-After` came. True when one begins now, false when there was one already.
    pub fn pause(&mut self, asked: Duration, now: Instant) -> bool {
        let begins = self.paused_until <= now;
        self.paused_until = self.paused_until.max(now + asked.min(MAX_PAUSE));
        self.trial = Trial::Due;
        if let Some(rate) = self.rate {
            self.full_at = self.full_at.max(self.paused_until + rate.slack());
        }
        begins
    }

    /// The same API host under another rate: the bucket is full again, the pause stays.
    pub fn with_rate(&self, rate: Option<Rate>, now: Instant) -> Self {
        let mut new = Self::new(rate, now);
        if self.paused_until > now {
            new.pause(self.paused_until - now, now);
        }
        new
    }

    /// The rate it keeps.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// What is left in the bucket; none without a limit.
    pub fn left(&self, now: Instant) -> Option<RateStatus> {
        let rate = self.rate?;
        let owed = self.full_at.saturating_duration_since(now);
        let owed = owed.as_nanos().div_ceil(rate.interval.as_nanos().max(1));
        Some(RateStatus {
            per_second: 1.0 / rate.interval.as_secs_f64(),
            burst: rate.burst,
            left: rate.burst.saturating_sub(u32::try_from(owed).unwrap_or(u32::MAX)),
        })
    }

    /// How much of a pause that the cloud set is left.
    pub fn paused_for(&self, now: Instant) -> Option<Duration> {
        (self.paused_until > now).then(|| self.paused_until - now)
    }

    /// How many wait for their turn.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Whether forgetting it would change nothing.
    pub fn is_idle(&self, now: Instant) -> bool {
        self.queue.is_empty() && self.trial == Trial::None && self.full_at <= now && self.paused_until <= now
    }
}
