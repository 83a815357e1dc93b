//! Leader election on a Lease.

pub mod board;
pub mod candidate;
pub mod clock;
pub mod lease;
pub mod metrics;
pub mod migration;
pub mod plan;
pub mod watch;
