//! The provider `gce` as an operator runs it: the real kube-apiserver, the stand-in for Compute Engine that Google's own client judges, and the binary
//! with the built component between them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bad_days;
mod calls;
mod disks;
mod judge;
mod labels;
mod machines;
mod nodes;
mod routes;
mod scene;
mod services;
