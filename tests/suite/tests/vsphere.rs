//! The provider `vsphere` as an operator runs it: the real kube-apiserver, vcsim (VMware's simulator of vCenter) behind TLS with an authority of the
//! test's own, and the binary with the built component between them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "vsphere/bad_days.rs"]
mod bad_days;
#[path = "vsphere/login.rs"]
mod login;
#[path = "vsphere/many.rs"]
mod many;
#[path = "vsphere/nodes.rs"]
mod nodes;
#[path = "vsphere/scene.rs"]
mod scene;
#[path = "vsphere/several.rs"]
mod several;
