//! The providers of small clouds, with machines, and load balancers or disks where the cloud has them, as an operator runs them: the real kube-apiserver, the cloud's stand-in, and the binary with the built component
//! between them. What has to hold for all of them is in `common_days`; each cloud's own is in its module.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common_days;
mod mesos;
mod ovirt;
mod photon;
mod photon_disks;
mod rancher;
mod rancher_balancers;
mod scene;
