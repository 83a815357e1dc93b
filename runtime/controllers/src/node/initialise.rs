//! Initialisation of new Nodes: looked up in batches, each written as soon as it is answered.

use std::sync::Arc;

use cloudwit_model::{EventKind, Evidence, Failure, NodeRef, Presence, Retry};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::time::Instant;
use tracing::{Instrument as _, Span, debug, info, warn};

use crate::ambient;
use crate::cloud::lookups::Answers;
use crate::context::Context;
use crate::kube::node::Node;
use crate::kube::node::view::{UNINITIALIZED, has_taint, node_ref, provider_id};
use crate::metrics::Purpose;
use crate::node::labels::{DropReason, Dropped};
use crate::node::write::{InitError, Initialised, initialise, write_waiting};
use crate::node::{CloudNode, each};
use crate::options::Controller;
use crate::queue::{Outcome, Taken, span};
use crate::report::cause::{Cause, CauseKind};
use crate::sync::lock;

/// Look-ups that may be in flight at once: a slow one must not hold up Nodes that come after it, and a crowd of them must not undo the
/// batching.
const LOOKUPS_IN_FLIGHT: usize = 4;

/// Full look-ups: one is written while the next is requested. What is known of each of their Nodes is held until that Node is written, a
/// kilobyte and more, so four thousand instead of two would be megabytes in a wave.
const FULL_LOOKUPS_IN_FLIGHT: usize = 2;

/// Why a Node is not initialised yet.
#[derive(Clone)]
struct NotYet {
    cause: Cause,
    retry: Retry,
    /// Whether it is reported at the first time.
    at_once: bool,
}

impl NotYet {
    /// Wrong credentials are reported without waiting for the next attempt.
    fn because(cause: Cause, retry: Retry) -> Self {
        Self {
            cause,
            retry,
            at_once: retry == Retry::Slowly,
        }
    }
}

/// A Node that waits to be initialised, and its key.
type Job = (Taken, Arc<Node>);

impl CloudNode {
    pub(super) async fn initialise_all(&self) {
        let mut lookups = FuturesUnordered::new();
        let mut corrections = FuturesUnordered::new();
        let mut in_flight = 0;
        loop {
            let limit = self.context.cloud.lookup_limit().max(1);
            let room = lookups.len() < LOOKUPS_IN_FLIGHT && in_flight < limit.saturating_mul(FULL_LOOKUPS_IN_FLIGHT);
            tokio::select! {
                // What has ended first: it makes room.
                biased;
                Some(count) = lookups.next() => in_flight -= count,
                Some(()) = corrections.next() => {}
                batch = self.queue.take_batch(limit, self.context.options.node.gather), if room => {
                    let Some(batch) = batch else { return };
                    let (new, known) = self.sort(batch);
                    if !new.is_empty() {
                        let count = new.len();
                        in_flight += count;
                        lookups.push(async move {
                            self.initialise_nodes(new).await;
                            count
                        });
                    }
                    if !known.is_empty() {
                        corrections.push(each(self.at_once, known, |(taken, node)| {
                            let span = taken.span();
                            self.correct_labels(taken, node).instrument(span)
                        }));
                    }
                }
            }
        }
    }

    /// The new Nodes, and those that were initialised before.
    pub(super) fn sort(&self, batch: Vec<Taken>) -> (Vec<Job>, Vec<Job>) {
        let (owns, explains) = (self.context.scope.owns_node(), self.context.scope.explains());
        let (mut new, mut known) = (Vec::new(), Vec::new());
        for mut taken in batch {
            let Some(node) = self.context.nodes.get(taken.key()) else {
                // It was deleted during its last attempt, which noted a failure after the deletion was noted.
                lock(&self.waiting).done(taken.key());
                taken.finish(Outcome::Done);
                continue;
            };
            taken.begin(Controller::CloudNode);
            if !has_taint(&node, UNINITIALIZED) {
                known.push((taken, node));
            } else if owns(&node) || explains(&node) {
                new.push((taken, node));
            } else {
                taken
                    .span()
                    .in_scope(|| debug!(node = %taken.key(), "skipped: provider id of another provider"));
                lock(&self.waiting).done(taken.key());
                taken.finish(Outcome::Done);
            }
        }
        (new, known)
    }

    /// Each Node is written as soon as there is an answer about it: one on which the provider hangs keeps no other from its own.
    pub(super) async fn initialise_nodes(&self, nodes: Vec<Job>) {
        let shared = span::on_many(Controller::CloudNode, nodes.len());
        for (taken, _) in &nodes {
            taken.span().follows_from(&shared);
        }
        let nodes = self.reject_strays(nodes).await;
        if nodes.is_empty() {
            return span::ended(&shared, true);
        }
        let refs: Vec<NodeRef> = nodes.iter().map(|(_, node)| node_ref(node)).collect();
        let (mut left, mut answered) = (nodes.len(), true);
        let mut nodes: Vec<Option<Job>> = nodes.into_iter().map(Some).collect();
        let parts = self.context.lookups.about(Purpose::Init, refs, shared.clone());
        parts
            .for_each_concurrent(None, |part| {
                left = left.saturating_sub(part.at.len());
                answered &= part.answer.is_ok();
                if left == 0 {
                    span::ended(&shared, answered);
                }
                let jobs = part.at.iter().filter_map(|at| nodes[*at].take()).collect();
                self.initialise_part(jobs, part.answer, &shared)
            })
            .await;
    }

    /// Nodes without a provider to call get an Event with the reason.
    async fn reject_strays(&self, nodes: Vec<Job>) -> Vec<Job> {
        let (mut left, mut strays) = (Vec::new(), Vec::new());
        let stray = self.context.scope.stray();
        for (taken, node) in nodes {
            match stray(&node_ref(&node)) {
                Some(failure) => strays.push((taken, node, failure)),
                None => left.push((taken, node)),
            }
        }
        each(self.at_once, strays, |(taken, node, failure)| {
            let span = taken.span();
            let why = NotYet::because((&failure).into(), failure.retry());
            self.retry_later(taken, node, why).instrument(span)
        })
        .await;
        left
    }

    async fn initialise_part(&self, nodes: Vec<Job>, answer: Answers, shared: &Span) {
        match answer {
            Ok(answers) => {
                each(
                    self.at_once,
                    nodes.into_iter().zip(answers),
                    |((taken, node), answer)| {
                        let span = taken.span();
                        self.initialise_node(taken, node, answer).instrument(span)
                    },
                )
                .await;
            }
            Err(error) => {
                let count = nodes.len();
                shared.in_scope(|| match error.is_pending() {
                    true => debug!(nodes = count, %error, "the cloud has not answered about Nodes to initialise yet"),
                    false => warn!(nodes = count, %error, "failed to look up Nodes to initialise"),
                });
                let why = NotYet::because((&error).into(), error.retry());
                each(self.at_once, nodes, |(taken, node)| {
                    let span = taken.span();
                    self.retry_later(taken, node, why.clone()).instrument(span)
                })
                .await;
            }
        }
    }

    async fn initialise_node(&self, taken: Taken, node: Arc<Node>, answer: Result<Presence, Failure>) {
        let instance = match answer {
            Ok(Presence::Running(instance) | Presence::Stopped(instance)) => instance,
            Ok(Presence::Absent(evidence)) => {
                let why = NotYet::because(absence(&node, evidence), Retry::Backoff);
                return self.retry_later(taken, node, why).await;
            }
            Err(failure) => {
                let why = NotYet::because((&failure).into(), failure.retry());
                return self.retry_later(taken, node, why).await;
            }
        };
        if let (None, Some(uid)) = (provider_id(&node), &node.metadata.uid) {
            self.context.machines.see(uid, &instance.provider_id);
        }
        let provider = self.context.scope.identity();
        let _permit = self.writes.acquire().await;
        let Context { apply, nodes, .. } = &self.context;
        match initialise(apply, nodes, &node, &instance, &provider).await {
            Ok(Initialised::Yes(dropped)) => self.initialised(&node, &dropped),
            Ok(Initialised::Moot | Initialised::DryRun) => {}
            Err(error) => {
                let why = NotYet {
                    // Only an operator can fix the provider, so it is reported before the third try.
                    at_once: matches!(error, InitError::Identity(_)),
                    ..NotYet::because(Cause::new(error.kind(), error.to_string()), error.retry())
                };
                return self.retry_later(taken, node, why).await;
            }
        }
        lock(&self.waiting).done(taken.key());
        taken.finish(Outcome::Done);
    }

    fn initialised(&self, node: &Node, dropped: &[Dropped]) {
        if let Some(created) = &node.metadata.creation_timestamp {
            let seconds = ambient::now().duration_since(created.0).as_secs_f64();
            self.context.metrics.taint_removal_delay.observe(seconds);
            self.context.metrics.initial_sync_delay.observe(seconds);
        }
        for label in dropped {
            self.report_dropped(node, label);
        }
        info!(node = node.metadata.name, "initialised");
        self.recorder.node_routine(node, "Synced", "Node synced successfully");
    }

    fn report_dropped(&self, node: &Node, label: &Dropped) {
        let Dropped { key, value, reason } = label;
        match reason {
            DropReason::Invalid(why) => {
                let message = format!("Label {key}={value:?} from the cloud dropped: {why}");
                self.recorder.node(node, EventKind::Warning, "InvalidLabel", message);
            }
            DropReason::Reserved => warn!(
                node = node.metadata.name,
                key, "label dropped: namespace reserved for Kubernetes"
            ),
            DropReason::Present(present) => warn!(
                node = node.metadata.name,
                key, value, present, "label dropped: already on Node"
            ),
        }
    }

    /// Notes that an attempt failed, and answers whether it is time to say so.
    fn is_event_due(&self, taken: &Taken, why: &NotYet) -> bool {
        let (mut waiting, now) = (lock(&self.waiting), Instant::now());
        let due = waiting.failed(taken.key(), &why.cause, now);
        due || (why.at_once && waiting.is_first_report(taken.key(), now))
    }

    /// The Node keeps its taint and is tried again. From time to time an Event and an annotation say why.
    async fn retry_later(&self, taken: Taken, node: Arc<Node>, why: NotYet) {
        let tell = self.is_event_due(&taken, &why);
        let NotYet { cause, retry, .. } = why;
        let reason = &*cause.reason;
        debug!(node = %taken.key(), reason, ?retry, "not initialised yet");
        if tell {
            let stray = self.context.scope.stray()(&node_ref(&node)).is_some();
            let provider = if stray {
                String::new()
            } else {
                self.context.scope.identity().name
            };
            match cause.is_failure() {
                true => warn!(node = %taken.key(), provider, reason, "still not initialised"),
                false => info!(node = %taken.key(), provider, reason, "waiting for the cloud"),
            }
            let message = format!("Still waiting for cloud provider {provider:?} to initialise this Node: {reason}");
            self.recorder
                .node(&node, EventKind::Warning, "InitializationFailed", message);
            let told = lock(&self.waiting).about(taken.key(), Instant::now());
            let told = told.map(|told| told.cause.reason).unwrap_or_default();
            let Context { apply, nodes, .. } = &self.context;
            // One that carries an id may be another cloud controller's: it is reported, and not touched.
            let is_others = stray && provider_id(&node).is_some();
            if !is_others && let Err(error) = write_waiting(apply, nodes, &node, &told).await {
                debug!(node = %taken.key(), %error, "failed to annotate Node with what it waits for");
            }
        }
        taken.finish(Outcome::Retry(retry));
    }
}

fn absence(node: &Node, evidence: Evidence) -> Cause {
    let reason = match (evidence, node_ref(node).provider_id) {
        (Evidence::ById, Some(id)) => format!("the cloud has no machine with the id {id}"),
        (_, Some(id)) => format!("the cloud has no machine that matches this Node (provider id {id})"),
        (_, None) => "the cloud has no machine that matches this Node's name, system UUID or addresses".into(),
    };
    Cause::new(CauseKind::Cloud, reason)
}
