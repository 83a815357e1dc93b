//! The provider `azure` as an operator runs it: the real kube-apiserver, the stand-in for the Resource Manager that Microsoft's own clients judge, and the
//! binary with the built component between them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "azure/bad_days.rs"]
mod bad_days;
#[path = "azure/judge.rs"]
mod judge;
#[path = "azure/nodes.rs"]
mod nodes;
#[path = "azure/routes.rs"]
mod routes;
#[path = "azure/scene.rs"]
mod scene;
#[path = "azure/services.rs"]
mod services;
