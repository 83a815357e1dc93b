//! CSI node service for any cloud: formats, mounts and grows volumes on their machine.
//!
//! ```text
//!   kubelet
//!      | gRPC on a unix socket                 registration      its socket, by which the kubelet finds the plugin
//!      v
//!   service              one file per pair of RPCs; one change of a volume at a time
//!      | request         the parsed request, or all its mistakes; pure
//!      v
//!   device               hints of the publish context -> the one block device whose serial proves it (sysfs)
//!   filesystem           what is on it (blkid), what to do with that (pure), mkfs, fsck, growth
//!   mounts               the mount table, mount options (pure), mount and bind
//! ```
//!
//! Depends on neither Kubernetes nor wasm nor a cloud: the machine's id comes from outside ([`NodeInfo`]), and so do the hints. Nothing is kept between two
//! requests: what is mounted says what was done, so a plugin that was killed continues where it was.
//!
//! A device is formatted only when its serial or WWN is the one that the cloud named, and nothing is on it ([`filesystem`]).

pub mod device;
pub mod filesystem;
mod identity;
pub mod info;
mod locks;
pub mod mounts;
mod paths;
pub mod plugin;
mod program;
pub mod registration;
mod request;
mod service;

pub use filesystem::EmptyCheck;
pub use info::NodeInfo;
pub use plugin::{Options, Plugin};

/// What `proto/pluginregistration.proto` says, generated.
#[allow(missing_docs, rust_2018_idioms, clippy::all)]
pub mod registration_proto {
    tonic::include_proto!("pluginregistration");
}
