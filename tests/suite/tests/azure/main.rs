//! The provider `azure` as an operator runs it: the real kube-apiserver, the stand-in for the Resource Manager that Microsoft's own clients judge, and the
//! binary with the built component between them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bad_days;
mod calls;
mod disk_failures;
mod disks;
mod judge;
mod links;
mod nodes;
mod routes;
mod rules;
mod scene;
mod services;
