//! The node half of the Container Storage Interface, for any cloud: what formats, mounts and grows volumes on the machine they are attached to.
//!
//! ```text
//!   kubelet
//!      | gRPC on a unix socket                 registration      its socket, by which the kubelet finds the plugin
//!      v
//!   service              one file per pair of RPCs; one change of a volume at a time
//!      | request         what is asked for, or all that is wrong with it; pure
//!      v
//!   device               hints of the publish context -> the one block device whose serial proves it (sysfs)
//!   filesystem           what is on it (blkid), what to do with that (pure), mkfs, fsck, growth
//!   mounts               the mount table, mount options (pure), mount and bind
//! ```
//!
//! Knows neither Kubernetes nor wasm, and no cloud: which machine this is comes from outside ([`NodeInfo`]), and so do the hints. Nothing is kept between two
//! requests: what is mounted says what was done, so a plugin that was killed goes on where it was.
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
