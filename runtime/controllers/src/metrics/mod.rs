//! Metrics of all controllers.
//!
//! Upstream's names and buckets (`spec/node-controller.md` 11, `spec/node-lifecycle-controller.md` 8, `spec/flags-and-process.md` 12), and ours
//! under `cloudwit_`. The registry appends `_total` to counters. Labels come only from closed sets.

pub mod queue;
pub mod route;
pub mod service;
pub mod tagging;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cloudwit_model::{CloudError, Failure, FaultKind};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::metrics::queue::{QueueMetrics, Queues};
use crate::metrics::route::RouteMetrics;
use crate::metrics::service::ServiceMetrics;
use crate::metrics::tagging::TaggingMetrics;
use crate::options::Controller;
use crate::sync::lock;

type Labels<const N: usize> = [(&'static str, &'static str); N];

/// All metrics of this crate.
pub struct Metrics {
    running: Family<Labels<2>, Gauge>,
    /// Node creation to the removal of its taint, in seconds.
    pub taint_removal_delay: Histogram,
    /// Node creation to the end of its initialisation, in seconds.
    pub initial_sync_delay: Histogram,
    /// One pass of the lifecycle controller, in seconds.
    pub monitor_nodes_duration: Histogram,
    counts: Arc<Mutex<BTreeMap<Controller, usize>>>,
    lifecycle_calls: Family<Labels<2>, Counter>,
    lookups: Family<Labels<2>, Counter>,
    looked_up_nodes: Family<Labels<1>, Counter>,
    /// 1 while the deletion brake is engaged.
    pub brake_engaged: Gauge,
    /// Nodes whose absence is certain or being confirmed.
    pub deletion_candidates: Gauge,
    node_deletions: Counter,
    writes: Family<Labels<3>, Counter>,
    watch_errors: Family<Labels<1>, Counter>,
    /// Events that were dropped because too many were waiting.
    pub events_dropped: Counter,
    /// Events that were held back by the limit per object or the budget of the routine.
    pub events_limited: Counter,
    queues: Queues,
    /// The service controller's.
    pub service: ServiceMetrics,
    /// The route controller's.
    pub route: RouteMetrics,
    /// The tagging controller's.
    pub tagging: TaggingMetrics,
}

/// What a look-up was for; a closed set of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Initialisation of Nodes.
    Init,
    /// Refresh of addresses.
    Refresh,
    /// Whether not-ready Nodes still exist.
    Lifecycle,
}

impl Purpose {
    fn label(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Refresh => "refresh",
            Self::Lifecycle => "lifecycle",
        }
    }
}

impl Metrics {
    /// Registers everything.
    pub fn new(registry: &mut Registry) -> Arc<Self> {
        // `controllers/node/metrics.go`: 1, 4, 16, 64, 256, 1024.
        let delay = || Histogram::new(exponential_buckets(1.0, 4.0, 6));
        let metrics = Self {
            running: Family::default(),
            taint_removal_delay: delay(),
            initial_sync_delay: delay(),
            // `controllers/nodelifecycle/metrics.go`: 1 ms doubling, 15 buckets.
            monitor_nodes_duration: Histogram::new(exponential_buckets(0.001, 2.0, 15)),
            counts: Arc::default(),
            lifecycle_calls: Family::default(),
            lookups: Family::default(),
            looked_up_nodes: Family::default(),
            brake_engaged: Gauge::default(),
            deletion_candidates: Gauge::default(),
            node_deletions: Counter::default(),
            writes: Family::default(),
            watch_errors: Family::default(),
            events_dropped: Counter::default(),
            events_limited: Counter::default(),
            queues: Queues::new(registry),
            service: ServiceMetrics::new(registry),
            route: RouteMetrics::new(registry),
            tagging: TaggingMetrics::new(registry),
        };
        metrics.register_upstream(registry);
        metrics.register_ours(registry);
        Arc::new(metrics)
    }

    fn register_upstream(&self, registry: &mut Registry) {
        registry.register(
            "running_managed_controllers",
            "Controllers that are running",
            self.running.clone(),
        );
        registry.register(
            "node_controller_cloud_provider_taint_removal_delay_seconds",
            "Seconds from the creation of a Node to the removal of its uninitialized taint",
            self.taint_removal_delay.clone(),
        );
        registry.register(
            "node_controller_initial_node_sync_delay_seconds",
            "Seconds from the creation of a Node to the end of its initialisation",
            self.initial_sync_delay.clone(),
        );
        registry.register(
            "cloud_node_lifecycle_controller_monitor_nodes_duration_seconds",
            "Seconds that a pass over all Nodes took",
            self.monitor_nodes_duration.clone(),
        );
        registry.register(
            "cloud_node_lifecycle_controller_cloud_provider_calls",
            "Answers about single Nodes by question and result; many of them share one call to the provider",
            self.lifecycle_calls.clone(),
        );
    }

    fn register_ours(&self, registry: &mut Registry) {
        registry.register(
            "cloudwit_node_lookups",
            "Look-up calls to the provider by purpose and result",
            self.lookups.clone(),
        );
        registry.register(
            "cloudwit_node_lookup_nodes",
            "Nodes in look-up calls, by purpose",
            self.looked_up_nodes.clone(),
        );
        registry.register(
            "cloudwit_node_deletion_brake_engaged",
            "Providers whose Node deletion is paused by the brake; 0 or 1 with a single provider",
            self.brake_engaged.clone(),
        );
        registry.register(
            "cloudwit_node_deletion_candidates",
            "Nodes whose machine is missing",
            self.deletion_candidates.clone(),
        );
        registry.register(
            "cloudwit_node_deletions",
            "Nodes deleted because their machine is gone",
            self.node_deletions.clone(),
        );
        registry.register(
            "cloudwit_api_writes",
            "Writes to the API server by resource, verb and result",
            self.writes.clone(),
        );
        registry.register(
            "cloudwit_watch_errors",
            "Interruptions of a watch by kind",
            self.watch_errors.clone(),
        );
        registry.register(
            "cloudwit_events_dropped",
            "Events dropped because too many were waiting or the API server refused them",
            self.events_dropped.clone(),
        );
        registry.register(
            "cloudwit_events_limited",
            "Events not written because their object had too many, or so many Nodes were initialised at once",
            self.events_limited.clone(),
        );
    }

    /// Says that a controller runs, of one provider or of several, until the last guard is dropped.
    pub fn running(&self, controller: Controller) -> Running {
        let gauge = self.running.get_or_create_owned(&running_labels(controller));
        gauge.set(1);
        *lock(&self.counts).entry(controller).or_default() += 1;
        Running {
            gauge,
            controller,
            counts: self.counts.clone(),
        }
    }

    /// Whether a controller runs.
    pub fn is_running(&self, controller: Controller) -> bool {
        self.running.get_or_create_owned(&running_labels(controller)).get() != 0
    }

    /// Counts a look-up call for so many Nodes.
    pub fn looked_up(&self, purpose: Purpose, nodes: usize, result: Result<(), &CloudError>) {
        let result = result.map_or_else(CloudError::label, |()| "success");
        self.lookups
            .get_or_create(&[("purpose", purpose.label()), ("result", result)])
            .inc();
        self.looked_up_nodes
            .get_or_create(&[("purpose", purpose.label())])
            .inc_by(nodes as u64);
    }

    /// Counts an answer about one Node: upstream's `cloud_provider_calls_total`.
    pub fn lifecycle_call(&self, operation: &'static str, result: &'static str) {
        self.lifecycle_calls
            .get_or_create(&[("operation", operation), ("result", result)])
            .inc();
    }

    /// Counts a Node that was deleted.
    pub fn node_deleted(&self) {
        self.node_deletions.inc();
    }

    /// Counts a write.
    pub fn wrote(&self, resource: &'static str, verb: &'static str, result: &'static str) {
        self.writes
            .get_or_create(&[("resource", resource), ("verb", verb), ("result", result)])
            .inc();
    }

    /// The counter of watch interruptions for a kind.
    pub fn watch_errors(&self, kind: &'static str) -> Counter {
        self.watch_errors.get_or_create_owned(&[("kind", kind)])
    }

    /// The metrics of the queue with this name: `workqueue_*{name}`.
    pub fn queue(&self, name: &'static str) -> QueueMetrics {
        self.queues.named(name)
    }
}

fn running_labels(controller: Controller) -> Labels<2> {
    [("name", controller.alias()), ("manager", "cloud-controller-manager")]
}

/// Upstream's words for the result of a call (`nodelifecycle/metrics.go`): `success`, `error`, `not_implemented`.
pub fn upstream_result(error: &CloudError) -> &'static str {
    match error {
        CloudError::Failure(failure) => upstream_failure(failure),
        CloudError::Fault(fault) if fault.kind == FaultKind::NotExported => "not_implemented",
        CloudError::Fault(_) | CloudError::DryRun => "error",
    }
}

/// The same for an answer about a single Node.
pub fn upstream_failure(failure: &Failure) -> &'static str {
    match failure {
        Failure::ImplementedElsewhere(_) => "not_implemented",
        _ => "error",
    }
}

/// Lowers `running_managed_controllers` when the last one is dropped.
pub struct Running {
    gauge: Gauge,
    controller: Controller,
    counts: Arc<Mutex<BTreeMap<Controller, usize>>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut counts = lock(&self.counts);
        let count = counts.entry(self.controller).or_default();
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.gauge.set(0);
        }
    }
}
