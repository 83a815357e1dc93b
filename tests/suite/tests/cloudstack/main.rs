//! The provider `cloudstack` as an operator runs it: the real kube-apiserver, the stand-in for CloudStack that two clients of others judge, and the binary
//! with the built component between them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod adoption;
mod bad_days;
mod judge;
mod nodes;
mod scene;
mod services;
