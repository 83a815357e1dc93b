//! Passes of a loop that has no queue, and when each last took a step: a loop that stands still can be told from one that has much to do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::time::Instant;

use crate::sync::lock;

/// The passes under way; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Passes(Arc<Mutex<UnderWay>>);

#[derive(Debug, Default)]
struct UnderWay {
    begun: u64,
    steps: HashMap<u64, Instant>,
}

impl Passes {
    /// A pass begins; it ends when the answer is dropped.
    pub(crate) fn begin(&self) -> Pass {
        let mut under_way = lock(&self.0);
        under_way.begun += 1;
        let pass = under_way.begun;
        under_way.steps.insert(pass, Instant::now());
        Pass {
            passes: self.clone(),
            number: pass,
        }
    }

    /// Seconds since the last step of the pass whose last step is the longest ago; none between passes.
    pub(crate) fn longest_step(&self) -> Option<f64> {
        let under_way = lock(&self.0);
        let first = under_way.steps.values().min()?;
        Some(first.elapsed().as_secs_f64())
    }
}

/// One pass.
#[derive(Debug)]
pub struct Pass {
    passes: Passes,
    number: u64,
}

impl Pass {
    /// It took a step.
    pub(crate) fn goes_on(&self) {
        lock(&self.passes.0).steps.insert(self.number, Instant::now());
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        lock(&self.passes.0).steps.remove(&self.number);
    }
}
