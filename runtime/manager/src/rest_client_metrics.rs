//! `rest_client_*`: requests to API servers as they leave, under upstream's names and labels
//! (`component-base metrics/prometheus/restclient`). One layer on each client counts; the host is the API server's, so labels come
//! from a closed set.

use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tower::{Layer, Service};

type Requests = Family<[(&'static str, String); 3], Counter>;
type Durations = Family<[(&'static str, String); 2], Histogram, Buckets>;

/// Upstream's.
#[derive(Clone)]
struct Buckets;

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new([0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0])
    }
}

/// Counts requests; clones share the counts.
#[derive(Clone)]
pub struct RestClientMetrics {
    requests: Requests,
    durations: Durations,
}

impl RestClientMetrics {
    /// Registers them.
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(Buckets),
        };
        registry.register(
            "rest_client_requests",
            "Requests to API servers by status, method and host; the code is <error> where there was no response",
            metrics.requests.clone(),
        );
        registry.register(
            "rest_client_request_duration_seconds",
            "Seconds until the head of the response of an API server, or until there was none",
            metrics.durations.clone(),
        );
        metrics
    }

    /// A client whose requests are counted.
    pub fn client(&self, config: Config) -> Result<Client, kube::Error> {
        let layer = Counting {
            metrics: self.clone(),
            host: host(&config),
        };
        Ok(ClientBuilder::try_from(config)?.with_layer(&layer).build())
    }

    fn seen(&self, method: &'static str, host: &str, code: String, since: Instant) {
        let (verb, host) = (method.to_owned(), host.to_owned());
        self.requests
            .get_or_create_owned(&[("code", code), ("method", verb.clone()), ("host", host.clone())])
            .inc();
        self.durations
            .get_or_create_owned(&[("verb", verb), ("host", host)])
            .observe(since.elapsed().as_secs_f64());
    }
}

/// Host and port, without what else an address may carry, such as a password.
fn host(config: &Config) -> String {
    let address = &config.cluster_url;
    let host = address.host().unwrap_or_default();
    address
        .port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// The methods there are, so that nothing else becomes a label.
fn name(method: &Method) -> &'static str {
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

#[derive(Clone)]
struct Counting {
    metrics: RestClientMetrics,
    host: String,
}

impl<S> Layer<S> for Counting {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted {
            inner,
            counting: self.clone(),
        }
    }
}

struct Counted<S> {
    inner: S,
    counting: Counting,
}

impl<S, B> Service<Request<Body>> for Counted<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (counting, method, since) = (self.counting.clone(), name(request.method()), Instant::now());
        let answered = self.inner.call(request);
        async move {
            let answered = answered.await;
            let code = match &answered {
                Ok(response) => response.status().as_str().to_owned(),
                Err(_) => "<error>".to_owned(),
            };
            counting.metrics.seen(method, &counting.host, code, since);
            answered
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn each_request_is_counted_once_with_what_came_of_it() {
        let mut registry = Registry::default();
        let metrics = RestClientMetrics::new(&mut registry);
        let config = Config::new("https://user:secret@example.com:6443/path".parse().unwrap());
        let layer = Counting {
            metrics,
            host: host(&config),
        };
        let answers = |request: Request<Body>| async move {
            match *request.method() {
                Method::GET => Ok(Response::builder().status(404).body(()).unwrap()),
                _ => Err("no connection"),
            }
        };
        for method in [Method::GET, Method::GET, Method::PATCH, Method::TRACE] {
            let request = Request::builder().method(method).body(Body::empty()).unwrap();
            let _ = layer.layer(tower::service_fn(answers)).oneshot(request).await;
        }
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            r#"rest_client_requests_total{code="404",method="GET",host="example.com:6443"} 2"#,
            r#"rest_client_requests_total{code="<error>",method="PATCH",host="example.com:6443"} 1"#,
            r#"rest_client_requests_total{code="<error>",method="OTHER",host="example.com:6443"} 1"#,
            r#"rest_client_request_duration_seconds_count{verb="GET",host="example.com:6443"} 2"#,
        ] {
            assert!(text.contains(line), "{line} is missing in:\n{text}");
        }
        assert!(!text.contains("secret"), "{text}");
    }
}
