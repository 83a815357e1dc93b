//! Clock of guests.

use std::time::{Duration, SystemTime};

use wasmtime_wasi::HostWallClock;

/// A wall clock that is so far behind the system's: guests that are answered from a recording live in its time, else all that expires would be expired.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Behind(Duration);

impl Behind {
    /// Shows this time now; the system's where there is none.
    pub fn showing(time: Option<SystemTime>) -> Self {
        let behind = time.and_then(|time| SystemTime::now().duration_since(time).ok());
        Self(behind.unwrap_or_default())
    }
}

impl HostWallClock for Behind {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(1)
    }

    fn now(&self) -> Duration {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.unwrap_or_default().saturating_sub(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_continues_from_the_time_that_it_was_set_to() {
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let shown = Behind::showing(Some(then)).now().as_secs();
        assert!((1_700_000_000..1_700_000_060).contains(&shown), "{shown}");
        assert!(Behind::default().now().as_secs() > 1_700_000_060);
    }
}
