//! What the route controller reports about itself.

use std::sync::{Arc, Mutex};

use tokio::time::Instant;

use crate::kube::node::Node;
use crate::options::Controller;
use crate::queue::Queue;
use crate::report::snapshot::{Progress, Report, Routes, Snapshot, Unfinished};
use crate::route::explain;
use crate::route::troubles::RouteTroubles;
use crate::scope::Scope;
use crate::sync::lock;

/// Reads the controller's queue, and what is wrong with routes.
pub(crate) struct RouteReport {
    pub(crate) scope: Scope,
    pub(crate) queue: Queue,
    pub(crate) troubles: Arc<Mutex<RouteTroubles>>,
}

impl Report for RouteReport {
    fn controller(&self) -> Controller {
        Controller::NodeRoute
    }

    fn provider(&self) -> String {
        self.scope.provider().name.clone()
    }

    fn routes(&self) -> Option<Routes> {
        lock(&self.troubles).routes()
    }

    /// The queue's own triggers are always there and say nothing.
    fn snapshot(&self) -> Snapshot {
        let queue = self.queue.snapshot();
        Snapshot {
            progress: Progress {
                ready: queue.ready,
                in_work: queue.in_work,
                ..lock(&self.troubles).progress(Instant::now())
            },
            queues: vec![queue],
            longest_step: None,
        }
    }

    fn unfinished(&self) -> Vec<Unfinished> {
        lock(&self.troubles).nodes()
    }

    fn explain_node(&self, node: &Node) -> Option<String> {
        if self.scope.are_several() && !self.scope.owns_node()(node) {
            return None;
        }
        let known = lock(&self.troubles).of(node.metadata.name.as_deref()?, Instant::now());
        Some(explain::routes(node, &known))
    }
}
