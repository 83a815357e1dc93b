//! How much of its budget a provider has left at each API host, for the status page. Read from `rate_limit`, changes nothing.

use std::time::Duration;

/// The limits of one API host at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetStatus {
    /// Scheme, name and port, such as `https://api.example.com`.
    pub host: String,
    /// What the grants allow; none when they set no limit.
    pub rate: Option<RateStatus>,
    /// How much of a pause is left that the cloud asked for with `Retry-After`.
    pub paused_for: Option<Duration>,
    /// Requests that wait for their turn.
    pub waiting: usize,
}

/// A token bucket at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateStatus {
    /// Requests that become possible in a second.
    pub per_second: f64,
    /// Requests that are possible at once after a rest.
    pub burst: u32,
    /// Requests that are possible at once now.
    pub left: u32,
}
