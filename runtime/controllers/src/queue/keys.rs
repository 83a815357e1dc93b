//! State of the keys of one queue. No task and no lock; the clock is passed in.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::time::Duration;

use cloudwit_model::Retry;
use tokio::time::Instant;

use crate::kube::cache::Key;
use crate::metrics::queue::QueueMetrics;
use crate::queue::Outcome;
use crate::queue::backoff::Backoff;
use crate::queue::snapshot::QueueSnapshot;

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

/// All keys that have something left to do.
pub(super) struct Keys {
    entries: BTreeMap<Key, Entry>,
    ready: VecDeque<Key>,
    timers: BTreeSet<(Instant, Key)>,
    /// When work on a key last ended with nothing left to do.
    last_done: Option<Instant>,
    closed: bool,
    backoff: Backoff,
    epoch: Instant,
    metrics: QueueMetrics,
}

impl Keys {
    pub(super) fn new(backoff: Backoff, metrics: QueueMetrics) -> Self {
        Self {
            entries: BTreeMap::new(),
            ready: VecDeque::new(),
            timers: BTreeSet::new(),
            last_done: None,
            closed: false,
            backoff,
            epoch: Instant::now(),
            metrics,
        }
    }

    pub(super) fn schedule(&mut self, key: Key, at: Instant, now: Instant) {
        let entry = self.entries.entry(key.clone()).or_insert(Entry {
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
                self.timers.remove(&(*later, key.clone()));
            }
            Place::Idle => {}
        }
        if at <= now {
            entry.place = Place::Ready(now);
            self.metrics.added();
            self.ready.push_back(key);
        } else {
            entry.place = Place::Waiting(at);
            self.timers.insert((at, key));
        }
    }

    /// Schedules all keys that wait after a failure for now.
    pub(super) fn schedule_failed(&mut self, now: Instant) {
        let waits = |entry: &Entry| entry.failures > 0 && matches!(entry.place, Place::Waiting(_));
        let failed = self.entries.iter().filter(|(_, entry)| waits(entry));
        let failed: Vec<Key> = failed.map(|(key, _)| key.clone()).collect();
        failed.into_iter().for_each(|key| self.schedule(key, now, now));
    }

    /// How many keys are ready now.
    pub(super) fn ready(&mut self, now: Instant) -> usize {
        while self.timers.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, key)) = self.timers.pop_first()
                && let Some(entry) = self.entries.get_mut(&key)
            {
                entry.place = Place::Ready(now);
                self.metrics.added();
                self.ready.push_back(key);
            }
        }
        self.ready.len()
    }

    /// When the next key that waits is ready.
    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Up to `max` ready keys, whose work begins; none once closed.
    pub(super) fn take(&mut self, max: usize, now: Instant) -> Vec<Key> {
        if self.closed {
            return Vec::new();
        }
        let count = self.ready(now).min(max);
        let keys = self.ready.drain(..count).collect();
        self.begin(keys, now)
    }

    /// Up to `max` ready keys, the next first.
    pub(super) fn ready_keys(&mut self, max: usize, now: Instant) -> Vec<Key> {
        self.ready(now);
        self.ready.iter().take(max).cloned().collect()
    }

    /// Those of these keys that are ready, whose work begins; none once closed.
    pub(super) fn take_these(&mut self, wanted: &[Key], now: Instant) -> Vec<Key> {
        if self.closed || wanted.is_empty() {
            return Vec::new();
        }
        let wanted: HashSet<&Key> = wanted.iter().collect();
        let ready: Vec<Key> = std::mem::take(&mut self.ready).into();
        let (taken, left): (Vec<Key>, Vec<Key>) = ready.into_iter().partition(|key| wanted.contains(key));
        self.ready = left.into();
        self.begin(taken, now)
    }

    fn begin(&mut self, keys: Vec<Key>, now: Instant) -> Vec<Key> {
        for key in &keys {
            if let Some(entry) = self.entries.get_mut(key) {
                if let Place::Ready(since) = entry.place {
                    self.metrics.waited(now - since);
                }
                entry.place = Place::Running {
                    since: now,
                    again: None,
                };
            }
        }
        keys
    }

    /// Work on the key has ended. Whether it was being worked on.
    pub(super) fn finish(&mut self, key: &Key, outcome: Outcome, now: Instant) -> bool {
        if outcome == Outcome::Done {
            self.last_done = Some(now);
        }
        let Some(entry) = self.entries.get_mut(key) else {
            return false;
        };
        let Place::Running { since, again } = entry.place else {
            return false;
        };
        self.metrics.worked(now - since);
        entry.place = Place::Idle;
        let retry = match outcome {
            Outcome::Done | Outcome::Retry(Retry::Never) => {
                entry.failures = 0;
                None
            }
            Outcome::Retry(Retry::After(pause)) => Some(now + pause),
            Outcome::Retry(retry) => {
                entry.failures = entry.failures.saturating_add(1);
                self.metrics.retried();
                Some(self.backoff.next(retry, entry.failures, now, self.epoch))
            }
        };
        if outcome == Outcome::Done {
            entry.since = now;
        }
        match again.into_iter().chain(retry).min() {
            Some(at) => self.schedule(key.clone(), at, now),
            None => {
                self.entries.remove(key);
            }
        }
        true
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn all(&self) -> Vec<Key> {
        self.entries.keys().cloned().collect()
    }

    pub(super) fn waiting(&self) -> Vec<Key> {
        self.timers.iter().map(|(_, key)| key.clone()).collect()
    }

    /// Failures of a key in a row.
    pub(super) fn failures(&self, key: &str) -> u32 {
        self.entries.get(key).map_or(0, |entry| entry.failures)
    }

    pub(super) fn state(&self, key: &str, now: Instant) -> Option<KeyState> {
        let entry = self.entries.get(key)?;
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

    pub(super) fn snapshot(&self, now: Instant) -> QueueSnapshot {
        let mut snapshot = QueueSnapshot {
            ready: self.ready.len(),
            later: self.timers.len(),
            oldest: self.entries.values().map(|entry| now - entry.since).max(),
            last_done: self.last_done.map(|at| now - at),
            ..QueueSnapshot::default()
        };
        for entry in self.entries.values() {
            if let Place::Running { since, .. } = entry.place {
                snapshot.in_work += 1;
                snapshot.work += now - since;
                snapshot.longest_work = snapshot.longest_work.max(now - since);
            }
        }
        snapshot
    }
}
