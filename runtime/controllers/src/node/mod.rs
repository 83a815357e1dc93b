//! First contact with a Node, and its addresses from then on.
//!
//! ```text
//!   Node with the uninitialized taint --> queue --> all that wait together --> one `Cloud::lookup`
//!                                                                               |  one answer per Node
//!                                                                               v
//!                                                       `node::plan` --> `node::write`, Event
//! ```
//!
//! Differences from upstream (`spec/node-controller.md` 15): many Nodes share a cloud call (N1), a Node whose machine
//! the cloud does not know (yet) is tried again with backoff (N9), a failing initialisation shows as a Warning Event
//! (N7), a label the API server would refuse is dropped with a Warning instead of blocking the Node for ever (N8),
//! addresses are written before the taint goes (N5). Only Nodes of this provider are touched: those whose provider id
//! has one of its prefixes, and those without an id.

pub mod addresses;
pub mod explain;
pub mod labels;
pub mod plan;
pub mod write;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cloudwit_model::{CloudError, EventKind, Evidence, Failure, Instance, NodeRef, Presence, Retry};
use futures::stream::FuturesUnordered;
use futures::{StreamExt, stream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};
use tracing::{Instrument as _, Span, debug, info, warn};

use crate::ambient;
use crate::cloud::lookups::Answers;
use crate::cloud::swap::after_each_swap;
use crate::context::Context;
use crate::kube::cache::Change;
use crate::kube::events::Recorder;
use crate::kube::node::Node;
use crate::kube::node::view::{UNINITIALIZED, has_taint, node_ref, provider_id};
use crate::metrics::Purpose;
use crate::node::explain::initialisation;
use crate::node::labels::{DropReason, Dropped};
use crate::node::plan::{matters, plan_addresses, plan_identity, plan_labels, waits_in_vain};
use crate::node::write::{InitError, Initialised, initialise, write_addresses, write_labels, write_waiting};
use crate::options::Controller;
use crate::queue::span;
use crate::queue::{Backoff, Outcome, Queue, Taken};
use crate::report::standing::{Object, Unfinished};
use crate::report::waiting::Waiting;
use crate::sync::lock;

/// Look-ups that may be in flight at once: a slow one must not hold up Nodes that come after it, and a crowd of them must not undo the
/// batching.
const LOOKUPS_IN_FLIGHT: usize = 4;

/// Full look-ups: one is written while the next is asked for. What is known of each of their Nodes is held until that Node is written, a
/// kilobyte and more, so four thousand instead of two would be megabytes in a wave.
const FULL_LOOKUPS_IN_FLIGHT: usize = 2;

/// How often a page of the refresh is tried again when the cloud asks to slow down.
const PAGE_ATTEMPTS: u32 = 3;

/// Prepares the loop: what the watch brings from now on is queued.
pub fn prepare(context: Context) -> impl Future<Output = ()> + Send + 'static {
    let this = CloudNode::new(context);
    async move { this.run().await }
}

/// Nodes about which there was no answer, and why.
type FailedPart = (Vec<Arc<Node>>, CloudError);

/// Why a Node is not initialised yet.
#[derive(Clone)]
struct NotYet {
    reason: String,
    retry: Retry,
    /// Whether it is told at the first time.
    at_once: bool,
}

impl NotYet {
    /// Nobody should have to wait for the next attempt to learn that the credentials are wrong.
    fn because(reason: String, retry: Retry) -> Self {
        Self {
            reason,
            retry,
            at_once: retry == Retry::Slowly,
        }
    }
}

/// A Node that waits to be initialised, and its key.
type Job = (Taken, Arc<Node>);

struct CloudNode {
    context: Context,
    queue: Queue,
    recorder: Recorder,
    waiting: Arc<Mutex<Waiting>>,
    /// Nodes that are written at a time in one batch, and over all batches.
    at_once: usize,
    writes: Semaphore,
    refresh_at_once: usize,
}

impl CloudNode {
    fn new(context: Context) -> Self {
        let queue = Queue::new(Backoff::BATCHED, context.metrics.queue("Nodes"));
        let waiting = Arc::<Mutex<Waiting>>::default();
        let (adds, forgets, machines) = (queue.clone(), waiting.clone(), context.machines.clone());
        let scope = context.scope.clone();
        context.nodes.listen_from_start(move |key, change| match change {
            Change::Deleted(node) => {
                lock(&forgets).done(key);
                machines.forget(node.metadata.uid.as_deref().unwrap_or_default());
                // Looked at once more, which ends a pause or follows work in progress, and forgets it for good.
                if adds.look(key).is_some() {
                    adds.add(key.clone());
                }
            }
            change
                if is_work(&change)
                    && (!scope.are_several() || change.current().is_some_and(|node| scope.explains(node))) =>
            {
                adds.add(key.clone());
            }
            _ => {}
        });
        let (queued, waits, scope) = (queue.clone(), waiting.clone(), context.scope.clone());
        context.explain.about_nodes(Controller::CloudNode, move |node| {
            if scope.are_several() && !scope.explains(node) {
                return None;
            }
            let name = node.metadata.name.as_deref()?;
            let waiting = lock(&waits).about(name, Instant::now());
            let queued = queued.look(name);
            Some(initialisation(node, &scope.identity(), waiting.as_ref(), queued))
        });
        stand(&context, &queue, &waiting);
        let options = &context.options.node;
        Self {
            recorder: context.events.recorder(Controller::CloudNode),
            queue,
            waiting,
            at_once: options.concurrent_syncs,
            writes: Semaphore::new(options.concurrent_syncs),
            refresh_at_once: options.concurrent_status_updates.unwrap_or(options.concurrent_syncs),
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
        }
    }

    async fn initialise_all(&self) {
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
    fn sort(&self, batch: Vec<Taken>) -> (Vec<Job>, Vec<Job>) {
        let owns = self.context.scope.owns_node();
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
            } else if owns(&node) || (provider_id(&node).is_none() && self.context.scope.initialises(&node)) {
                new.push((taken, node));
            } else {
                taken
                    .span()
                    .in_scope(|| debug!(node = %taken.key(), "left alone: its provider id is of another provider"));
                lock(&self.waiting).done(taken.key());
                taken.finish(Outcome::Done);
            }
        }
        (new, known)
    }

    /// Each Node is written as soon as there is an answer about it: one on which the provider hangs keeps no other from its own.
    async fn initialise_nodes(&self, nodes: Vec<Job>) {
        let shared = span::on_many(Controller::CloudNode, nodes.len());
        for (taken, _) in &nodes {
            taken.span().follows_from(&shared);
        }
        let nodes = self.turn_strays_away(nodes).await;
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

    /// Those that no provider can be asked about are told why.
    async fn turn_strays_away(&self, nodes: Vec<Job>) -> Vec<Job> {
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
            let why = NotYet::because(failure.to_string(), failure.retry());
            self.not_yet(taken, node, why).instrument(span)
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
                shared.in_scope(|| warn!(nodes = count, %error, "could not look up Nodes that wait to be initialised"));
                let why = NotYet::because(error.to_string(), error.retry());
                each(self.at_once, nodes, |(taken, node)| {
                    let span = taken.span();
                    self.not_yet(taken, node, why.clone()).instrument(span)
                })
                .await;
            }
        }
    }

    async fn initialise_node(&self, taken: Taken, node: Arc<Node>, answer: Result<Presence, Failure>) {
        let instance = match answer {
            Ok(Presence::Running(instance) | Presence::Stopped(instance)) => instance,
            Ok(Presence::Absent(evidence)) => {
                let why = NotYet::because(absent_in_words(&node, evidence), Retry::Backoff);
                return self.not_yet(taken, node, why).await;
            }
            Err(failure) => {
                let why = NotYet::because(failure.to_string(), failure.retry());
                return self.not_yet(taken, node, why).await;
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
                    // Somebody has to mend the provider, so nobody should have to wait for the third try.
                    at_once: matches!(error, InitError::Identity(_)),
                    ..NotYet::because(error.to_string(), error.retry())
                };
                return self.not_yet(taken, node, why).await;
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
            self.tell_dropped(node, label);
        }
        info!(node = node.metadata.name, "initialised");
        self.recorder.node_routine(node, "Synced", "Node synced successfully");
    }

    fn tell_dropped(&self, node: &Node, label: &Dropped) {
        let Dropped { key, value, reason } = label;
        match reason {
            DropReason::Invalid(why) => {
                let message = format!("The cloud gives this Node the label {key}={value:?}, which is left out: {why}");
                self.recorder.node(node, EventKind::Warning, "InvalidLabel", message);
            }
            DropReason::Reserved => warn!(
                node = node.metadata.name,
                key, "label left out: its namespace belongs to Kubernetes"
            ),
            DropReason::Present(present) => warn!(
                node = node.metadata.name,
                key, value, present, "label left out: the Node has it"
            ),
        }
    }

    /// Notes that an attempt failed, and answers whether it is time to say so.
    fn is_to_be_told(&self, taken: &Taken, why: &NotYet) -> bool {
        let (mut waiting, now) = (lock(&self.waiting), Instant::now());
        let due = waiting.failed(taken.key(), &why.reason, now);
        due || (why.at_once && waiting.tell_now(taken.key(), now))
    }

    /// The Node keeps its taint and is tried again. From time to time an Event and an annotation say why.
    async fn not_yet(&self, taken: Taken, node: Arc<Node>, why: NotYet) {
        let tell = self.is_to_be_told(&taken, &why);
        let NotYet { reason, retry, .. } = why;
        debug!(node = %taken.key(), reason, ?retry, "not initialised yet");
        if tell {
            let stray = self.context.scope.stray()(&node_ref(&node)).is_some();
            let provider = if stray {
                String::new()
            } else {
                self.context.scope.identity().name
            };
            warn!(node = %taken.key(), provider, reason, "still not initialised");
            let message = format!("Still waiting for cloud provider {provider:?} to initialise this Node: {reason}");
            self.recorder
                .node(&node, EventKind::Warning, "InitializationFailed", message);
            let told = lock(&self.waiting).about(taken.key(), Instant::now());
            let told = told.map(|told| told.reason).unwrap_or_default();
            let Context { apply, nodes, .. } = &self.context;
            if let Err(error) = write_waiting(apply, nodes, &node, &told).await {
                debug!(node = %taken.key(), %error, "could not note why it waits");
            }
        }
        taken.finish(Outcome::Retry(retry));
    }

    async fn correct_labels(&self, taken: Taken, node: Arc<Node>) {
        lock(&self.waiting).done(taken.key());
        let _permit = self.writes.acquire().await;
        let outcome = match write_labels(&self.context.apply, &self.context.nodes, &node).await {
            Ok(()) => Outcome::Done,
            Err(error) => {
                warn!(node = %taken.key(), %error, "could not correct labels");
                Outcome::Retry(error.retry())
            }
        };
        taken.finish(outcome);
    }

    /// Refreshes addresses at once and then in each period, which starts when the pass before has ended.
    async fn refresh_all(&self) {
        loop {
            self.refresh().await;
            sleep(self.context.options.node.status_update_frequency).await;
        }
    }

    async fn refresh(&self) {
        let owns = self.context.scope.owns_node();
        let mut nodes = self
            .context
            .nodes
            .matching(|node| !has_taint(node, UNINITIALIZED) && owns(node));
        nodes.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        for page in nodes.chunks(self.context.cloud.lookup_limit().max(1)) {
            let span = span::on_many(Controller::CloudNode, page.len());
            let refreshed = self.refresh_page(page, &span).instrument(span.clone()).await;
            span::ended(&span, refreshed);
        }
    }

    /// Looks a page up, and again after the advised pause when the cloud asks to slow down. False when there was no answer about some.
    async fn refresh_page(&self, page: &[Arc<Node>], span: &Span) -> bool {
        let (mut page, mut complete) = (page.to_vec(), true);
        for attempt in 1..=PAGE_ATTEMPTS {
            let refs: Vec<NodeRef> = page.iter().map(|node| node_ref(node)).collect();
            let failed = Mutex::new(Vec::new());
            let parts = self.context.lookups.about(Purpose::Refresh, refs, span.clone());
            parts
                .for_each_concurrent(None, |part| {
                    let nodes: Vec<Arc<Node>> = part.at.into_iter().map(|at| page[at].clone()).collect();
                    self.refresh_part(nodes, part.answer, &failed)
                })
                .await;
            let (mut again, mut pause) = (Vec::new(), Duration::ZERO);
            for (nodes, error) in failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
                match error.retry() {
                    Retry::After(advised) if attempt < PAGE_ATTEMPTS => {
                        again.extend(nodes);
                        pause = pause.max(advised);
                    }
                    _ => {
                        complete = false;
                        let nodes = nodes.len();
                        warn!(nodes, %error, "could not refresh addresses; next try in the next period");
                    }
                }
            }
            if again.is_empty() {
                break;
            }
            sleep(pause).await;
            page = again;
        }
        complete
    }

    async fn refresh_part(&self, nodes: Vec<Arc<Node>>, answer: Answers, failed: &Mutex<Vec<FailedPart>>) {
        match answer {
            Ok(answers) => {
                let answered = nodes.into_iter().zip(answers);
                each(self.refresh_at_once, answered, |(node, answer)| async move {
                    self.refresh_node(&node, answer).await;
                })
                .await;
            }
            Err(error) => lock(failed).push((nodes, error)),
        }
    }

    async fn refresh_node(&self, node: &Node, answer: Result<Presence, Failure>) {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let presence = match answer {
            Ok(presence) => presence,
            Err(failure) => {
                return Self::not_refreshed(name, &failure);
            }
        };
        let Some(instance) = presence.instance() else { return };
        // The look-up took its time: plan on what the cache knows now.
        let Some(current) = self
            .context
            .nodes
            .get(name)
            .filter(|now| now.metadata.uid == node.metadata.uid)
        else {
            return;
        };
        if let Err(error) = self.write_refreshed(&current, instance).await {
            Self::not_refreshed(name, &error);
        }
    }

    fn not_refreshed(node: &str, why: &dyn std::fmt::Display) {
        let span = span::part_on_object(Controller::CloudNode, node);
        span::ended(&span, false);
        span.in_scope(|| warn!(node, %why, "could not refresh addresses; next try in the next period"));
    }

    async fn write_refreshed(&self, node: &Node, instance: &Instance) -> Result<(), InitError> {
        if has_taint(node, UNINITIALIZED) {
            return Ok(());
        }
        if self.context.scope.owns_node()(node) {
            plan_identity(node, instance, &self.context.scope.identity())?;
        }
        let Some(addresses) = plan_addresses(node, instance)? else {
            return Ok(());
        };
        if let Some(written) = write_addresses(&self.context.apply, node, &addresses).await? {
            self.context.nodes.observe(written);
        }
        Ok(())
    }

    /// A new provider, configuration or secret may know what the last one did not.
    async fn retry_after_swaps(&self) {
        let try_all = || {
            let waiting = lock(&self.waiting).keys();
            waiting.into_iter().for_each(|key| self.queue.add(key));
        };
        after_each_swap(&*self.context.cloud, self.context.options.swap_check_period, try_all).await;
    }
}

/// Tells how much is left to do, and which Nodes are not initialised.
fn stand(context: &Context, queue: &Queue, waiting: &Arc<Mutex<Waiting>>) {
    let progress = queue.clone();
    context
        .standing
        .progress_of(Controller::CloudNode, move || progress.progress());
    let (nodes, queue, waiting) = (context.nodes.clone(), queue.clone(), waiting.clone());
    let scope = context.scope.clone();
    let unfinished = move |node: Arc<Node>| {
        let name = node.metadata.name.clone()?;
        let failing = lock(&waiting).about(&name, Instant::now());
        let queued = queue.look(&name);
        let since = failing.as_ref().map(|failing| failing.waited);
        Some(Unfinished {
            since: since.into_iter().chain(queued.map(|queued| queued.unfinished)).max(),
            failed: failing.is_some(),
            object: Object::Node(name),
        })
    };
    context.standing.unfinished_of(Controller::CloudNode, move || {
        let nodes =
            nodes.matching(|node| has_taint(node, UNINITIALIZED) && (!scope.are_several() || scope.explains(node)));
        nodes.into_iter().filter_map(&unfinished).collect()
    });
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

fn absent_in_words(node: &Node, evidence: Evidence) -> String {
    match (evidence, node_ref(node).provider_id) {
        (Evidence::ById, Some(id)) => format!("the cloud has no machine with the id {id}"),
        (_, Some(id)) => format!("the cloud has no machine that matches this Node (provider id {id})"),
        (_, None) => "the cloud has no machine that matches this Node's name, system UUID or addresses".into(),
    }
}

#[cfg(test)]
mod tests;
