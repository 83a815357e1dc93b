//! Host services of a provider: a read-only view of the cluster, and Events on the object at hand.

use crate::{NodeRef, Service};

/// A Node in the read-only view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterNode {
    /// The Node.
    pub node: NodeRef,
    /// Its labels.
    pub labels: Vec<(String, String)>,
    /// `spec.podCIDRs`.
    pub pod_cidrs: Vec<String>,
}

/// The cluster from the controllers' caches; a call costs no request.
pub trait ClusterView: Send + Sync {
    /// All Nodes.
    fn nodes(&self) -> Vec<ClusterNode>;

    /// All Services of type `LoadBalancer`.
    fn services(&self) -> Vec<Service>;
}

/// How serious an Event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// For information.
    Normal,
    /// An operator should act.
    Warning,
}

/// What an Event is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A Node by name.
    Node(String),
    /// A Service.
    Service {
        /// Namespace.
        namespace: String,
        /// Name.
        name: String,
        /// `metadata.uid`.
        uid: String,
    },
    /// Any other object, such as the Pod of this process. For the runtime alone; a guest cannot name one.
    Other {
        /// Group and version, as in a manifest.
        api_version: String,
        /// Kind.
        kind: String,
        /// Namespace; none for what has none.
        namespace: Option<String>,
        /// Name.
        name: String,
        /// `metadata.uid`, where it is known.
        uid: Option<String>,
    },
}

/// An Event that a provider sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectEvent {
    /// About what.
    pub subject: Subject,
    /// How serious.
    pub kind: EventKind,
    /// CamelCase reason.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// Takes Events from providers to Kubernetes. Never blocks.
pub trait EventSink: Send + Sync {
    /// Hands the Event over.
    fn emit(&self, event: ObjectEvent);
}
