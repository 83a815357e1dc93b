//! A trace collector on loopback: takes OTLP over HTTP as an OpenTelemetry collector does, and keeps what it got.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

/// A span, in words.
#[derive(Debug, Clone)]
pub struct Received {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: Vec<u8>,
    /// Empty for the root of a trace.
    pub parent: Vec<u8>,
    /// Its attributes, numbers as text.
    pub attributes: BTreeMap<String, String>,
    /// Ids of spans that it has links to.
    pub links: Vec<Vec<u8>>,
    /// OTLP's number: 1 internal, 3 client.
    pub kind: i32,
    /// Whether its status is an error.
    pub is_error: bool,
    /// Who sent it.
    pub resource: BTreeMap<String, String>,
}

impl Received {
    /// Whether the attribute has this value.
    pub fn has(&self, attribute: &str, value: &str) -> bool {
        self.attributes.get(attribute).is_some_and(|found| found == value)
    }
}

#[derive(Debug)]
struct Kept {
    spans: Vec<Received>,
    /// Everything that came, head and body.
    raw: Vec<u8>,
    requests: usize,
    credentials: Option<String>,
    answer: StatusCode,
}

/// The collector; it ends with the runtime of its test.
#[derive(Debug, Clone)]
pub struct Collector {
    kept: Arc<Mutex<Kept>>,
    /// Its address, without a path.
    pub url: String,
}

impl Collector {
    /// One that takes everything.
    ///
    /// # Panics
    ///
    /// When it cannot listen.
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("loopback has free ports");
        let url = format!("http://{}", listener.local_addr().expect("a listener has an address"));
        let kept = Arc::new(Mutex::new(Kept {
            spans: Vec::new(),
            raw: Vec::new(),
            requests: 0,
            credentials: None,
            answer: StatusCode::OK,
        }));
        let router = Router::new().route("/v1/traces", post(take)).with_state(kept.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { kept, url }
    }

    /// From now on it answers with this status, and its answer repeats what it was sent as a careless service would.
    ///
    /// # Panics
    ///
    /// When it is no status.
    pub fn answers(&self, status: u16) {
        lock(&self.kept).answer = StatusCode::from_u16(status).expect("a status of HTTP");
    }

    /// All spans that it has taken.
    pub fn spans(&self) -> Vec<Received> {
        lock(&self.kept).spans.clone()
    }

    /// How many requests came, refused ones too.
    pub fn requests(&self) -> usize {
        lock(&self.kept).requests
    }

    /// What the last request had as `Authorization`.
    pub fn credentials(&self) -> Option<String> {
        lock(&self.kept).credentials.clone()
    }

    /// Everything that came on the wire, without the headers of credentials.
    pub fn raw(&self) -> Vec<u8> {
        lock(&self.kept).raw.clone()
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn take(State(kept): State<Arc<Mutex<Kept>>>, headers: HeaderMap, body: Bytes) -> (StatusCode, String) {
    let mut kept = lock(&kept);
    kept.requests += 1;
    let credentials = headers.get("authorization").and_then(|value| value.to_str().ok());
    kept.credentials = credentials.map(str::to_owned);
    kept.raw.extend_from_slice(&body);
    if kept.answer.is_success() {
        let request = ExportTraceServiceRequest::decode(body).expect("OTLP");
        kept.spans.extend(received(request));
    }
    (kept.answer, format!("{headers:?}"))
}

fn received(request: ExportTraceServiceRequest) -> Vec<Received> {
    let mut all = Vec::new();
    for spans in request.resource_spans {
        let resource = words(&spans.resource.unwrap_or_default().attributes);
        let spans = spans.scope_spans.into_iter().flat_map(|scope| scope.spans);
        all.extend(spans.map(|span| one(span, &resource)));
    }
    all
}

fn one(span: Span, resource: &BTreeMap<String, String>) -> Received {
    assert_eq!(span.events, [], "a span has no events");
    Received {
        attributes: words(&span.attributes),
        links: span.links.into_iter().map(|link| link.span_id).collect(),
        kind: span.kind,
        // STATUS_CODE_ERROR
        is_error: span.status.is_some_and(|status| status.code == 2),
        name: span.name,
        id: span.span_id,
        parent: span.parent_span_id,
        resource: resource.clone(),
    }
}

fn words(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let word = |value: Option<&AnyValue>| match value.and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        other => panic!("an attribute of another kind: {other:?}"),
    };
    let pairs = attributes.iter();
    pairs
        .map(|pair| (pair.key.clone(), word(pair.value.as_ref())))
        .collect()
}
