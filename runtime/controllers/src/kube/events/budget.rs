//! Token bucket for Events: a burst, then one per interval. Pure; the clock is passed in.
//!
//! Each object has such a budget from each component ([`kube::events::folding`](crate::kube::events::folding)). The Events of the routine,
//! which say of one object of many that all went as it should, have one together: when a thousand Nodes join at once, a
//! thousand times "Node synced successfully" is a third of all writes, and it is not read. So a few Nodes keep their Event
//! and a wave does not. It is checked before the queue: what is over it takes no place there. Warnings, deletions and
//! all Events of Services are no routine; only the limits of their object apply.

use std::time::Duration;

use tokio::time::Instant;

/// Events that may be written at once. client-go allows an object as many (`client-go tools/record`).
pub const BURST: f64 = 25.0;
/// After the burst, the routine has one every so often.
pub const ROUTINE_REFILL: Duration = Duration::from_secs(1);

/// What is left of the budget.
#[derive(Debug)]
pub struct Budget {
    tokens: f64,
    burst: f64,
    refill: Duration,
    at: Instant,
}

impl Budget {
    /// With the whole burst of Events left; `refill` is the time for one more.
    pub fn new(refill: Duration, now: Instant) -> Self {
        Self::with_burst(BURST, refill, now)
    }

    /// The same for something else than Events, with another burst.
    pub fn with_burst(burst: f64, refill: Duration, now: Instant) -> Self {
        Self {
            tokens: burst,
            burst,
            refill,
            at: now,
        }
    }

    /// When it was used last.
    pub fn last_taken(&self) -> Instant {
        self.at
    }

    /// Whether the whole burst is left again, whatever was taken.
    pub fn is_as_new(&self, now: Instant) -> bool {
        now - self.at >= self.refill.mul_f64(self.burst)
    }

    /// Takes one; false when nothing is left.
    pub fn take(&mut self, now: Instant) -> bool {
        let refilled = (now - self.at).as_secs_f64() / self.refill.as_secs_f64();
        self.tokens = (self.tokens + refilled).min(self.burst);
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
        let mut budget = Budget::new(ROUTINE_REFILL, start);
        assert_eq!(taken(&mut budget, 1000, start), 25);
        assert_eq!(taken(&mut budget, 1000, start + Duration::from_millis(900)), 0);
        assert_eq!(taken(&mut budget, 1000, start + Duration::from_secs(4)), 4);
    }

    #[test]
    fn what_is_not_used_for_long_is_one_burst_and_no_more() {
        let start = Instant::now();
        let mut budget = Budget::new(ROUTINE_REFILL, start);
        assert_eq!(taken(&mut budget, 10, start), 10);
        assert_eq!(taken(&mut budget, 1000, start + Duration::from_secs(86_400)), 25);
    }

    #[test]
    fn node_per_second_is_reported_each_time() {
        let start = Instant::now();
        let mut budget = Budget::new(ROUTINE_REFILL, start);
        let told = (0..1000).filter(|second| budget.take(start + Duration::from_secs(*second)));
        assert_eq!(told.count(), 1000);
    }
}
