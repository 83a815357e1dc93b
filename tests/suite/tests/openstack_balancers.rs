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

#[path = "openstack_balancers/addresses.rs"]
mod addresses;
#[path = "openstack_balancers/adoption.rs"]
mod adoption;
#[path = "openstack_balancers/bad_days.rs"]
mod bad_days;
#[path = "openstack_balancers/crashes.rs"]
mod crashes;
#[path = "openstack_balancers/edits.rs"]
mod edits;
#[path = "openstack_balancers/life.rs"]
mod life;
#[path = "common/openstack_scene.rs"]
#[expect(dead_code, reason = "other files use the rest")]
mod scene;
#[path = "openstack_balancers/shared.rs"]
mod shared;
#[path = "openstack_balancers/stage.rs"]
mod stage;
