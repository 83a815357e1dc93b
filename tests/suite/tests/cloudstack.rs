//! The provider `cloudstack` as an operator runs it: the real kube-apiserver, the stand-in for CloudStack that two clients of others judge, and the binary
//! with the built component between them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "cloudstack/adoption.rs"]
mod adoption;
#[path = "cloudstack/bad_days.rs"]
mod bad_days;
#[path = "cloudstack/judge.rs"]
mod judge;
#[path = "cloudstack/nodes.rs"]
mod nodes;
#[path = "cloudstack/scene.rs"]
mod scene;
#[path = "cloudstack/services.rs"]
mod services;
