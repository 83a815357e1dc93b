//! The sentences users read in `kubectl describe`.
//!
//! [`Recorder`]s and providers hand Events over and never wait: up to 1000 are queued, further ones are dropped and
//! counted. Those of the routine have a budget ([`kube::events::budget`](crate::kube::events::budget)). One task,
//! [`EventWriter::run`], folds them ([`kube::events::folding`](crate::kube::events::folding)) and writes them as core/v1 Events, which
//! upstream's RBAC rules cover.

pub mod budget;
pub mod folding;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudwit_model::{EventKind, EventSink, ObjectEvent, Subject};
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::Request;
use kube::{Client, Resource};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info, warn};

use crate::ambient;
use crate::kube::cache::Cache;
use crate::kube::events::budget::{Budget, ROUTINE_REFILL};
use crate::kube::events::folding::{Folded, Folding, NewEvent};
use crate::kube::node::Node;
use crate::kube::writer::WriteError;
use crate::leadership::Leadership;
use crate::metrics::Metrics;
use crate::options::Controller;
use crate::sync::lock;

/// Events that may wait to be written, as in client-go.
const QUEUE: usize = 1000;
/// How often an Event is tried while the API server does not answer, as in client-go.
const ATTEMPTS: u32 = 12;
/// Pause between these.
const ATTEMPT_PAUSE: Duration = Duration::from_secs(10);
/// A request that takes longer is given up and tried again: without it one connection that swallows everything would hold up all Events
/// for good. The writes of objects have the same limit.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// The API server refuses longer messages.
const MESSAGE_BYTES: usize = 1024;
/// Source of Events that come from a provider.
const PROVIDER_COMPONENT: &str = "cloudwit-provider";

/// Takes Events from everybody; clones share the queue.
#[derive(Clone)]
pub struct Events {
    sender: mpsc::Sender<NewEvent>,
    metrics: Arc<Metrics>,
    nodes: Arc<Cache<Node>>,
    services: Arc<Cache<Service>>,
    routine: Arc<Mutex<Budget>>,
}

impl Events {
    /// The two ends: where Events are handed over and what writes them. `nodes` and `services` tell uid
    /// and version of what is known by its name alone.
    pub fn new(
        client: Client,
        metrics: Arc<Metrics>,
        nodes: Arc<Cache<Node>>,
        services: Arc<Cache<Service>>,
    ) -> (Self, EventWriter) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let writer = EventWriter {
            client,
            receiver,
            metrics: metrics.clone(),
            folding: Folding::default(),
            leading: Leadership::always(),
        };
        let events = Self {
            sender,
            metrics,
            nodes,
            services,
            routine: Arc::new(Mutex::new(Budget::new(ROUTINE_REFILL, Instant::now()))),
        };
        (events, writer)
    }

    /// For the Events of one controller.
    pub fn recorder(&self, controller: Controller) -> Recorder {
        Recorder {
            events: self.clone(),
            component: controller.event_component(),
        }
    }

    /// A Node of this name as it was last seen; by its name alone where it was not.
    fn reference_to_node(&self, name: String) -> ObjectReference {
        match self.nodes.get(&name) {
            Some(node) => node_reference(&node.metadata),
            None => reference("Node", Some(name), None),
        }
    }

    fn push(&self, event: NewEvent) {
        if let Err(mpsc::error::TrySendError::Full(event)) = self.sender.try_send(event) {
            self.metrics.events_dropped.inc();
            debug!(
                reason = event.reason,
                "dropped an Event: too many are waiting to be written"
            );
        }
    }
}

impl EventSink for Events {
    fn emit(&self, event: ObjectEvent) {
        let object = match event.subject {
            Subject::Node(name) => self.reference_to_node(name),
            Subject::Service { namespace, name, uid } => {
                let key = format!("{namespace}/{name}");
                let known = self
                    .services
                    .get(&key)
                    .filter(|known| known.metadata.uid.as_ref() == Some(&uid));
                ObjectReference {
                    namespace: Some(namespace),
                    resource_version: known.and_then(|known| known.metadata.resource_version.clone()),
                    ..reference("Service", Some(name), Some(uid))
                }
            }
            Subject::Other {
                api_version,
                kind,
                namespace,
                name,
                uid,
            } => ObjectReference {
                api_version: Some(api_version),
                namespace,
                ..reference(&kind, Some(name), uid)
            },
        };
        let ObjectEvent {
            kind, reason, message, ..
        } = event;
        self.push(NewEvent {
            component: PROVIDER_COMPONENT,
            object,
            kind,
            reason,
            message,
        });
    }
}

/// Writes Events in the name of one controller.
#[derive(Clone)]
pub struct Recorder {
    events: Events,
    component: &'static str,
}

impl Recorder {
    /// An Event on a Node.
    pub fn node(&self, node: &Node, kind: EventKind, reason: &str, message: impl Into<String>) {
        self.push(node_reference(&node.metadata), kind, reason, message.into());
    }

    /// A Normal Event on a Node that says that all went as it should. In a wave of Nodes most of these are not written but counted.
    pub fn node_routine(&self, node: &Node, reason: &str, message: &str) {
        if lock(&self.events.routine).take(Instant::now()) {
            self.node(node, EventKind::Normal, reason, message);
        } else {
            self.events.metrics.events_limited.inc();
        }
    }

    /// An Event on a Node of this name, which may be gone already.
    pub fn node_named(&self, name: &str, kind: EventKind, reason: &str, message: impl Into<String>) {
        let object = self.events.reference_to_node(name.to_owned());
        self.push(object, kind, reason, message.into());
    }

    /// An Event on a Service.
    pub fn service(&self, service: &Service, kind: EventKind, reason: &str, message: impl Into<String>) {
        let meta = service.meta();
        let object = ObjectReference {
            namespace: meta.namespace.clone(),
            resource_version: meta.resource_version.clone(),
            ..reference("Service", meta.name.clone(), meta.uid.clone())
        };
        self.push(object, kind, reason, message.into());
    }

    fn push(&self, object: ObjectReference, kind: EventKind, reason: &str, message: String) {
        let component = self.component;
        self.events.push(NewEvent {
            component,
            object,
            kind,
            reason: reason.to_owned(),
            message,
        });
    }
}

fn node_reference(meta: &ObjectMeta) -> ObjectReference {
    ObjectReference {
        resource_version: meta.resource_version.clone(),
        ..reference("Node", meta.name.clone(), meta.uid.clone())
    }
}

fn reference(kind: &str, name: Option<String>, uid: Option<String>) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".into()),
        kind: Some(kind.into()),
        name,
        uid,
        ..ObjectReference::default()
    }
}

/// Writes what the recorders handed over.
pub struct EventWriter {
    client: Client,
    receiver: mpsc::Receiver<NewEvent>,
    metrics: Arc<Metrics>,
    folding: Folding,
    leading: Leadership,
}

impl EventWriter {
    /// What was handed over and is not written yet.
    #[cfg(test)]
    pub fn handed_over(&mut self) -> Vec<NewEvent> {
        std::iter::from_fn(|| self.receiver.try_recv().ok()).collect()
    }

    /// Writes Events while `leading` lasts, one after the other, for as long as somebody can hand some over.
    pub async fn run(mut self, leading: Leadership, dry_run: bool) {
        self.leading = leading;
        while let Some(mut event) = self.receiver.recv().await {
            cut(&mut event.message, MESSAGE_BYTES);
            if !self.leading.is_leading() {
                self.metrics.wrote("events", "create", "not_leading");
            } else if dry_run {
                self.tell(&event);
                self.metrics.wrote("events", "create", "dry_run");
            } else {
                self.write(&event).await;
            }
        }
    }

    /// Says in a dry run what would be written, and says it once.
    fn tell(&mut self, event: &NewEvent) {
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
        self.patiently("create", write).await.ok().map(|()| name)
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
        self.patiently("patch", write).await
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
    async fn patiently<F>(&self, verb: &'static str, write: impl Fn() -> F) -> Result<(), WriteError>
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
                    warn!(%error, "an Event could not be written");
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
    use super::*;
    use crate::options::Options;
    use crate::testing::{FakeCloud, context_on, node};

    #[tokio::test(start_paused = true)]
    async fn a_wave_of_nodes_is_told_of_in_few_events_and_its_warnings_in_all() {
        let unused = tower::service_fn(|_: http::Request<kube::client::Body>| async {
            Err::<http::Response<kube::client::Body>, _>(kube::Error::LinesCodecMaxLineLengthExceeded)
        });
        let cloud = FakeCloud::new(Ok(cloudwit_model::Presence::Absent(cloudwit_model::Evidence::ById)));
        let (context, mut writer, _registry) = context_on(Client::new(unused, "default"), cloud, Options::default());
        let recorder = context.events.recorder(Controller::CloudNode);
        for number in 0..400 {
            let node = node(&format!("n{number}"), "True", &[]);
            recorder.node_routine(&node, "Synced", "all is well");
            recorder.node(&node, EventKind::Warning, "InvalidLabel", "this one is left out");
            recorder.node_named(
                &format!("n{number}"),
                EventKind::Normal,
                "DeletedNode",
                "its machine is gone",
            );
        }
        let mut told = std::collections::BTreeMap::new();
        for event in writer.handed_over() {
            *told.entry(event.reason).or_insert(0) += 1;
        }
        let expected = [("DeletedNode", 400), ("InvalidLabel", 400), ("Synced", 25)];
        assert_eq!(told, expected.map(|(reason, count)| (reason.to_owned(), count)).into());
        assert_eq!(context.metrics.events_limited.get(), 375);
        assert_eq!(context.metrics.events_dropped.get(), 0);
    }

    #[tokio::test]
    async fn an_event_names_version_and_uid_of_its_object() {
        let cloud = FakeCloud::new(Ok(cloudwit_model::Presence::Absent(cloudwit_model::Evidence::ById)));
        let (context, mut writer, _registry) = context_on(crate::testing::nowhere(), cloud, Options::default());
        context.nodes.fill(vec![node("known", "True", &[])]);
        let recorder = context.events.recorder(Controller::CloudNode);
        recorder.node(
            &node("given", "True", &[]),
            EventKind::Normal,
            "Tested",
            "by the object",
        );
        recorder.node_named("known", EventKind::Normal, "Tested", "by its name");
        recorder.node_named("gone", EventKind::Normal, "Tested", "by a name that is not known");
        let service: Service = serde_json::from_value(json!({
            "metadata": { "name": "web", "namespace": "default", "uid": "uid-web", "resourceVersion": "7" },
        }))
        .unwrap();
        recorder.service(&service, EventKind::Normal, "Tested", "by the object");
        let told: Vec<_> = writer.handed_over().into_iter().map(|event| event.object).collect();
        let of = |object: &ObjectReference| {
            let text = |field: &Option<String>| field.clone().unwrap_or_default();
            [
                text(&object.api_version),
                text(&object.kind),
                text(&object.uid),
                text(&object.resource_version),
            ]
            .join(" ")
        };
        assert_eq!(
            told.iter().map(of).collect::<Vec<_>>(),
            [
                "v1 Node uid-given 1",
                "v1 Node uid-known 1",
                "v1 Node  ",
                "v1 Service uid-web 7"
            ]
        );
    }

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
