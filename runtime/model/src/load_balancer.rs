//! Load balancers and where they send traffic.

use std::time::Duration;

use crate::{Failure, Ingress, NodeRef, Service};

/// A node that shall receive traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The node.
    pub node: NodeRef,
    /// Whether it is Ready; for information only.
    pub ready: bool,
}

/// The largest number of Services in one call of [`Cloud::update_targets_of`](crate::Cloud::update_targets_of); part of the contract.
pub const MAX_TARGET_UPDATES: usize = 50;

/// A Service whose load balancer is to get other targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetUpdate<'a> {
    /// The Service.
    pub service: &'a Service,
    /// Continues a [`Failure::Pending`](crate::Failure::Pending) about it.
    pub token: Option<&'a str>,
}

/// A change of an annotation that the provider requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationChange {
    /// The annotation.
    pub key: String,
    /// New value; none removes it.
    pub value: Option<String>,
}

/// What the cloud still does for a load balancer that works already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemainingWork {
    /// Time of the next call.
    pub after: Duration,
    /// Handed back unchanged in the next call.
    pub token: String,
    /// What is being waited for.
    pub message: String,
}

/// It is handled like a pending answer.
impl From<RemainingWork> for Failure {
    fn from(RemainingWork { after, token, message }: RemainingWork) -> Self {
        Self::Pending { after, token, message }
    }
}

/// A load balancer in the cloud.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Balancer {
    /// Where it is reached.
    pub ingress: Vec<Ingress>,
    /// Annotation changes for its Service.
    pub annotations: Vec<AnnotationChange>,
    /// What continues after a successful `ensure`; none when all is done.
    pub remaining: Option<RemainingWork>,
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
