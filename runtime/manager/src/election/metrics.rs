//! Metrics of leader election, with the names of client-go.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Labels = [(&'static str, String); 1];

/// The metrics of all Leases; the label is the name of the Lease.
#[derive(Clone, Default)]
pub struct ElectionMetrics {
    leading: Family<Labels, Gauge>,
    slow_paths: Family<Labels, Counter>,
}

impl ElectionMetrics {
    /// Registers them.
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "leader_election_master_status",
            "1 while this process leads under this Lease, 0 while it waits",
            metrics.leading.clone(),
        );
        registry.register(
            "leader_election_slowpath",
            "Renewals for which the Lease had to be read again",
            metrics.slow_paths.clone(),
        );
        metrics
    }

    /// Those of one Lease, at 0.
    pub fn of(&self, lease: &str) -> LeaseMetrics {
        let labels = [("name", lease.to_owned())];
        let metrics = LeaseMetrics {
            leading: self.leading.get_or_create_owned(&labels),
            slow_paths: self.slow_paths.get_or_create_owned(&labels),
        };
        metrics.leading(false);
        metrics
    }
}

/// The metrics of one Lease.
pub struct LeaseMetrics {
    leading: Gauge,
    slow_paths: Counter,
}

impl LeaseMetrics {
    /// Whether this process leads.
    pub fn leading(&self, leads: bool) {
        self.leading.set(i64::from(leads));
    }

    /// A renewal for which the Lease had to be read.
    pub fn slow_path(&self) {
        self.slow_paths.inc();
    }
}
