//! Load balancers of the provider `openstack` as an operator runs it: the real kube-apiserver, the real Keystone, Nova, Neutron and Octavia,
//! and the binary with the built component between them.
//!
//! | module | what it shows |
//! | ------ | ------------- |
//! | `life` | made through PENDING_CREATE, kept without a write, changed through PENDING_UPDATE, deleted without a trace |
//! | `addresses` | floating IPs that are wished for, kept, given up; internal ones |
//! | `shared` | two Services on one load balancer |
//! | `adoption` | what upstream's provider left behind stays as it is; renamed clusters |
//! | `bad_days` | ERROR, deleted outside, quotas, throttling, cut answers, wrong annotations |
//! | `edits` | others who edit the same port |
//! | `crashes` | killed in the middle of making and deleting |
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod addresses;
mod adoption;
mod bad_days;
mod crashes;
mod edits;
mod life;
mod shared;
mod stage;

use cloudwit_suite::common::openstack_scene as scene;
