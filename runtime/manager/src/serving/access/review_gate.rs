//! Rate limit of new reviews, so that a flood does not displace known ones.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cloudwit_controllers::kube::events::budget::Budget;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::serving::access::review_cache::Digest;

/// Time for one more new question, and how many may come at once. A scraper has one token and one path.
const REFILL: Duration = Duration::from_millis(100);
const BURST: f64 = 50.0;

/// New questions under way at a time, a part of those of the reviewer.
const NEW_AT_A_TIME: usize = 8;

/// A token counts as known for so long after its last good answer, and so many do.
const KNOWN_FOR: Duration = Duration::from_secs(3600);
const KNOWN: usize = 1024;

/// The gate; clones share it.
#[derive(Clone)]
pub struct ReviewGate(Arc<Shared>);

struct Shared {
    state: Mutex<GateState>,
    new: Arc<Semaphore>,
}

struct GateState {
    new: Budget,
    good: HashMap<Digest, Instant>,
}

/// A permit to send a review; held until its end.
pub struct ReviewTurn(
    #[expect(dead_code, reason = "held until the question is answered")] Option<OwnedSemaphorePermit>,
);

impl Default for ReviewGate {
    fn default() -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(GateState {
                new: Budget::with_burst(BURST, REFILL, Instant::now()),
                good: HashMap::new(),
            }),
            new: Arc::new(Semaphore::new(NEW_AT_A_TIME)),
        }))
    }
}

impl ReviewGate {
    /// Whether this review may be sent now: always when its last answer was good, else at a bounded rate.
    pub fn enter(&self, question: &Digest) -> Option<ReviewTurn> {
        let now = Instant::now();
        let mut state = self.0.state.lock();
        if state.good.get(question).is_some_and(|since| now - *since < KNOWN_FOR) {
            return Some(ReviewTurn(None));
        }
        let permit = self.0.new.clone().try_acquire_owned().ok()?;
        state.new.take(now).then_some(ReviewTurn(Some(permit)))
    }

    /// This question had a good answer.
    pub fn good(&self, question: Digest) {
        let now = Instant::now();
        let mut state = self.0.state.lock();
        if state.good.len() >= KNOWN {
            state.good.retain(|_, since| now - *since < KNOWN_FOR);
            let oldest = state
                .good
                .iter()
                .min_by_key(|(_, since)| **since)
                .map(|(question, _)| *question);
            if let Some(oldest) = oldest.filter(|_| state.good.len() >= KNOWN) {
                state.good.remove(&oldest);
            }
        }
        state.good.insert(question, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(number: u32) -> Digest {
        let mut digest = [0; 32];
        digest[..4].copy_from_slice(&number.to_le_bytes());
        digest
    }

    #[tokio::test(start_paused = true)]
    async fn flood_of_new_questions_is_limited_and_known_ones_pass() {
        let gate = ReviewGate::default();
        gate.good(question(0));
        let asked = (1..10_000)
            .filter(|number| gate.enter(&question(*number)).is_some())
            .count();
        assert_eq!(asked, 50);
        assert!(gate.enter(&question(0)).is_some());
        tokio::time::advance(Duration::from_secs(1)).await;
        let asked = (1..10_000)
            .filter(|number| gate.enter(&question(*number)).is_some())
            .count();
        assert_eq!(asked, 10);
        tokio::time::advance(KNOWN_FOR).await;
        let turns: Vec<_> = (0..20).filter_map(|number| gate.enter(&question(number))).collect();
        assert_eq!(turns.len(), NEW_AT_A_TIME, "under way at a time");
    }

    #[tokio::test(start_paused = true)]
    async fn known_questions_are_bounded() {
        let gate = ReviewGate::default();
        for number in 0..5000 {
            gate.good(question(number));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        let state = gate.0.state.lock();
        assert_eq!(state.good.len(), KNOWN);
        assert!(state.good.contains_key(&question(4999)) && !state.good.contains_key(&question(0)));
    }
}
