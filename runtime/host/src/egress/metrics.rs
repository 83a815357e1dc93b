//! Metrics of outgoing requests. All label values come from closed sets.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tokio::time::Instant;

use crate::egress::budget::rate_limit::Held;
use crate::egress::refusal::RefusalReason;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    provider: String,
    method: &'static str,
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    provider: String,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderLabels {
    provider: String,
}

/// Upper bounds in seconds: from a metadata service next door to a slow cloud at its timeout.
const BUCKETS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0];

/// Metrics of all providers. Cloning is cheap and gives the same metrics.
#[derive(Clone, Debug)]
pub struct EgressMetrics {
    requests: Family<RequestLabels, Counter>,
    refusals: Family<ReasonLabels, Counter>,
    in_flight: Family<ProviderLabels, Gauge>,
    waiting: Family<ProviderLabels, Gauge>,
    waits: Family<ReasonLabels, Counter>,
    throttled: Family<ReasonLabels, Counter>,
    pauses: Family<ProviderLabels, Counter>,
    seconds: Family<ProviderLabels, Histogram, fn() -> Histogram>,
}

impl Default for EgressMetrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            refusals: Family::default(),
            in_flight: Family::default(),
            waiting: Family::default(),
            waits: Family::default(),
            throttled: Family::default(),
            pauses: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
        }
    }
}

impl EgressMetrics {
    /// Puts the metrics into the registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "cloudwit_egress_requests",
            "HTTP requests of providers by method and class of status; code is error without a response and cancelled when the call ended first",
            self.requests.clone(),
        );
        registry.register(
            "cloudwit_egress_refusals",
            "HTTP requests of providers that were refused, by reason",
            self.refusals.clone(),
        );
        registry.register(
            "cloudwit_egress_requests_in_flight",
            "HTTP requests of providers that wait for the head of their response",
            self.in_flight.clone(),
        );
        registry.register(
            "cloudwit_egress_requests_waiting",
            "HTTP requests of providers that wait for their turn at their API host",
            self.waiting.clone(),
        );
        registry.register(
            "cloudwit_egress_waits",
            "HTTP requests of providers that had to wait for their turn, by what they first waited for: budget or retry_after",
            self.waits.clone(),
        );
        registry.register(
            "cloudwit_egress_throttled",
            "HTTP requests of providers that were answered with 429 here, since their turn would have come after the end of the call",
            self.throttled.clone(),
        );
        registry.register(
            "cloudwit_egress_pauses",
            "Pauses of one API host that the cloud set with Retry-After",
            self.pauses.clone(),
        );
        registry.register_with_unit(
            "cloudwit_egress_request_duration",
            "Time until the head of the response, or until there was none",
            Unit::Seconds,
            self.seconds.clone(),
        );
    }

    pub(crate) fn refused(&self, provider: &str, reason: RefusalReason) {
        self.refusals
            .get_or_create(&ReasonLabels {
                provider: provider.to_owned(),
                reason: reason.label(),
            })
            .inc();
    }

    pub(crate) fn throttled(&self, provider: &str, held: Held) {
        self.throttled.get_or_create(&held_labels(provider, held)).inc();
    }

    pub(crate) fn paused(&self, provider: &str) {
        let provider = provider.to_owned();
        self.pauses.get_or_create(&ProviderLabels { provider }).inc();
    }

    /// Counts one request as waiting until the answer is dropped.
    pub(crate) fn waits(&self, provider: &str, held: Held) -> Waiting {
        self.waits.get_or_create(&held_labels(provider, held)).inc();
        let provider = provider.to_owned();
        let waiting = self.waiting.get_or_create_owned(&ProviderLabels { provider });
        waiting.inc();
        Waiting(waiting)
    }

    /// Counts and measures one request until the answer is given or dropped.
    pub(crate) fn measure(&self, provider: &str, method: &http::Method) -> Measured {
        let labels = ProviderLabels {
            provider: provider.to_owned(),
        };
        self.in_flight.get_or_create(&labels).inc();
        let (metrics, method) = (self.clone(), method_class(method));
        Measured {
            metrics,
            labels,
            method,
            code: "cancelled",
            start: Instant::now(),
        }
    }
}

fn held_labels(provider: &str, held: Held) -> ReasonLabels {
    ReasonLabels {
        provider: provider.to_owned(),
        reason: held.label(),
    }
}

/// One request that waits.
pub(crate) struct Waiting(Gauge);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// One request; counted when dropped, so that cancelled ones are too.
pub(crate) struct Measured {
    metrics: EgressMetrics,
    labels: ProviderLabels,
    method: &'static str,
    code: &'static str,
    start: Instant,
}

impl Measured {
    /// The request is over, with this status or without any.
    pub(crate) fn done(mut self, status: Option<http::StatusCode>) {
        self.code = status.map_or("error", code_class);
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        let provider = self.labels.provider.clone();
        let labels = RequestLabels {
            provider,
            method: self.method,
            code: self.code,
        };
        self.metrics.requests.get_or_create(&labels).inc();
        self.metrics.in_flight.get_or_create(&self.labels).dec();
        self.metrics
            .seconds
            .get_or_create(&self.labels)
            .observe(self.start.elapsed().as_secs_f64());
    }
}

pub(crate) fn method_class(method: &http::Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        _ => "other",
    }
}

fn code_class(status: http::StatusCode) -> &'static str {
    match status.as_u16() {
        100..=199 => "1xx",
        200..=299 => "2xx",
        300..=399 => "3xx",
        400..=499 => "4xx",
        500..=599 => "5xx",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(metrics: &EgressMetrics) -> String {
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn every_request_is_counted_also_a_dropped_one() {
        let metrics = EgressMetrics::default();
        metrics
            .measure("sim", &http::Method::GET)
            .done(Some(http::StatusCode::NOT_FOUND));
        metrics
            .measure("sim", &http::Method::from_bytes(b"PURGE").unwrap())
            .done(None);
        drop(metrics.measure("sim", &http::Method::POST));
        metrics.refused("sim", RefusalReason::Port);
        let text = text(&metrics);
        for line in [
            r#"cloudwit_egress_requests_total{provider="sim",method="GET",code="4xx"} 1"#,
            r#"cloudwit_egress_requests_total{provider="sim",method="other",code="error"} 1"#,
            r#"cloudwit_egress_requests_total{provider="sim",method="POST",code="cancelled"} 1"#,
            r#"cloudwit_egress_refusals_total{provider="sim",reason="port"} 1"#,
            r#"cloudwit_egress_requests_in_flight{provider="sim"} 0"#,
            r#"cloudwit_egress_request_duration_seconds_count{provider="sim"} 3"#,
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }
}
