//! The provider `vsphere` with NSX as an operator runs it: the real kube-apiserver, vcsim for the machines, the stand-in for NSX that VMware's own client
//! judges, and the binary with the built component between them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod adoption;
mod bad_days;
mod certificate;
mod judge;
mod leftovers;
mod routes;
mod scene;
mod services;
