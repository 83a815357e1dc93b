//! CSI annotation of each Node for the plugin on its machine, which needs no cloud credentials then.
//!
//! ```text
//!   initialised Node without the annotation, each refresh period, swap --> queue --> all that wait together --> `VolumeCloud::volume_nodes`
//!                                                                                                               |  one answer per Node
//!                                                                                                               v
//!                                                                                                    annotation csi.cloudwit.dev/node
//! ```
//!
//! Part of the node controller, for providers whose volumes are served. The limit of volumes may change with a machine's size, hence the refresh.

use std::sync::Arc;

use cloudwit_model::volume::{MAX_VOLUME_BATCH, NODE_ANNOTATION, NodeAnnotation, VolumeNode};
use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{CloudError, Failure, NodeRef, Retry, VolumeCloud};
use tokio::time::sleep;
use tracing::{Instrument as _, debug, warn};

use crate::assign::NodeVolumes;
use crate::cloud::swap::after_each_swap;
use crate::context::Context;
use crate::kube::cache::Change;
use crate::kube::node::Node;
use crate::kube::node::view::{UNINITIALIZED, annotation, has_taint, node_ref, provider_id_text};
use crate::node::each;
use crate::node::write::write_annotation;
use crate::options::Controller;
use crate::queue::{Backoff, Outcome, Queue, Taken, span};

/// A Node whose annotation may be missing or old.
type Job = (Taken, Arc<Node>);

pub(super) struct VolumeNodes {
    context: Context,
    volumes: NodeVolumes,
    queue: Queue,
}

impl VolumeNodes {
    /// What the watch brings from now on is queued.
    pub(super) fn new(context: &Context, volumes: NodeVolumes) -> Self {
        let queue = Queue::new(
            Backoff::BATCHED.at_most(context.options.max_retry_pause),
            context.metrics.queue("VolumeNodes"),
        );
        let adds = queue.clone();
        context.nodes.listen_from_start(move |key, change| {
            if is_work(&change) {
                adds.add(key.clone());
            }
        });
        Self {
            context: context.clone(),
            volumes,
            queue,
        }
    }

    pub(super) fn queue(&self) -> Queue {
        self.queue.clone()
    }

    /// Never ends.
    pub(super) async fn run(&self) {
        let period = self.context.options.swap_check_period;
        tokio::select! {
            () = self.annotate_all() => {}
            () = self.refresh() => {}
            () = after_each_swap(&*self.context.cloud, period, || self.queue_all()) => {}
        }
    }

    async fn refresh(&self) {
        loop {
            sleep(self.context.options.node.status_update_frequency).await;
            self.queue_all();
        }
    }

    fn queue_all(&self) {
        let nodes = self.context.nodes.matching(is_initialised);
        self.queue
            .add_all(nodes.iter().map(|node| crate::kube::cache::key_of(&**node)));
    }

    async fn annotate_all(&self) {
        let gather = self.context.options.node.gather;
        while let Some(batch) = self.queue.take_batch(MAX_VOLUME_BATCH, gather).await {
            let jobs = self.sort(batch);
            if !jobs.is_empty() {
                let span = span::on_many(Controller::CloudNode, jobs.len());
                let answered = self.annotate(jobs).instrument(span.clone()).await;
                span::ended(&span, answered);
            }
        }
    }

    /// Those that are this provider's and initialised.
    fn sort(&self, batch: Vec<Taken>) -> Vec<Job> {
        let owns = self.context.scope.owns_node();
        let mut jobs = Vec::new();
        for taken in batch {
            match self.context.nodes.get(taken.key()) {
                Some(node) if is_initialised(&node) && owns(&node) => jobs.push((taken, node)),
                _ => taken.finish(Outcome::Done),
            }
        }
        jobs
    }

    /// Looks up as many together as the provider takes. Of those it faults on, each half is looked up alone. False when there was no answer
    /// about some.
    async fn annotate(&self, jobs: Vec<Job>) -> bool {
        let cloud = &*self.volumes.cloud;
        let most = match cloud.volume_driver().await {
            Ok(driver) => driver.batch.max(1),
            Err(error) => {
                postpone(jobs, &error.to_string(), error.retry());
                return false;
            }
        };
        let mut open = parts(jobs, most);
        let mut complete = true;
        while let Some(mut jobs) = open.pop() {
            match ask(cloud, &jobs).await {
                Ok(answers) => {
                    let at_once = self.context.options.node.concurrent_syncs;
                    let answered = jobs.into_iter().zip(answers);
                    each(at_once, answered, |((taken, node), answer)| {
                        self.finish(taken, node, answer)
                    })
                    .await;
                }
                Err(error) if error.is_about_items() && jobs.len() > 1 => {
                    let tail = jobs.split_off(jobs.len() / 2);
                    open.extend([jobs, tail]);
                }
                Err(error) => {
                    complete = false;
                    postpone(jobs, &error.to_string(), error.retry());
                }
            }
        }
        complete
    }

    async fn finish(&self, taken: Taken, node: Arc<Node>, answer: Result<VolumeNode, Failure>) {
        let found = match answer {
            Ok(found) => found,
            Err(failure) => return postpone_one(taken, &failure.to_string(), failure.retry()),
        };
        let text = match NodeAnnotation::new(self.volumes.driver.clone(), found).text() {
            Ok(text) => text,
            Err(error) => return postpone_one(taken, &error.to_string(), Retry::Backoff),
        };
        let Context { apply, nodes, .. } = &self.context;
        let why = "set the CSI annotation";
        match write_annotation(apply, nodes, &node, (NODE_ANNOTATION, &text), why).await {
            Ok(()) => taken.finish(Outcome::Done),
            Err(error) => postpone_one(taken, &error.to_string(), error.retry()),
        }
    }
}

async fn ask(cloud: &dyn VolumeCloud, jobs: &[Job]) -> Result<Each<VolumeNode>, CloudError> {
    let nodes: Vec<NodeRef> = jobs.iter().map(|(_, node)| node_ref(node)).collect();
    cloud.volume_nodes(&nodes).await
}

fn parts(mut jobs: Vec<Job>, most: usize) -> Vec<Vec<Job>> {
    let mut parts = Vec::new();
    while jobs.len() > most {
        parts.push(jobs.split_off(jobs.len() - most));
    }
    parts.push(jobs);
    parts
}

fn postpone(jobs: Vec<Job>, why: &str, retry: Retry) {
    jobs.into_iter().for_each(|(taken, _)| postpone_one(taken, why, retry));
}

/// The first failure is logged, the others are counted by the queue.
fn postpone_one(taken: Taken, why: &str, retry: Retry) {
    let node = taken.key();
    if taken.failures() == 0 {
        warn!(%node, why, "failed to set CSI annotation; no volumes on this Node yet");
    } else {
        debug!(%node, why, "CSI annotation still missing");
    }
    taken.finish(Outcome::Retry(retry));
}

fn is_initialised(node: &Node) -> bool {
    !has_taint(node, UNINITIALIZED) && provider_id_text(node).is_some()
}

/// Whether a Node may have to be annotated after this change: it is initialised now, or its annotation is gone. One that was changed is put
/// right by the next refresh; to follow changes would be to follow our own.
fn is_work(change: &Change<'_, Node>) -> bool {
    let Some(node) = change.current().filter(|node| is_initialised(node)) else {
        return false;
    };
    match change {
        Change::Updated { old, .. } => {
            !is_initialised(old)
                || old.metadata.uid != node.metadata.uid
                || (annotation(old, NODE_ANNOTATION).is_some() && annotation(node, NODE_ANNOTATION).is_none())
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests;
