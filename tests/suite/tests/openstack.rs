//! The provider `openstack` as an operator runs it: the real kube-apiserver, the real Keystone, Nova and Neutron, and the binary with the built
//! component between them. Load balancers have a file of their own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "openstack/credentials.rs"]
mod credentials;
#[path = "openstack/faults.rs"]
mod faults;
#[path = "openstack/nodes.rs"]
mod nodes;
#[path = "openstack/routes.rs"]
mod routes;
#[path = "common/openstack_scene.rs"]
mod scene;
