//! The provider `baidu` as an operator runs it: the real kube-apiserver, the stand-in for Baidu AI Cloud that Baidu's own SDK judges, and the binary with
//! the built component between them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod adoption;
mod bad_days;
mod judge;
mod nodes;
mod routes;
mod scene;
mod services;
