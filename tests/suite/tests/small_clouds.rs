//! The providers of clouds with machines alone, as an operator runs them: the real kube-apiserver, the cloud's stand-in, and the binary with the built component
//! between them. What has to hold for all of them is in `common_days`; each cloud's own is in its module.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "small_clouds/common_days.rs"]
mod common_days;
#[path = "small_clouds/mesos.rs"]
mod mesos;
#[path = "small_clouds/ovirt.rs"]
mod ovirt;
#[path = "small_clouds/photon.rs"]
mod photon;
#[path = "small_clouds/scene.rs"]
mod scene;
