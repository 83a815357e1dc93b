//! The Kubernetes side: watches, queues, the four controllers, the only writer.
//!
//! ```text
//!   API server --watch--> watch (trimmed cache) --> queue --> cloud_node, cloud_node_lifecycle,
//!                                                             service_lb, node_route
//!                                                               |  ask `Cloud` (cloudwit-model), many Nodes in one call
//!                                                               v
//!                                                             *_plan (pure)  -->  guard  -->  apply  --> API server
//! ```
//!
//! Loops decide in pure `*_plan` files and write through [`apply`], the only writer. Nothing here knows wasm.
//! Start with [`Cluster`]: it owns the caches and runs the enabled loops until it is told to stop.

pub mod apply;
pub mod cloud_node;
pub mod cluster;
pub mod event_folding;
pub mod events;
pub mod metrics;
pub mod node_view;
pub mod options;
pub mod queue;
pub mod watch;

mod sync;

pub use cluster::{Cluster, ControllersError};
pub use options::{
    Controller, LifecycleOptions, NodeDeletion, NodeOptions, Options, RouteOptions, ServiceOptions, Share,
};
