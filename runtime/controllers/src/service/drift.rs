//! Schedule of periodic drift checks, for load balancers that were deleted or changed outside.
//!
//! ```text
//!   clock --> DriftSchedule: which is due? --> DriftState::request_check --> queue "service" --> plan: CheckDrift, if nothing else
//!             budget, jitter, pause                                                    --> get --> unchanged: nothing
//!                                                                                             --> else: ensure, as for a new one
//! ```
//!
//! Upstream never checks (weak spot S3). A check costs one `get` and goes through the Service's key, so that it overlaps with no other call.
//! What `get` shows is all that is compared here: that the load balancer exists, and its ingress points. Ports, members and the like are
//! only known to the provider, so every sixth check that finds nothing continues with an `ensure`, which costs reads where
//! all is right (oracle/oci-cloud-controller-manager#196, kubernetes/cloud-provider-openstack#2962).

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use crate::ambient::jitter;
use crate::kube::cache::Key;
use crate::service::ServiceLb;
use crate::sync::lock;

const MINUTE: Duration = Duration::from_secs(60);

/// When the load balancers are checked next, in the order of their turns.
#[derive(Debug, Default)]
pub(crate) struct DriftSchedule {
    turns: BTreeSet<(Instant, Key)>,
    known: HashSet<Key>,
}

/// What the one whose turn it is is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Its load balancer is finished, and it waits for nothing.
    Settled,
    /// It has something else to do. It keeps its turn: else one whose load balancer gets other nodes more often than once in a period would
    /// never be checked.
    Busy,
    /// It is gone.
    Gone,
}

impl DriftSchedule {
    /// The Service has a load balancer. Those that are new are spread over a period, so that a thousand which were ensured at a start are not
    /// looked at together.
    pub(crate) fn add(&mut self, key: &Key, period: Duration, now: Instant) {
        if self.known.insert(key.clone()) {
            self.turns.insert((now + period.mul_f64(jitter(0.5..1.5)), key.clone()));
        }
    }

    /// The Service whose turn it is, if there is one. Only those whose turn has come are requested.
    fn pick(&mut self, period: Duration, turn: impl Fn(&Key) -> Turn, now: Instant) -> Option<Key> {
        let mut gone = Vec::new();
        let mut picked = None;
        for due in self.turns.iter().take_while(|(at, _)| *at <= now) {
            match turn(&due.1) {
                Turn::Busy => {}
                Turn::Gone => gone.push(due.clone()),
                Turn::Settled => {
                    picked = Some(due.clone());
                    break;
                }
            }
        }
        for due in gone {
            self.turns.remove(&due);
            self.known.remove(&due.1);
        }
        let due = picked?;
        self.turns.remove(&due);
        let next = now + period.mul_f64(jitter(0.9..1.1));
        self.turns.insert((next, due.1.clone()));
        Some(due.1)
    }
}

/// Until when no load balancer is checked, because the cloud set a pause.
#[derive(Debug, Default)]
pub(crate) struct DriftPause(Mutex<Option<Instant>>);

impl DriftPause {
    pub(crate) fn set(&self, until: Instant) {
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
    // One Service at most for each beat: that is the budget.
    let beat = MINUTE / u32::from(options.drift_per_minute.max(1));
    loop {
        sleep(beat).await;
        controller.drift_pause.over().await;
        let picked = lock(&controller.drift).pick(period, |key| controller.turn_of(key), Instant::now());
        if let Some(key) = picked {
            controller.records.change(&key, |record| record.drift.request_check());
            controller.queue.add(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn keys(count: usize) -> Vec<Key> {
        (0..count).map(|index| Key::from(format!("default/s{index}"))).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn checks_are_spread_over_the_period_and_each_comes_once_in_it() {
        let period = Duration::from_secs(600);
        let mut schedule = DriftSchedule::default();
        let began = Instant::now();
        keys(100).iter().for_each(|key| schedule.add(key, period, began));
        let mut looks: BTreeMap<Key, Vec<u64>> = BTreeMap::new();
        for second in 0..3600 {
            let now = began + Duration::from_secs(second);
            while let Some(key) = schedule.pick(period, |_| Turn::Settled, now) {
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
    async fn who_waits_longest_comes_first_and_who_is_gone_is_dropped() {
        let period = Duration::from_secs(600);
        let mut schedule = DriftSchedule::default();
        let (now, second, all) = (Instant::now(), Duration::from_secs(1), |_: &Key| Turn::Settled);
        keys(3).iter().for_each(|key| schedule.add(key, period, now));
        assert_eq!(schedule.pick(period, all, now), None, "nobody's turn yet");
        schedule.turns = [(now, 1), (now + second, 2), (now + period, 0)]
            .map(|(at, index)| (at, keys(3)[index].clone()))
            .into();
        let later = now + 2 * second;
        assert_eq!(schedule.pick(period, all, later), Some(keys(3)[1].clone()));
        let gone = |_: &Key| Turn::Gone;
        assert_eq!(schedule.pick(period, gone, later), None, "the third is gone");
        assert_eq!((schedule.turns.len(), schedule.known.len()), (2, 2));
        schedule.add(&keys(3)[2], period, later);
        assert_eq!(schedule.turns.len(), 3, "it came back");
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_busy_most_of_the_time_keeps_its_turn() {
        let period = Duration::from_secs(600);
        let mut schedule = DriftSchedule::default();
        let began = Instant::now();
        schedule.add(&keys(1)[0], period, began);
        let mut looks = 0;
        for second in 0..6000 {
            // Nodes come and go: it is idle for a second in each minute.
            let turn = if second % 60 == 0 { Turn::Settled } else { Turn::Busy };
            let now = began + Duration::from_secs(second);
            looks += usize::from(schedule.pick(period, |_| turn, now).is_some());
        }
        assert!((8..=11).contains(&looks), "{looks}");
    }

    #[tokio::test(start_paused = true)]
    async fn clock_returns_only_services_that_are_due() {
        let period = Duration::from_secs(600);
        let mut schedule = DriftSchedule::default();
        let began = Instant::now();
        keys(5000).iter().for_each(|key| schedule.add(key, period, began));
        let asked = std::cell::Cell::new(0);
        let turn = |_: &Key| {
            asked.set(asked.get() + 1);
            Turn::Settled
        };
        for half_seconds in 0..1200 {
            schedule.pick(period, turn, began + half_seconds * Duration::from_millis(500));
        }
        assert!(
            (500..=1200).contains(&asked.get()),
            "one at most in each beat: {}",
            asked.get()
        );
    }
}
