//! What a queue looks like at one moment, for metrics, health and the status page.

use std::time::Duration;

/// What a queue looks like at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueSnapshot {
    /// The queue's name in metrics.
    pub name: &'static str,
    /// Keys that a worker takes as soon as one is free.
    pub ready: usize,
    /// Keys that are being worked on.
    pub in_work: usize,
    /// Keys that wait for their time.
    pub later: usize,
    /// Time for which the oldest of all these has had something left to do.
    pub oldest: Option<Duration>,
    /// Time since work on a key last ended with nothing left to do.
    pub last_done: Option<Duration>,
    /// Time of work in progress, of all keys together.
    pub work: Duration,
    /// Time of the longest work in progress.
    pub longest_work: Duration,
}

impl QueueSnapshot {
    /// Keys that have something left to do.
    pub fn unfinished(&self) -> usize {
        self.ready + self.in_work + self.later
    }
}
