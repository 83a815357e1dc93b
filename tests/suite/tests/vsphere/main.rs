//! The provider `vsphere` as an operator runs it: the real kube-apiserver, vcsim (VMware's simulator of vCenter) behind TLS with an authority of the
//! test's own, and the binary with the built component between them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bad_days;
mod login;
mod many;
mod nodes;
mod scene;
mod several;
