//! The Kubernetes side: watches, queues, the controllers, the only writer.
//!
//! ```text
//!   API server --watch--> kube::cache --> queue --> node, lifecycle, service, route, tagging
//!                                                     |  call `Cloud`, many Nodes in one call
//!                                                     v
//!                                                   plan (pure)  -->  lifecycle::brake  -->  kube::writer  --> API server
//! ```
//!
//! Controllers decide in pure `plan` files and write through [`kube::writer`], the only writer. Nothing here imports wasm. Start
//! with [`Cluster`]: it owns the caches and runs the enabled controllers until shutdown.

pub mod ambient;
pub mod assign;
pub mod cloud;
pub mod cluster;
pub mod context;
pub mod explain_object;
pub mod kube;
pub mod leadership;
pub mod lifecycle;
pub mod metrics;
pub mod node;
pub mod options;
pub mod queue;
pub mod report;
pub mod route;
pub mod scope;
pub mod service;
pub mod tagging;

mod sync;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod work;

pub use crate::kube::clients::Clients;
pub use assign::{NodeVolumes, Provider, Providers, ServiceRules};
pub use cluster::{Cluster, ControllersError};
pub use leadership::fenced_cloud::{leading_ssh_keys, leading_volumes};
pub use leadership::{Leadership, Term};
pub use options::classes::Classes;
pub use options::tagging::{Rate, TaggingOptions};
pub use options::{
    Controller, LifecycleOptions, NodeDeletion, NodeOptions, Options, RouteOptions, ServiceOptions, Share,
};
pub use report::explain::{Explain, Explanation};
pub use report::health::Health;
pub use report::snapshot::Reports;
