//! Route changes that failed or are pending, each with its own backoff and tokens.
//!
//! Pure but for the clock that is handed in. A full pass leaves them alone until their time has come, and the loop tries them alone
//! when it has, without listing anything: one route that the cloud refuses costs no other a call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cloudwit_model::Retry;
use ipnet::IpNet;
use tokio::time::Instant;

use crate::kube::node::Node;
use crate::queue::Backoff;
use crate::report::cause::Cause;
use crate::route::plan::{RouteChange, waits};

/// A change that the cloud works on for longer has failed; part of the contract (`routes.apply`).
pub const LONGEST_PENDING: Duration = Duration::from_secs(600);

/// More of a reason is not remembered: each Node may have one.
const REASON_BYTES: usize = 300;

/// Tokens of the operations of a change that the cloud works on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeTokens {
    /// Of the creation.
    pub create: Option<String>,
    /// Of deletions, by the route's id.
    pub delete: BTreeMap<String, String>,
}

impl ChangeTokens {
    /// Whether the cloud works on nothing.
    pub fn is_empty(&self) -> bool {
        self.create.is_none() && self.delete.is_empty()
    }
}

/// A change that failed or is pending, and is tried again.
#[derive(Debug)]
pub struct Attempt {
    /// What is left to do.
    pub change: RouteChange,
    /// Failures in a row.
    pub failures: u32,
    /// When it is tried again.
    pub due: Instant,
    /// Why it failed the last time, cut to [`REASON_BYTES`].
    pub cause: Cause,
    /// To continue with.
    pub tokens: ChangeTokens,
    /// Since when the cloud works on something of it.
    pub pending_since: Option<Instant>,
}

impl Attempt {
    /// Whether nothing has failed: the cloud works on it.
    pub fn is_pending(&self) -> bool {
        self.failures == 0 && self.pending_since.is_some()
    }

    /// Whether this is the change that the cloud works on, be it that the Node's addresses are others by now.
    fn continues(&self, change: &RouteChange) -> bool {
        fn creation(change: &RouteChange) -> Option<(&str, &str)> {
            let route = change.create.as_ref()?;
            Some((&route.name_hint, &route.node.name))
        }
        let ids = |change: &RouteChange| change.delete.iter().map(|route| route.id.clone()).collect::<Vec<_>>();
        !self.tokens.is_empty() && creation(&self.change) == creation(change) && ids(&self.change) == ids(change)
    }
}

/// The failed changes by destination.
#[derive(Debug)]
pub struct RouteRetries {
    backoff: Backoff,
    attempts: BTreeMap<IpNet, Attempt>,
}

impl RouteRetries {
    /// None yet; they will be tried again at this pace.
    pub fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            attempts: BTreeMap::new(),
        }
    }

    /// What of a new plan is to be tried now: all but changes that failed just so and whose time has not come. Failures that
    /// the plan no longer has are dropped.
    pub fn admit(&mut self, planned: &[RouteChange], now: Instant) -> Vec<RouteChange> {
        let known: BTreeSet<&IpNet> = planned.iter().map(|change| &change.network).collect();
        self.attempts.retain(|network, _| known.contains(network));
        let waits = |change: &&RouteChange| {
            self.attempts
                .get(&change.network)
                .is_some_and(|attempt| attempt.due > now && (attempt.change == **change || attempt.continues(change)))
        };
        planned.iter().filter(|change| !waits(change)).cloned().collect()
    }

    /// The changes whose time has come. One that is no longer desired is dropped; the next pass sees what is.
    pub fn due(&mut self, now: Instant, still_wanted: impl Fn(&RouteChange) -> bool) -> Vec<RouteChange> {
        self.attempts
            .retain(|_, attempt| attempt.due > now || still_wanted(&attempt.change));
        self.attempts
            .values()
            .filter(|attempt| attempt.due <= now)
            .map(|attempt| attempt.change.clone())
            .collect()
    }

    /// The change has failed for this reason, or what of it is left has.
    pub fn failed(&mut self, change: RouteChange, retry: Retry, cause: &Cause, now: Instant) {
        self.wait(change, retry, cause, ChangeTokens::default(), now);
    }

    /// The tokens to continue this change with.
    pub fn tokens(&self, change: &RouteChange) -> ChangeTokens {
        let attempt = self
            .attempts
            .get(&change.network)
            .filter(|attempt| attempt.continues(change));
        attempt.map(|attempt| attempt.tokens.clone()).unwrap_or_default()
    }

    /// Whether the cloud has worked on this change for too long.
    pub fn is_overdue(&self, change: &RouteChange, now: Instant) -> bool {
        let attempt = self
            .attempts
            .get(&change.network)
            .filter(|attempt| attempt.continues(change));
        attempt
            .and_then(|attempt| attempt.pending_since)
            .is_some_and(|since| now - since >= LONGEST_PENDING)
    }

    /// The change, or what of it is left, has failed for this reason or is pending, and is tried again with these tokens.
    pub fn wait(&mut self, change: RouteChange, retry: Retry, cause: &Cause, tokens: ChangeTokens, now: Instant) {
        let former = self.attempts.get(&change.network);
        let pending_since = former.and_then(|attempt| attempt.pending_since).unwrap_or(now);
        let failures = former.map_or(0, |attempt| attempt.failures);
        // A pause that the cloud set is no failure.
        let failures = if matches!(retry, Retry::After(_)) {
            failures
        } else {
            failures + 1
        };
        let due = now + self.backoff.pause(retry, failures);
        let attempt = Attempt {
            change,
            failures,
            due,
            cause: cause.cut(REASON_BYTES),
            pending_since: (!tokens.is_empty()).then_some(pending_since),
            tokens,
        };
        self.attempts.insert(attempt.change.network, attempt);
    }

    /// The change at this destination is made.
    pub fn succeeded(&mut self, network: &IpNet) {
        self.attempts.remove(network);
    }

    /// All that wait.
    pub fn attempts(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.values()
    }

    /// When the next one is due.
    pub fn next(&self) -> Option<Instant> {
        self.attempts.values().map(|attempt| attempt.due).min()
    }

    /// Destinations whose route is still to be created.
    pub fn missing(&self) -> BTreeSet<IpNet> {
        self.attempts
            .iter()
            .filter(|(_, attempt)| attempt.change.create.is_some())
            .map(|(network, _)| *network)
            .collect()
    }
}

/// Whether Nodes have not changed such that a failed change would now do harm. The next pass makes the desired change.
pub fn still_wanted(change: &RouteChange, node: impl Fn(&str) -> Option<Arc<Node>>) -> bool {
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
mod tests {
    use super::*;
    use cloudwit_model::{NewRoute, NodeRef};

    fn change(destination: &str) -> RouteChange {
        let node = NodeRef {
            name: "n1".into(),
            ..NodeRef::default()
        };
        let create = NewRoute {
            name_hint: "u1".into(),
            destination: destination.into(),
            node,
        };
        RouteChange {
            network: destination.parse().unwrap(),
            delete: Vec::new(),
            create: Some(create),
        }
    }

    #[test]
    fn a_failed_change_waits_for_its_time_and_then_comes_alone() {
        let (a, b) = (change("10.0.0.0/24"), change("10.0.1.0/24"));
        let now = Instant::now();
        let mut retries = RouteRetries::new(Backoff::ROUTE);
        assert_eq!(retries.admit(&[a.clone(), b.clone()], now), [a.clone(), b.clone()]);
        retries.failed(a.clone(), Retry::Backoff, &"no".into(), now);
        assert_eq!(retries.missing(), [a.network].into());
        assert_eq!(retries.next(), Some(now + Backoff::ROUTE.base));
        assert_eq!(
            retries.admit(&[a.clone(), b.clone()], now),
            std::slice::from_ref(&b),
            "a full pass leaves it alone"
        );
        assert_eq!(retries.due(now, |_| true), []);
        let later = now + Backoff::ROUTE.base;
        assert_eq!(retries.due(later, |_| true), std::slice::from_ref(&a));
        retries.failed(a.clone(), Retry::Backoff, &"no".into(), later);
        assert_eq!(retries.next(), Some(later + Backoff::ROUTE.base * 2));
        retries.succeeded(&a.network);
        assert_eq!((retries.next(), retries.missing()), (None, BTreeSet::new()));
    }

    #[test]
    fn a_pending_change_keeps_its_token_and_is_not_begun_anew() {
        let (change, now) = (change("10.0.0.0/24"), Instant::now());
        let mut retries = RouteRetries::new(Backoff::ROUTE);
        let tokens = ChangeTokens {
            create: Some("t".into()),
            ..ChangeTokens::default()
        };
        let pause = Retry::After(Duration::from_secs(5));
        retries.wait(change.clone(), pause, &"it builds".into(), tokens.clone(), now);
        let mut moved = change.clone();
        moved.create.as_mut().unwrap().node.system_uuid = Some("u".into());
        assert_eq!(retries.admit(std::slice::from_ref(&moved), now), [], "it is the same");
        assert_eq!(retries.tokens(&moved), tokens);
        assert!(retries.attempts().all(Attempt::is_pending));

        let mut other = change.clone();
        other.create.as_mut().unwrap().name_hint = "u2".into();
        assert_eq!(
            retries.tokens(&other),
            ChangeTokens::default(),
            "another Node of that name"
        );
        assert_eq!(retries.admit(std::slice::from_ref(&other), now), [other]);

        let late = now + LONGEST_PENDING;
        assert!(!retries.is_overdue(&change, late - Duration::from_secs(1)));
        retries.wait(
            change.clone(),
            pause,
            &"it builds".into(),
            tokens,
            late - Duration::from_secs(1),
        );
        assert!(retries.is_overdue(&change, late), "counted from the first answer");
        retries.failed(change.clone(), Retry::Backoff, &"too long".into(), late);
        assert!(!retries.is_overdue(&change, late + LONGEST_PENDING) && retries.tokens(&change).is_empty());
    }

    #[test]
    fn a_change_that_became_another_is_tried_at_once() {
        let old = change("10.0.0.0/24");
        let mut new = old.clone();
        new.create.as_mut().unwrap().node.name = "n2".into();
        let now = Instant::now();
        let mut retries = RouteRetries::new(Backoff::ROUTE);
        retries.failed(old, Retry::Slowly, &"no".into(), now);
        assert_eq!(retries.admit(std::slice::from_ref(&new), now), [new]);
    }

    #[test]
    fn what_is_not_wanted_any_more_is_dropped() {
        let now = Instant::now();
        let mut retries = RouteRetries::new(Backoff::ROUTE);
        retries.failed(change("10.0.0.0/24"), Retry::Soon, &"no".into(), now);
        assert_eq!(retries.admit(&[], now), []);
        assert_eq!(retries.next(), None, "the plan does not know it");
        retries.failed(change("10.0.0.0/24"), Retry::Soon, &"no".into(), now);
        assert_eq!(retries.due(now + Backoff::ROUTE.cap, |_| false), []);
        assert_eq!(retries.next(), None, "its Node is gone");
    }

    #[test]
    fn pause_that_the_cloud_requests_does_not_count_as_a_failure() {
        let now = Instant::now();
        let mut retries = RouteRetries::new(Backoff::ROUTE);
        for _ in 0..5 {
            retries.failed(
                change("10.0.0.0/24"),
                Retry::After(Duration::from_secs(7)),
                &"no".into(),
                now,
            );
        }
        assert_eq!(retries.next(), Some(now + Duration::from_secs(7)));
        retries.failed(change("10.0.0.0/24"), Retry::Backoff, &"no".into(), now);
        assert_eq!(retries.next(), Some(now + Backoff::ROUTE.base));
    }
}
