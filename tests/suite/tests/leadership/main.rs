//! Several replicas on a real API server with RBAC and an audit log, with the provider `sim` and the simulated cloud: one works, whatever
//! happens to it, and never two write.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod accounts;
mod audit;
mod changes;
mod migration;
mod replicas;
