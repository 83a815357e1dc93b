//! Export of spans to an OpenTelemetry collector: OTLP over HTTP, in batches.
//!
//! ```text
//!   tracing spans -> tracing-opentelemetry -> queue of 2048 -> every 5 s: trace_spans::shape -> one POST
//! ```
//!
//! Work never waits for it: a full queue loses spans. A collector that does not answer costs one log line when it begins and one when it
//! ends, whose words come from closed sets, since a collector may send back what it got. Without `--tracing-endpoint` nothing of this exists.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use cloudwit_host::http_client;
use http::{Request, Response};
use opentelemetry::KeyValue;
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use opentelemetry_otlp::{RetryPolicy, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::flags::groups::tracing::TracingArgs;
use crate::telemetry::trace_spans;

/// A collector that takes longer is treated as one that does not answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// At the end of the process the last spans get this long.
const LAST_SPANS: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    result: &'static str,
}

/// The exporter while it is switched on.
pub struct Traces {
    provider: SdkTracerProvider,
    spans: Family<Labels, Counter>,
}

impl Traces {
    /// Starts exporting; none when no collector is named. The error names the mistake in the flags or their file. `identity` tells
    /// replicas apart.
    pub fn of(args: &TracingArgs, identity: &str) -> anyhow::Result<Option<Self>> {
        let Ok(Some(endpoint)) = args.endpoint() else {
            return Ok(None);
        };
        let client = client(args).map_err(anyhow::Error::msg)?;
        let sender = Sender {
            client,
            runtime: tokio::runtime::Handle::current(),
            health: Arc::new(Health::default()),
        };
        let otlp = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_http_client(sender)
            .with_endpoint(endpoint.as_str())
            .with_timeout(PATIENCE)
            // The next batch comes anyway; trying again would only fill the queue.
            .with_retry_policy(RetryPolicy::default().with_max_retries(0))
            .build()
            .context("--tracing-endpoint: no exporter; check the variables OTEL_EXPORTER_OTLP_* of the environment")?;
        let spans = Family::default();
        let shaping = Shaping {
            otlp,
            spans: spans.clone(),
        };
        let resource = Resource::builder()
            .with_attribute(KeyValue::new("service.name", "cloudwit"))
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .with_attribute(KeyValue::new("service.instance.id", identity.to_owned()))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(args.ratio()))))
            .with_resource(resource)
            .with_batch_exporter(shaping)
            .build();
        Ok(Some(Self { provider, spans }))
    }

    /// Where spans are made.
    pub fn provider(&self) -> &SdkTracerProvider {
        &self.provider
    }

    /// Counts what becomes of spans.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "cloudwit_trace_spans",
            "Spans by what became of them: exported, or failed when the collector did not take them",
            self.spans.clone(),
        );
    }

    /// Sends what is left, for a short time.
    pub async fn finish(self) {
        // What is not sent by then is lost, as it would be if the process had been killed.
        let _ = tokio::task::spawn_blocking(move || self.provider.shutdown_with_timeout(LAST_SPANS)).await;
    }
}

fn client(args: &TracingArgs) -> Result<reqwest::Client, String> {
    let file = args.tracing_ca_file.as_deref();
    let wrong = |what: String| {
        let file = file.map(|file| file.display().to_string()).unwrap_or_default();
        format!("--tracing-ca-file={file}: {what}; give a PEM file with the collector's authorities")
    };
    let ca = file.map(std::fs::read).transpose();
    let ca = ca.map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let tls = http_client::tls(ca.as_deref()).map_err(wrong)?;
    let builder = reqwest::Client::builder().tls_backend_preconfigured(tls);
    let builder = builder.timeout(PATIENCE).redirect(reqwest::redirect::Policy::none());
    builder
        .build()
        .map_err(|_| "--tracing-endpoint: no HTTP client can be made".to_owned())
}

/// Lets only what is in the table out, and counts.
struct Shaping<E> {
    otlp: E,
    spans: Family<Labels, Counter>,
}

impl<E> fmt::Debug for Shaping<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shaping").finish_non_exhaustive()
    }
}

impl<E: SpanExporter> SpanExporter for Shaping<E> {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        batch.iter_mut().for_each(trace_spans::shape);
        let count = batch.len() as u64;
        let sent = self.otlp.export(batch).await;
        let result = if sent.is_ok() { "exported" } else { "failed" };
        self.spans.get_or_create(&Labels { result }).inc_by(count);
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.otlp.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.otlp.set_resource(resource);
    }
}

/// Sends one batch. The exporter's thread has no runtime, so requests run on ours.
struct Sender {
    client: reqwest::Client,
    runtime: tokio::runtime::Handle,
    health: Arc<Health>,
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl HttpClient for Sender {
    fn send_bytes<'life, 'answer>(
        &'life self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'answer>>
    where
        'life: 'answer,
        Self: 'answer,
    {
        let (client, health) = (self.client.clone(), self.health.clone());
        let sent = self.runtime.spawn(async move {
            let sent = send(&client, request).await;
            health.seen(sent.as_ref().map(Response::status));
            sent.map_err(HttpError::from)
        });
        Box::pin(async move { sent.await? })
    }
}

/// The answer without its body, which is not read. The error is in our own words.
async fn send(client: &reqwest::Client, request: Request<Bytes>) -> Result<Response<Bytes>, &'static str> {
    let request = reqwest::Request::try_from(request).map_err(|_| "the request cannot be made")?;
    let answer = client.execute(request).await.map_err(|error| match error {
        error if error.is_timeout() => "no answer in time",
        error if error.is_connect() => "no connection",
        _ => "the request failed",
    })?;
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = answer.status();
    Ok(response)
}

/// Logs when a collector stops taking spans and when it takes them again, each once.
#[derive(Debug, Default)]
struct Health {
    failing: AtomicBool,
}

impl Health {
    fn seen(&self, sent: Result<http::StatusCode, &&'static str>) {
        let trouble = match sent {
            Ok(status) if status.is_success() => None,
            Ok(status) => Some(format!("it answers {}", status.as_u16())),
            Err(why) => Some((*why).to_owned()),
        };
        let was_failing = self.failing.swap(trouble.is_some(), Ordering::Relaxed);
        match trouble {
            Some(why) if !was_failing => tracing::warn!(
                why,
                "trace export failed; spans are dropped until the collector accepts them"
            ),
            None if was_failing => tracing::info!("trace export recovered"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_reported_when_it_begins_and_when_it_ends() {
        let health = Health::default();
        let is_failing = || health.failing.load(Ordering::Relaxed);
        health.seen(Ok(http::StatusCode::OK));
        assert!(!is_failing());
        health.seen(Err(&"no connection"));
        health.seen(Ok(http::StatusCode::UNAUTHORIZED));
        assert!(is_failing());
        health.seen(Ok(http::StatusCode::ACCEPTED));
        assert!(!is_failing());
    }

    #[tokio::test]
    async fn missing_endpoint_is_none_and_wrong_file_is_reported() {
        let args = |endpoint: Option<&str>| TracingArgs {
            tracing_endpoint: endpoint.map(str::to_owned),
            tracing_sampling_rate_per_million: 1,
            tracing_ca_file: Some("/nowhere/ca.pem".into()),
        };
        assert!(Traces::of(&args(None), "a").unwrap().is_none());
        let Err(error) = Traces::of(&args(Some("https://c")), "a") else {
            panic!("there is no such file");
        };
        assert!(
            error
                .to_string()
                .starts_with("--tracing-ca-file=/nowhere/ca.pem: cannot be read"),
            "{error}"
        );
    }
}
