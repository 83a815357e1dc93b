//! `rest_client_*`: requests to API servers as they leave, under upstream's names and labels
//! (`component-base metrics/prometheus/restclient`). The host is the API server's, so labels come from a closed set.

use std::time::Duration;

use http::{Method, StatusCode};
use kube::Config;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

type Requests = Family<[(&'static str, String); 3], Counter>;
type Distribution = Family<[(&'static str, String); 2], Histogram, RestBuckets>;

/// Upstream's.
#[derive(Clone)]
enum RestBuckets {
    Seconds,
    Bytes,
}

impl MetricConstructor<Histogram> for RestBuckets {
    fn new_metric(&self) -> Histogram {
        match self {
            Self::Seconds => Histogram::new([0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0]),
            Self::Bytes => Histogram::new(
                [
                    64, 256, 512, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216,
                ]
                .map(f64::from),
            ),
        }
    }
}

/// Counts requests; clones share the counts.
#[derive(Clone)]
pub struct RestClientMetrics {
    requests: Requests,
    durations: Distribution,
    request_sizes: Distribution,
    response_sizes: Distribution,
    limiter: Distribution,
    transports: Family<[(&'static str, &'static str); 1], Counter>,
}

/// Each of our clients has connections of its own, made from no cache.
const UNCACHED: [(&str, &str); 1] = [("result", "uncacheable")];

impl RestClientMetrics {
    /// Registers them.
    pub fn new(registry: &mut Registry) -> Self {
        let distribution = Family::new_with_constructor;
        let metrics = Self {
            requests: Family::default(),
            durations: distribution(RestBuckets::Seconds),
            request_sizes: distribution(RestBuckets::Bytes),
            response_sizes: distribution(RestBuckets::Bytes),
            limiter: distribution(RestBuckets::Seconds),
            transports: Family::default(),
        };
        registry.register(
            "rest_client_requests",
            "Requests to API servers by status, method and host; the code is <error> where there was no response",
            metrics.requests.clone(),
        );
        for (name, help, family) in [
            (
                "rest_client_request_duration_seconds",
                "Seconds until the head of the response of an API server, or until there was none",
                &metrics.durations,
            ),
            (
                "rest_client_request_size_bytes",
                "Bytes of requests to API servers",
                &metrics.request_sizes,
            ),
            (
                "rest_client_response_size_bytes",
                "Bytes of whole responses of API servers; watches do not count",
                &metrics.response_sizes,
            ),
            (
                "rest_client_rate_limiter_duration_seconds",
                "Seconds that requests waited for their turn under --kube-api-qps",
                &metrics.limiter,
            ),
        ] {
            registry.register(name, help, family.clone());
        }
        registry.register(
            "rest_client_transport_cache_entries",
            "Cached transports; always 0, since each client has its own",
            Gauge::<i64>::default(),
        );
        registry.register(
            "rest_client_transport_create_calls",
            "Transports made, by whether they came from a cache; always uncacheable",
            metrics.transports.clone(),
        );
        metrics
    }

    /// A transport was made.
    pub fn transport_created(&self) {
        self.transports.get_or_create(&UNCACHED).inc();
    }

    /// How many were made.
    pub fn transports(&self) -> u64 {
        self.transports.get_or_create(&UNCACHED).get()
    }

    /// A request was answered, or not, since when it was sent.
    pub fn seen(&self, verb: &'static str, host: &str, code: Option<StatusCode>, since: Instant) {
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.as_str().to_owned());
        self.requests
            .get_or_create_owned(&[("code", code), ("method", verb.to_owned()), ("host", host.to_owned())])
            .inc();
        observe(&self.durations, verb, host, since.elapsed().as_secs_f64());
    }

    /// A request has so many bytes.
    pub fn request_size(&self, verb: &'static str, host: &str, bytes: u64) {
        observe(&self.request_sizes, verb, host, bytes as f64);
    }

    /// A response has so many bytes.
    pub fn response_size(&self, verb: &'static str, host: &str, bytes: usize) {
        observe(&self.response_sizes, verb, host, bytes as f64);
    }

    /// A request waited so long for its turn.
    pub fn limited(&self, verb: &'static str, host: &str, waited: Duration) {
        observe(&self.limiter, verb, host, waited.as_secs_f64());
    }
}

fn observe(family: &Distribution, verb: &'static str, host: &str, value: f64) {
    let labels = [("verb", verb.to_owned()), ("host", host.to_owned())];
    family.get_or_create_owned(&labels).observe(value);
}

/// Host and port, without what else an address may carry, such as a password.
pub fn host(config: &Config) -> String {
    let address = &config.cluster_url;
    let host = address.host().unwrap_or_default();
    address
        .port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// The methods there are, so that nothing else becomes a label.
pub fn verb(method: &Method) -> &'static str {
    let known = [
        (Method::GET, "GET"),
        (Method::POST, "POST"),
        (Method::PUT, "PUT"),
        (Method::PATCH, "PATCH"),
        (Method::DELETE, "DELETE"),
    ];
    known
        .iter()
        .find(|(known, _)| known == method)
        .map_or("OTHER", |(_, name)| name)
}
