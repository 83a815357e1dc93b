//! Log lines and Events about routes, each once until it changes.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use cloudwit_model::EventKind;
use tracing::warn;

use crate::context::Context;
use crate::kube::cache::Cache;
use crate::kube::events::Recorder;
use crate::kube::node::Node;
use crate::metrics::Metrics;
use crate::options::Controller;
use crate::route::condition::has_routes;
use crate::route::plan::{Refusal, waits};

/// So many of the routes that are left out are named in the log.
const IGNORED_IN_LOG: usize = 10;

/// What was logged or reported, and has not changed since.
pub(super) struct Notices {
    pub(super) events: Recorder,
    nodes: Arc<Cache<Node>>,
    metrics: Arc<Metrics>,
    /// Refusals that Events were sent for: node, range, reason.
    refused: BTreeSet<(String, String, String)>,
    /// Routes that a log line says are left out.
    ignored: BTreeSet<String>,
    /// Nodes with an Event that the routes cannot be listed.
    unlisted: BTreeSet<String>,
}

impl Notices {
    pub(super) fn new(context: &Context) -> Self {
        Self {
            events: context.events.recorder(Controller::NodeRoute),
            nodes: context.nodes.clone(),
            metrics: context.metrics.clone(),
            refused: BTreeSet::new(),
            ignored: BTreeSet::new(),
            unlisted: BTreeSet::new(),
        }
    }

    /// Events on those of these Nodes that wait for a route, why they get none.
    pub(super) fn unlisted(&mut self, nodes: &[Arc<Node>], why: &str) {
        let lacks = |node: &&Arc<Node>| {
            let ranges = node.spec.as_ref().and_then(|spec| spec.pod_cidrs.as_ref());
            ranges.is_some_and(|ranges| !ranges.is_empty()) && !waits(node) && !has_routes(node)
        };
        for node in nodes.iter().filter(lacks) {
            let name = node.metadata.name.clone().unwrap_or_default();
            if self.unlisted.insert(name) {
                let message = format!("Failed to list routes, so none is created for this Node: {why}");
                self.events.node(node, EventKind::Warning, "RouteListFailed", message);
            }
        }
    }

    /// The routes were listed.
    pub(super) fn listed(&mut self) {
        self.unlisted.clear();
    }

    /// Logs the routes that were left out, when they are others than before.
    pub(super) fn ignored(&mut self, routes: &BTreeSet<String>) {
        let more = routes.len() as i64 - self.ignored.len() as i64;
        self.metrics.route.ignored.inc_by(more);
        if *routes == self.ignored {
            return;
        }
        self.ignored.clone_from(routes);
        if !routes.is_empty() {
            let some: Vec<&str> = routes.iter().take(IGNORED_IN_LOG).map(String::as_str).collect();
            warn!(
                routes = routes.len(),
                "listed routes ignored: destination is not a CIDR: {}",
                some.join(", ")
            );
        }
    }

    /// Logs the Pod ranges that get no route, with an Event each.
    pub(super) fn refused(&mut self, refusals: &[Refusal]) {
        let current: HashSet<(&str, &str)> = refusals
            .iter()
            .map(|refusal| (refusal.node.as_str(), refusal.range.as_str()))
            .collect();
        self.refused
            .retain(|(node, range, _)| current.contains(&(node.as_str(), range.as_str())));
        for Refusal {
            node,
            uid,
            range,
            reason,
        } in refusals
        {
            if !self.refused.insert((node.clone(), range.clone(), reason.clone())) {
                continue;
            }
            warn!(node, range, reason, "Pod range refused; no route created");
            if let Some(object) = self.nodes.get(node) {
                let message = format!("Could not create route {uid} {range} for node {node}: {reason}");
                self.events
                    .node(&object, EventKind::Warning, "FailedToCreateRoute", message);
            }
        }
    }
}
