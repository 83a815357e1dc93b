//! The Container Storage Interface in front of a cloud's volumes: identity and controller services on a unix socket.
//!
//! ```text
//!   sidecars (provisioner, attacher, resizer, snapshotter)
//!      | gRPC on a unix socket
//!      v
//!   server -> controller, identity    one function per RPC
//!                 | check: the request, in the words of the model; pure
//!                 v
//!             engine/operations       one operation per volume; equal requests join, others are told to come back
//!                 v
//!             engine/steps            what an operation asks the cloud for, until it is no longer pending
//!                 v
//!             engine/batches          requests of 100 ms in one call
//!                 v
//!             VolumeCloud (model)     leadership and dry run stand before it
//! ```
//!
//! Knows neither Kubernetes nor wasm. An operation outlives the RPC that began it, so a sidecar that asks again finds it, and what the cloud answers
//! decides the code ([`codes`]): a final one only when nothing can be under way in the cloud.

pub mod check;
pub mod codes;
mod controller;
pub mod driver;
pub mod engine;
mod identity;
pub mod metrics;
pub mod server;

pub use driver::Driver;
pub use engine::failures::FailedOperation;
pub use engine::operations::{Operation, Operations};
pub use engine::work::Subject;
pub use metrics::Metrics;

/// Keys of a publish context begin so that say how the plugin on the machine finds the device, beside what the cloud's own context says: `serial`, `wwn`, `by-id`,
/// `lun` or `path` follows, from the second hint of a kind on with `.2` and so on.
pub const DEVICE_HINT: &str = "device.csi.cloudwit.dev/";

/// What `proto/csi.proto` says, generated.
#[allow(missing_docs, rust_2018_idioms, clippy::all)]
pub mod proto {
    tonic::include_proto!("csi.v1");
}
