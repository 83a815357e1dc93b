//! The Kubernetes side: watches, queues, the four controllers, the only writer.
//!
//! ```text
//!   API server --watch--> watch (trimmed cache) --> queue --> cloud_node, cloud_node_lifecycle,
//!                                                             service_lb, node_route
//!                                                               |  ask `Cloud`, many Nodes in one call
//!                                                               v
//!                                                             *_plan (pure)  -->  guard  -->  apply  --> API server
//! ```
//!
//! Loops decide in pure `*_plan` files and write through [`apply`], the only writer. Nothing here knows wasm. Start
//! with [`Cluster`]: it owns the caches and runs the enabled loops until it is told to stop.

pub mod ambient;
pub mod apply;
pub mod backoff;
pub mod clients;
pub mod cloud_node;
pub mod cloud_node_deletion;
mod cloud_node_lanes;
pub mod cloud_node_lifecycle;
mod cloud_node_lifecycle_by_name;
pub mod cloud_node_lifecycle_known;
mod cloud_node_lifecycle_plan;
pub mod cloud_node_plan;
pub mod cloud_node_waiting;
pub mod cloud_node_write;
pub mod cluster;
mod compact_labels;
pub mod dry_run;
pub mod event_budget;
pub mod event_folding;
pub mod events;
pub mod explain;
pub mod explain_node;
pub mod explain_object;
pub mod explain_route;
pub mod explain_service;
pub mod guard;
pub mod guard_by_name;
pub mod health;
pub mod leadership;
pub mod leading_cloud;
pub mod metrics;
pub mod node;
pub mod node_addresses;
pub mod node_labels;
pub mod node_lookups;
mod node_resource;
pub mod node_route;
mod node_route_apply;
pub mod node_route_condition;
pub mod node_route_metrics;
pub mod node_route_plan;
pub mod node_route_retries;
pub mod node_route_troubles;
pub mod node_taints;
pub mod node_view;
pub mod options;
mod passes;
mod provider_swap;
pub mod queue;
pub mod queue_metrics;
mod reconcile_span;
pub mod rights;
pub mod seen_machines;
mod service_classes;
mod service_drift;
mod service_dry_run;
pub mod service_helpers;
pub mod service_lb;
mod service_lb_lanes;
mod service_lb_owner;
pub mod service_lb_plan;
mod service_lb_steps;
mod service_lb_workers;
pub mod service_metrics;
pub mod service_needs_update;
mod service_node_pace;
pub mod service_patch;
pub mod service_record;
mod service_target_cache;
pub mod service_targets;
pub mod service_view;
pub mod standing;
pub mod watch;
pub mod watch_pace;

#[cfg(test)]
mod fake_cloud;
#[cfg(test)]
mod plan_properties;
mod sync;
mod work;

pub use clients::Clients;
pub use cluster::{Cluster, ControllersError};
pub use explain::{Explain, Explanation};
pub use health::Health;
pub use leadership::{Leadership, Term};
pub use options::{
    Controller, LifecycleOptions, NodeDeletion, NodeOptions, Options, RouteOptions, ServiceOptions, Share,
};
pub use service_classes::Classes;
pub use standing::Standing;
