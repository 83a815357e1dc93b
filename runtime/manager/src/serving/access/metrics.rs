//! Metrics `authentication_*` and `authorization_*`, with upstream's names.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;
use tokio::time::Instant;

type Label = [(&'static str, &'static str); 1];
type Durations = Family<Label, Histogram, Buckets>;

/// 1 ms doubling, 15 buckets, for whole requests; Go's default for looks into the cache of tokens.
#[derive(Clone)]
enum Buckets {
    Requests,
    Looks,
}

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        match self {
            Self::Requests => Histogram::new(exponential_buckets(0.001, 2.0, 15)),
            Self::Looks => Histogram::new([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]),
        }
    }
}

/// A counter whose name upstream does not end with `_total`; OpenMetrics has no counters like that.
#[derive(Debug, Clone, Default)]
struct BareCounter(Arc<AtomicU64>);

impl TypedMetric for BareCounter {
    const TYPE: MetricType = MetricType::Unknown;
}

impl EncodeMetric for BareCounter {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        encoder.encode_gauge(&self.0.load(Ordering::Relaxed))
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

/// The counts; clones share them.
#[derive(Clone)]
pub struct AccessMetrics {
    users: Family<Label, BareCounter>,
    attempts: Family<Label, BareCounter>,
    attempt_durations: Durations,
    authorizations: Family<Label, Counter>,
    authorization_durations: Durations,
    looks: Family<Label, Counter>,
    look_durations: Durations,
    fetches: Family<Label, Counter>,
    fetching: Family<Label, Gauge>,
}

impl AccessMetrics {
    /// Registers them.
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            users: Family::default(),
            attempts: Family::default(),
            attempt_durations: Family::new_with_constructor(Buckets::Requests),
            authorizations: Family::default(),
            authorization_durations: Family::new_with_constructor(Buckets::Requests),
            looks: Family::default(),
            look_durations: Family::new_with_constructor(Buckets::Looks),
            fetches: Family::default(),
            fetching: Family::default(),
        };
        metrics.register(registry);
        metrics
    }

    fn register(&self, registry: &mut Registry) {
        registry.register(
            "authenticated_user_requests",
            "Requests whose sender is known or anonymous, by a few well-known names and other",
            self.users.clone(),
        );
        registry.register(
            "authentication_attempts",
            "Requests by result of authentication: success or error",
            self.attempts.clone(),
        );
        registry.register(
            "authentication_duration_seconds",
            "Seconds to authenticate a request, by result",
            self.attempt_durations.clone(),
        );
        registry.register(
            "authorization_attempts",
            "Requests by result of authorization: allowed, denied, no-opinion or error",
            self.authorizations.clone(),
        );
        registry.register(
            "authorization_duration_seconds",
            "Seconds to authorize a request, by result",
            self.authorization_durations.clone(),
        );
        registry.register(
            "authentication_token_cache_request",
            "Requests with a token, by whether the answer to it was known: hit or miss",
            self.looks.clone(),
        );
        registry.register(
            "authentication_token_cache_request_duration_seconds",
            "Seconds to authenticate a token, by whether the answer was cached",
            self.look_durations.clone(),
        );
        registry.register(
            "authentication_token_cache_fetch",
            "TokenReviews by result: ok or error",
            self.fetches.clone(),
        );
        registry.register(
            "authentication_token_cache_active_fetch_count",
            "TokenReviews under way: in_flight",
            self.fetching.clone(),
        );
    }

    /// It was found out who sent a request, or not.
    pub fn authenticated(&self, name: Option<&str>, since: Instant) {
        let result = if name.is_some() { "success" } else { "error" };
        if let Some(name) = name {
            bare(&self.users, [("username", compressed(name))]);
        }
        bare(&self.attempts, [("result", result)]);
        self.attempt_durations
            .get_or_create(&[("result", result)])
            .observe(since.elapsed().as_secs_f64());
    }

    /// It was found out whether a request is allowed.
    pub fn authorized(&self, result: &'static str, since: Instant) {
        self.authorizations.get_or_create(&[("result", result)]).inc();
        self.authorization_durations
            .get_or_create(&[("result", result)])
            .observe(since.elapsed().as_secs_f64());
    }

    /// It was found out whose a token is.
    pub fn looked(&self, known: bool, since: Instant) {
        let status = [("status", if known { "hit" } else { "miss" })];
        self.looks.get_or_create(&status).inc();
        self.look_durations
            .get_or_create(&status)
            .observe(since.elapsed().as_secs_f64());
    }

    /// A TokenReview begins; its end is recorded on the returned value.
    pub fn fetch(&self) -> Fetch {
        self.fetching.get_or_create(&IN_FLIGHT).inc();
        Fetch(self.clone())
    }
}

/// Questions to an API server about who the client is, or what he may do, under upstream's names
/// (`apiserver pkg/authentication/authenticatorfactory/metrics.go`, `pkg/authorization/authorizerfactory/metrics.go`); clones share them.
#[derive(Clone)]
pub struct DelegatedMetrics {
    requests: Family<[(&'static str, String); 1], Counter>,
    durations: Family<[(&'static str, String); 1], Histogram, DelegatedBuckets>,
}

/// Upstream's.
#[derive(Clone)]
struct DelegatedBuckets;

impl MetricConstructor<Histogram> for DelegatedBuckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new([0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0])
    }
}

impl Default for DelegatedMetrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(DelegatedBuckets),
        }
    }
}

impl DelegatedMetrics {
    /// Those of `authn` or `authz`, registered.
    pub fn new(kind: &'static str, registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            format!("apiserver_delegated_{kind}_request"),
            "Questions to the API server by status code; <error> where there was no response",
            metrics.requests.clone(),
        );
        registry.register(
            format!("apiserver_delegated_{kind}_request_duration_seconds"),
            "Seconds that questions to the API server took, by status code",
            metrics.durations.clone(),
        );
        metrics
    }

    /// A question was answered with this code, or not at all, since when it was sent.
    pub fn seen(&self, code: Option<u16>, sent: Instant) {
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
        self.requests.get_or_create_owned(&[("code", code.clone())]).inc();
        let labels = [("code", code)];
        self.durations
            .get_or_create_owned(&labels)
            .observe(sent.elapsed().as_secs_f64());
    }
}

const IN_FLIGHT: Label = [("status", "in_flight")];

/// A TokenReview under way.
pub struct Fetch(AccessMetrics);

impl Fetch {
    /// It has come to its end.
    pub fn ended(self, well: bool) {
        let status = [("status", if well { "ok" } else { "error" })];
        self.0.fetches.get_or_create(&status).inc();
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        self.0.fetching.get_or_create(&IN_FLIGHT).dec();
    }
}

fn bare(family: &Family<Label, BareCounter>, label: Label) {
    family.get_or_create(&label).0.fetch_add(1, Ordering::Relaxed);
}

/// Upstream's few categories, which contain no names (`filters/metrics.go:compressUsername`).
fn compressed(name: &str) -> &'static str {
    const KNOWN: [&str; 5] = [
        "admin",
        "client",
        "kube_proxy",
        "kubelet",
        "system:serviceaccount:kube-system:default",
    ];
    match KNOWN.into_iter().find(|known| *known == name) {
        Some(known) => known,
        None if name.contains('@') => "email_id",
        None => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_upstreams_and_users_are_not_reported() {
        let mut registry = Registry::default();
        let (metrics, now) = (AccessMetrics::new(&mut registry), Instant::now());
        for name in ["admin", "ann@example.com", "system:anonymous", "secret"] {
            metrics.authenticated(Some(name), now);
        }
        metrics.authenticated(None, now);
        metrics.authorized("no-opinion", now);
        metrics.looked(true, now);
        metrics.fetch().ended(true);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            r#"authenticated_user_requests{username="admin"} 1"#,
            r#"authenticated_user_requests{username="email_id"} 1"#,
            r#"authenticated_user_requests{username="other"} 2"#,
            r#"authentication_attempts{result="success"} 4"#,
            r#"authentication_attempts{result="error"} 1"#,
            r#"authorization_attempts_total{result="no-opinion"} 1"#,
            r#"authentication_token_cache_request_total{status="hit"} 1"#,
            r#"authentication_token_cache_fetch_total{status="ok"} 1"#,
            r#"authentication_token_cache_active_fetch_count{status="in_flight"} 0"#,
        ] {
            assert!(text.contains(line), "{line} is missing in:\n{text}");
        }
        assert!(!text.contains("secret") && !text.contains("example.com"), "{text}");
    }
}
