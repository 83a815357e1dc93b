//! Metrics of the interface, and how one RPC is timed. Label values come from closed sets but for the driver's name, which an operator gives.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use tonic::Code;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    driver: String,
    method: &'static str,
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DriverLabels {
    driver: String,
}

type Count = Box<dyn Fn() -> usize + Send + Sync>;

/// Counters of all drivers of a process.
#[derive(Debug, Clone)]
pub struct Metrics {
    durations: Family<RequestLabels, Histogram, fn() -> Histogram>,
    operations: Arc<UnderWay>,
}

/// Operations under way, counted when metrics are scraped.
#[derive(Default)]
struct UnderWay(Mutex<Vec<(String, Count)>>);

impl fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnderWay")
    }
}

/// The registry takes an owned collector.
#[derive(Debug)]
struct Collected(Arc<UnderWay>);

impl Collector for Collected {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Operations on volumes and snapshots that are under way";
        let mut family = encoder.encode_descriptor("cloudwit_csi_operations", help, None, MetricType::Gauge)?;
        for (driver, count) in self.0.0.lock().iter() {
            let labels = DriverLabels { driver: driver.clone() };
            let gauge = ConstGauge::new(i64::try_from(count()).unwrap_or(i64::MAX));
            gauge.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

impl Metrics {
    /// Registers everything below `cloudwit_csi_`.
    pub fn register(registry: &mut Registry) -> Self {
        // 5 ms (nothing to do) to 328 s (the longest wait within an RPC is five minutes).
        let durations = || Histogram::new(exponential_buckets(0.005, 4.0, 9));
        let metrics = Self {
            durations: Family::new_with_constructor(durations),
            operations: Arc::default(),
        };
        registry.sub_registry_with_prefix("cloudwit_csi").register_with_unit(
            "request_duration",
            "Time that requests of the Container Storage Interface took, by what was answered",
            Unit::Seconds,
            metrics.durations.clone(),
        );
        registry.register_collector(Box::new(Collected(metrics.operations.clone())));
        metrics
    }

    pub(crate) fn watch(&self, driver: &str, count: impl Fn() -> usize + Send + Sync + 'static) {
        self.operations.0.lock().push((driver.to_owned(), Box::new(count)));
    }

    pub(crate) fn request(&self, driver: &str, method: &'static str, code: Code, took: Duration) {
        let labels = RequestLabels {
            driver: driver.to_owned(),
            method,
            code: label(code),
        };
        self.durations.get_or_create(&labels).observe(took.as_secs_f64());
    }
}

/// The code as gRPC's tools write it.
fn label(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "Canceled",
        Code::Unknown => "Unknown",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::PermissionDenied => "PermissionDenied",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::FailedPrecondition => "FailedPrecondition",
        Code::Aborted => "Aborted",
        Code::OutOfRange => "OutOfRange",
        Code::Unimplemented => "Unimplemented",
        Code::Internal => "Internal",
        Code::Unavailable => "Unavailable",
        Code::DataLoss => "DataLoss",
        Code::Unauthenticated => "Unauthenticated",
    }
}
