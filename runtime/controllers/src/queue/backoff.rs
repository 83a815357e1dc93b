//! Backoff of failing keys.

use std::time::Duration;

use cloudwit_model::Retry;
use tokio::time::Instant;

use crate::ambient::jitter;

/// The pauses of one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure; doubles with each further one.
    pub base: Duration,
    /// Never longer than this.
    pub cap: Duration,
    /// After a failure that only a person can mend ([`Retry::Slowly`]).
    pub slow: Duration,
    /// After the first conflict, also where `base` is long: the next try usually sees what the other side did. A conflict that stays is a
    /// failure like any other.
    pub conflict: Duration,
    /// Whether pauses end at common moments, a fraction of the pause apart, so that keys that failed at different
    /// times come back in one batch. Without it a thousand keys that each pause about 1000 s are a call a second.
    pub together: bool,
}

impl Backoff {
    /// Upstream's default limiter, 5 ms doubling to 1000 s (`client-go
    /// util/workqueue:DefaultTypedControllerRateLimiter`). Its shared bucket of 10 keys a second is left out: keys
    /// are taken in batches. What a person has to mend is tried every minute.
    pub const DEFAULT: Self = Self {
        base: Duration::from_millis(5),
        cap: Duration::from_secs(1000),
        slow: Duration::from_secs(60),
        conflict: Duration::from_millis(5),
        together: false,
    };

    /// The same for a queue whose keys are taken in batches.
    pub const BATCHED: Self = Self {
        together: true,
        ..Self::DEFAULT
    };

    /// The service controller's, 5 s doubling to 300 s (`controllers/service/controller.go`).
    pub const SERVICE: Self = Self {
        base: Duration::from_secs(5),
        cap: Duration::from_secs(300),
        slow: Duration::from_secs(300),
        conflict: Duration::from_millis(5),
        together: false,
    };

    /// Of single routes: as for Services, but clouds take longer to show what the other side did to a route table.
    pub const ROUTE: Self = Self {
        conflict: Duration::from_secs(1),
        ..Self::SERVICE
    };

    /// The same with no pause longer than this, `--max-retry-pause`. What the cloud itself sets stays.
    #[must_use]
    pub fn at_most(self, longest: Option<Duration>) -> Self {
        let longest = longest.unwrap_or(Duration::MAX);
        Self {
            cap: self.cap.min(longest),
            slow: self.slow.min(longest),
            ..self
        }
    }

    /// How long to wait after the latest of so many failures in a row (at least 1).
    pub fn pause(&self, retry: Retry, failures: u32) -> Duration {
        match retry {
            Retry::After(pause) => pause,
            Retry::Slowly | Retry::Never => self.slow,
            Retry::Soon if failures <= 1 => self.conflict,
            Retry::Soon => doubled(self.base, failures - 1).min(self.cap),
            Retry::Backoff => doubled(self.base, failures).min(self.cap),
        }
    }

    /// When a key comes back after its latest of so many failures in a row. `epoch` is the queue's beginning.
    pub(crate) fn next(&self, retry: Retry, failures: u32, now: Instant, epoch: Instant) -> Instant {
        let pause = self.pause(retry, failures);
        let at = now + with_jitter(pause);
        if self.together { on_grid(at, pause, epoch) } else { at }
    }
}

fn doubled(base: Duration, failures: u32) -> Duration {
    base.saturating_mul(2u32.saturating_pow(failures.saturating_sub(1).min(31)))
}

/// Up to a tenth longer, so that keys that failed together do not all come back at the same moment.
fn with_jitter(pause: Duration) -> Duration {
    pause.mul_f64(1.0 + jitter(0.0..0.1))
}

/// The next common moment: multiples of a power of two of milliseconds that is at most an eighth of the pause,
/// counted from `epoch`. Powers of two, so that the moments of long pauses are also moments of shorter ones.
fn on_grid(at: Instant, pause: Duration, epoch: Instant) -> Instant {
    let eighth = u64::try_from(pause.as_millis() / 8).unwrap_or(u64::MAX);
    let Some(power) = eighth.checked_ilog2() else { return at };
    let step = Duration::from_millis(1 << power);
    let steps = (at - epoch).as_millis().div_ceil(step.as_millis());
    epoch + step.saturating_mul(u32::try_from(steps).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(backoff: Backoff, retry: Retry) -> Vec<u64> {
        (1..9)
            .map(|failures| backoff.pause(retry, failures).as_secs())
            .collect()
    }

    #[test]
    fn pauses_of_routes_double_from_five_seconds_to_five_minutes() {
        let route = Backoff::ROUTE;
        assert_eq!(seconds(route, Retry::Backoff), [5, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(
            seconds(route, Retry::Soon),
            [1, 5, 10, 20, 40, 80, 160, 300],
            "a conflict that stays"
        );
        assert_eq!(route.pause(Retry::Slowly, 1), route.cap);
        let asked = Duration::from_secs(42);
        assert_eq!(route.pause(Retry::After(asked), 9), asked);
    }

    #[test]
    fn operator_shortens_all_pauses_but_cloud_requested_ones() {
        let short = Backoff::ROUTE.at_most(Some(Duration::from_secs(7)));
        assert_eq!(seconds(short, Retry::Backoff), [5, 7, 7, 7, 7, 7, 7, 7]);
        assert_eq!(short.pause(Retry::Slowly, 1), Duration::from_secs(7));
        let asked = Duration::from_secs(42);
        assert_eq!(short.pause(Retry::After(asked), 1), asked);
        assert_eq!(Backoff::SERVICE.at_most(None), Backoff::SERVICE);
    }
}
