//! Keyed work queue with per-key backoff, between a watch and a loop.
//!
//! In four sentences: a key waits at most once, however often it is added; of several requests for a key the earliest
//! wins; a key is never worked on twice at once, and a request during the work comes after it; a failing key pauses
//! longer each time, a key that was requeued for a given time does not.
//!
//! [`Queue::take_batch`] hands out all keys that are ready, so one cloud call can serve them together.

pub mod backoff;
mod keys;
pub mod snapshot;
pub(crate) mod span;

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudwit_model::Retry;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tracing::Span;

use crate::kube::cache::Key;
use crate::metrics::queue::QueueMetrics;
use crate::options::Controller;
pub use crate::queue::backoff::Backoff;
use crate::queue::keys::Keys;
pub use crate::queue::keys::{KeyPlace, KeyState};
pub use crate::queue::snapshot::QueueSnapshot;
use crate::sync::lock;

/// How work on a key ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is left to do; its failures are dropped.
    Done,
    /// It comes back as the class says.
    Retry(Retry),
}

struct QueueShared {
    keys: Mutex<Keys>,
    changed: Notify,
    metrics: QueueMetrics,
}

/// A keyed queue; clones share it.
#[derive(Clone)]
pub struct Queue {
    shared: Arc<QueueShared>,
}

impl Queue {
    /// An empty queue. `metrics` carries the queue's name (see [`Metrics::queue`](crate::metrics::Metrics::queue)).
    pub fn new(backoff: Backoff, metrics: QueueMetrics) -> Self {
        let shared = QueueShared {
            keys: Mutex::new(Keys::new(backoff, metrics.clone())),
            changed: Notify::new(),
            metrics,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Schedules the key now.
    pub fn add(&self, key: impl Into<Key>) {
        self.shared.schedule(key.into(), Instant::now());
    }

    /// Schedules all of these now. Who takes the first sees all others.
    pub fn add_all(&self, added: impl IntoIterator<Item = Key>) {
        let now = Instant::now();
        let mut keys = lock(&self.shared.keys);
        added.into_iter().for_each(|key| keys.schedule(key, now, now));
        drop(keys);
        self.shared.changed.notify_waiters();
    }

    /// Schedules the key after this time. Not a failure.
    pub fn after(&self, key: impl Into<Key>, pause: Duration) {
        self.shared.schedule(key.into(), Instant::now() + pause);
    }

    /// Schedules all keys that wait after a failure now, because its cause may be gone. Their failures still count.
    pub fn retry_failed_now(&self) {
        lock(&self.shared.keys).schedule_failed(Instant::now());
        self.shared.changed.notify_waiters();
    }

    /// Keys that are waiting for their time.
    pub fn waiting(&self) -> Vec<Key> {
        lock(&self.shared.keys).waiting()
    }

    /// Up to `max` keys that are ready, the next first.
    pub fn ready(&self, max: usize) -> Vec<Key> {
        lock(&self.shared.keys).ready_keys(max, Instant::now())
    }

    /// What happens to the key next; None when nothing is left to do.
    pub fn state(&self, key: &str) -> Option<KeyState> {
        lock(&self.shared.keys).state(key, Instant::now())
    }

    /// What it looks like now.
    pub fn snapshot(&self) -> QueueSnapshot {
        QueueSnapshot {
            name: self.shared.metrics.name(),
            ..lock(&self.shared.keys).snapshot(Instant::now())
        }
    }

    /// All keys that have something left to do, in no order.
    pub fn keys(&self) -> Vec<Key> {
        lock(&self.shared.keys).all()
    }

    /// How many keys have something left to do. Only these cost memory.
    pub fn len(&self) -> usize {
        lock(&self.shared.keys).len()
    }

    /// Whether nothing is left to do.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next key, as soon as one is ready. None after [`close`](Self::close).
    pub async fn take(&self) -> Option<Taken> {
        self.take_batch(1, Duration::ZERO).await?.pop()
    }

    /// Up to `max` ready keys, at least one. After the first is ready it waits `gather` for others, unless `max` are
    /// there already. None after [`close`](Self::close).
    pub async fn take_batch(&self, max: usize, gather: Duration) -> Option<Vec<Taken>> {
        loop {
            let mut changed = pin!(self.shared.changed.notified());
            changed.as_mut().enable();
            let next = {
                let mut keys = lock(&self.shared.keys);
                if keys.is_closed() {
                    return None;
                }
                match keys.ready(Instant::now()) {
                    0 => Err(keys.next_timer()),
                    ready => Ok(ready >= max),
                }
            };
            match next {
                Ok(full) => {
                    if !full && !gather.is_zero() {
                        tokio::time::sleep(gather).await;
                    }
                    let batch = self.pop(max);
                    if !batch.is_empty() {
                        return Some(batch);
                    }
                }
                Err(Some(at)) => {
                    tokio::select! { biased; () = changed => {}, () = sleep_until(at) => {} }
                }
                Err(None) => changed.await,
            }
        }
    }

    fn pop(&self, max: usize) -> Vec<Taken> {
        self.taken(lock(&self.shared.keys).take(max, Instant::now()))
    }

    /// Takes those of these keys that are still ready, and does not wait.
    pub fn take_ready(&self, wanted: &[Key]) -> Vec<Taken> {
        self.taken(lock(&self.shared.keys).take_these(wanted, Instant::now()))
    }

    fn taken(&self, keys: Vec<Key>) -> Vec<Taken> {
        let taken = |key| Taken {
            key,
            shared: self.shared.clone(),
            span: Span::none(),
            finished: false,
        };
        keys.into_iter().map(taken).collect()
    }

    /// Ends all [`take`](Self::take)s.
    pub fn close(&self) {
        lock(&self.shared.keys).close();
        self.shared.changed.notify_waiters();
    }
}

impl QueueShared {
    fn schedule(&self, key: Key, at: Instant) {
        lock(&self.keys).schedule(key, at, Instant::now());
        self.changed.notify_waiters();
    }

    fn finish(&self, key: &Key, outcome: Outcome) {
        let is_known = lock(&self.keys).finish(key, outcome, Instant::now());
        if is_known {
            self.changed.notify_waiters();
        }
    }
}

/// A key that is being worked on. No other worker gets it until [`finish`](Self::finish); dropping it counts as a failure.
#[must_use]
pub struct Taken {
    key: Key,
    shared: Arc<QueueShared>,
    span: Span,
    finished: bool,
}

impl Taken {
    /// The key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Begins the span of this work, which [`finish`](Self::finish) ends, and gives it.
    pub fn begin(&mut self, controller: Controller) -> Span {
        self.span = span::on_object(controller, &self.key);
        self.span.clone()
    }

    /// The span of this work; disabled before [`begin`](Self::begin).
    pub fn span(&self) -> Span {
        self.span.clone()
    }

    /// Failures in a row before this time.
    pub fn failures(&self) -> u32 {
        lock(&self.shared.keys).failures(&self.key)
    }

    /// Ends the work.
    pub fn finish(mut self, outcome: Outcome) {
        self.finished = true;
        self.span.record("result", span::result(outcome));
        self.shared.finish(&self.key, outcome);
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if !self.finished {
            self.span.record("result", "cancelled");
            self.shared.finish(&self.key, Outcome::Retry(Retry::Backoff));
        }
    }
}

#[cfg(test)]
mod tests;
