//! Target list of load balancers, and which Node changes matter to it.
//!
//! Pure. `service::targets::debounce` checks by [`NodeFacts`] whether a Node event matters, `service` builds one [`TargetSet`] for all Services
//! and compares it with the set each load balancer was given last: equal sets cost no call to the cloud. `service::targets::cache`
//! keeps what is built here.
//! Rules: `spec/service-controller.md`, section 8 (upstream's "stable" node set, the only one since Kubernetes 1.32).

pub(crate) mod batch;
pub(crate) mod cache;
pub(crate) mod debounce;

use std::hash::{DefaultHasher, Hash, Hasher};

use cloudwit_model::Target;

use crate::kube::node::Node;
use crate::kube::node::view::{
    AUTOSCALER_DELETES, Readiness, addresses, has_taint, node_ref, provider_label, readiness, system_uuid,
};

/// Takes a Node out of all load balancers (`api core/v1:LabelNodeExcludeBalancers`).
pub const EXCLUSION_LABEL: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

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
    let label = node.labels.get(EXCLUSION_LABEL);
    label.is_none_or(|value| matches!(value, "0" | "f" | "F" | "false" | "FALSE" | "False"))
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

/// What an update of a Node has to change before load balancers are checked (`shouldSyncUpdatedNode`). A Node that appears or
/// goes always counts.
///
/// The autoscaler's taint is in here, other than upstream, where it counts only once some other Node has changed (weak spot S9): the
/// machine goes soon, so new connections should stop now. Not in here, as upstream: readiness, other taints, deletion, addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeFacts<'a> {
    included: bool,
    untainted: bool,
    provider_id: &'a str,
}

impl<'a> NodeFacts<'a> {
    /// The facts of a Node.
    pub fn of(node: &'a Node) -> Self {
        Self {
            included: included(node),
            untainted: untainted(node),
            provider_id: id(node),
        }
    }
}

/// Whether an update of a Node leaves it unchanged as a target.
pub fn same_target(old: &Node, new: &Node) -> bool {
    eligible(old) == eligible(new)
        && id(old) == id(new)
        && readiness(old) == readiness(new)
        && addresses(old) == addresses(new)
        && system_uuid(old) == system_uuid(new)
        && provider_label(old) == provider_label(new)
}

/// The nodes a load balancer sends traffic to, as much of them as needed to compare: how many, and a digest of
/// their names and provider ids.
///
/// Each load balancer's set is kept, and while Nodes join they are all different: a thousand sets of five thousand names would
/// be half a gigabyte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TargetSet {
    len: usize,
    digest: u128,
}

impl TargetSet {
    /// The eligible ones among these Nodes.
    pub fn of<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> Self {
        let eligible = nodes.into_iter().filter(|node| eligible(node));
        eligible.fold(Self::default(), |set, node| Self {
            len: set.len + 1,
            // A sum has no order, so nothing needs to be sorted.
            digest: set.digest.wrapping_add(digest(node)),
        })
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no node is there.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The nodes of one moment, and the last pass over the load balancers before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatedSet {
    /// The nodes.
    pub nodes: TargetSet,
    /// How many passes there had been.
    pub pass: u64,
}

impl DatedSet {
    /// Whether a load balancer that was given these nodes lacks those of the last pass. One that was given its nodes after it has newer
    /// ones, and gets the next change in the next pass: else each Node that comes while hundreds of load balancers are told of others
    /// would cost those that are at work a call more.
    pub fn is_behind(&self, last_pass: &Self) -> bool {
        self.pass < last_pass.pass && self.nodes != last_pass.nodes
    }
}

/// Name and provider id of a Node in 128 bits, so that two sets are not taken for one by chance.
fn digest(node: &Node) -> u128 {
    let mut hasher = DefaultHasher::new();
    (node.metadata.name.as_deref(), id(node)).hash(&mut hasher);
    let low = hasher.finish();
    hasher.write_u8(1);
    u128::from(hasher.finish()) << 64 | u128::from(low)
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
mod tests;
