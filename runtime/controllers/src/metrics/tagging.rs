//! Metrics of the tagging controller (`cloud-provider-aws pkg/controllers/tagging/metrics.go`).

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Upstream's, but for the label `instance_id`: labels come only from closed sets.
#[derive(Debug, Clone)]
pub struct TaggingMetrics {
    /// Node creation to the first tags of its machine, in seconds.
    pub initial_delay: Histogram,
    errors: Family<[(&'static str, &'static str); 1], Counter>,
}

impl TaggingMetrics {
    /// Registers them.
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            // 1 s growing fourfold, 6 buckets.
            initial_delay: Histogram::new(exponential_buckets(1.0, 4.0, 6)),
            errors: Family::default(),
        };
        registry.register(
            "cloudprovider_aws_tagging_controller_work_item_errors",
            "Changes of a machine's tags that failed: total_errors in the first nine tries, errors_after_retries_exhausted in later ones",
            metrics.errors.clone(),
        );
        // The name's mistake is upstream's.
        registry.register(
            "tagging_controller_inital_node_tagging_delay_seconds",
            "Seconds from the creation of a Node to the first tags of its machine",
            metrics.initial_delay.clone(),
        );
        metrics
    }

    /// Counts a change that failed; `exhausted`: more often than upstream tries.
    pub fn failed(&self, exhausted: bool) {
        let kind = match exhausted {
            false => "total_errors",
            true => "errors_after_retries_exhausted",
        };
        self.errors.get_or_create(&[("error_type", kind)]).inc();
    }
}
