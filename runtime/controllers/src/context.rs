//! The handles that every controller gets.

use std::sync::Arc;

use cloudwit_model::Cloud;
use k8s_openapi::api::core::v1::Service;
use tokio_util::sync::CancellationToken;

use crate::cloud::lookups::NodeLookups;
use crate::cloud::seen_machines::SeenMachines;
use crate::kube::cache::Cache;
use crate::kube::events::Events;
use crate::kube::node::Node;
use crate::kube::writer::Apply;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::report::snapshot::Reports;
use crate::scope::Scope;

/// What a loop has at hand; clones share it.
#[derive(Clone)]
pub struct Context {
    /// Whose Nodes and Services these are.
    pub scope: Scope,
    /// The provider's cloud, which refuses to be changed when the process does not lead.
    pub cloud: Arc<dyn Cloud>,
    /// Looks up many Nodes at once.
    pub lookups: Arc<NodeLookups>,
    /// The machines that were seen behind Nodes without a provider id.
    pub machines: Arc<SeenMachines>,
    /// All Nodes.
    pub nodes: Arc<Cache<Node>>,
    /// All Services.
    pub services: Arc<Cache<Service>>,
    /// The writer.
    pub apply: Apply,
    /// For `kubectl describe`.
    pub events: Events,
    /// Where the loop's report goes.
    pub reports: Reports,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Settings.
    pub options: Arc<Options>,
    /// Fires when the loops shall stop.
    pub shutdown: CancellationToken,
}
