//! Request budgets: each request waits for its turn at its API host.
//!
//! Decisions are those of `rate_limit`. A request that would have to wait longer than its call has time left is answered at once with
//! a 429 of our own making, whose `Retry-After` says when to come again: guests in every language can handle it, and the SDK makes
//! the failure `rate-limited` of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use wasmtime_wasi_http::WasiBody;

mod answers;
pub(crate) mod rate_limit;
pub(crate) mod retry_after;

pub use answers::HostAnswers;

use crate::egress::budget::rate_limit::{Held, MAX_PAUSE, Rate, RateLimit, RateStatus, Turn};
use crate::egress::metrics::EgressMetrics;
use crate::net::destination::Destination;
use crate::net::http_error::HttpFailure;

/// So many API hosts are kept before those that would be as new again are dropped. Wildcards grant endless names.
pub(super) const REMEMBERED: usize = 256;

/// The limits of one API host at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetStatus {
    /// Scheme, name and port, such as `https://api.example.com`.
    pub host: String,
    /// What the grants allow; none when they set no limit.
    pub rate: Option<RateStatus>,
    /// How much of a pause is left that the cloud set with `Retry-After`.
    pub paused_for: Option<Duration>,
    /// Requests that wait for their turn.
    pub waiting: usize,
    /// How it answers.
    pub answers: HostAnswers,
}

/// The budgets of all API hosts that one provider talks to.
#[derive(Default)]
pub struct RequestBudgets(pub(super) Mutex<HashMap<Destination, Arc<RequestBudget>>>);

impl RequestBudgets {
    /// The budgets of a provider with other grants that may take this one's place. An API host whose rate stays the same shares its budget,
    /// so that a swap gives no second burst; one with another rate keeps its pause.
    pub fn successor(&self, rate: impl Fn(&Destination) -> Option<Rate>) -> Self {
        let now = Instant::now();
        let kept = |(to, budget): (&Destination, &Arc<RequestBudget>)| {
            let limit = budget.limit.lock();
            let rate = rate(to);
            let budget = if limit.rate() == rate {
                Arc::clone(budget)
            } else {
                let successor = RequestBudget::new(to, limit.with_rate(rate, now));
                successor.answers.lock().clone_from(&budget.answers.lock());
                Arc::new(successor)
            };
            (to.clone(), budget)
        };
        Self(Mutex::new(self.0.lock().iter().map(kept).collect()))
    }

    /// All API hosts that are kept, by name.
    pub fn status(&self) -> Vec<BudgetStatus> {
        let now = Instant::now();
        let status = |(to, budget): (&Destination, &Arc<RequestBudget>)| {
            let limit = budget.limit.lock();
            BudgetStatus {
                host: to.to_string(),
                rate: limit.left(now),
                paused_for: limit.paused_for(now),
                waiting: limit.waiting(),
                answers: budget.answers.lock().clone(),
            }
        };
        let mut all: Vec<BudgetStatus> = self.0.lock().iter().map(status).collect();
        all.sort_by(|a, b| a.host.cmp(&b.host));
        all
    }

    /// The budget for this API host, new with this rate if it is not known.
    pub fn of(&self, to: &Destination, rate: impl FnOnce() -> Option<Rate>) -> Arc<RequestBudget> {
        let mut known = self.0.lock();
        if let Some(budget) = known.get(to) {
            return Arc::clone(budget);
        }
        let now = Instant::now();
        if known.len() >= REMEMBERED {
            known.retain(|_, budget| Arc::strong_count(budget) > 1 || !budget.limit.lock().is_idle(now));
        }
        let budget = Arc::new(RequestBudget::new(to, RateLimit::new(rate(), now)));
        known.insert(to.clone(), Arc::clone(&budget));
        budget
    }
}

/// The budget of one API host.
pub struct RequestBudget {
    to: Destination,
    pub(super) limit: Mutex<RateLimit>,
    answers: Mutex<HostAnswers>,
    /// A request was sent, left, or set a pause.
    changed: Notify,
}

impl RequestBudget {
    fn new(to: &Destination, limit: RateLimit) -> Self {
        Self {
            to: to.clone(),
            limit: Mutex::new(limit),
            answers: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// A request to this host has ended.
    pub fn answered(&self, answer: Result<StatusCode, &HttpFailure>) {
        self.answers.lock().note(answer, Timestamp::now());
    }

    /// Waits for a turn that comes until `latest`. The error is the answer for who has none.
    pub async fn turn(
        self: &Arc<Self>,
        latest: Instant,
        provider: &str,
        metrics: &EgressMetrics,
    ) -> Result<Admitted, Response<WasiBody>> {
        let number = self.limit.lock().enter();
        let admitted = Admitted {
            budget: Arc::clone(self),
            number,
        };
        let mut waiting = None;
        loop {
            // Subscribes before it checks, so that no change in between is missed.
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let turn = self.limit.lock().turn(number, Instant::now(), latest);
            match turn {
                Turn::Go => {
                    self.changed.notify_waiters();
                    return Ok(admitted);
                }
                Turn::TooLate(wait, held) => {
                    metrics.throttled(provider, held);
                    return Err(self.too_late(wait, held));
                }
                Turn::Wait(until, held) => {
                    waiting.get_or_insert_with(|| metrics.waits(provider, held));
                    tokio::select! {
                        () = sleep_until(until) => {}
                        () = changed => {}
                    }
                }
            }
        }
    }

    /// The answer that says when to come again.
    fn too_late(&self, wait: Duration, held: Held) -> Response<WasiBody> {
        let why = match held {
            Held::Budget => "requestsPerSecond of its entry in grants.http is used up",
            Held::Pause => "the cloud set a pause with Retry-After",
        };
        let (name, seconds) = retry_after::header(wait);
        let text = format!(
            "not sent by Cloudwit: requests to {} have to wait, {why}; in {seconds} s it may work",
            self.to
        );
        let mut response = Response::new(Full::from(text).map_err(|never| match never {}).boxed_unsync());
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        response.headers_mut().insert(name, seconds.into());
        let plain = http::HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(http::header::CONTENT_TYPE, plain);
        response
    }
}

/// A place in the queue, and later the turn itself, until this is dropped.
pub struct Admitted {
    budget: Arc<RequestBudget>,
    number: u64,
}

impl Admitted {
    /// The response has a `Retry-After`.
    pub fn pause(&self, asked: Duration, provider: &str, metrics: &EgressMetrics) {
        let begins = self.budget.limit.lock().pause(asked, Instant::now());
        if begins {
            metrics.paused(provider);
            let (destination, pause) = (&self.budget.to, asked.min(MAX_PAUSE));
            tracing::warn!(
                provider,
                %destination,
                pause_seconds = pause.as_secs_f64(),
                "Retry-After received; requests to this host paused"
            );
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.budget.limit.lock().leave(self.number);
        self.budget.changed.notify_waiters();
    }
}
