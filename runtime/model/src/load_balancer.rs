//! Load balancers and where they send traffic.

use crate::{Ingress, NodeRef};

/// A node that shall receive traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The node.
    pub node: NodeRef,
    /// Whether it is Ready; for information only.
    pub ready: bool,
}

/// A change of an annotation that the provider asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationChange {
    /// The annotation.
    pub key: String,
    /// New value; none removes it.
    pub value: Option<String>,
}

/// A load balancer in the cloud.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Balancer {
    /// Where it is reached.
    pub ingress: Vec<Ingress>,
    /// Annotation changes for its Service.
    pub annotations: Vec<AnnotationChange>,
}

/// How many node names an Event or a log line shows (`controllers/service/controller.go:maxNodeNamesToLog`).
pub const MAX_NODE_NAMES: usize = 20;

/// The first [`MAX_NODE_NAMES`] names of targets as upstream's Events print them: `a b c <7 more>`.
pub fn short_list(targets: &[Target]) -> String {
    let names = targets.iter().map(|target| target.node.name.as_str());
    let names: Vec<&str> = names.take(MAX_NODE_NAMES).collect();
    match targets.len() - names.len() {
        0 => names.join(" "),
        more => format!("{} <{more} more>", names.join(" ")),
    }
}
