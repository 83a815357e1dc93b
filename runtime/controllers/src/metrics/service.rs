//! Metrics of the service controller, under upstream's names and with its buckets.
//!
//! `controllers/service/metrics.go`, `spec/service-controller.md`, section 10. The registry appends `_total` to counters.

use std::time::Instant;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Counters and histograms of the service controller.
#[derive(Debug, Clone)]
pub struct ServiceMetrics {
    /// Calls that only bring the nodes of a load balancer up to date.
    pub target_updates: Counter,
    /// Those of them that failed.
    pub target_update_errors: Counter,
    drift_checks: Family<[(&'static str, &'static str); 1], Counter>,
    target_update_seconds: Histogram,
    node_pass_seconds: Histogram,
}

/// What a look for drift found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriftResult {
    /// All is as it should be.
    Matches,
    /// The load balancer is gone.
    Missing,
    /// It has another address.
    Changed,
    /// The cloud did not answer.
    Failed,
}

impl DriftResult {
    /// The metric label; a closed set.
    pub fn label(self) -> &'static str {
        match self {
            Self::Matches => "matches",
            Self::Missing => "missing",
            Self::Changed => "changed",
            Self::Failed => "failed",
        }
    }
}

impl ServiceMetrics {
    /// Registers all of them.
    pub fn new(registry: &mut Registry) -> Self {
        // 1 s doubling, 15 buckets.
        let histogram = || Histogram::new(exponential_buckets(1.0, 2.0, 15));
        let metrics = Self {
            target_updates: Counter::default(),
            target_update_errors: Counter::default(),
            drift_checks: Family::default(),
            target_update_seconds: histogram(),
            node_pass_seconds: histogram(),
        };
        registry.register(
            "service_controller_loadbalancer_sync",
            "Updates of the nodes of a load balancer",
            metrics.target_updates.clone(),
        );
        registry.register(
            "service_controller_nodesync_error",
            "Updates of the nodes of a load balancer that failed",
            metrics.target_update_errors.clone(),
        );
        registry.register(
            "cloudwit_service_drift_checks",
            "Periodic drift checks of load balancers, by result",
            metrics.drift_checks.clone(),
        );
        registry.register(
            "service_controller_update_loadbalancer_host_latency_seconds",
            "Seconds that one update of the nodes of a load balancer took",
            metrics.target_update_seconds.clone(),
        );
        registry.register(
            "service_controller_nodesync_latency_seconds",
            "Seconds from a change of nodes until every load balancer has them",
            metrics.node_pass_seconds.clone(),
        );
        metrics
    }

    /// Counts one look for drift.
    pub fn drift_checked(&self, result: DriftResult) {
        self.drift_checks.get_or_create(&[("result", result.label())]).inc();
    }

    /// Measures one update of nodes until dropped.
    pub fn target_update(&self) -> Stopwatch {
        Stopwatch {
            histogram: self.target_update_seconds.clone(),
            since: Instant::now(),
        }
    }

    /// Measures one pass over all load balancers until dropped.
    pub fn node_pass(&self) -> Stopwatch {
        Stopwatch {
            histogram: self.node_pass_seconds.clone(),
            since: Instant::now(),
        }
    }
}

/// Observes the seconds of its life when dropped, so that every way out is measured.
#[derive(Debug)]
pub struct Stopwatch {
    histogram: Histogram,
    since: Instant,
}

impl Drop for Stopwatch {
    fn drop(&mut self) {
        self.histogram.observe(self.since.elapsed().as_secs_f64());
    }
}
