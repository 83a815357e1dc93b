//! What happens to each `/v1` request before it reaches the API: it is counted, delayed, made to fail, and its token is checked.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::Shared;
use crate::api::refusal;
use crate::counters::{Counters, OperationCount};
use crate::faults::{Fault, FaultKind, Faults, Operation};

/// Counters, latency and faults.
pub(crate) struct Traffic {
    inner: Mutex<Inner>,
}

struct Inner {
    counters: Counters,
    faults: Faults,
    latency: Duration,
}

impl Traffic {
    pub(crate) fn new(latency: Duration, seed: u64) -> Self {
        Self {
            inner: Mutex::new(Inner {
                counters: Counters::default(),
                faults: Faults::new(seed),
                latency,
            }),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // No method leaves it half changed, so a panic of another thread does not matter.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn counters(&self) -> Counters {
        self.inner().counters.clone()
    }

    pub(crate) fn reset_counters(&self) {
        let counters = &mut self.inner().counters;
        let in_flight = counters.in_flight;
        *counters = Counters {
            in_flight,
            peak_in_flight: in_flight,
            ..Counters::default()
        };
    }

    pub(crate) fn set_faults(&self, faults: Vec<Fault>) {
        self.inner().faults.set(faults);
    }

    pub(crate) fn faults(&self) -> Vec<Fault> {
        self.inner().faults.all().to_vec()
    }

    pub(crate) fn latency(&self) -> Duration {
        self.inner().latency
    }

    pub(crate) fn set_latency(&self, latency: Duration) {
        self.inner().latency = latency;
    }

    pub(crate) fn reset(&self) {
        self.set_faults(Vec::new());
        self.set_latency(Duration::ZERO);
        self.reset_counters();
    }

    fn count(&self, operation: Operation, what: impl FnOnce(&mut OperationCount)) {
        what(self.inner().counters.operations.entry(operation).or_default());
    }
}

/// A request in flight; leaves when it is dropped, also when the client gave up.
struct InFlight(Arc<Shared>);

impl InFlight {
    fn enter(shared: &Arc<Shared>) -> Self {
        let counters = &mut shared.traffic.inner().counters;
        counters.in_flight += 1;
        counters.peak_in_flight = counters.peak_in_flight.max(counters.in_flight);
        Self(Arc::clone(shared))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.traffic.inner().counters.in_flight -= 1;
    }
}

/// Middleware of each `/v1` route.
pub(crate) async fn pass(
    State((shared, operation)): State<(Arc<Shared>, Operation)>,
    request: Request,
    next: Next,
) -> Response {
    let _in_flight = InFlight::enter(&shared);
    shared.traffic.count(operation, |count| count.requests += 1);
    let latency = shared.traffic.latency();
    if !latency.is_zero() {
        tokio::time::sleep(latency).await;
    }
    let fault = shared.traffic.inner().faults.hit(operation);
    if fault.is_some() {
        shared.traffic.count(operation, |count| count.injected_faults += 1);
    }
    match fault {
        None => {}
        Some(FaultKind::Status { status, retry_after }) => return failed(status, retry_after),
        Some(FaultKind::Cut) => return cut(),
        Some(FaultKind::Hang) => std::future::pending().await,
        Some(FaultKind::Garbage) => return "<html>not what you expected".into_response(),
        Some(FaultKind::Empty) => return Json(json!({ "items": [], "next": null })).into_response(),
        Some(FaultKind::Echo) => {
            let sent = request.headers().get(header::AUTHORIZATION).cloned();
            return refusal(403, &format!("nobody may come with {sent:?}"));
        }
        Some(FaultKind::CutAfter) => {
            // The work is done before the connection goes.
            drop(answer(&shared, operation, request, next).await);
            return cut();
        }
    }
    answer(&shared, operation, request, next).await
}

async fn answer(shared: &Shared, operation: Operation, request: Request, next: Next) -> Response {
    let sent = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    // Who asks for metadata is a machine, which has no token.
    let needs_token = operation != Operation::GetMetadata;
    if needs_token
        && !shared
            .tokens
            .admit(sent.and_then(|value| value.strip_prefix("Bearer ")))
    {
        shared.traffic.count(operation, |count| count.unauthorized += 1);
        return refusal(401, "the bearer token is missing or wrong");
    }
    next.run(request).await
}

fn failed(status: u16, retry_after: Option<u32>) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = refusal(status.as_u16(), "a fault, as ordered");
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// An answer whose body fails at once: the server can only close the connection.
fn cut() -> Response {
    let broken = futures::stream::once(async { Err::<Bytes, _>(io::Error::other("cut, as ordered")) });
    Response::new(Body::from_stream(broken))
}
