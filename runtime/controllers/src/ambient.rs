//! Wall time and jitter; a simulation replaces both for its thread.
//!
//! Everything else that the controllers do depends on their inputs and on tokio's clock alone, so a run with a paused clock and a seed
//! can be repeated step by step.

use std::cell::RefCell;
use std::ops::Range;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::Instant;

thread_local! {
    static SIMULATED: RefCell<Option<Simulated>> = const { RefCell::new(None) };
}

struct Simulated {
    wall: Timestamp,
    began: Instant,
    random: StdRng,
}

/// Ends a simulation on its thread when it is dropped.
#[must_use]
pub struct Simulation(());

impl Drop for Simulation {
    fn drop(&mut self) {
        SIMULATED.set(None);
    }
}

/// From now on, on this thread, wall time is `wall` plus what passes on tokio's clock, and jitter comes from `seed`.
pub fn simulate(wall: Timestamp, seed: u64) -> Simulation {
    SIMULATED.set(Some(Simulated {
        wall,
        began: Instant::now(),
        random: StdRng::seed_from_u64(seed),
    }));
    Simulation(())
}

/// The wall time.
pub fn now() -> Timestamp {
    SIMULATED.with_borrow(|simulated| match simulated {
        // A simulation lasts days, not the ten thousand years after which this fails.
        Some(simulated) => simulated
            .wall
            .checked_add(simulated.began.elapsed())
            .unwrap_or(Timestamp::MAX),
        None => Timestamp::now(),
    })
}

/// How long ago that was; nothing for what is still to come.
pub(crate) fn since(time: &Time) -> Duration {
    Duration::try_from(now().duration_since(time.0)).unwrap_or_default()
}

/// A random factor in `range`, so that what began together does not come back together.
pub(crate) fn jitter(range: Range<f64>) -> f64 {
    SIMULATED.with_borrow_mut(|simulated| match simulated {
        Some(simulated) => simulated.random.random_range(range),
        None => rand::random_range(range),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_simulation_repeats_and_ends() {
        let run = async || {
            let _simulation = simulate(Timestamp::UNIX_EPOCH, 7);
            tokio::time::sleep(Duration::from_secs(90)).await;
            (now(), jitter(0.0..1.0))
        };
        let first = run().await;
        assert_eq!(first.0.as_second(), 90);
        assert_eq!(first, run().await);
        assert!(now().as_second() > 1_000_000_000);
    }
}
