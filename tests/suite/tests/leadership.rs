//! Several replicas on a real API server with RBAC and an audit log, with the provider `sim` and the simulated cloud: one works, whatever
//! happens to it, and never two write.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "leadership/accounts.rs"]
mod accounts;
#[path = "leadership/audit.rs"]
mod audit;
#[path = "leadership/changes.rs"]
mod changes;
#[path = "leadership/migration.rs"]
mod migration;
#[path = "leadership/replicas.rs"]
mod replicas;
