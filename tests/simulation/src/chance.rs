//! Draws from the seed.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// The only source of chance of a simulated day, besides the jitter of the product and its libraries, which have the same seed.
pub(crate) struct Chance(StdRng);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// True once in `times` draws.
    pub(crate) fn once_in(&mut self, times: u32) -> bool {
        self.0.random_range(0..times) == 0
    }

    /// True in so many percent of draws.
    pub(crate) fn percent(&mut self, percent: u32) -> bool {
        self.0.random_range(0..100) < percent
    }

    pub(crate) fn number(&mut self, from: u64, to: u64) -> u64 {
        self.0.random_range(from..=to)
    }

    pub(crate) fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(self.number(from, to))
    }

    pub(crate) fn seconds(&mut self, from: u64, to: u64) -> Duration {
        self.millis(from * 1000, to * 1000)
    }

    /// One of several; none of none.
    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        if of.is_empty() {
            return None;
        }
        of.get(self.0.random_range(0..of.len()))
    }
}
