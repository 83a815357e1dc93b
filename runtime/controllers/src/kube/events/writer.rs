//! Writes Events to the API server, one after the other, and tries again while it does not answer.

use std::sync::Arc;
use std::time::Duration;

use cloudwit_model::EventKind;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::Request;
use kube::{Client, Resource};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use crate::ambient;
use crate::kube::events::folding::{Folded, Folding, NewEvent};
use crate::kube::writer::WriteError;
use crate::leadership::Leadership;
use crate::metrics::Metrics;

/// How often an Event is tried while the API server does not answer, as in client-go.
const ATTEMPTS: u32 = 12;
/// Pause between these.
const ATTEMPT_PAUSE: Duration = Duration::from_secs(10);
/// A request that takes longer is given up and tried again: without it one connection that swallows everything would hold up all Events
/// for good. The writes of objects have the same limit.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// The API server refuses longer messages.
const MESSAGE_BYTES: usize = 1024;
/// Writes what the recorders handed over.
pub struct EventWriter {
    client: Client,
    receiver: mpsc::Receiver<NewEvent>,
    metrics: Arc<Metrics>,
    folding: Folding,
    leading: Leadership,
}

impl EventWriter {
    pub(super) fn new(client: Client, receiver: mpsc::Receiver<NewEvent>, metrics: Arc<Metrics>) -> Self {
        Self {
            client,
            receiver,
            metrics,
            folding: Folding::default(),
            leading: Leadership::always(),
        }
    }

    /// What was handed over and is not written yet.
    #[cfg(test)]
    pub fn handed_over(&mut self) -> Vec<NewEvent> {
        std::iter::from_fn(|| self.receiver.try_recv().ok()).collect()
    }

    /// Writes Events while `leading` lasts, one after the other, for as long as there are senders.
    pub async fn run(mut self, leading: Leadership, dry_run: bool) {
        self.leading = leading;
        while let Some(mut event) = self.receiver.recv().await {
            cut(&mut event.message, MESSAGE_BYTES);
            if !self.leading.is_leading() {
                self.metrics.wrote("events", "create", "not_leading");
            } else if dry_run {
                self.log_dry_run(&event);
                self.metrics.wrote("events", "create", "dry_run");
            } else {
                self.write(&event).await;
            }
        }
    }

    /// Says in a dry run what would be written, and says it once.
    fn log_dry_run(&mut self, event: &NewEvent) {
        let now = Instant::now();
        if let Folded::New { message, memory } = self.folding.fold(event, now) {
            let object = event.object.name.as_deref().unwrap_or_default();
            info!(
                object,
                reason = event.reason,
                message,
                "dry run: this Event would be written"
            );
            self.folding.written(memory, String::new(), 1, now);
        }
    }

    async fn write(&mut self, event: &NewEvent) {
        match self.folding.fold(event, Instant::now()) {
            Folded::Limited => {
                self.metrics.events_limited.inc();
            }
            Folded::New { message, memory } => {
                if let Some(name) = self.create(event, &message).await {
                    self.folding.written(memory, name, 1, Instant::now());
                }
            }
            Folded::Again {
                name,
                count,
                message,
                memory,
            } => {
                let written = match self.count_up(event, &name, count, &message).await {
                    Ok(()) => Some((name, count)),
                    // It expired on the API server: begin anew.
                    Err(WriteError::NotFound) => self.create(event, &message).await.map(|name| (name, 1)),
                    Err(_) => None,
                };
                if let Some((name, count)) = written {
                    self.folding.written(memory, name, count, Instant::now());
                }
            }
        }
    }

    async fn create(&self, event: &NewEvent, message: &str) -> Option<String> {
        let now = ambient::now();
        let object = &event.object;
        let namespace = namespace_of(object);
        let name = format!(
            "{}.{:x}",
            object.name.as_deref().unwrap_or_default(),
            now.as_nanosecond()
        );
        let body = Event {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: object.clone(),
            reason: Some(event.reason.clone()),
            message: Some(message.to_owned()),
            type_: Some(
                if event.kind == EventKind::Warning {
                    "Warning"
                } else {
                    "Normal"
                }
                .into(),
            ),
            count: Some(1),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            source: Some(EventSource {
                component: Some(event.component.into()),
                host: None,
            }),
            reporting_component: Some(event.component.into()),
            ..Event::default()
        };
        let write = || async {
            let body = serde_json::to_vec(&body).map_err(kube::Error::SerdeError)?;
            let request = events_in(namespace).create(&PostParams::default(), body);
            self.send(request).await
        };
        self.with_retries("create", write).await.ok().map(|()| name)
    }

    async fn count_up(&self, event: &NewEvent, name: &str, count: i32, message: &str) -> Result<(), WriteError> {
        let body = Patch::Merge(json!({
            "count": count,
            "message": message,
            "lastTimestamp": Time(ambient::now()),
        }));
        let write = || async {
            let request = events_in(namespace_of(&event.object)).patch(name, &PatchParams::default(), &body);
            self.send(request).await
        };
        self.with_retries("patch", write).await
    }

    /// Sends a request and throws the answer away unread: it only repeats the Event.
    async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<(), kube::Error> {
        let request = request.map_err(kube::Error::BuildRequest)?;
        let answer = timeout(REQUEST_LIMIT, self.client.request_text(request)).await;
        let late = |_| kube::Error::Service(format!("no answer within {} s", REQUEST_LIMIT.as_secs()).into());
        answer.map_err(late)?.map(|_| ())
    }

    /// Tries again while the API server does not answer; a refusal is final, except that a missing Event is the
    /// caller's business.
    async fn with_retries<F>(&self, verb: &'static str, write: impl Fn() -> F) -> Result<(), WriteError>
    where
        F: Future<Output = Result<(), kube::Error>>,
    {
        let mut attempt = 1;
        loop {
            let error = match self.leading.write(write()).await {
                Ok(Ok(())) => {
                    self.metrics.wrote("events", verb, "ok");
                    return Ok(());
                }
                Ok(Err(error)) => WriteError::from(error),
                Err(not_leading) => not_leading.into(),
            };
            self.metrics.wrote("events", verb, error.label());
            match error {
                WriteError::Unreachable(_) if attempt < ATTEMPTS => {
                    attempt += 1;
                    sleep(ATTEMPT_PAUSE).await;
                }
                WriteError::NotFound if verb == "patch" => return Err(error),
                WriteError::NotLeading => return Err(error),
                error => {
                    self.metrics.events_dropped.inc();
                    warn!(%error, "failed to write Event");
                    return Err(error);
                }
            }
        }
    }
}

fn events_in(namespace: &str) -> Request {
    Request::new(Event::url_path(&(), Some(namespace)))
}

/// Events about objects without a namespace live in `default`.
fn namespace_of(object: &ObjectReference) -> &str {
    object.namespace.as_deref().unwrap_or("default")
}

fn cut(text: &mut String, bytes: usize) {
    if text.len() > bytes {
        const MARK: &str = "...";
        text.truncate(text.floor_char_boundary(bytes - MARK.len()));
        text.push_str(MARK);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::options::{Controller, Options};
    use crate::sync::lock;
    use crate::testing::{FakeCloud, context_on, node};

    #[tokio::test(start_paused = true)]
    async fn a_request_without_an_answer_does_not_end_all_events() {
        let (taken, seen) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (requests, bodies) = (taken.clone(), seen.clone());
        let server = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (requests, bodies) = (requests.clone(), bodies.clone());
            async move {
                let first = {
                    let mut requests = lock(&requests);
                    *requests += 1;
                    *requests == 1
                };
                if first {
                    std::future::pending::<()>().await;
                }
                let body = request.into_body().collect_bytes().await?;
                let event: serde_json::Value = serde_json::from_slice(&body).map_err(kube::Error::SerdeError)?;
                lock(&bodies).push(event["message"].as_str().unwrap_or_default().to_owned());
                Ok::<_, kube::Error>(http::Response::new(kube::client::Body::from(body.to_vec())))
            }
        });
        let cloud = FakeCloud::new(Ok(cloudwit_model::Presence::Absent(cloudwit_model::Evidence::ById)));
        let (context, writer, _registry) = context_on(Client::new(server, "default"), cloud, Options::default());
        let recorder = context.events.recorder(Controller::CloudNode);
        for message in ["the first", "the second"] {
            recorder.node(&node("a", "True", &[]), EventKind::Normal, "Tested", message);
        }
        tokio::spawn(writer.run(Leadership::always(), false));
        sleep(REQUEST_LIMIT + ATTEMPT_PAUSE + Duration::from_secs(1)).await;
        assert_eq!(*lock(&seen), ["the first", "the second"]);
    }
}
