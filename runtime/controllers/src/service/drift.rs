//! Load balancers that somebody deletes or changes behind our back: a look at each from time to time.
//!
//! ```text
//!   clock --> DriftSchedule: whose turn? --> record "look due" --> queue "service" --> service_lb_plan: CheckDrift, if nothing else
//!             budget, jitter, pause                                                    --> get --> as it was: nothing
//!                                                                                             --> else: ensure, as for a new one
//! ```
//!
//! Upstream never looks (weak spot S3). A look costs one `get` and goes through the Service's key, so that it overlaps with no other call.
//! What `get` shows is all that is compared here: that the load balancer exists, and its ingress points. Ports, members and the like are
//! only known to the provider, so every [`FULL_LOOK_EVERY`]th look that finds nothing goes on with an `ensure`, which costs reads where
//! all is right (oracle/oci-cloud-controller-manager#196, kubernetes/cloud-provider-openstack#2962).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudwit_model::{CloudError, EventKind, Failure, Retry};
use k8s_openapi::api::core::v1::Service;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, info};

use crate::ambient::jitter;
use crate::kube::cache::Key;
use crate::kube::service::view::{ingress_status, lenient_service_view};
use crate::metrics::service::DriftResult;
use crate::queue::Outcome;
use crate::service::ServiceLb;
use crate::service::state::{Operation, Record};
use crate::sync::lock;

/// So many looks make one with `ensure`; with the default period it comes once an hour.
const FULL_LOOK_EVERY: u32 = 6;

const MINUTE: Duration = Duration::from_secs(60);

/// When each load balancer is looked at next. Only the clock task has it.
#[derive(Debug)]
struct DriftSchedule {
    period: Duration,
    due: BTreeMap<Key, Instant>,
}

impl DriftSchedule {
    fn new(period: Duration) -> Self {
        Self {
            period,
            due: BTreeMap::new(),
        }
    }

    /// The Service whose turn it is, if there is one among the settled. Those that are new to the schedule are spread over a period,
    /// so that a thousand which were ensured at a start are not looked at together.
    ///
    /// A Service that is busy keeps its turn for as long as it is `known`: else one whose load balancer gets other nodes more often
    /// than once in a period would never be looked at.
    fn pick(&mut self, settled: Vec<Key>, known: impl Fn(&Key) -> bool, now: Instant) -> Option<Key> {
        self.due.retain(|key, _| known(key));
        let mut first: Option<(Instant, Key)> = None;
        for key in settled {
            let at = *self
                .due
                .entry(key.clone())
                .or_insert_with(|| now + self.period.mul_f64(jitter(0.5..1.5)));
            if at <= now && first.as_ref().is_none_or(|(earlier, _)| at < *earlier) {
                first = Some((at, key));
            }
        }
        let (_, key) = first?;
        self.due
            .insert(key.clone(), now + self.period.mul_f64(jitter(0.9..1.1)));
        Some(key)
    }
}

/// Until when no load balancer is looked at, because the cloud asked for a pause.
#[derive(Debug, Default)]
pub(crate) struct DriftPause(Mutex<Option<Instant>>);

impl DriftPause {
    fn set(&self, until: Instant) {
        *lock(&self.0) = Some(until);
    }

    fn until(&self) -> Option<Instant> {
        *lock(&self.0)
    }

    async fn over(&self) {
        while let Some(until) = self.until().filter(|until| *until > Instant::now()) {
            sleep_until(until).await;
        }
    }
}

/// The clock. Ends at once when looks are switched off.
pub(crate) async fn watch_drift(controller: Arc<ServiceLb>) {
    let options = controller.context.options.service.clone();
    let Some(period) = options.drift_period else { return };
    let mut schedule = DriftSchedule::new(period);
    // One Service at most for each beat: that is the budget.
    let beat = MINUTE / u32::from(options.drift_per_minute.max(1));
    loop {
        sleep(beat).await;
        controller.drift_pause.over().await;
        if let Some(key) = schedule.pick(controller.settled(), |key| controller.knows(key), Instant::now()) {
            controller.record(&key, Record::want_look);
            controller.queue.add(key);
        }
    }
}

impl ServiceLb {
    /// Asks the cloud what it shows. A look that fails is no failure of the Service; the next one comes after the period.
    pub(crate) async fn check_drift(&self, key: &Key, service: &Service) -> Option<Outcome> {
        let seen = match self.context.cloud.get_balancer(&lenient_service_view(service)).await {
            Ok(seen) => seen.map(|balancer| ingress_status(&balancer.ingress)),
            Err(error) => {
                self.look_failed(key, &error);
                return None;
            }
        };
        let gone = seen.is_none();
        let drifted = self.record(key, |record| record.note_seen(seen))?;
        let (result, message) = match (drifted, gone) {
            (false, _) => {
                debug!(service = %key, "the load balancer is as it was");
                self.context.metrics.service.looked(DriftResult::Matches);
                let full = self.record(key, |record| record.is_full_look_due(FULL_LOOK_EVERY))?;
                return if full {
                    self.look_fully(key, service).await
                } else {
                    None
                };
            }
            (true, true) => (
                DriftResult::Missing,
                "The load balancer is gone from the cloud although nobody deleted it here; building it again",
            ),
            (true, false) => (
                DriftResult::Changed,
                "The cloud shows another address of the load balancer than the status; ensuring it again",
            ),
        };
        info!(service = %key, message);
        self.context.metrics.service.looked(result);
        self.events
            .service(service, EventKind::Warning, "LoadBalancerDrifted", message);
        self.record(key, Record::forget_ensured);
        None
    }

    /// Has the load balancer ensured although nothing is known to be wrong: the provider compares what `get` cannot show. Nobody is told
    /// unless the cloud has to build again.
    async fn look_fully(&self, key: &Key, service: &Service) -> Option<Outcome> {
        let given = self.targets_now();
        match self.call_ensure(service, &given.list, None).await {
            Ok(balancer) => {
                self.record(key, |record| {
                    record.note_ensured(given.set, ingress_status(&balancer.ingress), balancer.annotations);
                });
                None
            }
            Err(error @ CloudError::Failure(Failure::Pending { .. })) => {
                self.record(key, Record::forget_ensured);
                Some(self.call_failed(key, service, Operation::Ensure, &given, &error))
            }
            Err(CloudError::DryRun) => None,
            Err(error) => {
                self.look_failed(key, &error);
                None
            }
        }
    }

    fn look_failed(&self, key: &Key, error: &CloudError) {
        info!(service = %key, %error, "could not look whether the load balancer is still there");
        self.context.metrics.service.looked(DriftResult::Failed);
        self.record(key, |record| record.note_unseen(error.to_string()));
        if let Retry::After(pause) = error.retry() {
            self.drift_pause.set(Instant::now() + pause);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(count: usize) -> Vec<Key> {
        (0..count).map(|index| Key::from(format!("default/s{index}"))).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn looks_are_spread_over_the_period_and_each_comes_once_in_it() {
        let period = Duration::from_secs(600);
        let mut schedule = DriftSchedule::new(period);
        let began = Instant::now();
        let mut looks: BTreeMap<Key, Vec<u64>> = BTreeMap::new();
        for second in 0..3600 {
            let now = began + Duration::from_secs(second);
            while let Some(key) = schedule.pick(keys(100), |_| true, now) {
                looks.entry(key).or_default().push(second);
            }
        }
        assert_eq!(looks.len(), 100);
        for times in looks.values() {
            assert!((300..=900).contains(&times[0]), "{times:?}");
            assert!(
                times.windows(2).all(|pair| (540..=661).contains(&(pair[1] - pair[0]))),
                "{times:?}"
            );
        }
        let firsts = looks.values().filter(|times| times[0] < 600).count();
        assert!((20..=80).contains(&firsts), "{firsts} of 100 in the first half");
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_longest_comes_first_and_who_is_gone_is_forgotten() {
        let mut schedule = DriftSchedule::new(Duration::from_secs(600));
        let (now, all) = (Instant::now(), |_: &Key| true);
        assert_eq!(schedule.pick(keys(3), all, now), None, "nobody's turn yet");
        schedule.due.insert(keys(3)[1].clone(), now);
        schedule.due.insert(keys(3)[2].clone(), now + Duration::from_secs(1));
        let later = now + Duration::from_secs(2);
        assert_eq!(schedule.pick(keys(3), all, later), Some(keys(3)[1].clone()));
        let gone = |key: &Key| *key != keys(3)[2];
        assert_eq!(schedule.pick(keys(2), gone, later), None, "the third is gone");
        assert_eq!(schedule.due.len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_busy_most_of_the_time_keeps_its_turn() {
        let period = Duration::from_secs(600);
        let mut schedule = DriftSchedule::new(period);
        let began = Instant::now();
        let mut looks = 0;
        for second in 0..6000 {
            // Nodes come and go: it is idle for a second in each minute.
            let settled = if second % 60 == 0 { keys(1) } else { Vec::new() };
            let now = began + Duration::from_secs(second);
            looks += usize::from(schedule.pick(settled, |_| true, now).is_some());
        }
        assert!((8..=11).contains(&looks), "{looks}");
    }
}
