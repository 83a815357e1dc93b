//! Heartbeats of a loop without a queue: distinguishes a hanging loop from a busy one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use crate::sync::lock;

/// The runs in progress; clones share them.
#[derive(Debug, Clone, Default)]
pub struct ReconcileClock(Arc<Mutex<Runs>>);

#[derive(Debug, Default)]
struct Runs {
    begun: u64,
    steps: HashMap<u64, Instant>,
}

impl ReconcileClock {
    /// A run begins; it ends when the answer is dropped.
    pub(crate) fn begin(&self) -> ReconcileRun {
        let mut runs = lock(&self.0);
        runs.begun += 1;
        let number = runs.begun;
        runs.steps.insert(number, Instant::now());
        ReconcileRun {
            clock: self.clone(),
            number,
        }
    }

    /// Time since the last step of the run whose last step is the longest ago; none between runs.
    pub(crate) fn longest_step(&self) -> Option<Duration> {
        let runs = lock(&self.0);
        runs.steps.values().min().map(Instant::elapsed)
    }
}

/// One run.
#[derive(Debug)]
pub struct ReconcileRun {
    clock: ReconcileClock,
    number: u64,
}

impl ReconcileRun {
    /// It took a step.
    pub(crate) fn heartbeat(&self) {
        lock(&self.clock.0).steps.insert(self.number, Instant::now());
    }
}

impl Drop for ReconcileRun {
    fn drop(&mut self) {
        lock(&self.clock.0).steps.remove(&self.number);
    }
}
