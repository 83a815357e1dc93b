//! Metrics `cloud_provider_webhook_*`.
//!
//! Upstream's names and buckets (`cloud-provider app/webhook_metrics.go`).
//!
//! Upstream's code counts refused requests only, by an oversight; here every answer counts.

use std::time::Duration;

use http::StatusCode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::webhook::Webhook;

type Labels = [(&'static str, &'static str); 2];

/// Seconds.
const BUCKETS: [f64; 8] = [0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0];

/// The counts; clones share them.
#[derive(Debug, Clone)]
pub struct WebhookMetrics {
    requests: Family<Labels, Counter>,
    durations: Family<Labels, Histogram, fn() -> Histogram>,
}

impl WebhookMetrics {
    /// Registers them.
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
        };
        registry.register(
            "cloud_provider_webhook_request",
            "Requests of admission webhooks, by the status of the answer",
            metrics.requests.clone(),
        );
        registry.register_with_unit(
            "cloud_provider_webhook_request_duration",
            "Time that answers of admission webhooks took, by their status",
            Unit::Seconds,
            metrics.durations.clone(),
        );
        metrics
    }

    /// Counts an answer.
    pub fn answered(&self, webhook: Webhook, status: StatusCode, took: Duration) {
        let labels = [("code", code(status)), ("webhook", webhook.name())];
        self.requests.get_or_create(&labels).inc();
        self.durations.get_or_create(&labels).observe(took.as_secs_f64());
    }
}

/// The statuses that webhooks answer with.
fn code(status: StatusCode) -> &'static str {
    match status {
        StatusCode::OK => "200",
        StatusCode::BAD_REQUEST => "400",
        StatusCode::PAYLOAD_TOO_LARGE => "413",
        StatusCode::SERVICE_UNAVAILABLE => "503",
        _ => "500",
    }
}
