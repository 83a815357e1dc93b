//! The provider `gce` as an operator runs it: the real kube-apiserver, the stand-in for Compute Engine that Google's own client judges, and the binary
//! with the built component between them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "gce/bad_days.rs"]
mod bad_days;
#[path = "gce/judge.rs"]
mod judge;
#[path = "gce/labels.rs"]
mod labels;
#[path = "gce/nodes.rs"]
mod nodes;
#[path = "gce/routes.rs"]
mod routes;
#[path = "gce/scene.rs"]
mod scene;
#[path = "gce/services.rs"]
mod services;
