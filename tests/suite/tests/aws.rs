//! The provider `aws` as an operator runs it: the real kube-apiserver, moto, which checks every signature against the policy we ship, and the
//! binary with the built component between them. Load balancers have a file of their own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "aws/adoption.rs"]
mod adoption;
#[path = "aws/credentials.rs"]
mod credentials;
#[path = "aws/faults.rs"]
mod faults;
#[path = "aws/nodes.rs"]
mod nodes;
#[path = "aws/pages.rs"]
mod pages;
#[path = "aws/routes.rs"]
mod routes;
#[path = "common/aws_scene.rs"]
mod scene;
