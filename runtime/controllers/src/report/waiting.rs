//! Nodes with failed attempts: since when, why, and when an Event is due. Pure; the clock is passed in.
//!
//! An attempt is an initialisation, or the question whether the machine still exists (N7: upstream never says so).

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::kube::cache::Key;

/// A Node that needed this many attempts is worth an Event.
const ATTEMPTS: u32 = 3;
/// So is one that waited this long.
const WAITED: Duration = Duration::from_secs(10);
/// The next Event about the same Node comes this much later at the earliest.
const AGAIN: Duration = Duration::from_secs(300);
/// More of a reason is not remembered: thousands of Nodes may wait.
const REASON_BYTES: usize = 300;

#[derive(Debug)]
struct Wait {
    since: Instant,
    attempts: u32,
    told: Option<Instant>,
    /// Why the last attempt failed, cut to [`REASON_BYTES`].
    reason: Arc<str>,
}

/// What is known about a Node that waits; for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StillWaiting {
    /// For how long.
    pub waited: Duration,
    /// Attempts that failed.
    pub attempts: u32,
    /// Why the last one did.
    pub reason: Arc<str>,
}

/// The Nodes that wait.
#[derive(Debug, Default)]
pub struct FailedAttempts {
    nodes: BTreeMap<Key, Wait>,
}

impl FailedAttempts {
    /// An attempt failed. Answers whether it is time for an Event.
    pub fn failed(&mut self, key: &Key, reason: &str, now: Instant) -> bool {
        let wait = self.nodes.entry(key.clone()).or_insert(Wait {
            since: now,
            attempts: 0,
            told: None,
            reason: Arc::default(),
        });
        wait.attempts += 1;
        let reason = &reason[..reason.floor_char_boundary(REASON_BYTES)];
        if *wait.reason != *reason {
            wait.reason = reason.into();
        }
        let due = match wait.told {
            Some(told) => now - told >= AGAIN,
            None => wait.attempts >= ATTEMPTS || now - wait.since >= WAITED,
        };
        if due {
            wait.told = Some(now);
        }
        due
    }

    /// The next attempt is far away, so it has to be told now. Answers whether it was not told before.
    pub fn is_first_report(&mut self, key: &str, now: Instant) -> bool {
        let Some(wait) = self.nodes.get_mut(key).filter(|wait| wait.told.is_none()) else {
            return false;
        };
        wait.told = Some(now);
        true
    }

    /// Forgets all but these.
    pub fn keep_only(&mut self, keys: &HashSet<&str>) {
        self.nodes.retain(|key, _| keys.contains(&**key));
    }

    /// It has its answer or is gone.
    pub fn done(&mut self, key: &str) {
        self.nodes.remove(key);
    }

    /// What is known about a Node; None when no attempt has failed.
    pub fn about(&self, key: &str, now: Instant) -> Option<StillWaiting> {
        self.nodes.get(key).map(|wait| StillWaiting {
            waited: now - wait.since,
            attempts: wait.attempts,
            reason: wait.reason.clone(),
        })
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All that wait.
    pub fn keys(&self) -> Vec<Key> {
        self.nodes.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_comes_with_the_third_attempt_and_then_every_five_minutes() {
        let (mut waiting, start, key) = (FailedAttempts::default(), Instant::now(), Key::from("a"));
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(
            [0, 1, 2, 3, 301, 302, 303, 602].map(|seconds| waiting.failed(&key, "no", at(seconds))),
            [false, false, true, false, false, true, false, true]
        );
    }

    #[test]
    fn what_is_not_tried_again_soon_is_told_at_once_and_once() {
        let (mut waiting, start, key) = (FailedAttempts::default(), Instant::now(), Key::from("a"));
        assert!(!waiting.is_first_report("a", start), "nothing has failed");
        assert!(!waiting.failed(&key, "denied", start));
        assert!(waiting.is_first_report("a", start));
        assert!(!waiting.is_first_report("a", start));
        let soon = start + Duration::from_secs(20);
        assert!(!waiting.failed(&key, "denied", soon), "it was told");
        assert!(waiting.failed(&key, "denied", start + AGAIN));
    }

    #[test]
    fn the_last_reason_is_known_and_short() {
        let (mut waiting, start, key) = (FailedAttempts::default(), Instant::now(), Key::from("a"));
        assert_eq!(waiting.about("a", start), None);
        waiting.failed(&key, &"\u{e4}".repeat(1000), start);
        waiting.failed(&key, "unavailable: down", start);
        let about = waiting.about("a", start + Duration::from_secs(7)).unwrap();
        assert_eq!(
            (about.waited.as_secs(), about.attempts, &*about.reason),
            (7, 2, "unavailable: down")
        );
        waiting.failed(&key, &"\u{e4}".repeat(1000), start);
        assert_eq!(waiting.about("a", start).unwrap().reason.len(), REASON_BYTES);
    }

    #[test]
    fn an_event_comes_after_ten_seconds_however_few_the_attempts() {
        let (mut waiting, start, key) = (FailedAttempts::default(), Instant::now(), Key::from("a"));
        assert!(!waiting.failed(&key, "no", start));
        assert!(waiting.failed(&key, "no", start + Duration::from_secs(10)));
    }

    #[test]
    fn only_nodes_that_are_still_asked_about_cost_memory() {
        let (mut waiting, start) = (FailedAttempts::default(), Instant::now());
        for name in ["a", "b"] {
            waiting.failed(&Key::from(name), "no", start);
        }
        waiting.keep_only(&HashSet::from(["b"]));
        assert_eq!(waiting.keys(), [Key::from("b")]);
    }

    #[test]
    fn a_node_that_is_done_starts_anew() {
        let (mut waiting, start, key) = (FailedAttempts::default(), Instant::now(), Key::from("a"));
        for _ in 0..3 {
            waiting.failed(&key, "no", start);
        }
        waiting.done(&key);
        assert!(waiting.keys().is_empty());
        assert!(!waiting.failed(&key, "no", start));
    }
}
