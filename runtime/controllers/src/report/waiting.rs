//! Nodes with failed attempts: since when, why, and when an Event is due. Pure; the clock is passed in.
//!
//! An attempt is an initialisation, or the question whether the machine still exists (N7: upstream never says so).

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use tokio::time::Instant;

use crate::kube::cache::Key;
use crate::report::cause::Cause;

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
    cause: Cause,
}

/// What is known about a Node that waits; for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StillWaiting {
    /// For how long.
    pub waited: Duration,
    /// Attempts that failed.
    pub attempts: u32,
    /// Why the last one did.
    pub cause: Cause,
}

/// The Nodes that wait.
#[derive(Debug, Default)]
pub struct FailedAttempts {
    nodes: BTreeMap<Key, Wait>,
}

impl FailedAttempts {
    /// An attempt failed. Answers whether it is time for an Event.
    pub fn failed(&mut self, key: &Key, cause: &Cause, now: Instant) -> bool {
        let cause = cause.cut(REASON_BYTES);
        let wait = self.nodes.entry(key.clone()).or_insert_with(|| Wait {
            since: now,
            attempts: 0,
            told: None,
            cause: cause.clone(),
        });
        wait.attempts += 1;
        if wait.cause != cause {
            wait.cause = cause;
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

    /// The next attempt is far away, so it has to be reported now. Returns whether it was not reported before.
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
            cause: wait.cause.clone(),
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
    fn event_comes_at_third_attempt_then_every_five_minutes() {
        let (mut waiting, start, key) = (FailedAttempts::default(), Instant::now(), Key::from("a"));
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(
            [0, 1, 2, 3, 301, 302, 303, 602].map(|seconds| waiting.failed(&key, &"no".into(), at(seconds))),
            [false, false, true, false, false, true, false, true]
        );
    }

    #[test]
    fn final_failure_is_reported_at_once_and_once() {
        let (mut waiting, start, key) = (FailedAttempts::default(), Instant::now(), Key::from("a"));
        assert!(!waiting.is_first_report("a", start), "nothing has failed");
        assert!(!waiting.failed(&key, &"denied".into(), start));
        assert!(waiting.is_first_report("a", start));
        assert!(!waiting.is_first_report("a", start));
        let soon = start + Duration::from_secs(20);
        assert!(!waiting.failed(&key, &"denied".into(), soon), "it was told");
        assert!(waiting.failed(&key, &"denied".into(), start + AGAIN));
    }

    #[test]
    fn last_reason_is_known_and_short() {
        let (mut waiting, start, key) = (FailedAttempts::default(), Instant::now(), Key::from("a"));
        assert_eq!(waiting.about("a", start), None);
        waiting.failed(&key, &"\u{e4}".repeat(1000).as_str().into(), start);
        waiting.failed(&key, &"unavailable: down".into(), start);
        let about = waiting.about("a", start + Duration::from_secs(7)).unwrap();
        assert_eq!(
            (about.waited.as_secs(), about.attempts, &*about.cause.reason),
            (7, 2, "unavailable: down")
        );
        waiting.failed(&key, &"\u{e4}".repeat(1000).as_str().into(), start);
        assert_eq!(waiting.about("a", start).unwrap().cause.reason.len(), REASON_BYTES);
    }

    #[test]
    fn an_event_comes_after_ten_seconds_however_few_the_attempts() {
        let (mut waiting, start, key) = (FailedAttempts::default(), Instant::now(), Key::from("a"));
        assert!(!waiting.failed(&key, &"no".into(), start));
        assert!(waiting.failed(&key, &"no".into(), start + Duration::from_secs(10)));
    }

    #[test]
    fn only_nodes_that_are_still_looked_up_cost_memory() {
        let (mut waiting, start) = (FailedAttempts::default(), Instant::now());
        for name in ["a", "b"] {
            waiting.failed(&Key::from(name), &"no".into(), start);
        }
        waiting.keep_only(&HashSet::from(["b"]));
        assert_eq!(waiting.keys(), [Key::from("b")]);
    }

    #[test]
    fn a_node_that_is_done_starts_anew() {
        let (mut waiting, start, key) = (FailedAttempts::default(), Instant::now(), Key::from("a"));
        for _ in 0..3 {
            waiting.failed(&key, &"no".into(), start);
        }
        waiting.done(&key);
        assert!(waiting.keys().is_empty());
        assert!(!waiting.failed(&key, &"no".into(), start));
    }
}
