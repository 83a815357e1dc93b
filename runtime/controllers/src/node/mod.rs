//! Node controller: initialises new Nodes and refreshes addresses from then on.
//!
//! ```text
//!   Node with the uninitialized taint --> queue --> all that wait together --> one `Cloud::lookup`
//!                                                                               |  one answer per Node
//!                                                                               v
//!                                                       `node::plan` --> `node::write`, Event
//! ```
//!
//! Differences from upstream (`spec/node-controller.md` 15): many Nodes share a cloud call (N1), a Node whose machine
//! the cloud does not have (yet) is tried again with backoff (N9), a failing initialisation shows as a Warning Event
//! (N7), a label the API server would refuse is dropped with a Warning instead of blocking the Node for ever (N8),
//! addresses are written before the taint goes (N5). Only Nodes of this provider are touched: those whose provider id
//! has one of its prefixes, and those without an id.

pub mod addresses;
pub mod explain;
mod initialise;
pub mod labels;
pub mod plan;
mod refresh;
mod report;
mod volume_nodes;
pub mod write;

use std::future::pending;
use std::sync::{Arc, Mutex};

use futures::{StreamExt, stream};
use tokio::sync::Semaphore;
use tracing::warn;

use crate::cloud::swap::after_each_swap;
use crate::context::Context;
use crate::kube::cache::Change;
use crate::kube::events::Recorder;
use crate::kube::node::Node;
use crate::kube::node::view::{UNINITIALIZED, has_taint};
use crate::node::plan::{matters, plan_labels, waits_in_vain};
use crate::node::report::NodeReport;
use crate::node::volume_nodes::VolumeNodes;
use crate::node::write::write_labels;
use crate::options::Controller;
use crate::queue::{Backoff, Outcome, Queue, Taken};
use crate::report::waiting::FailedAttempts;
use crate::sync::lock;

/// Runs the controller: what the watch brings from the call on is queued.
pub fn run(context: Context) -> impl Future<Output = ()> + Send + 'static {
    let this = CloudNode::new(context);
    async move { this.run().await }
}

struct CloudNode {
    context: Context,
    queue: Queue,
    recorder: Recorder,
    waiting: Arc<Mutex<FailedAttempts>>,
    /// Nodes that are written at a time in one batch, and over all batches.
    at_once: usize,
    writes: Semaphore,
    refresh_at_once: usize,
    /// Where the provider's volumes are served.
    volume_nodes: Option<VolumeNodes>,
}

impl CloudNode {
    fn new(context: Context) -> Self {
        let queue = Queue::new(
            Backoff::BATCHED.at_most(context.options.max_retry_pause),
            context.metrics.queue("Nodes"),
        );
        let waiting = Arc::<Mutex<FailedAttempts>>::default();
        let (adds, forgets, machines) = (queue.clone(), waiting.clone(), context.machines.clone());
        let scope = context.scope.clone();
        context.nodes.listen_from_start(move |key, change| match change {
            Change::Deleted(node) => {
                lock(&forgets).done(key);
                machines.forget(node.metadata.uid.as_deref().unwrap_or_default());
                // Checked once more, which ends a pause or follows work in progress, and drops it.
                if adds.state(key).is_some() {
                    adds.add(key.clone());
                }
            }
            change if is_work(&change) && change.current().is_some_and(|node| scope.explains()(node)) => {
                adds.add(key.clone());
            }
            _ => {}
        });
        let volumes = context.scope.provider().volumes.clone();
        let volume_nodes = volumes.map(|volumes| VolumeNodes::new(&context, volumes));
        context.reports.add(Arc::new(NodeReport {
            scope: context.scope.clone(),
            nodes: context.nodes.clone(),
            queue: queue.clone(),
            waiting: waiting.clone(),
            volume_nodes: volume_nodes.as_ref().map(VolumeNodes::queue),
        }));
        let options = &context.options.node;
        Self {
            recorder: context.events.recorder(Controller::CloudNode),
            queue,
            waiting,
            at_once: options.concurrent_syncs,
            writes: Semaphore::new(options.concurrent_syncs),
            refresh_at_once: options.concurrent_status_updates.unwrap_or(options.concurrent_syncs),
            volume_nodes,
            context,
        }
    }

    async fn run(&self) {
        let _running = self.context.metrics.running(Controller::CloudNode);
        self.context.nodes.synced().await;
        tokio::select! {
            biased;
            () = self.context.shutdown.cancelled() => self.queue.close(),
            () = self.initialise_all() => {}
            () = self.refresh_all() => {}
            () = self.retry_after_swaps() => {}
            () = self.annotate_volume_nodes() => {}
        }
    }

    async fn annotate_volume_nodes(&self) {
        match &self.volume_nodes {
            Some(volume_nodes) => volume_nodes.run().await,
            None => pending().await,
        }
    }

    async fn correct_labels(&self, taken: Taken, node: Arc<Node>) {
        lock(&self.waiting).done(taken.key());
        let _permit = self.writes.acquire().await;
        let outcome = match write_labels(&self.context.apply, &self.context.nodes, &node).await {
            Ok(()) => Outcome::Done,
            Err(error) => {
                warn!(node = %taken.key(), %error, "failed to correct labels");
                Outcome::Retry(error.retry())
            }
        };
        taken.finish(outcome);
    }

    /// A new provider, configuration or secret may succeed where the last one did not.
    async fn retry_after_swaps(&self) {
        let try_all = || {
            let waiting = lock(&self.waiting).keys();
            waiting.into_iter().for_each(|key| self.queue.add(key));
        };
        after_each_swap(&*self.context.cloud, self.context.options.swap_check_period, try_all).await;
    }
}

/// Works on so many items at a time. The others are not begun, which keeps memory flat for a page of a thousand.
async fn each<I: IntoIterator, F: Future<Output = ()>>(at_once: usize, items: I, work: impl FnMut(I::Item) -> F) {
    stream::iter(items).for_each_concurrent(at_once, work).await;
}

/// Whether there is something to do for a Node after this change.
fn is_work(change: &Change<'_, Node>) -> bool {
    match change {
        Change::Added(node) => has_taint(node, UNINITIALIZED) || waits_in_vain(node) || !plan_labels(node).is_empty(),
        Change::Updated { old, new } if has_taint(new, UNINITIALIZED) => matters(old, new),
        Change::Updated { new, .. } => waits_in_vain(new) || !plan_labels(new).is_empty(),
        Change::Deleted(_) => false,
    }
}

#[cfg(test)]
mod tests;
