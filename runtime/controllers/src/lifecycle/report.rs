//! What the lifecycle controller reports about itself.

use std::sync::{Arc, Mutex};

use tokio::time::Instant;

use crate::kube::cache::Cache;
use crate::kube::node::Node;
use crate::lifecycle::brake::SuspectedAbsence;
use crate::lifecycle::explain::{self, ExplainFacts};
use crate::lifecycle::last_run::LastRun;
use crate::lifecycle::plan::is_own;
use crate::options::{Controller, Options};
use crate::report::reconcile_clock::ReconcileClock;
use crate::report::snapshot::{Deletions, Report, Snapshot, Unfinished};
use crate::scope::Scope;
use crate::sync::lock;

/// Reads the results of the last run.
pub(crate) struct LifecycleReport {
    pub(crate) scope: Scope,
    pub(crate) nodes: Arc<Cache<Node>>,
    pub(crate) options: Arc<Options>,
    pub(crate) known: Arc<Mutex<LastRun>>,
    pub(crate) clock: ReconcileClock,
}

impl Report for LifecycleReport {
    fn controller(&self) -> Controller {
        Controller::CloudNodeLifecycle
    }

    fn provider(&self) -> String {
        self.scope.identity().name
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            progress: lock(&self.known).progress(Instant::now()),
            queues: Vec::new(),
            longest_step: self.clock.longest_step(),
        }
    }

    /// The Nodes about which the cloud cannot say whether their machine exists.
    fn unfinished(&self) -> Vec<Unfinished> {
        lock(&self.known).unanswered_nodes(Instant::now())
    }

    fn deletions(&self) -> Option<Deletions> {
        let provider = self.scope.identity();
        let owns = self.scope.owns_node();
        let nodes = self.nodes.matching(|node| is_own(node, &provider) && owns(node));
        let options = &self.options.lifecycle;
        Some(lock(&self.known).deletions(&provider.name, &nodes, options, Instant::now()))
    }

    fn explain_node(&self, node: &Node) -> Option<String> {
        let provider = self.scope.identity();
        if !self.scope.owns_node()(node) {
            return None;
        }
        let options = &self.options.lifecycle;
        let (known, now) = (lock(&self.known), Instant::now());
        let uid = node.metadata.uid.as_deref()?;
        let as_of_now = |seen: &SuspectedAbsence| match known.at {
            Some(at) => seen.later(now - at),
            None => seen.clone(),
        };
        if let Some(seen) = known.by_name.get(uid).map(as_of_now) {
            let grace = options.by_name_after.unwrap_or_default();
            return Some(explain::gone_by_name(&seen, grace));
        }
        let seen = known.seen.get(uid).map(as_of_now);
        let outage = known.failed.as_ref();
        let outage = outage.map(|(next, why)| (next.saturating_duration_since(now), why.reason.to_string()));
        let own = known.unanswered.about(node.metadata.name.as_deref()?, now);
        let own = own.map(|own| (options.monitor_period, own.cause.reason.to_string()));
        let facts = ExplainFacts {
            failed: outage.or(own),
            brake: known.brake,
            confirm_after: options.confirm_after,
            then: options.node_deletion,
        };
        explain::lifecycle(node, &provider, seen.as_ref(), &facts)
    }
}
