//! What is wrong with the routes of each Node: what failed, why, when it is retried.
//!
//! Kept by `route` after each pass, read by [`route::explain`](crate::route::explain).
//!
//! Only what is wrong is kept, so that it costs nothing while all is well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::report::cause::{Cause, CauseKind};
use crate::report::snapshot::{Object, Progress, Routes, Trouble, Unfinished};
use crate::route::plan::RoutePlan;
use crate::route::retries::RouteRetries;

/// What could not be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failed {
    /// A route to the Pod range could not be created.
    Create,
    /// A route that is in the way or no longer desired could not be deleted.
    Delete,
}

/// A route change that has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedChange {
    /// What was tried.
    pub what: Failed,
    /// Destination.
    pub range: String,
    /// The provider's words.
    pub reason: Arc<str>,
    /// How often it has failed in a row; pauses that the cloud set do not count.
    pub failures: u32,
    /// Whether the cloud works on it and nothing failed.
    pub pending: bool,
    /// Time until the next try.
    pub next: Duration,
}

/// What is known about the routes of one Node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeRoutes {
    /// Whether the routes of the cloud have been compared with the Nodes at least once.
    pub compared: bool,
    /// Why the last list failed, and the time until the next one.
    pub list_failed: Option<(String, Duration)>,
    /// Changes that failed.
    pub failed: Vec<FailedChange>,
    /// Pod ranges that get no route, and why not.
    pub refused: Vec<(String, String)>,
}

#[derive(Debug)]
struct FailedRoute {
    what: Failed,
    range: String,
    cause: Cause,
    failures: u32,
    pending: bool,
    due: Instant,
}

/// Everything that is wrong, by Node.
#[derive(Debug, Default)]
pub struct RouteTroubles {
    compared: bool,
    /// When the routes were last listed and compared.
    compared_at: Option<Instant>,
    list_failed: Option<(Cause, Instant)>,
    /// The Nodes that a failed list concerns, where it does not concern all.
    left_out: Option<BTreeSet<String>>,
    failed: BTreeMap<String, Vec<FailedRoute>>,
    refused: BTreeMap<String, Vec<(String, String)>>,
    routes: Routes,
}

impl RouteTroubles {
    /// The routes could not be listed; the next list comes at `due`.
    pub fn list_failed(&mut self, cause: Cause, due: Instant) {
        self.list_failed = Some((cause, due));
        self.left_out = None;
    }

    /// The routes of one provider could not be listed, and these Nodes are its; after [`note`](Self::note).
    pub fn list_failed_for(&mut self, nodes: BTreeSet<String>, cause: Cause, due: Instant) {
        self.list_failed = Some((cause, due));
        self.left_out = Some(nodes);
    }

    /// A pass or a retry is over: this is what is left of it.
    pub fn note(&mut self, plan: &RoutePlan, retries: &RouteRetries) {
        self.compared = true;
        self.compared_at = Some(Instant::now());
        self.list_failed = None;
        self.left_out = None;
        self.routes.desired = plan.nodes.values().map(BTreeSet::len).sum();
        self.note_retries(retries);
        self.refused.clear();
        for refusal in &plan.refused {
            let why = (refusal.range.clone(), refusal.reason.clone());
            self.refused.entry(refusal.node.clone()).or_default().push(why);
        }
    }

    /// Some changes were tried again, without a list.
    pub fn note_retries(&mut self, retries: &RouteRetries) {
        self.failed.clear();
        self.routes.missing = retries.missing().len();
        for attempt in retries.attempts() {
            let mut note = |node: &str, what, range: &str| {
                let waiting = FailedRoute {
                    what,
                    range: range.to_owned(),
                    cause: attempt.cause.clone(),
                    failures: attempt.failures,
                    pending: attempt.is_pending(),
                    due: attempt.due,
                };
                self.failed.entry(node.to_owned()).or_default().push(waiting);
            };
            for route in &attempt.change.delete {
                if let Some(node) = &route.node {
                    note(node, Failed::Delete, &route.destination);
                }
            }
            if let Some(route) = &attempt.change.create {
                note(&route.node.name, Failed::Create, &route.destination);
            }
        }
    }

    /// How much is left to do.
    pub fn progress(&self, now: Instant) -> Progress {
        let trouble = |(cause, due): &(Cause, Instant)| Trouble {
            what: "The routes of the cloud could not be listed",
            cause: cause.clone(),
            next: due.saturating_duration_since(now),
        };
        Progress {
            later: self.failed.values().map(Vec::len).sum(),
            last_done: self.compared_at.map(|at| now - at),
            trouble: self.list_failed.as_ref().map(trouble),
            ..Progress::default()
        }
    }

    /// How many routes there are; none before they were compared.
    pub fn routes(&self) -> Option<Routes> {
        self.compared.then_some(self.routes)
    }

    /// The Nodes whose routes are not right.
    pub fn nodes(&self) -> Vec<Unfinished> {
        let names: BTreeSet<&String> = self.failed.keys().chain(self.refused.keys()).collect();
        let unfinished = |name: &String| {
            let cause = self.cause(name);
            Unfinished {
                object: Object::Node(name.clone()),
                since: None,
                failed: cause.is_some(),
                cause,
            }
        };
        names.into_iter().map(unfinished).collect()
    }

    /// Why a route of the Node is not there: a change that failed, else a Pod range that gets none.
    fn cause(&self, node: &str) -> Option<Cause> {
        let changes = self.failed.get(node).into_iter().flatten();
        let failed = changes
            .filter(|change| !change.pending)
            .map(|change| change.cause.clone());
        let ranges = self.refused.get(node).into_iter().flatten();
        let refused = ranges.map(|(range, why)| Cause::new(CauseKind::Object, format!("Pod range {range}: {why}")));
        failed.chain(refused).next()
    }

    /// What is known about a Node's routes.
    pub fn of(&self, node: &str, now: Instant) -> NodeRoutes {
        let failed = self.failed.get(node).into_iter().flatten().map(|waiting| FailedChange {
            what: waiting.what,
            range: waiting.range.clone(),
            reason: waiting.cause.reason.clone(),
            failures: waiting.failures,
            pending: waiting.pending,
            next: waiting.due.saturating_duration_since(now),
        });
        let left_out = self.left_out.as_ref();
        let concerns = |_: &&(Cause, Instant)| left_out.is_none_or(|nodes| nodes.contains(node));
        let list_failed = self.list_failed.as_ref().filter(concerns);
        NodeRoutes {
            compared: self.compared && !left_out.is_some_and(|nodes| nodes.contains(node)),
            list_failed: list_failed.map(|(cause, due)| (cause.reason.to_string(), due.saturating_duration_since(now))),
            failed: failed.collect(),
            refused: self.refused.get(node).cloned().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use cloudwit_model::{NewRoute, NodeRef, Retry, Route};

    use super::*;
    use crate::queue::Backoff;
    use crate::route::plan::{Refusal, RouteChange};

    fn change(deletes_for: Option<&str>, creates_for: Option<&str>) -> RouteChange {
        RouteChange {
            network: "10.0.1.0/24".parse().unwrap(),
            delete: deletes_for
                .map(|node| Route {
                    id: "r1".into(),
                    destination: "10.0.1.0/24".into(),
                    node: Some(node.into()),
                    next_hops: Vec::new(),
                    blackhole: false,
                })
                .into_iter()
                .collect(),
            create: creates_for.map(|node| NewRoute {
                name_hint: "u1".into(),
                destination: "10.0.1.0/24".into(),
                node: NodeRef {
                    name: node.into(),
                    ..NodeRef::default()
                },
            }),
        }
    }

    #[test]
    fn failed_list_is_reported_for_that_providers_nodes() {
        let (now, mut troubles) = (Instant::now(), RouteTroubles::default());
        troubles.note(&RoutePlan::default(), &RouteRetries::new(Backoff::ROUTE));
        troubles.list_failed_for(["hers".to_owned()].into(), "down".into(), now);
        let (hers, other) = (troubles.of("hers", now), troubles.of("other", now));
        assert_eq!(
            (hers.compared, hers.list_failed),
            (false, Some(("down".into(), Duration::ZERO)))
        );
        assert_eq!((other.compared, other.list_failed), (true, None));
        assert!(troubles.progress(now).trouble.is_some());
        troubles.note(&RoutePlan::default(), &RouteRetries::new(Backoff::ROUTE));
        assert!(troubles.of("hers", now).compared && troubles.of("hers", now).list_failed.is_none());
    }

    #[test]
    fn node_troubles_are_its_own_and_cleared_when_over() {
        let (now, mut retries, mut troubles) = (
            Instant::now(),
            RouteRetries::new(Backoff::ROUTE),
            RouteTroubles::default(),
        );
        assert_eq!(troubles.of("new", now), NodeRoutes::default());
        troubles.list_failed("down".into(), now + Duration::from_secs(9));
        let known = troubles.of("new", now + Duration::from_secs(2));
        assert_eq!(known.list_failed, Some(("down".into(), Duration::from_secs(7))));

        retries.failed(
            change(Some("old"), Some("new")),
            Retry::Backoff,
            &"denied: no".into(),
            now,
        );
        let plan = RoutePlan {
            refused: vec![Refusal {
                node: "other".into(),
                uid: String::new(),
                range: "x".into(),
                reason: "it is not a CIDR".into(),
            }],
            ..RoutePlan::default()
        };
        troubles.note(&plan, &retries);
        let of = |node| troubles.of(node, now + Duration::from_secs(1));
        let failed = |what| FailedChange {
            what,
            range: "10.0.1.0/24".into(),
            reason: "denied: no".into(),
            failures: 1,
            pending: false,
            next: Duration::from_secs(4),
        };
        assert_eq!(of("old").failed, [failed(Failed::Delete)]);
        assert_eq!(of("new").failed, [failed(Failed::Create)]);
        assert_eq!(of("other").refused, [("x".to_owned(), "it is not a CIDR".to_owned())]);
        let kinds = troubles
            .nodes()
            .into_iter()
            .map(|node| node.cause.map(|cause| cause.kind));
        assert_eq!(
            kinds.collect::<Vec<_>>(),
            [CauseKind::Cloud, CauseKind::Cloud, CauseKind::Object].map(Some)
        );
        assert_eq!(troubles.routes(), Some(Routes { desired: 0, missing: 1 }));
        assert!(of("new").compared && of("new").list_failed.is_none());

        retries.succeeded(&"10.0.1.0/24".parse().unwrap());
        troubles.note_retries(&retries);
        assert_eq!(troubles.of("new", now).failed, []);
        assert_eq!(troubles.of("other", now).refused.len(), 1, "a retry looks at no ranges");
    }
}
