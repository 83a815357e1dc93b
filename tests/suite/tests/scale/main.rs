//! Many objects and many updates on a real API server, with the process and the provider component as an operator runs them: what
//! each costs in calls of the cloud, writes to the cluster and memory.
//!
//! Counted, never timed; times are printed.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod fleet;
mod memory;
mod services;
mod updates;
