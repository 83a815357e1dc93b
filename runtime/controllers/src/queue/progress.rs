//! How much a controller has to do.

use std::time::Duration;

/// How much a controller has to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// What a worker takes as soon as one is free.
    pub ready: usize,
    /// What is being worked on.
    pub in_work: usize,
    /// What waits for its time: after a failure, or because the cloud is not ready.
    pub later: usize,
    /// For how long the oldest of all these has been left to do.
    pub oldest: Option<Duration>,
    /// For how long nothing has been finished; none when nothing ever was.
    pub last_done: Option<Duration>,
    /// What holds up the controller as a whole.
    pub trouble: Option<Trouble>,
}

/// A question about everything that the cloud did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What could not be done and why, in one sentence.
    pub what: String,
    /// Time until the next try.
    pub next: Duration,
}
