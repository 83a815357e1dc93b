//! The provider `alibaba` as an operator runs it: the real kube-apiserver, the stand-in for Alibaba Cloud that its two SDKs judge, and the binary with
//! the built component between them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod adoption;
mod bad_days;
mod classic;
mod judge;
mod network;
mod nodes;
mod routes;
mod scene;
