//! Which nodes receive traffic, and when a change of nodes matters.
//!
//! Pure. `service_lb` asks [`NodeFacts`] whether a Node event is worth a look at all, builds one [`TargetSet`] for all Services
//! and compares it with the set each load balancer was given last: equal sets cost no call to the cloud.
//! Rules: `spec/service-controller.md`, section 8 (upstream's "stable" node set, the only one since Kubernetes 1.32).

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use cloudwit_model::Target;
use k8s_openapi::api::core::v1::Node;

use crate::node_view::{AUTOSCALER_DELETES, Readiness, has_taint, node_ref, readiness};

/// Takes a Node out of all load balancers (`api core/v1:LabelNodeExcludeBalancers`).
pub const EXCLUSION_LABEL: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// How many node names an Event or a log line shows (`controllers/service/controller.go:maxNodeNamesToLog`).
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

fn id(node: &Node) -> &str {
    node.spec
        .as_ref()
        .and_then(|spec| spec.provider_id.as_deref())
        .unwrap_or_default()
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
            provider_id: id(node).to_owned(),
        }
    }
}

/// The nodes a load balancer sends traffic to, as much of them as it takes to tell whether they are the same: their names and
/// provider ids as a digest, and the names that Events show.
///
/// Each load balancer's set is remembered, and while Nodes join they are all different: a thousand sets of five thousand names would
/// be half a gigabyte.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TargetSet {
    len: usize,
    digest: u128,
    first: Arc<[String]>,
}

impl TargetSet {
    /// The eligible ones among these Nodes.
    pub fn of<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> Self {
        let eligible = nodes.into_iter().filter(|node| eligible(node));
        let targets: BTreeMap<&str, &str> = eligible
            .filter_map(|node| Some((node.metadata.name.as_deref()?, id(node))))
            .collect();
        if targets.is_empty() {
            return Self::default();
        }
        Self {
            len: targets.len(),
            digest: digest(&targets),
            first: targets.keys().take(MAX_NODE_NAMES).map(ToString::to_string).collect(),
        }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no node is there.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first [`MAX_NODE_NAMES`] names as upstream's Events print them: `[a b c <7 more>]`.
    pub fn short_list(&self) -> String {
        format!("[{}]", short_list(self.first.iter().map(String::as_str), self.len))
    }
}

/// The first [`MAX_NODE_NAMES`] of `len` names: `a b c <7 more>`.
pub fn short_list<'a>(names: impl Iterator<Item = &'a str>, len: usize) -> String {
    let names: Vec<&str> = names.take(MAX_NODE_NAMES).collect();
    match len.saturating_sub(names.len()) {
        0 => names.join(" "),
        more => format!("{} <{more} more>", names.join(" ")),
    }
}

/// 128 bits, so that two sets are not taken for one by chance.
fn digest(targets: &BTreeMap<&str, &str>) -> u128 {
    let half = |seed: u8| {
        let mut hasher = DefaultHasher::new();
        (seed, targets).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

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
