//! Counters and histograms of upstream's `workqueue_*{name}` (`spec/flags-and-process.md` 12).
//!
//! The gauges are in `report::queues`.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Makes histograms with the buckets of upstream's work queues: 10 ns growing tenfold, 10 buckets.
#[derive(Clone)]
struct QueueBuckets;

impl MetricConstructor<Histogram> for QueueBuckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(exponential_buckets(1e-8, 10.0, 10))
    }
}

type QueueHistogram = Family<Labels<1>, Histogram, QueueBuckets>;

/// The metrics of all queues.
pub(crate) struct Queues {
    adds: Family<Labels<1>, Counter>,
    retries: Family<Labels<1>, Counter>,
    waited: QueueHistogram,
    worked: QueueHistogram,
}

impl Queues {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let queues = Self {
            adds: Family::default(),
            retries: Family::default(),
            waited: QueueHistogram::new_with_constructor(QueueBuckets),
            worked: QueueHistogram::new_with_constructor(QueueBuckets),
        };
        registry.register("workqueue_adds", "Keys that became ready", queues.adds.clone());
        registry.register(
            "workqueue_retries",
            "Keys that failed and were put back",
            queues.retries.clone(),
        );
        registry.register(
            "workqueue_queue_duration_seconds",
            "Seconds that a key was ready before work on it began",
            queues.waited.clone(),
        );
        registry.register(
            "workqueue_work_duration_seconds",
            "Seconds of work on a key",
            queues.worked.clone(),
        );
        queues
    }

    pub(crate) fn named(&self, name: &'static str) -> QueueMetrics {
        let label = [("name", name)];
        QueueMetrics {
            name,
            adds: self.adds.get_or_create_owned(&label),
            retries: self.retries.get_or_create_owned(&label),
            waited: self.waited.get_or_create_owned(&label),
            worked: self.worked.get_or_create_owned(&label),
        }
    }
}

/// The metrics of one queue.
#[derive(Clone)]
pub struct QueueMetrics {
    name: &'static str,
    adds: Counter,
    retries: Counter,
    waited: Histogram,
    worked: Histogram,
}

impl QueueMetrics {
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn added(&self) {
        self.adds.inc();
    }

    pub(crate) fn retried(&self) {
        self.retries.inc();
    }

    pub(crate) fn waited(&self, duration: Duration) {
        self.waited.observe(duration.as_secs_f64());
    }

    pub(crate) fn worked(&self, duration: Duration) {
        self.worked.observe(duration.as_secs_f64());
    }
}
