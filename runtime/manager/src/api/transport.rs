//! Client of an API server: the library's, with our layer on it.
//!
//! ```text
//!   request -> token as it is known now -> head within a minute -> body within its limits (response_limits) -> counted (rest_client_metrics)
//! ```

use std::task::{Context, Poll};

use bytes::Bytes;
use cloudwit_host::bounded_work::{FILE_LIMIT, bounded};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Body as _;
use kube::Client;
use kube::client::{Body, ClientBuilder};
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};

use crate::api::config::ApiConfig;
use crate::api::credentials::Bearer;
use crate::api::metrics::{RestClientMetrics, host, verb};
use crate::api::response_limits::{LimitedBody, REQUEST_LIMIT, ResponseCut, is_watch};

/// A client of its own, with its own connections. `agent` is its user agent.
///
/// # Errors
///
/// When the credentials or authorities make no client.
pub async fn client(
    from: &ApiConfig,
    agent: Option<HeaderValue>,
    metrics: &RestClientMetrics,
) -> Result<Client, kube::Error> {
    let mut config = from.config.clone();
    config.headers.extend(agent.map(|agent| (header::USER_AGENT, agent)));
    let layer = Limits {
        bearer: from.bearer.clone(),
        host: host(&config),
        metrics: metrics.clone(),
    };
    metrics.transport_created();
    // The library reads the system's authorities where the kubeconfig names none.
    let number = metrics.transports();
    let key = format!("client {number} of {}", layer.host);
    let build = move || Ok(ClientBuilder::try_from(config)?.with_layer(&layer).build());
    bounded(&key, FILE_LIMIT, build)
        .await
        .unwrap_or_else(|error| Err(kube::Error::Service(error.into())))
}

#[derive(Clone)]
struct Limits {
    bearer: Option<Bearer>,
    host: String,
    metrics: RestClientMetrics,
}

impl<S> Layer<S> for Limits {
    type Service = Limited<S>;

    fn layer(&self, inner: S) -> Limited<S> {
        Limited {
            inner,
            limits: self.clone(),
        }
    }
}

struct Limited<S> {
    inner: S,
    limits: Limits,
}

impl<S, B> Service<Request<Body>> for Limited<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes>,
{
    type Response = Response<LimitedBody<B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let (limits, sent) = (self.limits.clone(), Instant::now());
        let (verb, watch) = (verb(request.method()), is_watch(&request));
        let bearer = limits.bearer.as_ref().map(|bearer| (bearer.clone(), bearer.header()));
        if let Some((_, token)) = &bearer {
            request
                .headers_mut()
                .entry(header::AUTHORIZATION)
                .or_insert_with(|| token.clone());
        }
        if let Some(bytes) = request.body().size_hint().exact() {
            limits.metrics.request_size(verb, &limits.host, bytes);
        }
        let answered = tokio::time::timeout(REQUEST_LIMIT, self.inner.call(request));
        async move {
            let answered = match answered.await {
                Ok(answered) => answered.map_err(Into::into),
                Err(_) => Err(ResponseCut::Time.into()),
            };
            let code = answered.as_ref().ok().map(Response::status);
            limits.metrics.seen(verb, &limits.host, code, sent);
            if let Some((bearer, token)) = bearer.filter(|_| code == Some(StatusCode::UNAUTHORIZED)) {
                bearer.refused(&token);
            }
            let Limits { metrics, host, .. } = limits;
            let on_end = Box::new(move |bytes| metrics.response_size(verb, &host, bytes));
            answered.map(|response| response.map(|body| LimitedBody::new(body, watch, sent, on_end)))
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use kube::Config;
    use prometheus_client::registry::Registry;
    use tower::ServiceExt;

    use super::*;

    fn limits(registry: &mut Registry) -> Limits {
        let config = Config::new("https://user:secret@example.com:6443/path".parse().unwrap());
        Limits {
            bearer: None,
            host: host(&config),
            metrics: RestClientMetrics::new(registry),
        }
    }

    fn request(method: http::Method, body: &str) -> Request<Body> {
        let request = Request::builder().method(method).uri("/api/v1/nodes");
        request.body(Body::from(body.as_bytes().to_vec())).unwrap()
    }

    #[tokio::test]
    async fn each_request_is_counted_once_with_what_came_of_it() {
        let mut registry = Registry::default();
        let layer = limits(&mut registry);
        let answers = |request: Request<Body>| async move {
            match *request.method() {
                http::Method::GET => Ok(Response::builder()
                    .status(404)
                    .body(Body::from(b"gone".to_vec()))
                    .unwrap()),
                _ => Err("no connection"),
            }
        };
        for method in ["GET", "GET", "PATCH", "TRACE"] {
            let request = request(method.parse().unwrap(), if method == "PATCH" { "{}" } else { "" });
            if let Ok(response) = layer.layer(tower::service_fn(answers)).oneshot(request).await {
                let mut body = response.into_body();
                while let Some(frame) =
                    std::future::poll_fn(|context| std::pin::Pin::new(&mut body).poll_frame(context)).await
                {
                    frame.unwrap();
                }
            }
        }
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            r#"rest_client_requests_total{code="404",method="GET",host="example.com:6443"} 2"#,
            r#"rest_client_requests_total{code="<error>",method="PATCH",host="example.com:6443"} 1"#,
            r#"rest_client_requests_total{code="<error>",method="OTHER",host="example.com:6443"} 1"#,
            r#"rest_client_request_duration_seconds_count{verb="GET",host="example.com:6443"} 2"#,
            r#"rest_client_request_size_bytes_sum{verb="PATCH",host="example.com:6443"} 2"#,
            r#"rest_client_response_size_bytes_sum{verb="GET",host="example.com:6443"} 8"#,
        ] {
            assert!(text.contains(line), "{line} is missing in:\n{text}");
        }
        assert!(!text.contains("secret"), "{text}");
    }

    /// An API server that takes the connection and says nothing, as a network that drops packets looks.
    #[tokio::test(start_paused = true)]
    async fn a_request_without_an_answer_ends() {
        let layer = limits(&mut Registry::default());
        let silent = |_: Request<Body>| std::future::pending::<Result<Response<Body>, BoxError>>();
        let sent = Instant::now();
        let answered = layer
            .layer(tower::service_fn(silent))
            .oneshot(request(http::Method::POST, "{}"))
            .await;
        assert!(answered.err().unwrap().downcast_ref() == Some(&ResponseCut::Time));
        assert!(sent.elapsed() <= REQUEST_LIMIT + std::time::Duration::from_secs(1));
    }
}
