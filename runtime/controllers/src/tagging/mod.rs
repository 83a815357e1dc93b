//! Tagging controller: tags machines of Nodes, untags them when their Node is gone.
//!
//! ```text
//!   Node whose label lacks the tags' digest --> queue --> all that wait together --> `Cloud::change_tags` --> label with the digest
//!   Node gone                               --> queue -->          likewise      -->         likewise
//! ```
//!
//! Upstream's for AWS (`cloud-provider-aws pkg/controllers/tagging`), for every provider that exports `tagging`. Differences: many Nodes share a call; what still fails
//! after upstream's ten tries is tried on; a Node that came back keeps its machine's tags.

mod changes;
mod digest;
mod limit;
pub mod plan;
mod report;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use cloudwit_model::{MAX_TAGGED_NODES, NodeRef, TagChange};
use tokio::time::{Instant, sleep};
use tracing::Instrument as _;

use crate::cloud::swap::after_each_swap;
use crate::context::Context;
use crate::kube::cache::{Change, Key, key_of};
use crate::kube::events::Recorder;
use crate::kube::node::Node;
use crate::kube::node::view::{node_ref, provider_id_text};
use crate::options::Controller;
use crate::queue::{Backoff, Outcome, Queue, Taken, span};
use crate::report::waiting::FailedAttempts;
use crate::sync::lock;
use crate::tagging::changes::Job;
use crate::tagging::digest::digest;
use crate::tagging::limit::RateLimit;
use crate::tagging::plan::{Work, gone_key, is_news, label, needs_tags};
use crate::tagging::report::TaggingReport;

/// The queue's name in metrics, as upstream has it.
const QUEUE: &str = "tagging-controller";

/// Runs the controller of one provider: what the watch brings from the call on is queued.
pub fn run(context: Context) -> impl Future<Output = ()> + Send + 'static {
    let this = TagController::new(context);
    async move { this.run().await }
}

/// Machines that are not tagged, with the reason.
type Skipped = Arc<Mutex<BTreeMap<Key, Arc<str>>>>;

struct TagController {
    context: Context,
    queue: Queue,
    recorder: Recorder,
    digest: Arc<str>,
    waiting: Arc<Mutex<FailedAttempts>>,
    skipped: Skipped,
}

impl TagController {
    fn new(context: Context) -> Self {
        let queue = Queue::new(
            Backoff::BATCHED.at_most(context.options.max_retry_pause),
            context.metrics.queue(QUEUE),
        );
        let this = Self {
            recorder: context.events.recorder(Controller::Tagging),
            digest: digest(&context.options.tagging.tags).into(),
            waiting: Arc::default(),
            skipped: Skipped::default(),
            queue,
            context,
        };
        this.listen();
        this.context.reports.add(Arc::new(TaggingReport {
            scope: this.context.scope.clone(),
            queue: this.queue.clone(),
            digest: this.digest.clone(),
            waiting: this.waiting.clone(),
            skipped: this.skipped.clone(),
        }));
        this
    }

    fn listen(&self) {
        let (adds, scope, digest) = (self.queue.clone(), self.context.scope.clone(), self.digest.clone());
        let (waiting, skipped) = (self.waiting.clone(), self.skipped.clone());
        self.context.nodes.listen_from_start(move |key, change| {
            let provider = scope.identity();
            let label = label(&provider);
            let is_work = match &change {
                Change::Added(node) => needs_tags(node, label, &digest),
                Change::Updated { old, new } => is_news(old, new, label, &digest),
                Change::Deleted(node) => {
                    lock(&waiting).done(key);
                    lock(&skipped).remove(key);
                    let gone = gone_key(node).filter(|_| scope.owns_node()(node));
                    gone.into_iter().for_each(|gone| adds.add(gone));
                    false
                }
            };
            if is_work && change.current().is_some_and(|node| scope.owns_node()(node)) {
                adds.add(key.clone());
            }
        });
    }

    async fn run(&self) {
        let _running = self.context.metrics.running(Controller::Tagging);
        self.context.nodes.synced().await;
        let period = self.context.options.swap_check_period;
        tokio::select! {
            biased;
            () = self.context.shutdown.cancelled() => self.queue.close(),
            () = self.change_all() => {}
            () = self.look_again() => {}
            () = after_each_swap(&*self.context.cloud, period, || self.queue_all()) => {}
        }
    }

    /// What was given up comes back, as it does upstream with each update of a Node's status.
    async fn look_again(&self) {
        loop {
            sleep(self.context.options.node.status_update_frequency).await;
            self.queue_all();
        }
    }

    /// All Nodes whose machines lack the tags, and what failed.
    fn queue_all(&self) {
        let (owns, provider) = (self.context.scope.owns_node(), self.context.scope.identity());
        let lacks = |node: &Node| needs_tags(node, label(&provider), &self.digest) && owns(node);
        let nodes = self.context.nodes.matching(lacks);
        self.queue.add_all(nodes.iter().map(|node| key_of(&**node)));
        self.queue.retry_failed_now();
    }

    async fn change_all(&self) {
        let options = &self.context.options;
        let mut limit = options.tagging.rate.map(|rate| RateLimit::new(rate, Instant::now()));
        loop {
            let room = match &limit {
                Some(limit) => {
                    sleep(limit.pause(Instant::now())).await;
                    limit.room(Instant::now()).clamp(1, MAX_TAGGED_NODES)
                }
                None => MAX_TAGGED_NODES,
            };
            let Some(batch) = self.queue.take_batch(room, options.node.gather).await else {
                return;
            };
            let (untag, tag) = self.sort(batch);
            if let Some(limit) = &mut limit {
                limit.take(untag.len() + tag.len(), Instant::now());
            }
            // A machine may be in both, of a Node that was replaced: it ends with the tags.
            for (change, jobs) in [(TagChange::Remove, untag), (TagChange::Add, tag)] {
                if !jobs.is_empty() {
                    let span = span::on_many(Controller::Tagging, jobs.len());
                    let answered = self.change(change, jobs).instrument(span.clone()).await;
                    span::ended(&span, answered);
                }
            }
        }
    }

    /// Machines that lose the tags, and those that get them. What is moot by now is done.
    fn sort(&self, batch: Vec<Taken>) -> (Vec<Job>, Vec<Job>) {
        let (owns, provider) = (self.context.scope.owns_node(), self.context.scope.identity());
        let label = label(&provider);
        let is_of_gone = |taken: &Taken| matches!(Work::of(taken.key()), Work::Untag { .. });
        let machines = match batch.iter().any(is_of_gone) {
            true => self.machines(),
            false => HashSet::new(),
        };
        let (mut untag, mut tag) = (Vec::new(), Vec::new());
        for taken in batch {
            match Work::of(taken.key()) {
                Work::Untag { provider_id, .. } if machines.contains(provider_id) => taken.finish(Outcome::Done),
                Work::Untag { node, provider_id } => {
                    let about = NodeRef {
                        name: node.to_owned(),
                        provider_id: Some(provider_id.to_owned()),
                        ..NodeRef::default()
                    };
                    untag.push(Job {
                        taken,
                        about,
                        node: None,
                    });
                }
                Work::Tag { node } => match self.context.nodes.get(node) {
                    Some(node) if needs_tags(&node, label, &self.digest) && owns(&node) => {
                        let about = node_ref(&node);
                        tag.push(Job {
                            taken,
                            about,
                            node: Some(node),
                        });
                    }
                    _ => {
                        lock(&self.waiting).done(taken.key());
                        lock(&self.skipped).remove(taken.key());
                        taken.finish(Outcome::Done);
                    }
                },
            }
        }
        (untag, tag)
    }

    /// The machines of all Nodes that there are.
    fn machines(&self) -> HashSet<String> {
        let nodes = self.context.nodes.all();
        let ids = nodes.iter().filter_map(|node| provider_id_text(node));
        ids.map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests;
