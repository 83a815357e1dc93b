//! A provider is replaced while it works: component, cloud config, grants and secrets change on disk as kubelet changes mounts, and the real
//! process follows, on a real kube-apiserver, against the simulated cloud over HTTP.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod host;
mod last_good;
mod mount;
mod plugins;
mod rotation;
mod stack;
mod under_load;
