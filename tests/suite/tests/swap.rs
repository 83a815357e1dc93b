//! A provider is replaced while it works: component, cloud config, grants and secrets change on disk as kubelet changes mounts, and the real
//! process follows, on a real kube-apiserver, against the simulated cloud over HTTP.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "swap/host.rs"]
mod host;
#[path = "swap/last_good.rs"]
mod last_good;
#[path = "swap/mount.rs"]
mod mount;
#[path = "swap/plugins.rs"]
mod plugins;
#[path = "swap/rotation.rs"]
mod rotation;
#[path = "swap/stack.rs"]
mod stack;
#[path = "swap/under_load.rs"]
mod under_load;
