//! Node lifecycle controller: taints stopped Nodes, deletes those whose machine is missing.
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
pub mod last_run;
mod lookup;
pub(crate) mod plan;
mod report;
pub mod taints;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudwit_model::ProviderIdentity;
use futures::future::ready;
use futures::{StreamExt, stream};
use tokio::time::{Instant, sleep};
use tracing::{Instrument as _, warn};

use crate::ambient;
use crate::context::Context;
use crate::kube::events::Recorder;
use crate::kube::node::Node;
use crate::lifecycle::brake::{Guard, Rules};
use crate::lifecycle::brake_by_name::GuardByName;
use crate::lifecycle::deletion::Deleter;
use crate::lifecycle::last_run::LastRun;
use crate::lifecycle::plan::{Before, Mark, before, is_own, plan_taints};
use crate::lifecycle::report::LifecycleReport;
use crate::lifecycle::taints::write_taints;
use crate::options::Controller;
use crate::queue::span;
use crate::report::reconcile_clock::{ReconcileClock, ReconcileRun};
use crate::sync::lock;

/// Runs the controller of one provider, with a memory and a brake of its own: what one cloud says or fails to say never counts for the Nodes
/// of another. It has no queue: each pass reads the cache.
pub fn run(context: Context) -> impl Future<Output = ()> + Send + 'static {
    let lifecycle = Lifecycle::new(&context);
    context.reports.add(lifecycle.report());
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
    known: Arc<Mutex<LastRun>>,
    clock: ReconcileClock,
    /// The pass in progress.
    pub(crate) pass: Option<ReconcileRun>,
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
            clock: ReconcileClock::default(),
            pass: None,
        }
    }

    async fn run(mut self) {
        let context = self.context.clone();
        let passes = async {
            context.nodes.synced().await;
            loop {
                let start = Instant::now();
                self.pass = Some(self.clock.begin());
                self.reconcile().await;
                self.pass = None;
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

    fn report(&self) -> Arc<LifecycleReport> {
        Arc::new(LifecycleReport {
            scope: self.context.scope.clone(),
            nodes: self.context.nodes.clone(),
            options: self.context.options.clone(),
            known: self.known.clone(),
            clock: self.clock.clone(),
        })
    }

    /// The provider's Nodes.
    fn own_nodes(&self) -> Vec<Arc<Node>> {
        let owns = self.context.scope.owns_node();
        self.context.nodes.matching(|node| owns(node))
    }

    /// One run over all Nodes.
    async fn reconcile(&mut self) {
        let provider = &self.context.scope.identity();
        self.guard.set_digest(&provider.digest);
        self.by_name.set_digest(&provider.digest);
        let nodes = self.own_nodes();
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
                self.look_up_and_remove(&asked, total, provider).await
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

    pub(crate) fn deleter<'a>(&'a mut self, provider: &'a ProviderIdentity) -> Deleter<'a> {
        Deleter {
            context: &self.context,
            recorder: &self.recorder,
            guard: &mut self.guard,
            by_name: &mut self.by_name,
            provider,
            pass: self.pass.as_ref(),
        }
    }

    /// The pass took a step, each of which has limits of its own.
    pub(crate) fn heartbeat(&self) {
        self.pass.iter().for_each(ReconcileRun::heartbeat);
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
                self.heartbeat();
                span::ended(&span, written.is_ok());
                if let Err(error) = written {
                    let _in = span.entered();
                    warn!(node = name, %error, ?mark, "failed to write taints; retrying in next period");
                }
            })
            .await;
    }
}

/// Time since the Node's creation.
pub(crate) fn age(node: &Node) -> Option<Duration> {
    node.metadata.creation_timestamp.as_ref().map(ambient::since)
}

#[cfg(test)]
mod tests;
