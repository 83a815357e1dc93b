//! Upstream's `workqueue_*{name}` metrics (`spec/flags-and-process.md` 12), and one of ours.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::sync::lock;

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
    gauges: Arc<QueueGauges>,
}

impl Queues {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let queues = Self {
            adds: Family::default(),
            retries: Family::default(),
            waited: QueueHistogram::new_with_constructor(QueueBuckets),
            worked: QueueHistogram::new_with_constructor(QueueBuckets),
            gauges: Arc::default(),
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
        registry.register_collector(Box::new(queues.gauges.clone()));
        queues
    }

    /// Seconds of the longest work in progress of the queue with the least, by name.
    pub(crate) fn longest_work(&self) -> Vec<(&'static str, f64)> {
        let mut least = BTreeMap::<&'static str, f64>::new();
        for (name, snapshot) in self.gauges.snapshots() {
            let seconds = least.entry(name).or_insert(f64::MAX);
            *seconds = seconds.min(snapshot.longest_seconds);
        }
        least.into_iter().collect()
    }

    pub(crate) fn named(&self, name: &'static str) -> QueueMetrics {
        let label = [("name", name)];
        QueueMetrics {
            name,
            adds: self.adds.get_or_create_owned(&label),
            retries: self.retries.get_or_create_owned(&label),
            waited: self.waited.get_or_create_owned(&label),
            worked: self.worked.get_or_create_owned(&label),
            gauges: self.gauges.clone(),
        }
    }
}

/// What the queue looks like at one moment; for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Snapshot {
    /// Keys that are ready.
    pub depth: usize,
    /// Keys that have something left to do: ready, in work or waiting for their time.
    pub unfinished: usize,
    /// Seconds of work in progress, of all keys together.
    pub unfinished_seconds: f64,
    /// Seconds of the longest work in progress.
    pub longest_seconds: f64,
}

impl Snapshot {
    /// Both queues as one.
    fn add(&mut self, other: &Self) {
        self.depth += other.depth;
        self.unfinished += other.unfinished;
        self.unfinished_seconds += other.unfinished_seconds;
        self.longest_seconds = self.longest_seconds.max(other.longest_seconds);
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
    gauges: Arc<QueueGauges>,
}

impl QueueMetrics {
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

    /// Reads the gauges from `snapshot` whenever they are asked for, until it answers None.
    pub(crate) fn watch(&self, snapshot: impl Fn() -> Option<Snapshot> + Send + Sync + 'static) {
        let mut sources = lock(&self.gauges.sources);
        sources.retain(|(_, source)| source().is_some());
        sources.push((self.name, Box::new(snapshot)));
    }
}

type Source = Box<dyn Fn() -> Option<Snapshot> + Send + Sync>;

/// Upstream computes these in a ticker; here they are computed when they are read.
#[derive(Default)]
struct QueueGauges {
    sources: Mutex<Vec<(&'static str, Source)>>,
}

impl QueueGauges {
    /// Of each queue, of which several may have one name: one for each provider.
    fn snapshots(&self) -> Vec<(&'static str, Snapshot)> {
        let sources = lock(&self.sources);
        let living = sources.iter().filter_map(|(name, source)| Some((*name, source()?)));
        living.collect()
    }
}

impl fmt::Debug for QueueGauges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueGauges").finish_non_exhaustive()
    }
}

impl Collector for QueueGauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut snapshots = BTreeMap::<&str, Snapshot>::new();
        for (name, one) in self.snapshots() {
            snapshots.entry(name).or_default().add(&one);
        }
        let mut gauge = |name, help, value: fn(&Snapshot) -> f64| {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (queue, snapshot) in &snapshots {
                let labels = [("name", *queue)];
                let metric: MetricEncoder<'_> = family.encode_family(&labels)?;
                ConstGauge::new(value(snapshot)).encode(metric)?;
            }
            Ok(())
        };
        gauge("workqueue_depth", "Keys that are ready", |snapshot| {
            snapshot.depth as f64
        })?;
        gauge(
            "workqueue_unfinished_work_seconds",
            "Seconds of work in progress",
            |snapshot| snapshot.unfinished_seconds,
        )?;
        gauge(
            "workqueue_longest_running_processor_seconds",
            "Seconds of the longest work in progress",
            |snapshot| snapshot.longest_seconds,
        )?;
        gauge(
            "cloudwit_workqueue_unfinished_keys",
            "Keys that have something left to do: ready, in work or waiting for their time",
            |snapshot| snapshot.unfinished as f64,
        )
    }
}
