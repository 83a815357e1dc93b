//! How many Events of the routine are written: those that say of one object of many that all went as it should. Pure;
//! the clock is passed in.
//!
//! When a thousand Nodes join at once, a thousand times "Node synced successfully" is a third of all writes, and
//! nobody reads it. All objects share this budget, so a few Nodes keep their Event and a wave does not. It is asked
//! before the queue: what is over it takes nobody's place there. Warnings, deletions and all Events of Services are
//! no routine; they know only the limits of [`event_folding`](crate::event_folding).

use std::time::Duration;

use tokio::time::Instant;

/// Events that may be written at once. client-go allows an object as many (`client-go tools/record`).
pub const BURST: f64 = 25.0;
/// After the burst, one every so often.
pub const REFILL: Duration = Duration::from_secs(1);

/// What is left of the budget.
#[derive(Debug)]
pub struct Budget {
    tokens: f64,
    at: Instant,
}

impl Budget {
    /// With the whole burst left.
    pub fn new(now: Instant) -> Self {
        Self { tokens: BURST, at: now }
    }

    /// Takes one Event's worth; false when nothing is left.
    pub fn take(&mut self, now: Instant) -> bool {
        let refilled = now.saturating_duration_since(self.at).as_secs_f64() / REFILL.as_secs_f64();
        self.tokens = (self.tokens + refilled).min(BURST);
        self.at = now;
        if self.tokens < 1.0 {
            return false;
        }
        self.tokens -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(budget: &mut Budget, of: usize, now: Instant) -> usize {
        (0..of).filter(|_| budget.take(now)).count()
    }

    #[test]
    fn a_wave_has_the_burst_and_then_one_event_a_second() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        assert_eq!(taken(&mut budget, 1000, start), 25);
        assert_eq!(taken(&mut budget, 1000, start + Duration::from_millis(900)), 0);
        assert_eq!(taken(&mut budget, 1000, start + Duration::from_secs(4)), 4);
    }

    #[test]
    fn what_is_not_used_for_long_is_one_burst_and_no_more() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        assert_eq!(taken(&mut budget, 10, start), 10);
        assert_eq!(taken(&mut budget, 1000, start + Duration::from_secs(86_400)), 25);
    }

    #[test]
    fn a_node_every_second_is_told_of_each_time() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        let told = (0..1000).filter(|second| budget.take(start + Duration::from_secs(*second)));
        assert_eq!(told.count(), 1000);
    }
}
