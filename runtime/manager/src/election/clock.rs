//! Clock of leadership, and identity of this process.

use std::sync::Arc;
use std::time::Duration;

use cloudwit_controllers::leadership::Clock;

/// Time since the machine was started. It continues while the machine sleeps, unlike [`std::time::Instant`]: a laptop that wakes up must
/// not count as leading. Where the system has no such clock it is the usual one.
pub fn since_boot() -> Clock {
    #[cfg(target_os = "linux")]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
    Arc::new(|| {
        let time = rustix::time::clock_gettime(CLOCK);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or_default())
    })
}

/// Host name, underscore, random UUID, as upstream names a candidate. Unique to this process.
pub fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok());
    let host = host.as_deref().map(str::trim).filter(|host| !host.is_empty());
    format!("{}_{}", host.unwrap_or("cloudwit"), uuid::Uuid::new_v4())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_advances() {
        let clock = since_boot();
        let before = clock();
        assert!(!before.is_zero() && clock() >= before);
    }

    #[test]
    fn an_identity_ends_with_a_random_uuid() {
        let (one, two) = (identity(), identity());
        assert_ne!(one, two);
        let uuid = one.rsplit_once('_').unwrap().1.as_bytes();
        assert_eq!((uuid.len(), uuid[14]), (36, b'4'));
        assert!(b"89ab".contains(&uuid[19]), "{one}");
    }
}
