//! Rate limit of a queue that is taken in batches. Pure; the clock is passed in.

use std::time::Duration;

use tokio::time::Instant;

use crate::options::tagging::Rate;

/// How much work may be taken now.
#[derive(Debug)]
pub struct RateLimit {
    /// Time that an item takes up.
    interval: Duration,
    /// Time that a burst takes up.
    burst: Duration,
    /// When all that was taken is paid for.
    paid: Instant,
}

/// No interval is longer: a day.
const LONGEST: Duration = Duration::from_secs(86_400);

impl RateLimit {
    /// A limit whose first burst is free.
    pub fn new(rate: Rate, now: Instant) -> Self {
        let interval = Duration::try_from_secs_f64(1.0 / rate.per_second).unwrap_or(LONGEST);
        let interval = interval.clamp(Duration::from_nanos(1), LONGEST);
        Self {
            interval,
            burst: interval.saturating_mul(rate.burst.max(1)),
            paid: now,
        }
    }

    /// How many items may be taken.
    pub fn room(&self, now: Instant) -> usize {
        let owed = self.paid.saturating_duration_since(now);
        let free = self.burst.saturating_sub(owed);
        usize::try_from(free.as_nanos() / self.interval.as_nanos()).unwrap_or(usize::MAX)
    }

    /// Time until one may be taken.
    pub fn pause(&self, now: Instant) -> Duration {
        let owed = self.paid.saturating_duration_since(now);
        (owed + self.interval).saturating_sub(self.burst)
    }

    /// So many are taken.
    pub fn take(&mut self, items: usize, now: Instant) {
        let items = u32::try_from(items).unwrap_or(u32::MAX);
        let paid = self.paid.max(now);
        // What would overflow is more than a burst in any case.
        self.paid = paid.checked_add(self.interval.saturating_mul(items)).unwrap_or(paid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_is_free_and_the_rate_holds_afterwards() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let rate = Rate {
            per_second: 2.0,
            burst: 5,
        };
        let mut limit = RateLimit::new(rate, start);
        assert_eq!((limit.room(start), limit.pause(start)), (5, Duration::ZERO));
        limit.take(5, start);
        assert_eq!((limit.room(start), limit.pause(start)), (0, second / 2));
        assert_eq!(limit.room(start + second), 2);
        limit.take(2, start + second);
        assert_eq!(limit.room(start + second), 0);
        assert_eq!(limit.room(start + 100 * second), 5, "no more than a burst is saved up");
    }

    #[test]
    fn odd_rates_neither_panic_nor_stop_the_work() {
        let now = Instant::now();
        for per_second in [0.0, f64::MIN_POSITIVE, f64::MAX, f64::INFINITY] {
            let mut limit = RateLimit::new(
                Rate {
                    per_second,
                    burst: u32::MAX,
                },
                now,
            );
            assert!(limit.room(now) > 0, "{per_second}");
            limit.take(1, now);
            assert!(limit.pause(now) <= LONGEST, "{per_second}");
        }
    }
}
