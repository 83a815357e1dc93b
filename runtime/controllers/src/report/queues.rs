//! Gauges of upstream's `workqueue_*{name}` metrics (`spec/flags-and-process.md` 12), and one of ours.
//!
//! Upstream computes these in a ticker; here they are computed when they are read, from the snapshots of the controllers.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::queue::QueueSnapshot;
use crate::report::snapshot::Reports;

/// Encodes the gauges of all queues.
#[derive(Debug)]
pub(crate) struct QueueGauges(pub(crate) Reports);

/// Both queues as one: each of several providers has one of the same name.
fn add(sum: &mut QueueSnapshot, one: &QueueSnapshot) {
    sum.ready += one.ready;
    sum.in_work += one.in_work;
    sum.later += one.later;
    sum.work += one.work;
    sum.longest_work = sum.longest_work.max(one.longest_work);
}

impl Collector for QueueGauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut queues = BTreeMap::<&str, QueueSnapshot>::new();
        for (_, snapshot) in self.0.snapshots() {
            for queue in snapshot.queues {
                add(queues.entry(queue.name).or_default(), &queue);
            }
        }
        let mut gauge = |name, help, value: fn(&QueueSnapshot) -> f64| {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (name, queue) in &queues {
                let labels = [("name", *name)];
                let metric: MetricEncoder<'_> = family.encode_family(&labels)?;
                ConstGauge::new(value(queue)).encode(metric)?;
            }
            Ok(())
        };
        gauge("workqueue_depth", "Keys that are ready", |queue| queue.ready as f64)?;
        gauge(
            "workqueue_unfinished_work_seconds",
            "Seconds of work in progress",
            |queue| queue.work.as_secs_f64(),
        )?;
        gauge(
            "workqueue_longest_running_processor_seconds",
            "Seconds of the longest work in progress",
            |queue| queue.longest_work.as_secs_f64(),
        )?;
        gauge(
            "cloudwit_workqueue_unfinished_keys",
            "Keys that have something left to do: ready, in work or waiting for their time",
            |queue| queue.unfinished() as f64,
        )
    }
}
