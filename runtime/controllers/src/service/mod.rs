//! Service controller: load balancers of Services of type `LoadBalancer`.
//!
//! ```text
//!   Service events --(needs_sync)--> queue "service" --> workers --> plan::next_step --> steps: cloud, then API server
//!   Node events --(targets::debounce)--> queue "node", one key --> node pass: which target lists differ? --^
//!   drift: a clock, one Service at a time -----------------------------------------------------------------^
//! ```
//!
//! Services that wait for new targets share calls: a worker that takes one takes others with it (`targets::batch`).
//!
//! All work on one Service goes through its key, so ensure, update and delete of one load balancer never overlap (upstream's
//! node worker does that, weak spot S4). A call that is not finished and a cloud that throttles put the key aside without
//! holding a worker. What may be done is decided in `service::plan`; what was done is noted in the Service's [`Record`](state::Record).

pub(crate) mod drift;
pub mod explain;
pub mod needs_update;
pub mod patch;
pub mod plan;
pub(crate) mod records;
mod report;
pub mod state;
pub(crate) mod steps;
pub mod targets;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudwit_model::Retry;
use k8s_openapi::api::core::v1::Service;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{Instrument as _, debug, warn};

use crate::cloud::swap::after_each_swap;
use crate::context::Context;
use crate::kube::cache::{Change, Key};
use crate::kube::events::Recorder;
use crate::kube::node::Node;
use crate::metrics::service::Stopwatch;
use crate::options::Controller;
use crate::queue::span;
use crate::queue::{Backoff, Outcome, Queue, Taken};
use crate::service::drift::{DriftPause, DriftSchedule, Turn, watch_drift};
use crate::service::plan::{Step, needs_sync};
use crate::service::records::Records;
use crate::service::report::ServiceReport;
use crate::service::steps::{carry_out, update_targets};
use crate::service::targets::batch;
use crate::service::targets::cache::{TargetCache, Targets};
use crate::service::targets::debounce::NodeDebounce;
use crate::sync::lock;

/// The only key of the node queue: a pass is always about all Services.
const ALL_NODES: &str = "nodes";

/// Steps for one Service in a row. Four are usual (finalizer, ensure, status, nodes); more mean that our writes are undone by others.
const MAX_STEPS: usize = 10;

/// A delete that fails is tried again at least this often, as upstream's resync does: a user waits for it.
const CLEANUP_PAUSE: Duration = Duration::from_secs(30);

/// Runs the controller: Services and Nodes are watched from the call on, work is done when it is polled.
pub fn run(context: Context) -> impl Future<Output = ()> + Send + 'static {
    let controller = Arc::new(ServiceLb::new(context));
    controller.listen();
    controller.context.reports.add(controller.report());
    run_all(controller)
}

async fn run_all(controller: Arc<ServiceLb>) {
    let _running = controller.context.metrics.running(Controller::ServiceLb);
    controller.context.nodes.synced().await;
    controller.context.services.synced().await;
    let mut tasks = JoinSet::new();
    for _ in 0..controller.context.options.service.concurrent_syncs.max(1) {
        tasks.spawn(work_all(controller.clone()));
    }
    tasks.spawn(watch_nodes(controller.clone()));
    tasks.spawn(watch_drift(controller.clone()));
    tasks.spawn(retry_after_swaps(controller));
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

/// One worker, until the queue is closed.
async fn work_all(controller: Arc<ServiceLb>) {
    while let Some(taken) = controller.queue.take().await {
        let Ok(_busy) = controller.workers.acquire().await else {
            return;
        };
        let mut together = controller.with_company(taken);
        match together.pop() {
            Some(only) if together.is_empty() => controller.work_on(only).await,
            last => {
                together.extend(last);
                controller.update_together(together).await;
            }
        }
    }
}

/// A refused token is tried at long intervals; with a new one it shall not wait for the next.
async fn retry_after_swaps(controller: Arc<ServiceLb>) {
    let period = controller.context.options.swap_check_period;
    after_each_swap(&*controller.context.cloud, period, || {
        controller.queue.retry_failed_now()
    })
    .await;
}

async fn watch_nodes(controller: Arc<ServiceLb>) {
    while let Some(taken) = controller.node_queue.take().await {
        controller.node_pass();
        taken.finish(Outcome::Done);
    }
}

/// The controller's state. What may be lost: everything.
pub(crate) struct ServiceLb {
    pub(crate) context: Context,
    pub(crate) events: Recorder,
    pub(crate) queue: Queue,
    node_queue: Queue,
    /// A permit for each worker that has nothing to do.
    workers: Semaphore,
    node_debounce: NodeDebounce,
    pub(crate) records: Arc<Records>,
    targets: TargetCache,
    /// Services that a node pass still waits for; the pass is over when the last one is dropped.
    passes: Mutex<BTreeMap<Key, Arc<Stopwatch>>>,
    /// When the next drift check is allowed.
    pub(crate) drift_pause: DriftPause,
    /// Order of the drift checks.
    pub(crate) drift: Mutex<DriftSchedule>,
}

impl ServiceLb {
    fn new(context: Context) -> Self {
        let backoff = Backoff::SERVICE.at_most(context.options.max_retry_pause);
        Self {
            events: context.events.recorder(Controller::ServiceLb),
            queue: Queue::new(backoff, context.metrics.queue("service")),
            node_queue: Queue::new(backoff, context.metrics.queue("node")),
            workers: Semaphore::new(context.options.service.concurrent_syncs.max(1)),
            node_debounce: NodeDebounce::default(),
            records: Arc::new(Records::new(context.options.service.classes.clone())),
            targets: TargetCache::new(context.scope.clone()),
            passes: Mutex::default(),
            drift_pause: DriftPause::default(),
            drift: Mutex::default(),
            context,
        }
    }

    fn listen(self: &Arc<Self>) {
        let controller = Arc::downgrade(self);
        self.context.services.listen_from_start(move |key, change| {
            if let Some(controller) = controller.upgrade() {
                controller.service_changed(key, &change);
            }
        });
        let controller = Arc::downgrade(self);
        self.context.nodes.listen(move |_, change| {
            if let Some(controller) = controller.upgrade() {
                controller.node_changed(&change);
            }
        });
    }

    /// Without a Service there is nothing to update: one that comes later gets the nodes of then.
    fn node_changed(&self, change: &Change<'_, Node>) {
        self.targets.changed(change);
        let now = Instant::now();
        if !self.records.is_empty()
            && let Some(at) = self.node_debounce.pass_at(change, now)
        {
            self.node_queue.after(ALL_NODES, at - now);
        }
    }

    fn service_changed(&self, key: &Key, change: &Change<'_, Service>) {
        let (classes, scope) = (&self.context.options.service.classes, &self.context.scope);
        let is_own = scope.owns_service();
        let change = &match *change {
            Change::Added(new) | Change::Updated { new, .. } if !is_own(new) => return self.hand_over(key),
            Change::Updated { old, new } if !is_own(old) => Change::Added(new),
            Change::Added(new) => Change::Added(new),
            Change::Updated { old, new } => Change::Updated { old, new },
            Change::Deleted(old) => Change::Deleted(old),
        };
        let matters = match change {
            Change::Added(new) => needs_sync(None, new, classes),
            Change::Updated { old, new } => needs_sync(Some(old), new, classes),
            Change::Deleted(_) => self.records.contains(key),
        };
        if let Some(service) = change.current() {
            self.records.add_foreign(key, service);
        }
        if matters {
            self.queue.add(key.clone());
        }
    }

    /// The Service is another provider's now: nothing is known of it here any more.
    fn hand_over(&self, key: &Key) {
        self.records.remove(key);
        lock(&self.passes).remove(key);
    }

    fn report(&self) -> Arc<ServiceReport> {
        Arc::new(ServiceReport {
            scope: self.context.scope.clone(),
            queue: self.queue.clone(),
            node_queue: self.node_queue.clone(),
            records: self.records.clone(),
        })
    }

    /// Wakes every Service whose load balancer has other nodes than there are now. Those that wait for their time (after a
    /// failure, or for the cloud) are left alone: they get the nodes of then.
    fn node_pass(&self) {
        let pass = Arc::new(self.context.metrics.service.node_pass());
        // No load balancer has targets, and no update is in flight.
        if !self.records.any_touched() {
            return;
        }
        self.node_debounce.begin(Instant::now());
        let now = self.targets.pass(&self.context.nodes);
        let waiting: HashSet<Key> = self.queue.waiting().into_iter().collect();
        let mut outdated = self.records.outdated(now);
        outdated.retain(|key| !waiting.contains(key));
        let span = span::on_many(Controller::ServiceLb, outdated.len());
        span.in_scope(|| debug!(nodes = now.len(), "Nodes changed; load balancers queued"));
        lock(&self.passes).extend(outdated.iter().map(|key| (key.clone(), pass.clone())));
        self.queue.add_all(outdated);
        span::ended(&span, true);
    }

    pub(crate) async fn work_on(&self, mut taken: Taken) {
        let span = taken.begin(Controller::ServiceLb);
        let outcome = self.sync(taken.key()).instrument(span).await;
        self.finish(taken, outcome);
    }

    /// The key that was taken, and those that wait for the same call and are taken with it.
    fn with_company(&self, first: Taken) -> Vec<Taken> {
        let mut all = Vec::new();
        if self.waits_for_targets(first.key()) {
            let idle = self.workers.available_permits() + 1;
            let mut waiting = self.queue.ready(batch::horizon(idle));
            waiting.retain(|key| self.waits_for_targets(key));
            all = self.queue.take_ready(&batch::company(waiting, idle));
        }
        all.insert(0, first);
        all
    }

    /// Whether nothing is to be done for the Service but to give its load balancer new nodes, in a call that may be about others too.
    fn waits_for_targets(&self, key: &Key) -> bool {
        self.next_step(key) == Some(Step::UpdateTargets)
            && self.records.change(key, |record| record.may_share_call()) == Some(true)
    }

    /// Gives the load balancers of all of these new nodes by one call. What is left to do for one of them then is work of its own.
    async fn update_together(&self, mut taken: Vec<Taken>) {
        let shared = span::on_many(Controller::ServiceLb, taken.len());
        for one in &mut taken {
            one.begin(Controller::ServiceLb).follows_from(&shared);
        }
        let keys: Vec<Key> = taken.iter().map(|one| one.key().clone()).collect();
        let outcomes = update_targets(self, &keys).instrument(shared.clone()).await;
        span::ended(&shared, outcomes.iter().all(Option::is_none));
        for (one, outcome) in taken.into_iter().zip(outcomes) {
            let outcome = outcome.or_else(|| (self.next_step(one.key())? == Step::Nothing).then_some(Outcome::Done));
            match outcome {
                Some(outcome) => self.finish(one, outcome),
                None => {
                    self.queue.add(one.key().clone());
                    one.finish(Outcome::Done);
                }
            }
        }
    }

    fn finish(&self, taken: Taken, outcome: Outcome) {
        lock(&self.passes).remove(taken.key());
        let current = self.context.services.get(taken.key());
        let outcome = match outcome {
            Outcome::Retry(retry) if self.records.is_cleanup(taken.key(), current.as_deref()) => Outcome::Retry(
                cleanup_pace(retry, taken.failures(), self.context.options.max_retry_pause),
            ),
            other => other,
        };
        if let Some(period) = self.context.options.service.drift_period
            && self.records.change(taken.key(), |record| record.is_settled()) == Some(true)
        {
            lock(&self.drift).add(taken.key(), period, Instant::now());
        }
        taken.finish(outcome);
        if self.queue.is_empty() {
            self.targets.forget_list();
        }
    }

    /// Makes steps until there is nothing left to do or one has to wait.
    async fn sync(&self, key: &Key) -> Outcome {
        for _ in 0..MAX_STEPS {
            let Some(step) = self.next_step(key) else {
                self.hand_over(key);
                return Outcome::Done;
            };
            debug!(service = %key, ?step, "next step");
            if step == Step::Nothing {
                let current = self.context.services.get(key);
                self.records.remove_idle(key, current.as_deref());
                return Outcome::Done;
            }
            if let Some(outcome) = carry_out(self, key, step).await {
                return outcome;
            }
        }
        warn!(service = %key, "writes to Service undone by another controller; backing off");
        Outcome::Retry(Retry::Backoff)
    }

    /// None when the Service is another provider's.
    fn next_step(&self, key: &Key) -> Option<Step> {
        let current = self.context.services.get(key);
        let is_foreign = |service: &Arc<Service>| !self.context.scope.owns_service()(service);
        if current.as_ref().is_some_and(is_foreign) {
            return None;
        }
        let last_pass = self.targets.last_pass();
        Some(self.records.next_step(key, current.as_ref(), &last_pass))
    }

    /// Whether the Service's load balancer is finished and waits for nothing. One that is being worked on is busy: the work may fail and then
    /// has to wait its time.
    pub(crate) fn turn_of(&self, key: &Key) -> Turn {
        match self.records.change(key, |record| record.is_settled()) {
            None => Turn::Gone,
            Some(true) if self.queue.state(key).is_none() => Turn::Settled,
            Some(_) => Turn::Busy,
        }
    }

    /// The nodes of this moment. A call that gives them to a load balancer has to be [started](state::Record::start) before, so that no pass
    /// over changes that come after overlooks it.
    pub(crate) fn targets_now(&self) -> Targets {
        self.targets.now(&self.context.nodes)
    }
}

/// 5, 10, 20 s and from then on every 30 s, or more often with `--max-retry-pause`, whatever kind of failure it is.
fn cleanup_pace(retry: Retry, failures: u32, longest: Option<Duration>) -> Retry {
    let pause = Retry::After(longest.map_or(CLEANUP_PAUSE, |longest| longest.min(CLEANUP_PAUSE)));
    match retry {
        Retry::Backoff | Retry::Soon if failures >= 3 => pause,
        Retry::Slowly => pause,
        other => other,
    }
}

#[cfg(test)]
mod tests;
