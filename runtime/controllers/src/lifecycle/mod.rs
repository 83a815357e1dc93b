//! Nodes that are not Ready: is their machine still there?
//!
//! ```text
//!   every monitor period: Ready again  -->  our taints off
//!                         not Ready    -->  one `Cloud::lookup` for all of them
//!                                             stopped --> shutdown taint (one write, and none while it is there)
//!                                             gone    --> `lifecycle::brake` --> read once more --> Event, delete, Event
//! ```
//!
//! Upstream deletes at the first "does not exist"; here it needs confirmation and passes a brake: see
//! [`lifecycle::brake`](crate::lifecycle::brake). Nodes that never got a provider id are looked for by name and rarely
//! ([`lifecycle::brake_by_name`](crate::lifecycle::brake_by_name)). Upstream makes two cloud calls per Node and period; here it is one call for up to
//! `lookup_limit` Nodes, and fewer while the cloud fails.

pub mod brake;
pub mod brake_by_name;
mod by_name;
pub mod deletion;
pub mod explain;
pub mod known;
pub(crate) mod plan;
pub mod taints;

use std::collections::HashSet;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudwit_model::{CloudError, EventKind, Evidence, Failure, NodeRef, Presence, ProviderIdentity, Retry};
use futures::future::ready;
use futures::{StreamExt, stream};
use tokio::time::{Instant, sleep};
use tracing::{Instrument as _, Span, debug, warn};

use crate::ambient;
use crate::context::Context;
use crate::kube::cache::Key;
use crate::kube::events::Recorder;
use crate::kube::node::Node;
use crate::kube::node::view::{node_ref, provider_id};
use crate::lifecycle::brake::{Absent, Guard, Proof, Rules, Seen, Verdict};
use crate::lifecycle::brake_by_name::GuardByName;
use crate::lifecycle::deletion::{Deleter, Gone};
use crate::lifecycle::explain::Watchfulness;
use crate::lifecycle::known::Known;
use crate::lifecycle::plan::{After, Before, Mark, after, before, is_announced, is_own, plan_taints};
use crate::lifecycle::taints::write_taints;
use crate::metrics::passes::Pass;
use crate::metrics::{Purpose, upstream_failure, upstream_result};
use crate::options::{Controller, NodeDeletion};
use crate::queue::span;
use crate::sync::lock;

/// While look-ups fail the pause doubles from the monitor period to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Prepares the loop of a provider, with a memory and a brake of its own: what one cloud says or fails to say never counts for the Nodes of
/// another. It has no queue: each pass looks at the cache.
pub fn prepare(context: Context) -> impl Future<Output = ()> + Send + 'static {
    let lifecycle = Lifecycle::new(&context);
    lifecycle.explain();
    lifecycle.stand();
    async move {
        let _running = context.metrics.running(Controller::CloudNodeLifecycle);
        lifecycle.run().await;
    }
}

pub(crate) struct Lifecycle {
    pub(crate) context: Context,
    /// What this loop has added to the gauge of candidates.
    candidates: i64,
    pub(crate) recorder: Recorder,
    pub(crate) guard: Guard,
    pub(crate) by_name: GuardByName,
    /// When Nodes without a provider id are looked for by their names again.
    pub(crate) next_by_name: Instant,
    /// Look-ups that failed in a row.
    failures: u32,
    pub(crate) next_lookup: Instant,
    known: Arc<Mutex<Known>>,
    /// The pass that is under way.
    pub(crate) step: Option<Pass>,
}

impl Lifecycle {
    fn new(context: &Context) -> Self {
        Self {
            recorder: context.events.recorder(Controller::CloudNodeLifecycle),
            guard: Guard::new(Rules::from(&context.options.lifecycle)),
            by_name: GuardByName::new(&context.options.lifecycle),
            next_by_name: Instant::now(),
            failures: 0,
            next_lookup: Instant::now(),
            known: Arc::default(),
            context: context.clone(),
            candidates: 0,
            step: None,
        }
    }

    async fn run(mut self) {
        let context = self.context.clone();
        let steps = context.metrics.passes();
        let passes = async {
            context.nodes.synced().await;
            loop {
                let start = Instant::now();
                self.step = Some(steps.begin());
                self.pass().await;
                self.step = None;
                context
                    .metrics
                    .monitor_nodes_duration
                    .observe(start.elapsed().as_secs_f64());
                sleep(context.options.lifecycle.monitor_period).await;
            }
        };
        tokio::select! {
            biased;
            () = context.shutdown.cancelled() => {}
            () = passes => {}
        }
    }

    /// Answers questions about Nodes.
    fn explain(&self) {
        let (known, context) = (self.known.clone(), self.context.clone());
        self.context
            .explain
            .about_nodes(Controller::CloudNodeLifecycle, move |node| {
                let provider = context.scope.identity();
                if !context.scope.owns_node()(node) {
                    return None;
                }
                let (known, now) = (lock(&known), Instant::now());
                let uid = node.metadata.uid.as_deref()?;
                let as_of_now = |seen: &Seen| match known.at {
                    Some(at) => seen.later(now - at),
                    None => seen.clone(),
                };
                if let Some(seen) = known.by_name.get(uid).map(as_of_now) {
                    let grace = context.options.lifecycle.by_name_after.unwrap_or_default();
                    return Some(explain::gone_by_name(&seen, grace));
                }
                let seen = known.seen.get(uid).map(as_of_now);
                let outage = known.failed.as_ref();
                let outage = outage.map(|(next, why)| (next.saturating_duration_since(now), why.clone()));
                let own = known.unanswered.about(node.metadata.name.as_deref()?, now);
                let own = own.map(|own| (context.options.lifecycle.monitor_period, own.reason.to_string()));
                let watchfulness = Watchfulness {
                    failed: outage.or(own),
                    brake: known.brake,
                    confirm_after: context.options.lifecycle.confirm_after,
                    then: context.options.lifecycle.node_deletion,
                };
                explain::lifecycle(node, &provider, seen.as_ref(), &watchfulness)
            });
    }

    /// Tells how the last pass went, which Nodes seem to be gone, and about which the cloud cannot say.
    fn stand(&self) {
        let (known, standing) = (self.known.clone(), &self.context.standing);
        standing.progress_of(Controller::CloudNodeLifecycle, move || {
            lock(&known).progress(Instant::now())
        });
        let known = self.known.clone();
        standing.unfinished_of(Controller::CloudNodeLifecycle, move || {
            lock(&known).unanswered_nodes(Instant::now())
        });
        let (known, context) = (self.known.clone(), self.context.clone());
        standing.deletions_of(move || {
            let provider = context.scope.identity();
            let own = context.scope.owns_node();
            let mut nodes = context.nodes.all();
            nodes.retain(|node| is_own(node, &provider) && own(node));
            drop(own);
            lock(&known).deletions(&provider.name, &nodes, &context.options.lifecycle, Instant::now())
        });
    }

    async fn pass(&mut self) {
        let provider = &self.context.scope.identity();
        self.guard.answers_from(&provider.digest);
        self.by_name.answers_from(&provider.digest);
        let mut nodes = self.context.nodes.all();
        let own = self.context.scope.owns_node();
        nodes.retain(|node| own(node));
        drop(own);
        let (mut recovered, mut asked) = (Vec::new(), Vec::new());
        for node in &nodes {
            match before(node, provider) {
                Before::Leave => {}
                Before::Recovered => recovered.push((node.clone(), Mark::None)),
                Before::Ask => asked.push(node.clone()),
            }
        }
        self.guard.keep_only(
            &asked
                .iter()
                .filter_map(|node| node.metadata.uid.as_deref())
                .collect::<HashSet<_>>(),
        );
        lock(&self.known).unanswered.keep_only(
            &asked
                .iter()
                .filter_map(|node| node.metadata.name.as_deref())
                .collect::<HashSet<_>>(),
        );
        asked.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        let total = nodes.iter().filter(|node| is_own(node, provider)).count();
        if !(asked.is_empty() && recovered.is_empty()) {
            let span = span::on_many(Controller::CloudNodeLifecycle, asked.len() + recovered.len());
            let work = async {
                self.mark(recovered).await;
                self.look_after(&asked, total, provider).await
            };
            let answered = work.instrument(span.clone()).await;
            span::ended(&span, answered);
        }
        let several = self.context.scope.are_several();
        self.check_by_name(&nodes, total, provider, several).await;
        let mut known = lock(&self.known);
        known.seen = self.guard.all(Instant::now());
        known.by_name = self.by_name.all(Instant::now());
        known.at = Some(Instant::now());
        known.brake = self.guard.brake();
        known.braked = known.brake.and(known.braked.or(known.at));
        known.deleted = self.guard.deleted_lately(Instant::now());
        if known.failed.is_none() {
            known.answered = known.at;
        }
        drop(known);
        let candidates = self.guard.candidates() as i64;
        let before = std::mem::replace(&mut self.candidates, candidates);
        self.context.metrics.deletion_candidates.inc_by(candidates - before);
    }

    /// Asks about the Nodes unless it is too early, and removes those that are gone; false when the cloud did not answer.
    async fn look_after(&mut self, asked: &[Arc<Node>], total: usize, provider: &ProviderIdentity) -> bool {
        if Instant::now() < self.next_lookup {
            return true;
        }
        let Some(gone) = self.ask(asked, provider).await else {
            return false;
        };
        self.remove(gone, total, provider).await;
        true
    }

    /// Asks the cloud about the Nodes, marks those that are stopped, and answers those that are gone for certain.
    /// None when the cloud did not answer about all: an incomplete picture deletes nothing.
    async fn ask(&mut self, nodes: &[Arc<Node>], provider: &ProviderIdentity) -> Option<Vec<Gone>> {
        let (mut gone, mut marks, mut complete) = (Vec::new(), Vec::new(), true);
        for page in nodes.chunks(self.context.cloud.lookup_limit().max(1)) {
            let answered = self.ask_page(page, provider, &mut marks, &mut gone).await;
            if self.was_swapped(provider) {
                complete = false;
                break;
            }
            let Err((unanswered, error)) = answered else {
                continue;
            };
            self.lookup_failed(&unanswered, &error, provider);
            complete = false;
            break;
        }
        self.mark(marks).await;
        complete.then_some(gone)
    }

    /// Asks about some Nodes and judges the answers. One on which the provider faults is a failure of that Node alone; the error has the Nodes
    /// about which there was no answer for another reason.
    async fn ask_page(
        &mut self,
        page: &[Arc<Node>],
        provider: &ProviderIdentity,
        marks: &mut Vec<(Arc<Node>, Mark)>,
        gone: &mut Vec<Gone>,
    ) -> Result<(), (Vec<Arc<Node>>, CloudError)> {
        let refs: Vec<NodeRef> = page.iter().map(|node| node_ref(node)).collect();
        let lookups = self.context.lookups.clone();
        let mut parts = pin!(lookups.about(Purpose::Lifecycle, refs, Span::current()));
        let mut unanswered = Ok(());
        while let Some(part) = parts.next().await {
            self.goes_on();
            let one_fault = part.is_one_fault();
            let nodes = part.at.iter().map(|at| &page[*at]);
            match part.answer {
                // Nobody knows which of the two it is from.
                Ok(_) if self.was_swapped(provider) => {}
                Ok(answers) => {
                    self.cloud_answered();
                    for (node, answer) in nodes.zip(answers) {
                        match self.judge(node, answer, provider) {
                            Some(Fate::Mark(mark)) => marks.push((node.clone(), mark)),
                            Some(Fate::Gone(proof)) => gone.push(Gone {
                                node: node.clone(),
                                proof,
                                evidence: Evidence::ById,
                            }),
                            None => {}
                        }
                    }
                }
                Err(error) if one_fault => nodes.for_each(|node| {
                    self.context
                        .metrics
                        .lifecycle_call("instance_exists", upstream_result(&error));
                    self.tell_unanswered(node, &error.to_string(), provider);
                }),
                Err(error) => {
                    let before = unanswered.err().map_or_else(Vec::new, |(nodes, _)| nodes);
                    unanswered = Err((before.into_iter().chain(nodes.cloned()).collect(), error));
                }
            }
        }
        unanswered
    }

    /// Whether the provider is another one than this, which the pass began with. An answer that came meanwhile confirms nothing that the one
    /// before has said: all of that is forgotten.
    pub(crate) fn was_swapped(&mut self, provider: &ProviderIdentity) -> bool {
        let digest = self.context.cloud.identity().digest;
        self.guard.answers_from(&digest);
        self.by_name.answers_from(&digest);
        digest != provider.digest
    }

    pub(crate) fn cloud_answered(&mut self) {
        self.failures = 0;
        lock(&self.known).failed = None;
    }

    /// No answer resets nothing and deletes nothing. When only a person can help, those who look at the Nodes are told.
    pub(crate) fn lookup_failed(&mut self, nodes: &[Arc<Node>], error: &CloudError, provider: &ProviderIdentity) {
        self.by_name.restart_all();
        let count = nodes.len();
        warn!(nodes = count, %error, "could not ask about Nodes that are not Ready; nothing changes for them");
        if error.retry() == Retry::Slowly {
            let reason = error.to_string();
            nodes
                .iter()
                .for_each(|node| self.tell_unanswered(node, &reason, provider));
        }
        for _ in nodes {
            self.context
                .metrics
                .lifecycle_call("instance_exists", upstream_result(error));
        }
        self.failures = self.failures.saturating_add(1);
        let period = self.context.options.lifecycle.monitor_period;
        let pause = match error.retry() {
            Retry::After(pause) => pause,
            _ => period
                .saturating_mul(2u32.saturating_pow(self.failures.min(10)))
                .min(LONGEST_PAUSE.max(period)),
        };
        self.next_lookup = Instant::now() + pause;
        lock(&self.known).failed = Some((self.next_lookup, error.to_string()));
    }

    fn judge(&mut self, node: &Node, answer: Result<Presence, Failure>, provider: &ProviderIdentity) -> Option<Fate> {
        let metrics = &self.context.metrics;
        let (name, uid) = (node.metadata.name.as_deref()?, node.metadata.uid.as_deref()?);
        let presence = match answer {
            Ok(presence) => presence,
            Err(failure) => {
                metrics.lifecycle_call("instance_exists", upstream_failure(&failure));
                warn!(node = name, %failure, "could not learn whether its machine exists; nothing changes");
                self.tell_unanswered(node, &failure.to_string(), provider);
                return None;
            }
        };
        lock(&self.known).unanswered.done(name);
        match after(node, &presence, provider) {
            After::Running | After::Stopped => {
                metrics.lifecycle_call("instance_exists", "success");
                metrics.lifecycle_call("instance_shutdown", "success");
                self.guard.alive(uid);
                let stopped = matches!(presence, Presence::Stopped(_));
                Some(Fate::Mark(if stopped { Mark::Shutdown } else { Mark::NotAbsent }))
            }
            After::Unclear => {
                metrics.lifecycle_call("instance_exists", "instance_not_found");
                self.guard.alive(uid);
                debug!(
                    node = name,
                    "its machine was not found, but not asked for by its id either; nothing changes"
                );
                None
            }
            After::Gone => {
                metrics.lifecycle_call("instance_exists", "instance_not_found");
                self.judge_absent(node, uid)
            }
        }
    }

    /// Whatever the failure is called, it is no evidence. Who waits for the Node to be cleaned up has to learn why it is not.
    fn tell_unanswered(&self, node: &Node, reason: &str, provider: &ProviderIdentity) {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let due = lock(&self.known)
            .unanswered
            .failed(&Key::from(name), reason, Instant::now());
        if due {
            let provider = &provider.name;
            let message = format!(
                "Cloud provider {provider:?} cannot say whether the machine of this Node exists, so the Node stays: {reason}"
            );
            self.recorder
                .node(node, EventKind::Warning, "MachineLookupFailed", message);
        }
    }

    fn judge_absent(&mut self, node: &Node, uid: &str) -> Option<Fate> {
        let id = provider_id(node)?;
        let age = age(node)?;
        let absent = Absent {
            uid,
            provider_id: id.as_str(),
            age,
            announced: is_announced(node),
        };
        match self.guard.absent(absent, Instant::now()) {
            Verdict::Certain(proof) => Some(Fate::Gone(proof)),
            Verdict::First(after) => {
                let follows = self.what_follows(after);
                let message = format!("The cloud says that the machine {id} of this Node does not exist; {follows}");
                warn!(node = node.metadata.name, provider_id = %id, "the cloud says that its machine does not exist");
                self.recorder.node(node, EventKind::Warning, "MachineNotFound", message);
                None
            }
            Verdict::Young | Verdict::Again => None,
        }
    }

    fn what_follows(&self, after: Duration) -> String {
        let then = match self.context.options.lifecycle.node_deletion {
            NodeDeletion::Off => return "deletion is switched off, so nothing will follow".into(),
            NodeDeletion::Taint => "tainted",
            NodeDeletion::Delete => "deleted",
        };
        format!(
            "the Node will be {then} if it says so again after {} s",
            after.as_secs()
        )
    }

    /// Deletes, or taints, the Nodes that are gone, as far as the brake lets them.
    async fn remove(&mut self, gone: Vec<Gone>, total: usize, provider: &ProviderIdentity) {
        match self.context.options.lifecycle.node_deletion {
            NodeDeletion::Off => {}
            // Tainting keeps Pods away and can be taken back, so the brake does not hold it.
            NodeDeletion::Taint => {
                self.mark(gone.into_iter().map(|gone| (gone.node, Mark::Absent)).collect())
                    .await
            }
            NodeDeletion::Delete => {
                self.deleter(provider).delete_all(gone, total).await;
            }
        }
    }

    pub(crate) fn deleter<'a>(&'a mut self, provider: &'a ProviderIdentity) -> Deleter<'a> {
        Deleter {
            context: &self.context,
            recorder: &self.recorder,
            guard: &mut self.guard,
            by_name: &mut self.by_name,
            provider,
            step: self.step.as_ref(),
        }
    }

    /// The pass took a step, each of which has limits of its own.
    pub(crate) fn goes_on(&self) {
        self.step.iter().for_each(Pass::goes_on);
    }

    /// Writes the taints that are not right yet.
    async fn mark(&self, nodes: Vec<(Arc<Node>, Mark)>) {
        let Context {
            apply,
            nodes: cache,
            options,
            ..
        } = &self.context;
        stream::iter(nodes)
            .filter(|(node, mark)| ready(plan_taints(node, *mark).is_some()))
            .for_each_concurrent(options.lifecycle.concurrent_syncs, async |(node, mark)| {
                let name = node.metadata.name.as_deref().unwrap_or_default();
                let span = span::part_on_object(Controller::CloudNodeLifecycle, name);
                let written = write_taints(apply, cache, &node, |node| plan_taints(node, mark));
                let written = written.instrument(span.clone()).await;
                self.goes_on();
                span::ended(&span, written.is_ok());
                if let Err(error) = written {
                    let _in = span.entered();
                    warn!(node = name, %error, ?mark, "could not write taints; tried again in the next period");
                }
            })
            .await;
    }
}

/// Time since the Node's creation.
pub(crate) fn age(node: &Node) -> Option<Duration> {
    let created = node.metadata.creation_timestamp.as_ref()?.0;
    Some(Duration::try_from(ambient::now().duration_since(created)).unwrap_or_default())
}

/// What follows from an answer.
enum Fate {
    Mark(Mark),
    Gone(Proof),
}

#[cfg(test)]
mod tests;
