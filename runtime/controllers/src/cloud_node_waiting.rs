//! Which Nodes wait for their initialisation, since when, and when to say so in an Event (N7: upstream never does).
//! Pure; the clock is passed in.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::watch::Key;

/// A Node that needed this many attempts is worth an Event.
const ATTEMPTS: u32 = 3;
/// So is one that waited this long.
const WAITED: Duration = Duration::from_secs(10);
/// The next Event about the same Node comes this much later at the earliest.
const AGAIN: Duration = Duration::from_secs(300);

#[derive(Debug)]
struct Wait {
    since: Instant,
    attempts: u32,
    told: Option<Instant>,
}

/// The Nodes that wait.
#[derive(Debug, Default)]
pub struct Waiting {
    nodes: HashMap<Key, Wait>,
}

impl Waiting {
    /// An attempt failed. Answers whether it is time for an Event.
    pub fn failed(&mut self, key: &Key, now: Instant) -> bool {
        let wait = self.nodes.entry(key.clone()).or_insert(Wait {
            since: now,
            attempts: 0,
            told: None,
        });
        wait.attempts += 1;
        let due = match wait.told {
            Some(told) => now - told >= AGAIN,
            None => wait.attempts >= ATTEMPTS || now - wait.since >= WAITED,
        };
        if due {
            wait.told = Some(now);
        }
        due
    }

    /// It is initialised or gone.
    pub fn done(&mut self, key: &Key) {
        self.nodes.remove(key);
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
        let (mut waiting, start, key) = (Waiting::default(), Instant::now(), Key::from("a"));
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(
            [0, 1, 2, 3, 301, 302, 303, 602].map(|seconds| waiting.failed(&key, at(seconds))),
            [false, false, true, false, false, true, false, true]
        );
    }

    #[test]
    fn an_event_comes_after_ten_seconds_however_few_the_attempts() {
        let (mut waiting, start, key) = (Waiting::default(), Instant::now(), Key::from("a"));
        assert!(!waiting.failed(&key, start));
        assert!(waiting.failed(&key, start + Duration::from_secs(10)));
    }

    #[test]
    fn a_node_that_is_done_starts_anew() {
        let (mut waiting, start, key) = (Waiting::default(), Instant::now(), Key::from("a"));
        for _ in 0..3 {
            waiting.failed(&key, start);
        }
        waiting.done(&key);
        assert!(waiting.keys().is_empty());
        assert!(!waiting.failed(&key, start));
    }
}
