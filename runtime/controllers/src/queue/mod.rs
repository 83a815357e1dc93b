//! The keyed queue between a watch and a loop.
//!
//! In four sentences: a key waits at most once, however often it is added; of several wishes for a key the earliest
//! wins; a key is never worked on twice at once, and a wish during the work comes after it; a failing key pauses
//! longer each time, a key that asked to be called later does not.
//!
//! [`Queue::take_batch`] hands out all keys that are ready, so one cloud call can serve them together.

pub mod backoff;
pub mod progress;
pub(crate) mod span;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudwit_model::Retry;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tracing::Span;

use crate::kube::cache::Key;
use crate::metrics::queue::{QueueMetrics, Snapshot};
use crate::options::Controller;
pub use crate::queue::backoff::Backoff;
use crate::queue::progress::Progress;
use crate::sync::lock;

/// How work on a key ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is left to do; its failures are forgotten.
    Done,
    /// It comes back as the class says.
    Retry(Retry),
}

#[derive(Debug)]
enum Place {
    Idle,
    Waiting(Instant),
    Ready(Instant),
    Running { since: Instant, again: Option<Instant> },
}

#[derive(Debug)]
struct Entry {
    place: Place,
    failures: u32,
    /// Since when something is left to do.
    since: Instant,
}

#[derive(Debug, Default)]
struct State {
    entries: BTreeMap<Key, Entry>,
    ready: VecDeque<Key>,
    timers: BTreeSet<(Instant, Key)>,
    /// When work on a key last ended with nothing left to do.
    last_done: Option<Instant>,
    closed: bool,
}

/// Where a key stands; for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyState {
    /// Its place.
    pub place: KeyPlace,
    /// Failures in a row.
    pub failures: u32,
    /// For how long something has been left to do.
    pub unfinished: Duration,
}

/// What happens to a key next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPlace {
    /// A worker takes it as soon as one is free.
    Ready,
    /// It is being worked on.
    Running,
    /// It is ready after this time.
    Waiting(Duration),
}

struct Shared {
    state: Mutex<State>,
    changed: Notify,
    backoff: Backoff,
    epoch: Instant,
    metrics: QueueMetrics,
}

/// A keyed queue; clones share it.
#[derive(Clone)]
pub struct Queue {
    shared: Arc<Shared>,
}

impl Queue {
    /// An empty queue. `metrics` carries the queue's name (see [`Metrics::queue`](crate::metrics::Metrics::queue)).
    pub fn new(backoff: Backoff, metrics: QueueMetrics) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Notify::new(),
            backoff,
            epoch: Instant::now(),
            metrics: metrics.clone(),
        });
        let weak = Arc::downgrade(&shared);
        metrics.watch(move || weak.upgrade().map(|shared| shared.snapshot()));
        Self { shared }
    }

    /// Wants the key worked on now.
    pub fn add(&self, key: impl Into<Key>) {
        self.shared.schedule(key.into(), Instant::now());
    }

    /// Wants the key worked on after this time. Not a failure.
    pub fn after(&self, key: impl Into<Key>, pause: Duration) {
        self.shared.schedule(key.into(), Instant::now() + pause);
    }

    /// Wants all keys that wait after a failure worked on now, because its cause may be gone. Their failures still count.
    pub fn retry_failed_now(&self) {
        let now = Instant::now();
        let mut state = lock(&self.shared.state);
        let waits = |entry: &Entry| entry.failures > 0 && matches!(entry.place, Place::Waiting(_));
        let failed = state.entries.iter().filter(|(_, entry)| waits(entry));
        let failed: Vec<Key> = failed.map(|(key, _)| key.clone()).collect();
        for key in failed {
            self.shared.schedule_locked(&mut state, key, now);
        }
        drop(state);
        self.shared.changed.notify_waiters();
    }

    /// Keys that are waiting for their time.
    pub fn waiting(&self) -> Vec<Key> {
        lock(&self.shared.state)
            .timers
            .iter()
            .map(|(_, key)| key.clone())
            .collect()
    }

    /// Where the key stands; None when nothing is left to do.
    pub fn look(&self, key: &str) -> Option<KeyState> {
        let now = Instant::now();
        let state = lock(&self.shared.state);
        let entry = state.entries.get(key)?;
        let place = match entry.place {
            Place::Running { .. } => KeyPlace::Running,
            Place::Waiting(at) => KeyPlace::Waiting(at.saturating_duration_since(now)),
            Place::Ready(_) | Place::Idle => KeyPlace::Ready,
        };
        Some(KeyState {
            place,
            failures: entry.failures,
            unfinished: now - entry.since,
        })
    }

    /// How much is left to do; for people.
    pub fn progress(&self) -> Progress {
        let now = Instant::now();
        let state = lock(&self.shared.state);
        let is_running = |entry: &&Entry| matches!(entry.place, Place::Running { .. });
        Progress {
            ready: state.ready.len(),
            in_work: state.entries.values().filter(is_running).count(),
            later: state.timers.len(),
            oldest: state.entries.values().map(|entry| now - entry.since).max(),
            last_done: state.last_done.map(|at| now - at),
            trouble: None,
        }
    }

    /// All keys that have something left to do, in no order.
    pub fn keys(&self) -> Vec<Key> {
        lock(&self.shared.state).entries.keys().cloned().collect()
    }

    /// How many keys have something left to do. Only these cost memory.
    pub fn len(&self) -> usize {
        lock(&self.shared.state).entries.len()
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
                let mut state = lock(&self.shared.state);
                if state.closed {
                    return None;
                }
                self.shared.wake_due(&mut state);
                if state.ready.is_empty() {
                    Err(state.timers.first().map(|(at, _)| *at))
                } else {
                    Ok(state.ready.len() >= max)
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
        let mut state = lock(&self.shared.state);
        if state.closed {
            return Vec::new();
        }
        self.shared.wake_due(&mut state);
        let now = Instant::now();
        let count = state.ready.len().min(max);
        let keys: Vec<Key> = state.ready.drain(..count).collect();
        for key in &keys {
            if let Some(entry) = state.entries.get_mut(key) {
                if let Place::Ready(since) = entry.place {
                    self.shared.metrics.waited(now - since);
                }
                entry.place = Place::Running {
                    since: now,
                    again: None,
                };
            }
        }
        keys.into_iter()
            .map(|key| Taken {
                key,
                shared: self.shared.clone(),
                span: Span::none(),
                finished: false,
            })
            .collect()
    }

    /// Ends all [`take`](Self::take)s.
    pub fn close(&self) {
        lock(&self.shared.state).closed = true;
        self.shared.changed.notify_waiters();
    }
}

impl Shared {
    fn schedule(&self, key: Key, at: Instant) {
        let mut state = lock(&self.state);
        self.schedule_locked(&mut state, key, at);
        drop(state);
        self.changed.notify_waiters();
    }

    fn schedule_locked(&self, state: &mut State, key: Key, at: Instant) {
        let now = Instant::now();
        let State {
            entries, ready, timers, ..
        } = state;
        let entry = entries.entry(key.clone()).or_insert(Entry {
            place: Place::Idle,
            failures: 0,
            since: now,
        });
        match &mut entry.place {
            // Pending already, and nothing is earlier than now.
            Place::Ready(_) => return,
            Place::Running { again, .. } => {
                *again = Some(again.map_or(at, |earlier| earlier.min(at)));
                return;
            }
            Place::Waiting(earlier) if *earlier <= at => return,
            Place::Waiting(later) => {
                timers.remove(&(*later, key.clone()));
            }
            Place::Idle => {}
        }
        if at <= now {
            entry.place = Place::Ready(now);
            self.metrics.added();
            ready.push_back(key);
        } else {
            entry.place = Place::Waiting(at);
            timers.insert((at, key));
        }
    }

    fn wake_due(&self, state: &mut State) {
        let now = Instant::now();
        while state.timers.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, key)) = state.timers.pop_first()
                && let Some(entry) = state.entries.get_mut(&key)
            {
                entry.place = Place::Ready(now);
                self.metrics.added();
                state.ready.push_back(key);
            }
        }
    }

    fn finish(&self, key: &Key, outcome: Outcome) {
        let now = Instant::now();
        let mut state = lock(&self.state);
        if outcome == Outcome::Done {
            state.last_done = Some(now);
        }
        let Some(entry) = state.entries.get_mut(key) else {
            return;
        };
        let Place::Running { since, again } = entry.place else {
            return;
        };
        self.metrics.worked(now - since);
        entry.place = Place::Idle;
        if outcome == Outcome::Done {
            entry.since = now;
        }
        let retry = self.retry_at(entry, outcome, now);
        match (again, retry) {
            (Some(again), Some(retry)) => self.schedule_locked(&mut state, key.clone(), again.min(retry)),
            (Some(at), None) | (None, Some(at)) => self.schedule_locked(&mut state, key.clone(), at),
            (None, None) => {
                state.entries.remove(key);
            }
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn retry_at(&self, entry: &mut Entry, outcome: Outcome, now: Instant) -> Option<Instant> {
        let retry = match outcome {
            Outcome::Done | Outcome::Retry(Retry::Never) => {
                entry.failures = 0;
                return None;
            }
            Outcome::Retry(Retry::After(pause)) => return Some(now + pause),
            Outcome::Retry(retry) => retry,
        };
        entry.failures = entry.failures.saturating_add(1);
        self.metrics.retried();
        Some(self.backoff.next(retry, entry.failures, now, self.epoch))
    }

    fn snapshot(&self) -> Snapshot {
        let now = Instant::now();
        let state = lock(&self.state);
        let mut snapshot = Snapshot {
            depth: state.ready.len(),
            unfinished: state.entries.len(),
            ..Snapshot::default()
        };
        for entry in state.entries.values() {
            if let Place::Running { since, .. } = entry.place {
                let seconds = (now - since).as_secs_f64();
                snapshot.unfinished_seconds += seconds;
                snapshot.longest_seconds = snapshot.longest_seconds.max(seconds);
            }
        }
        snapshot
    }
}

/// A key that is being worked on. Nobody else gets it until [`finish`](Self::finish); dropping it counts as a failure.
#[must_use]
pub struct Taken {
    key: Key,
    shared: Arc<Shared>,
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
        lock(&self.shared.state)
            .entries
            .get(&self.key)
            .map_or(0, |entry| entry.failures)
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
