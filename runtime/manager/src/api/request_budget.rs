//! `--kube-api-qps` and `--kube-api-burst`: a token bucket in front of one client of the API server.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// Rate limit of one client. First come, first served.
#[derive(Debug)]
pub struct RequestBudget {
    /// Time in which one request becomes possible.
    interval: Duration,
    /// How far ahead of an even flow a burst may be.
    slack: Duration,
    /// When an even flow would have come to the next request.
    even: Mutex<Instant>,
}

impl RequestBudget {
    /// `burst` requests at once, then `qps` a second. None for no limit: a rate of 0 or less.
    pub fn new(qps: f32, burst: u32) -> Option<Self> {
        let interval = Duration::try_from_secs_f64(1.0 / f64::from(qps))
            .ok()
            .filter(|_| qps > 0.0)?;
        Some(Self {
            interval,
            slack: interval * burst.saturating_sub(1),
            even: Mutex::new(Instant::now()),
        })
    }

    /// Waits for a turn.
    pub async fn turn(&self) {
        let now = Instant::now();
        let turn = {
            let mut even = self.even.lock();
            let turn = (*even).max(now);
            *even = turn + self.interval;
            turn
        };
        if turn > now + self.slack {
            sleep_until(turn - self.slack).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn burst_goes_at_once_and_the_rest_at_the_rate() {
        let budget = RequestBudget::new(20.0, 30).unwrap();
        let start = Instant::now();
        for _ in 0..30 {
            budget.turn().await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        for _ in 0..40 {
            budget.turn().await;
        }
        assert_eq!(start.elapsed().as_millis(), 2000);
        tokio::time::advance(Duration::from_secs(60)).await;
        let later = Instant::now();
        for _ in 0..31 {
            budget.turn().await;
        }
        assert_eq!(later.elapsed().as_millis(), 50, "a rest earns one burst, not more");
    }

    #[test]
    fn a_rate_of_zero_or_less_is_no_limit() {
        assert!(RequestBudget::new(0.0, 30).is_none());
        assert!(RequestBudget::new(-1.0, 30).is_none());
    }
}
