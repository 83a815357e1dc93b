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
mod condition_writes;
pub mod explain;
mod notices;
pub mod plan;
mod report;
pub mod retries;
pub mod troubles;

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudwit_model::Retry;
use tokio::time::Instant;
use tracing::{Instrument as _, warn};

use crate::context::Context;
use crate::kube::cache::Change;
use crate::kube::node::Node;
use crate::metrics::route::{PassOutcome, Trigger};
use crate::options::{Controller, RouteOptions};
use crate::queue::{Backoff, Outcome, Queue};
use crate::report::cause::Cause;
use crate::route::apply::Applied;
use crate::route::condition_writes::write_conditions;
use crate::route::notices::Notices;
use crate::route::plan::{RouteChange, RoutePlan, concerns_routes, plan};
use crate::route::report::RouteReport;
use crate::route::retries::{RouteRetries, still_wanted};
use crate::route::troubles::RouteTroubles;
use crate::scope::Scope;
use crate::sync::lock;

/// After the first change of a Node the loop waits this long for others.
const NODE_WINDOW: Duration = Duration::from_secs(1);

/// Passes because of Node changes are at least this far apart, so that Nodes which join one after the other share them.
const SPACING: Duration = Duration::from_secs(5);

/// The periodic look is never rarer than this (unless `--route-reconciliation-period` is longer).
pub const QUIET_PERIOD: Duration = Duration::from_secs(300);

/// Consecutive failed lists before Nodes get an Event.
const FAILURES_BEFORE_EVENT: u32 = 3;

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

/// Runs the controller. It works when it is polled.
pub async fn run(context: Context) {
    let _running = context.metrics.running(Controller::NodeRoute);
    context.nodes.synced().await;
    let queue = Queue::new(
        Backoff::SERVICE.at_most(context.options.max_retry_pause),
        context.metrics.queue("Routes"),
    );
    // Only now: the first pass sees all Nodes of the first list anyway.
    listen(&context, queue.clone());
    queue.add(Trigger::Periodic.label());
    let mut routes = NodeRoute::new(context, queue.clone());
    routes.context.reports.add(routes.report());
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
    queue: Queue,
    pub(crate) retries: RouteRetries,
    /// Of lists that failed.
    backoff: Backoff,
    /// The last plan, for the question which Nodes have all their routes.
    plan: RoutePlan,
    /// Current troubles, for reports.
    troubles: Arc<Mutex<RouteTroubles>>,
    notices: Notices,
    /// Lists in a row that failed.
    list_failures: u32,
    /// Periodic looks in a row that found nothing to do.
    quiet: u32,
    next_list: Instant,
    /// Node changes wait until then: passes keep their distance, and a pause set by the cloud is kept.
    earliest_pass: Instant,
}

impl NodeRoute {
    fn new(context: Context, queue: Queue) -> Self {
        let backoff = Backoff::ROUTE.at_most(context.options.max_retry_pause);
        Self {
            notices: Notices::new(&context),
            context,
            queue,
            retries: RouteRetries::new(backoff),
            backoff,
            plan: RoutePlan::default(),
            troubles: Arc::default(),
            list_failures: 0,
            quiet: 0,
            next_list: Instant::now(),
            earliest_pass: Instant::now(),
        }
    }

    fn report(&self) -> Arc<RouteReport> {
        Arc::new(RouteReport {
            scope: self.context.scope.clone(),
            queue: self.queue.clone(),
            troubles: self.troubles.clone(),
        })
    }

    async fn work_on(&mut self, key: &str) -> Outcome {
        match key {
            "node_change" => self.nodes_changed().await,
            "retry" => self.retry().await,
            _ => self.tick().await,
        }
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
            write_conditions(&self.context, self.plan.routes_created(&self.retries.missing())).await;
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
                warn!(%error, "failed to list routes");
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
                if self.list_failures >= FAILURES_BEFORE_EVENT {
                    self.notices.unlisted(&own, &why);
                }
                let cause = Cause::new(Cause::from(&error).kind, why);
                lock(&self.troubles).list_failed(cause, self.next_list);
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
        self.notices.ignored(&self.plan.ignored);
        self.notices.refused(&self.plan.refused);
        let applied = self.apply(&changes).await;
        lock(&self.troubles).note(&self.plan, &self.retries);
        self.list_failures = 0;
        self.notices.listed();
        self.finish_pass(trigger, &applied).await;
        Ok(())
    }

    /// The next list comes after the pause that it answers, longer with each failure in a row.
    fn list_failed(&mut self, retry: Retry) -> Duration {
        self.list_failures = self.list_failures.saturating_add(1);
        self.quiet = 0;
        let pause = self.backoff.pause(retry, self.list_failures).max(self.period());
        self.next_list = Instant::now() + pause;
        pause
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
        write_conditions(&self.context, self.plan.routes_created(&self.retries.missing())).await;
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
}

/// Pause until the next periodic list after so many in a row that found nothing to do.
fn list_pause(period: Duration, quiet: u32) -> Duration {
    let slower = period.saturating_mul(2u32.saturating_pow(quiet.min(16)));
    slower.min(QUIET_PERIOD.max(period))
}

#[cfg(test)]
mod tests;
