//! Kubernetes Events of controllers and providers: recorders, queue and writer.
//!
//! [`Recorder`]s and providers hand Events over and never wait: up to 1000 are queued, further ones are dropped and
//! counted. Those of the routine have a budget ([`kube::events::budget`](crate::kube::events::budget)). One task,
//! [`EventWriter::run`], folds them ([`kube::events::folding`](crate::kube::events::folding)) and writes them as core/v1 Events, which
//! upstream's RBAC rules cover.

pub mod budget;
pub mod folding;
mod writer;

use std::sync::{Arc, Mutex};

use cloudwit_model::{EventKind, EventSink, ObjectEvent, Subject};
use k8s_openapi::api::core::v1::{ObjectReference, Service};
use kube::api::ObjectMeta;
use kube::{Client, Resource};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::debug;

use crate::kube::cache::Cache;
use crate::kube::events::budget::{Budget, ROUTINE_REFILL};
use crate::kube::events::folding::NewEvent;
pub use crate::kube::events::writer::EventWriter;
use crate::kube::node::Node;
use crate::metrics::Metrics;
use crate::options::Controller;
use crate::sync::lock;

/// Events that may wait to be written, as in client-go.
const QUEUE: usize = 1000;
/// Source of Events that come from a provider.
const PROVIDER_COMPONENT: &str = "cloudwit-provider";

/// Takes Events from all; clones share the queue.
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
        let writer = EventWriter::new(client, receiver, metrics.clone());
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
            debug!(reason = event.reason, "Event dropped: queue full");
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::options::Options;
    use crate::testing::{FakeCloud, context_on, node};

    #[tokio::test(start_paused = true)]
    async fn node_wave_is_few_events_and_all_warnings() {
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
}
