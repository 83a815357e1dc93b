//! Routes to the Pod ranges of Nodes: one list, one batch of changes, conditions on the Nodes.
//!
//! ```text
//!   Node events --1 s--> "node_change" --\
//!   every period ------> "periodic" ------> list routes -> node_route_plan -> apply_routes -> failed ones wait in RouteRetries
//!   a failed change ---> "retry" ---------> apply_routes for these alone                   -> conditions on Nodes
//! ```
//!
//! Upstream lists all routes every 10 s for ever, or, behind a gate, does not look again after a failure (weak spots R1, R2). Here
//! Node changes are answered at once, failed changes are tried again alone, and the periodic look slows down to
//! [`QUIET_PERIOD`] while it finds nothing to do. Conditions are compared every period, which costs no call.

mod apply;
pub mod condition;
pub mod explain;
pub mod plan;
pub mod retries;
pub mod troubles;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudwit_model::{EventKind, Retry};
use futures::StreamExt;
use ipnet::IpNet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::Patch;
use tokio::time::Instant;
use tracing::{Instrument as _, warn};

use crate::ambient;
use crate::context::Context;
use crate::kube::cache::Change;
use crate::kube::events::Recorder;
use crate::kube::node::Node;
use crate::kube::writer::{Part, Target, WriteError};
use crate::metrics::route::{PassOutcome, Trigger};
use crate::options::{Controller, RouteOptions};
use crate::queue::{Backoff, Outcome, Queue};
use crate::report::standing::Progress;
use crate::route::apply::Applied;
use crate::route::condition::{condition_patch, has_routes};
use crate::route::plan::{RouteChange, RoutePlan, concerns_routes, plan, waits};
use crate::route::retries::{RouteRetries, retry_pause};
use crate::route::troubles::RouteTroubles;
use crate::scope::Scope;
use crate::sync::lock;

/// After the first change of a Node the loop waits this long for others.
const NODE_WINDOW: Duration = Duration::from_secs(1);

/// Passes because of Node changes are at least this far apart, so that Nodes which join one after the other share them.
const SPACING: Duration = Duration::from_secs(5);

/// The periodic look is never rarer than this (unless `--route-reconciliation-period` is longer).
pub const QUIET_PERIOD: Duration = Duration::from_secs(300);

/// Conditions that are written at the same time.
const CONDITION_WRITES: usize = 16;

/// Lists in a row that failed before Nodes are told.
const FAILURES_TO_TELL: u32 = 3;

/// So many of the routes that are left out are named in the log.
const IGNORED_IN_LOG: usize = 10;

/// Why the controller cannot run with these options; none when it can. Upstream ends the process for a missing `--cluster-cidr`,
/// although routes are on by default (weak spot R8).
pub fn not_started_because(options: &RouteOptions) -> Option<String> {
    if !options.configure {
        return Some("--configure-cloud-routes is false".into());
    }
    let families: HashSet<bool> = options
        .cluster_cidrs
        .iter()
        .map(|range| range.addr().is_ipv4())
        .collect();
    let ranges: Vec<String> = options.cluster_cidrs.iter().map(ToString::to_string).collect();
    match (options.cluster_cidrs.len(), families.len()) {
        (0, _) => Some(
            "--cluster-cidr is not set: give the range of all Pods to have routes, or --configure-cloud-routes=false to \
             silence this"
                .into(),
        ),
        (count, families) if count > families => Some(format!(
            "--cluster-cidr={} has more than one range of a family; give at most one for IPv4 and one for IPv6",
            ranges.join(",")
        )),
        _ => None,
    }
}

/// Takes the Nodes of other providers, and of none, out of the plan.
fn leave_to_others(plan: &mut RoutePlan, nodes: &[Arc<Node>], scope: &Scope) {
    if scope.are_several() {
        let owns = scope.owns_node();
        let own = nodes.iter().filter(|node| owns(node));
        let names: BTreeSet<&str> = own.filter_map(|node| node.metadata.name.as_deref()).collect();
        plan.leave_to_others(&names);
    }
}

/// Prepares the loop. It works when it is polled.
pub async fn prepare(context: Context) {
    let _running = context.metrics.running(Controller::NodeRoute);
    context.nodes.synced().await;
    let queue = Queue::new(Backoff::SERVICE, context.metrics.queue("Routes"));
    // Only now: the first pass sees all Nodes of the first list anyway.
    listen(&context, queue.clone());
    queue.add(Trigger::Periodic.label());
    let mut routes = NodeRoute::new(context, queue.clone());
    routes.explain();
    routes.stand();
    while let Some(mut taken) = queue.take().await {
        let span = taken.begin(Controller::NodeRoute);
        let outcome = routes.work_on(taken.key()).instrument(span).await;
        taken.finish(outcome);
    }
}

fn listen(context: &Context, queue: Queue) {
    context.nodes.listen(move |_, change| {
        let matters = match change {
            Change::Added(_) | Change::Deleted(_) => true,
            Change::Updated { old, new } => concerns_routes(old, new),
        };
        if matters {
            queue.after(Trigger::NodeChange.label(), NODE_WINDOW);
        }
    });
}

/// The loop's state. What may be lost: everything.
pub(crate) struct NodeRoute {
    pub(crate) context: Context,
    pub(crate) events: Recorder,
    queue: Queue,
    pub(crate) retries: RouteRetries,
    /// The last plan, for the question which Nodes have all their routes.
    plan: RoutePlan,
    /// What is wrong, for those who ask.
    troubles: Arc<Mutex<RouteTroubles>>,
    /// Refusals that Events were sent for: node, range, reason.
    told: BTreeSet<(String, String, String)>,
    /// Routes that a log line says are left out.
    ignored: BTreeSet<String>,
    /// Nodes that an Event has told that the routes cannot be listed.
    told_unlisted: BTreeSet<String>,
    /// Lists in a row that failed.
    list_failures: u32,
    /// Periodic looks in a row that found nothing to do.
    quiet: u32,
    next_list: Instant,
    /// Node changes wait until then: passes keep their distance, and a cloud that asked for a pause gets it.
    earliest_pass: Instant,
}

impl NodeRoute {
    fn new(context: Context, queue: Queue) -> Self {
        Self {
            events: context.events.recorder(Controller::NodeRoute),
            context,
            queue,
            retries: RouteRetries::default(),
            plan: RoutePlan::default(),
            troubles: Arc::default(),
            told: BTreeSet::new(),
            ignored: BTreeSet::new(),
            told_unlisted: BTreeSet::new(),
            list_failures: 0,
            quiet: 0,
            next_list: Instant::now(),
            earliest_pass: Instant::now(),
        }
    }

    /// Answers questions about Nodes.
    fn explain(&self) {
        let (troubles, scope) = (self.troubles.clone(), self.context.scope.clone());
        self.context.explain.about_nodes(Controller::NodeRoute, move |node| {
            if scope.are_several() && !scope.owns_node()(node) {
                return None;
            }
            let known = lock(&troubles).of(node.metadata.name.as_deref()?, Instant::now());
            Some(explain::routes(node, &known))
        });
    }

    async fn work_on(&mut self, key: &str) -> Outcome {
        match key {
            "node_change" => self.nodes_changed().await,
            "retry" => self.retry().await,
            _ => self.tick().await,
        }
    }

    /// Tells how much is left to do, and for which Nodes. The queue's own triggers are always there and say nothing.
    fn stand(&self) {
        let (troubles, queue) = (self.troubles.clone(), self.queue.clone());
        let standing = &self.context.standing;
        standing.progress_of(Controller::NodeRoute, move || Progress {
            ready: queue.progress().ready,
            in_work: queue.progress().in_work,
            ..lock(&troubles).progress(Instant::now())
        });
        let troubles = self.troubles.clone();
        standing.unfinished_of(Controller::NodeRoute, move || lock(&troubles).nodes());
    }

    fn period(&self) -> Duration {
        self.context.options.route.reconciliation_period
    }

    /// Every period: conditions always, the routes themselves when it is time.
    async fn tick(&mut self) -> Outcome {
        if Instant::now() >= self.next_list {
            // A failed list has set its own pause.
            let _ = self.pass(Trigger::Periodic).await;
        } else {
            self.write_conditions().await;
        }
        Outcome::Retry(Retry::After(self.period()))
    }

    async fn nodes_changed(&mut self) -> Outcome {
        let pause = self.earliest_pass.saturating_duration_since(Instant::now());
        if !pause.is_zero() {
            return Outcome::Retry(Retry::After(pause));
        }
        match self.pass(Trigger::NodeChange).await {
            Ok(()) => Outcome::Done,
            Err(pause) => Outcome::Retry(Retry::After(pause)),
        }
    }

    /// Compares everything and changes what differs. The error says when to try to list again.
    async fn pass(&mut self, trigger: Trigger) -> Result<(), Duration> {
        self.earliest_pass = Instant::now() + SPACING;
        let routes = match self.context.cloud.list_routes().await {
            Ok(routes) => routes,
            Err(error) => {
                warn!(%error, "the routes could not be listed");
                self.context.metrics.route.passed(PassOutcome::Error, trigger);
                let pause = self.list_failed(error.retry());
                self.earliest_pass = self.earliest_pass.max(self.next_list);
                let scope = &self.context.scope;
                let why = match scope.are_several() {
                    true => format!("provider {:?}: {error}", scope.provider().name),
                    false => error.to_string(),
                };
                let own = {
                    let owns = scope.owns_node();
                    self.context.nodes.matching(|node| !scope.are_several() || owns(node))
                };
                self.tell_unlisted(own, &why);
                lock(&self.troubles).list_failed(why, self.next_list);
                return Err(pause);
            }
        };
        let nodes = self.context.nodes.all();
        let mut plan = plan(
            &self.context.options.route.cluster_cidrs,
            nodes.iter().map(|node| &**node),
            &routes,
        );
        leave_to_others(&mut plan, &nodes, &self.context.scope);
        self.slow_down(trigger, plan.changes.is_empty());
        let changes = self.retries.admit(&plan.changes, Instant::now());
        self.plan = plan;
        self.tell_ignored();
        self.tell_refusals();
        let applied = self.apply(&changes).await;
        lock(&self.troubles).note(&self.plan, &self.retries);
        self.list_failures = 0;
        self.told_unlisted.clear();
        self.finish_pass(trigger, &applied).await;
        Ok(())
    }

    /// The next list comes after the pause that it answers, longer with each failure in a row.
    fn list_failed(&mut self, retry: Retry) -> Duration {
        self.list_failures = self.list_failures.saturating_add(1);
        self.quiet = 0;
        let pause = retry_pause(retry, self.list_failures).max(self.period());
        self.next_list = Instant::now() + pause;
        pause
    }

    /// Says on the Nodes that wait for a route why they get none. An outage that passes by itself is not told, nor is it told on Nodes that have
    /// their routes.
    fn tell_unlisted(&mut self, nodes: Vec<Arc<Node>>, why: &str) {
        if self.list_failures < FAILURES_TO_TELL {
            return;
        }
        let lacks = |node: &&Arc<Node>| {
            let ranges = node.spec.as_ref().and_then(|spec| spec.pod_cidrs.as_ref());
            ranges.is_some_and(|ranges| !ranges.is_empty()) && !waits(node) && !has_routes(node)
        };
        for node in nodes.iter().filter(lacks) {
            if self
                .told_unlisted
                .insert(node.metadata.name.clone().unwrap_or_default())
            {
                let message = format!("The routes of the cloud cannot be listed, so this Node gets none: {why}");
                self.events.node(node, EventKind::Warning, "RouteListFailed", message);
            }
        }
    }

    /// Logs the routes that were left out, when they are others than before.
    fn tell_ignored(&mut self) {
        let more = self.plan.ignored.len() as i64 - self.ignored.len() as i64;
        self.context.metrics.route.ignored.inc_by(more);
        if self.plan.ignored == self.ignored {
            return;
        }
        self.ignored.clone_from(&self.plan.ignored);
        if !self.ignored.is_empty() {
            let some: Vec<&str> = self.ignored.iter().take(IGNORED_IN_LOG).map(String::as_str).collect();
            warn!(
                routes = self.ignored.len(),
                "listed routes whose destination is no CIDR are left out: {}",
                some.join(", ")
            );
        }
    }

    /// Tries the failed changes again whose time has come, and no others.
    async fn retry(&mut self) -> Outcome {
        // What is due stays due, since nothing is applied: without a pause this would never end.
        if !self.context.apply.is_leading() {
            return Outcome::Retry(Retry::After(self.period()));
        }
        let nodes = self.context.nodes.clone();
        let still_wanted = |change: &RouteChange| still_wanted(change, |name| nodes.get(name));
        let changes = self.retries.due(Instant::now(), still_wanted);
        if !changes.is_empty() {
            let applied = self.apply(&changes).await;
            lock(&self.troubles).note_retries(&self.retries);
            self.finish_pass(Trigger::Retry, &applied).await;
        } else {
            lock(&self.troubles).note_retries(&self.retries);
            self.wake_for_retries();
        }
        Outcome::Done
    }

    async fn finish_pass(&mut self, trigger: Trigger, applied: &Applied) {
        let outcome = match applied {
            Applied { failed: true, .. } => PassOutcome::Error,
            Applied { changed: true, .. } => PassOutcome::Changed,
            Applied { .. } => PassOutcome::Noop,
        };
        self.context.metrics.route.passed(outcome, trigger);
        self.wake_for_retries();
        self.write_conditions().await;
    }

    fn wake_for_retries(&self) {
        if let Some(due) = self.retries.next() {
            self.queue
                .after(Trigger::Retry.label(), due.saturating_duration_since(Instant::now()));
        }
    }

    /// Twice as long after every periodic look that finds nothing to do, back to the period when one does.
    fn slow_down(&mut self, trigger: Trigger, nothing_to_do: bool) {
        if !nothing_to_do {
            self.quiet = 0;
        } else if trigger == Trigger::Periodic {
            self.quiet = self.quiet.saturating_add(1);
        }
        let period = self.period();
        self.next_list = Instant::now() + list_pause(period, self.quiet);
    }

    fn tell_refusals(&mut self) {
        let refusals = &self.plan.refused;
        let current: HashSet<(&str, &str)> = refusals
            .iter()
            .map(|refusal| (refusal.node.as_str(), refusal.range.as_str()))
            .collect();
        self.told
            .retain(|(node, range, _)| current.contains(&(node.as_str(), range.as_str())));
        for refusal in refusals {
            if self
                .told
                .insert((refusal.node.clone(), refusal.range.clone(), refusal.reason.clone()))
            {
                warn!(
                    node = refusal.node,
                    range = refusal.range,
                    reason = refusal.reason,
                    "no route for this Pod range"
                );
                if let Some(node) = self.context.nodes.get(&refusal.node) {
                    let message = format!(
                        "Could not create route {} {} for node {}: {}",
                        refusal.uid, refusal.range, refusal.node, refusal.reason
                    );
                    self.events
                        .node(&node, EventKind::Warning, "FailedToCreateRoute", message);
                }
            }
        }
    }

    /// Brings the condition of every concerned Node up to date, many at a time. Failures are seen again at the next tick.
    async fn write_conditions(&self) {
        let now = Time(ambient::now());
        let created: BTreeMap<String, bool> = self.plan.routes_created(&self.retries.missing());
        let due = created.into_iter().filter_map(|(name, created)| {
            let node = self.context.nodes.get(&name).filter(|node| !waits(node))?;
            Some((name, condition_patch(&node, created, &now)?))
        });
        let writes = due.map(|(name, patch)| async move {
            let target = Target::node(&name);
            let patch = Patch::Strategic(patch);
            let written =
                self.context
                    .apply
                    .patch::<Node>(target, Part::Status, &patch, "say whether the Node has its routes");
            match written.await {
                Ok(Some(node)) => self.context.nodes.observe(node),
                Ok(None) | Err(WriteError::NotFound | WriteError::NotLeading) => {}
                Err(error) => warn!(node = name, %error, "the condition NetworkUnavailable could not be written"),
            }
        });
        futures::stream::iter(writes)
            .buffer_unordered(CONDITION_WRITES)
            .collect::<()>()
            .await;
    }
}

/// Pause until the next periodic list after so many in a row that found nothing to do.
fn list_pause(period: Duration, quiet: u32) -> Duration {
    let slower = period.saturating_mul(2u32.saturating_pow(quiet.min(16)));
    slower.min(QUIET_PERIOD.max(period))
}

/// Whether Nodes have not changed such that a failed change would now do harm. What is wanted instead comes with the next pass.
fn still_wanted(change: &RouteChange, node: impl Fn(&str) -> Option<Arc<Node>>) -> bool {
    let has_range = |node: &Node| {
        let ranges = node
            .spec
            .as_ref()
            .and_then(|spec| spec.pod_cidrs.as_deref())
            .unwrap_or_default();
        ranges.iter().any(|range| {
            range
                .parse::<IpNet>()
                .is_ok_and(|range| range.trunc() == change.network)
        })
    };
    match &change.create {
        Some(route) => node(&route.node.name).is_some_and(|node| {
            node.metadata.uid.as_deref() == Some(&route.name_hint) && has_range(&node) && !waits(&node)
        }),
        None => change.delete.iter().all(|route| {
            let owner = route.node.as_deref().filter(|_| !route.blackhole).and_then(&node);
            owner.is_none_or(|owner| !has_range(&owner))
        }),
    }
}

#[cfg(test)]
mod tests;
