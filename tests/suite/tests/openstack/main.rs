//! The provider `openstack` as an operator runs it: the real kube-apiserver, the real Keystone, Nova and Neutron, and the binary with the built
//! component between them. Load balancers have a file of their own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use cloudwit_suite::common::openstack_scene as scene;
mod credentials;
mod faults;
mod nodes;
mod routes;
