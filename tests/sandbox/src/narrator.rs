//! One readable line for each step, with the time since the start.

use std::time::Instant;

/// Tells what happens.
#[derive(Debug)]
pub struct Narrator {
    started: Instant,
}

impl Narrator {
    /// Begins to count.
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
        }
    }

    /// One line.
    pub fn say(&self, line: &str) {
        println!("{:>6.1} s  {line}", self.started.elapsed().as_secs_f64());
    }

    /// A line without a time, below the one before.
    pub fn detail(&self, line: &str) {
        println!("          {line}");
    }
}
