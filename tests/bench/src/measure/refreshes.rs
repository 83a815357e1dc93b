//! Counts how often a side refreshes the addresses of all Nodes, by what the cloud is asked: each side waits for its period after a refresh, however long
//! that one took, so that the clock alone does not tell how many there were.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::scene::Scene;

/// So many Nodes, at most, Cloudwit's provider asks the simulated cloud about in one request.
pub const NODES_A_CALL: usize = 1_000;

/// Requests of the cloud for a refresh of so many Nodes.
pub fn calls_for(nodes: usize) -> u64 {
    nodes.div_ceil(NODES_A_CALL) as u64
}

/// From one look at what the cloud was asked to the next.
const LOOK: Duration = Duration::from_millis(500);

/// Longer than a side needs from one call to the next, shorter than the pause between two refreshes.
const PAUSE: Duration = Duration::from_secs(2);

/// Some pause comes within that time.
const LIMIT: Duration = Duration::from_secs(300);

/// What was seen since the cloud's counters were reset.
#[derive(Debug, Default)]
pub struct Refreshes {
    /// How many began.
    pub count: u32,
    calls: u64,
    last: Option<Instant>,
    looked: Option<Instant>,
}

impl Refreshes {
    /// Looks, if the last look was long ago. To be called often.
    ///
    /// # Errors
    ///
    /// When the cloud does not answer.
    pub async fn look(&mut self, scene: &Scene<'_>) -> Result<()> {
        if self.looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
            let calls = scene.cloud.counters().await?.total();
            self.looked = Some(Instant::now());
            self.see(calls, Instant::now());
        }
        Ok(())
    }

    /// Waits until the cloud is not asked for a while, so that no refresh is counted by halves.
    ///
    /// # Errors
    ///
    /// When the cloud does not answer, or is asked all the time.
    pub async fn until_pause(&mut self, scene: &Scene<'_>) -> Result<()> {
        let began = Instant::now();
        while self.last.unwrap_or(began).max(began).elapsed() <= PAUSE {
            ensure!(
                began.elapsed() < LIMIT,
                "the cloud is asked without a pause for {LIMIT:?}"
            );
            self.look(scene).await?;
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// So many calls there were until now.
    fn see(&mut self, calls: u64, now: Instant) {
        if calls == self.calls {
            return;
        }
        if self.last.is_none_or(|last| now - last > PAUSE) {
            self.count += 1;
        }
        (self.calls, self.last) = (calls, Some(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_is_not_full_is_a_call() {
        assert_eq!([1, 1_000, 1_001, 5_000].map(calls_for), [1, 1, 2, 5]);
    }

    #[test]
    fn refresh_is_what_is_requested_during_no_pause() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let mut refreshes = Refreshes::default();
        for (at, calls) in [(0, 0), (1, 2), (2, 5), (4, 6), (5, 6), (9, 6), (10, 8), (30, 8)] {
            refreshes.see(calls, begin + at * second);
        }
        assert_eq!(refreshes.count, 2);
        refreshes.see(9, begin + 31 * second);
        assert_eq!(refreshes.count, 3);
    }
}
