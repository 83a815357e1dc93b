//! The provider `aws` as an operator runs it: the real kube-apiserver, moto, which checks every signature against the policy we ship, and the
//! binary with the built component between them. Load balancers have a file of their own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use cloudwit_suite::common::aws_scene as scene;
mod adoption;
mod credentials;
mod faults;
mod location;
mod nodes;
mod pages;
mod routes;
mod tagging;
