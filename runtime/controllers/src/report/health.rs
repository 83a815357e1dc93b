//! Health of the controllers for `/healthz` and `/readyz`, from state in memory.
//!
//! A loop that ends or panics ends the process, so what is left to see is a loop that hangs: work on one key, or one step of a pass, that
//! lasts far longer than every call in it may.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;

use crate::kube::cache::Cache;
use crate::kube::node::Node;
use crate::metrics::Metrics;
use crate::options::Controller;
use crate::report::snapshot::Reports;

/// Calls to a provider and to the API server have limits far below this, so work that lasts longer does not end any more.
const STUCK_SECONDS: f64 = 900.0;

/// Looks at the loops; clones share them.
#[derive(Clone)]
pub struct Health {
    pub(crate) nodes: Arc<Cache<Node>>,
    pub(crate) services: Arc<Cache<Service>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) reports: Reports,
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health").finish_non_exhaustive()
    }
}

impl Health {
    /// The kinds whose first list is not complete.
    pub fn waiting_for(&self) -> Vec<&'static str> {
        [
            ("Nodes", self.nodes.is_synced()),
            ("Services", self.services.is_synced()),
        ]
        .into_iter()
        .filter_map(|(kind, synced)| (!synced).then_some(kind))
        .collect()
    }

    /// The controllers that run, each with the seconds since when it hangs, if it does.
    pub fn controllers(&self) -> Vec<(Controller, Option<f64>)> {
        // Of several providers one that is well is enough, so of work of one kind the shortest counts.
        let mut longest = BTreeMap::<(Controller, &str), Duration>::new();
        let mut note = |controller, kind, time: Duration| {
            let shortest = longest.entry((controller, kind)).or_insert(Duration::MAX);
            *shortest = time.min(*shortest);
        };
        for (controller, snapshot) in self.reports.snapshots() {
            snapshot
                .queues
                .iter()
                .for_each(|queue| note(controller, queue.name, queue.longest_work));
            note(controller, STEPS, snapshot.longest_step.unwrap_or_default());
        }
        let hangs = |controller: Controller| {
            let own = longest.iter().filter(|((who, _), _)| *who == controller);
            own.map(|(_, time)| time.as_secs_f64())
                .filter(|seconds| *seconds > STUCK_SECONDS)
                .reduce(f64::max)
        };
        Controller::ALL
            .into_iter()
            .filter(|controller| self.metrics.is_running(*controller))
            .map(|controller| (controller, hangs(controller)))
            .collect()
    }

    /// Whether Nodes that seem to be gone are kept because there are too many of them.
    pub fn brake_engaged(&self) -> bool {
        self.metrics.brake_engaged.get() != 0
    }
}

/// The work of a loop that has no queue.
const STEPS: &str = "steps";

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::queue::{Backoff, Queue};
    use crate::report::reconcile_clock::ReconcileClock;
    use crate::report::testing::FakeReport;

    fn health(metrics: &Arc<Metrics>, reports: impl IntoIterator<Item = FakeReport>) -> Health {
        let all = Reports::default();
        reports.into_iter().for_each(|report| all.add(Arc::new(report)));
        Health {
            nodes: Arc::default(),
            services: Arc::default(),
            metrics: metrics.clone(),
            reports: all,
        }
    }

    fn with_queue(controller: Controller, queue: &Queue) -> FakeReport {
        FakeReport {
            queues: vec![queue.clone()],
            ..FakeReport::of(controller)
        }
    }

    fn with_clock(clock: &ReconcileClock) -> FakeReport {
        FakeReport {
            clock: clock.clone(),
            ..FakeReport::of(Controller::CloudNodeLifecycle)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn endless_work_is_seen_for_running_controllers_only() {
        let metrics = Metrics::new(&mut Registry::default());
        let queue = Queue::new(Backoff::DEFAULT, metrics.queue("Nodes"));
        let health = health(&metrics, [with_queue(Controller::CloudNode, &queue)]);
        assert_eq!(health.waiting_for(), ["Nodes", "Services"]);
        health.nodes.fill(Vec::new());
        assert_eq!(health.waiting_for(), ["Services"]);
        assert!(health.controllers().is_empty());

        let running = metrics.running(Controller::CloudNode);
        queue.add("a");
        let _working = queue.take().await;
        assert_eq!(health.controllers(), [(Controller::CloudNode, None)]);
        tokio::time::advance(Duration::from_secs(901)).await;
        let (controller, hangs) = health.controllers()[0];
        assert_eq!(controller, Controller::CloudNode);
        assert!(hangs.is_some_and(|seconds| seconds > 900.0), "{hangs:?}");
        drop(running);
        assert!(health.controllers().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn hung_provider_needs_no_restart_while_another_is_well() {
        let metrics = Metrics::new(&mut Registry::default());
        let _running = metrics.running(Controller::ServiceLb);
        let queues = [(); 2].map(|()| Queue::new(Backoff::DEFAULT, metrics.queue("service")));
        let health = health(
            &metrics,
            queues.iter().map(|queue| with_queue(Controller::ServiceLb, queue)),
        );
        queues[0].add("stuck");
        let _stuck = queues[0].take().await;
        tokio::time::advance(Duration::from_secs(10_000)).await;
        assert_eq!(health.controllers(), [(Controller::ServiceLb, None)]);
        queues[1].add("stuck");
        let _both = queues[1].take().await;
        tokio::time::advance(Duration::from_secs(901)).await;
        assert!(health.controllers()[0].1.is_some(), "no provider is left that is well");
    }

    #[tokio::test(start_paused = true)]
    async fn running_pass_is_healthy_and_stalled_one_is_not() {
        let metrics = Metrics::new(&mut Registry::default());
        let _running = metrics.running(Controller::CloudNodeLifecycle);
        let (one, other) = (ReconcileClock::default(), ReconcileClock::default());
        let health = health(&metrics, [with_clock(&one), with_clock(&other)]);
        let hangs = || health.controllers()[0].1;
        let (slow, stuck) = (one.begin(), other.begin());
        tokio::time::advance(Duration::from_secs(600)).await;
        slow.heartbeat();
        tokio::time::advance(Duration::from_secs(600)).await;
        assert_eq!(hangs(), None, "that of one provider goes on");
        tokio::time::advance(Duration::from_secs(600)).await;
        assert_eq!(hangs(), Some(1200.0), "both stand still");
        drop(slow);
        assert_eq!(hangs(), None, "between passes it may wait for as long as it likes");
        drop(stuck);
    }
}
