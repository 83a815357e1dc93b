//! The Container Storage Interface in front of a cloud's volumes: identity and controller services on a unix socket.
//!
//! ```text
//!   sidecars (provisioner, attacher, resizer, snapshotter)
//!      | gRPC on a unix socket
//!      v
//!   server -> controller, identity    one function per RPC
//!                 | check: the request, in the words of the model; pure
//!                 v
//!             engine/operations       one operation per volume; equal requests join, others get `Aborted`
//!                 v
//!             engine/steps            the cloud calls of an operation, until it is no longer pending
//!                 v
//!             engine/batches          requests of 100 ms in one call
//!                 v
//!             VolumeCloud (model)     leadership and dry run are in front of it
//! ```
//!
//! Depends on neither Kubernetes nor wasm. An operation outlives the RPC that began it, so a sidecar that retries finds it, and the cloud's answer
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

/// Prefix of the keys of a publish context by which the node plugin finds the device, beside those of the cloud's own context: `serial`, `wwn`, `by-id`,
/// `lun` or `path` follows, from the second hint of a kind on with `.2` and so on.
pub const DEVICE_HINT: &str = "device.csi.cloudwit.dev/";

/// Generated from `proto/csi.proto`.
#[allow(missing_docs, rust_2018_idioms, clippy::all)]
pub mod proto {
    tonic::include_proto!("csi.v1");
}
