//! What the node controller reports about itself.

use std::sync::{Arc, Mutex};

use tokio::time::Instant;

use crate::kube::cache::Cache;
use crate::kube::node::Node;
use crate::kube::node::view::{UNINITIALIZED, has_taint};
use crate::node::explain::initialisation;
use crate::options::Controller;
use crate::queue::Queue;
use crate::report::cause::Cause;
use crate::report::snapshot::{Object, Progress, Report, Snapshot, Unfinished};
use crate::report::waiting::FailedAttempts;
use crate::scope::Scope;
use crate::sync::lock;

/// Reads the controller's queue, and which Nodes wait for an answer.
pub(crate) struct NodeReport {
    pub(crate) scope: Scope,
    pub(crate) nodes: Arc<Cache<Node>>,
    pub(crate) queue: Queue,
    pub(crate) waiting: Arc<Mutex<FailedAttempts>>,
    pub(crate) volume_nodes: Option<Queue>,
}

impl NodeReport {
    fn unfinished_node(&self, node: &Node) -> Option<Unfinished> {
        let name = node.metadata.name.clone()?;
        let failing = lock(&self.waiting).about(&name, Instant::now());
        let queued = self.queue.state(&name);
        let since = failing.as_ref().map(|failing| failing.waited);
        let cause = failing.map(|failing| failing.cause).filter(Cause::is_failure);
        Some(Unfinished {
            since: since.into_iter().chain(queued.map(|queued| queued.unfinished)).max(),
            failed: cause.is_some(),
            cause,
            object: Object::Node(name),
        })
    }
}

impl Report for NodeReport {
    fn controller(&self) -> Controller {
        Controller::CloudNode
    }

    fn provider(&self) -> String {
        self.scope.identity().name
    }

    fn snapshot(&self) -> Snapshot {
        let queue = self.queue.snapshot();
        let volume_nodes = self.volume_nodes.as_ref().map(Queue::snapshot);
        Snapshot {
            progress: Progress::from(&queue),
            queues: [queue].into_iter().chain(volume_nodes).collect(),
            longest_step: None,
        }
    }

    fn unfinished(&self) -> Vec<Unfinished> {
        let explains = self.scope.explains();
        let nodes = self
            .nodes
            .matching(|node| has_taint(node, UNINITIALIZED) && explains(node));
        nodes.iter().filter_map(|node| self.unfinished_node(node)).collect()
    }

    fn explain_node(&self, node: &Node) -> Option<String> {
        if !self.scope.explains()(node) {
            return None;
        }
        let name = node.metadata.name.as_deref()?;
        let waiting = lock(&self.waiting).about(name, Instant::now());
        let queued = self.queue.state(name);
        Some(initialisation(node, &self.scope.identity(), waiting.as_ref(), queued))
    }
}
