//! Metrics of the route controller (`controllers/route/metrics.go`).

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Why routes were checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// It was time again.
    Periodic,
    /// Nodes came, went, or changed ranges or addresses.
    NodeChange,
    /// Changes that had failed were tried again. Not a word of upstream's, which leaves them to the next pass.
    Retry,
}

impl Trigger {
    /// The metric label; a closed set.
    pub fn label(self) -> &'static str {
        match self {
            Self::Periodic => "periodic",
            Self::NodeChange => "node_change",
            Self::Retry => "retry",
        }
    }
}

/// How a look at the routes ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassOutcome {
    /// Something was changed and nothing failed.
    Changed,
    /// There was nothing to do.
    Noop,
    /// The routes could not be listed, or a change failed. Upstream counts only the first.
    Error,
}

impl PassOutcome {
    /// The metric label; a closed set.
    pub fn label(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Noop => "noop",
            Self::Error => "error",
        }
    }
}

/// `route_controller_route_sync_total{outcome,trigger}` and ours.
#[derive(Debug, Clone, Default)]
pub struct RouteMetrics {
    /// Routes of the last list that were left out, since their destination is no CIDR.
    pub ignored: Gauge,
    passes: Family<[(&'static str, &'static str); 2], Counter>,
}

impl RouteMetrics {
    /// Registers it.
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "route_controller_route_sync",
            "Reconciles of routes by outcome and trigger",
            metrics.passes.clone(),
        );
        registry.register(
            "cloudwit_routes_ignored",
            "Routes of the last list that were ignored: their destination is not a CIDR",
            metrics.ignored.clone(),
        );
        metrics
    }

    /// Counts one look.
    pub fn passed(&self, outcome: PassOutcome, trigger: Trigger) {
        self.passes
            .get_or_create(&[("outcome", outcome.label()), ("trigger", trigger.label())])
            .inc();
    }
}
