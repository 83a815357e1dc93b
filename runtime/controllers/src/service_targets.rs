//! Which nodes receive traffic, and when a change of nodes matters.
//!
//! Pure. `service_lb` asks [`NodeFacts`] whether a Node event is worth a look at all, builds one [`TargetSet`] for all Services
//! and compares it with the set each load balancer was given last: equal sets cost no call to the cloud.
//! Rules: `spec/service-controller.md`, section 8 (upstream's "stable" node set, the only one since Kubernetes 1.32).

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudwit_model::Target;
use k8s_openapi::api::core::v1::Node;

use crate::node_view::{AUTOSCALER_DELETES, Readiness, has_taint, node_ref, provider_id, readiness};

/// Takes a Node out of all load balancers (`api core/v1:LabelNodeExcludeBalancers`).
pub const EXCLUSION_LABEL: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// How many node names an Event or a log line shows (`maxNodeNamesToLog`).
pub const MAX_NODE_NAMES: usize = 20;

/// Whether the Node belongs into load balancers.
///
/// On purpose no question: the Ready condition (health checks sort that out), cordoning, control-plane roles, a missing
/// provider id, the taints of uninitialised and stopped machines.
pub fn eligible(node: &Node) -> bool {
    not_deleted(node) && included(node) && untainted(node)
}

fn not_deleted(node: &Node) -> bool {
    node.metadata.deletion_timestamp.is_none()
}

/// The exclusion label counts unless its value is one of Go's words for false; empty and unknown values exclude.
fn included(node: &Node) -> bool {
    let label = node
        .metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get(EXCLUSION_LABEL));
    label.is_none_or(|value| matches!(value.as_str(), "0" | "f" | "F" | "false" | "FALSE" | "False"))
}

fn untainted(node: &Node) -> bool {
    !has_taint(node, AUTOSCALER_DELETES)
}

fn id(node: &Node) -> String {
    provider_id(node).map(|id| id.as_str().to_owned()).unwrap_or_default()
}

/// What an update of a Node has to change before load balancers are looked at (`shouldSyncUpdatedNode`). A Node that appears or
/// goes always counts.
///
/// The autoscaler's taint is in here, other than upstream, where it counts only once some other Node has changed (weak spot S9): the
/// machine goes soon, so new connections should stop now. Not in here, as upstream: readiness, other taints, deletion, addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFacts {
    included: bool,
    untainted: bool,
    provider_id: String,
}

impl NodeFacts {
    /// The facts of a Node.
    pub fn of(node: &Node) -> Self {
        Self {
            included: included(node),
            untainted: untainted(node),
            provider_id: id(node),
        }
    }
}

/// The nodes a load balancer sends traffic to: name to provider id. Cheap to clone and to compare with itself.
#[derive(Debug, Clone, Default)]
pub struct TargetSet(Arc<BTreeMap<String, String>>);

impl TargetSet {
    /// The eligible ones among these Nodes.
    pub fn of<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> Self {
        let eligible = nodes.into_iter().filter(|node| eligible(node));
        let names = eligible.filter_map(|node| Some((node.metadata.name.clone()?, id(node))));
        Self(Arc::new(names.collect()))
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no node is there.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The first [`MAX_NODE_NAMES`] names as upstream's Events print them: `[a b c <7 more>]`.
    pub fn short_list(&self) -> String {
        let mut names: Vec<String> = self.names().take(MAX_NODE_NAMES).map(str::to_owned).collect();
        if self.len() > MAX_NODE_NAMES {
            names.push(format!("<{} more>", self.len() - MAX_NODE_NAMES));
        }
        format!("[{}]", names.join(" "))
    }
}

impl PartialEq for TargetSet {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for TargetSet {}

/// The eligible Nodes as a provider gets them, by name.
pub fn targets<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> Vec<Target> {
    let eligible = nodes.into_iter().filter(|node| eligible(node));
    let mut targets: Vec<Target> = eligible
        .map(|node| Target {
            node: node_ref(node),
            ready: readiness(node) == Readiness::Ready,
        })
        .collect();
    targets.sort_by(|left, right| left.node.name.cmp(&right.node.name));
    targets
}

#[cfg(test)]
#[path = "service_targets_tests.rs"]
mod tests;
