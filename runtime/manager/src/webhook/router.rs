//! The webhooks over HTTP: bounds of bodies, requests and time around the framing.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use http::{StatusCode, header};
use http_body::Body as _;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use crate::webhook::Webhook;
use crate::webhook::metrics::WebhookMetrics;
use crate::webhook::review::{self, Answer};
use crate::webhook::volume_label;
use crate::webhook::volume_label::gather::Gatherer;

/// The time of one request. The configuration gives us 10 s (`timeoutSeconds`): so the API server gets the reason why there is no answer.
pub const TIME_LIMIT: Duration = Duration::from_secs(8);
/// The time of its body.
const BODY_TIME: Duration = Duration::from_secs(4);
/// The largest body: etcd takes no object of more than 1.5 MiB (`--max-request-bytes`), and what is around it is small.
const BODY: usize = 2 << 20;
/// Bodies that are read at a time, so that they have at most 8 MiB together.
const BODIES: usize = 4;
/// An object with a larger body is a rare one: what was read of it may have ten times that.
const LARGE: usize = 64 << 10;
/// Rare ones at a time.
const LARGE_ONES: usize = 4;
/// Requests at a time.
const REQUESTS: usize = 256;

#[derive(Clone)]
struct Served {
    webhook: Webhook,
    gatherer: Gatherer,
    metrics: WebhookMetrics,
    bodies: Arc<Semaphore>,
    large: Arc<Semaphore>,
    requests: Arc<Semaphore>,
}

/// The selected webhooks, each under its path.
pub fn router(webhooks: &[Webhook], gatherer: &Gatherer, metrics: &WebhookMetrics) -> Router {
    let (bodies, requests) = (Arc::new(Semaphore::new(BODIES)), Arc::new(Semaphore::new(REQUESTS)));
    let large = Arc::new(Semaphore::new(LARGE_ONES));
    let mut router = Router::new();
    for webhook in webhooks {
        let served = Served {
            webhook: *webhook,
            gatherer: gatherer.clone(),
            metrics: metrics.clone(),
            bodies: bodies.clone(),
            large: large.clone(),
            requests: requests.clone(),
        };
        router = router.route(webhook.path(), any(serve).with_state(served));
    }
    router
}

async fn serve(State(served): State<Served>, request: Request) -> Response {
    let begun = Instant::now();
    let response = served.answer(request, begun).await;
    let response = response.unwrap_or_else(|(status, text)| {
        tracing::debug!(webhook = served.webhook.name(), %status, text, "admission request refused");
        (status, text).into_response()
    });
    served
        .metrics
        .answered(served.webhook, response.status(), begun.elapsed());
    response
}

/// Why there is no review, as plain text.
type Refused = (StatusCode, String);

impl Served {
    async fn answer(&self, request: Request, begun: Instant) -> Result<Response, Refused> {
        let busy = |_| (StatusCode::SERVICE_UNAVAILABLE, "too many requests".to_owned());
        let _place = self.requests.try_acquire().map_err(busy)?;
        let (uid, volume, _large) = self.read(request, begun).await?;
        let answer = match volume {
            Ok(None) => Answer::Allowed(Vec::new()),
            Ok(Some(volume)) => {
                let asked = volume_label::review(&volume, &self.gatherer);
                let late = |_| Answer::Forbidden(format!("the cloud has not answered within {TIME_LIMIT:?}"));
                timeout_at(begun + TIME_LIMIT, asked).await.unwrap_or_else(late)
            }
            Err(why) => Answer::Forbidden(why),
        };
        match &answer {
            Answer::Allowed(patch) => {
                tracing::debug!(
                    webhook = self.webhook.name(),
                    uid,
                    changes = patch.len(),
                    "object admitted"
                );
            }
            Answer::Forbidden(why) => tracing::info!(webhook = self.webhook.name(), uid, why, "object refused"),
        }
        let body = review::response(&uid, &answer).to_string();
        Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
    }

    /// Reads the request. Its body is gone when this returns, so waiting for the cloud costs little memory; a large object keeps a place until it is answered.
    async fn read(
        &self,
        request: Request,
        begun: Instant,
    ) -> Result<(String, Created, Option<SemaphorePermit<'_>>), Refused> {
        let content_type = request.headers().get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let slow = |_| {
            (
                StatusCode::SERVICE_UNAVAILABLE,
                "the body did not come in time".to_owned(),
            )
        };
        let reading = async {
            let place = self.bodies.acquire().await;
            (body(request.into_body()).await, place)
        };
        let (body, _place) = timeout_at(begun + BODY_TIME, reading).await.map_err(slow)?;
        let body = body?;
        let busy = |_| (StatusCode::SERVICE_UNAVAILABLE, "too many large objects".to_owned());
        let is_large = body.len() > LARGE;
        let large = is_large.then(|| self.large.try_acquire().map_err(busy)).transpose()?;
        let request = review::parse(content_type.as_deref(), &body)
            .map_err(|wrong| (StatusCode::BAD_REQUEST, wrong.to_string()))?;
        let created = volume_label::created(&request);
        Ok((request.uid, created, large))
    }
}

/// The PersistentVolume of a request, if it is about one.
type Created = Result<Option<k8s_openapi::api::core::v1::PersistentVolume>, String>;

async fn body(body: Body) -> Result<Bytes, Refused> {
    let large = || {
        let text = format!("the body has more than {BODY} bytes, or ends too early");
        (StatusCode::PAYLOAD_TOO_LARGE, text)
    };
    if body.size_hint().lower() > BODY as u64 {
        return Err(large());
    }
    to_bytes(body, BODY).await.map_err(|_| large())
}

#[cfg(test)]
mod tests;
