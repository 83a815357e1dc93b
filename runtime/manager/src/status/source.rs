//! Collects the facts of the status page from state in memory; no call, no request.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cloudwit_controllers::report::snapshot::{Deletions, Left, Object, Progress, Trouble, Unfinished, Work};
use cloudwit_controllers::{Controller, Explain, Health, Leadership, NodeDeletion, Reports};
use cloudwit_host::SwappableProvider;
use jiff::Timestamp;

mod providers;
mod volumes;

use crate::election::board::{LeaseBoard, LeaseStatus};
use crate::serving::health::checks::{Check, Checks, State};
use crate::status::causes::{self, Affected, Failing, HeldUp};
use crate::status::facts::{
    CandidateFacts, ControllerFacts, ControllerState, ControllerTrouble, Deletion, Facts, FailedCheck, Leading,
    LeaseFacts, Listed, Moment, NodeTotals, Process, RouteTotals, SHOWN, Search, ServiceTotals, Status, Totals,
    Waiting, WaitingGroup, WaitingObject,
};
use crate::status::source::providers::{api_hosts, of_provider};
use crate::volumes::DriverSource;

/// What takes longer than this is worth a look.
const LONG: Duration = Duration::from_secs(60);

/// What fails for longer than this is shown: a machine not found in its first seconds is normal.
const FAILS: Duration = Duration::from_secs(10);

/// All sources of facts.
#[derive(Clone)]
pub struct StatusSource {
    /// This process.
    pub process: Process,
    /// Whether it works.
    pub leadership: Leadership,
    /// The Leases it competes for; none without an election.
    pub boards: Vec<LeaseBoard>,
    /// The clouds.
    pub providers: Vec<Arc<SwappableProvider>>,
    /// What the controllers report about themselves.
    pub reports: Reports,
    /// Whether they are alive.
    pub health: Health,
    /// What objects wait for.
    pub explain: Explain,
    /// The CSI drivers.
    pub volumes: Vec<DriverSource>,
    /// The health checks.
    pub checks: Checks,
}

impl fmt::Debug for StatusSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatusSource").finish_non_exhaustive()
    }
}

fn failed_checks(checks: Vec<Check>) -> Vec<FailedCheck> {
    let failed = |check: Check| match check.state {
        State::Failed(why) => Some(FailedCheck { name: check.name, why }),
        State::Healthy | State::Standing(_) | State::Warning(_) => None,
    };
    checks.into_iter().filter_map(failed).collect()
}

impl StatusSource {
    /// How it is now, with what the health checks said. A query leaves of what waits only objects whose name has it, and finds the others.
    pub fn look(&self, checks: Vec<Check>, query: Option<&str>) -> Status {
        let now = Now(Timestamp::now());
        let all = self.reports.unfinished();
        let leases: Vec<LeaseFacts> = self.boards.iter().map(|board| lease(board.status())).collect();
        Status::of(Facts {
            at: Moment(now.0),
            process: self.process.clone(),
            leadership: Leading {
                elects: !leases.is_empty(),
                leads: self.leadership.is_leading(),
                leases,
            },
            providers: self
                .providers
                .iter()
                .map(|provider| of_provider(provider.status()))
                .collect(),
            api_hosts: self
                .providers
                .iter()
                .flat_map(|provider| api_hosts(provider, now))
                .collect(),
            deletion: self
                .reports
                .deletions()
                .into_iter()
                .map(|deletions| deletion(deletions, now))
                .collect(),
            controllers: self.controllers(now),
            totals: self.totals(),
            causes: causes::group(self.failures(&all, now)),
            waiting: self.waiting(&all, query, now),
            volumes: self.volumes.iter().map(|driver| volumes::facts(driver, now)).collect(),
            search: query.map(|query| self.search(query)),
            checks: failed_checks(checks),
        })
    }

    fn controllers(&self, now: Now) -> Vec<ControllerFacts> {
        let health = self.health.controllers();
        let hangs = |controller| health.iter().any(|(who, hangs)| *who == controller && hangs.is_some());
        Controller::ALL
            .into_iter()
            .map(|controller| of_controller(controller, self.reports.work(controller), hangs(controller), now))
            .collect()
    }

    /// Those whose name has the part that is looked for; all where nothing is.
    fn waiting(&self, all: &[Left], query: Option<&str>, now: Now) -> Waiting {
        let fits = |left: &&Left| query.is_none_or(|query| named(&left.object.object).contains(query));
        let (nodes, services): (Vec<&Left>, Vec<&Left>) = all
            .iter()
            .filter(fits)
            .partition(|left| matches!(left.object.object, Object::Node(_)));
        let listed = |objects: Vec<&Left>| Listed {
            total: objects.len(),
            shown: objects
                .into_iter()
                .take(SHOWN)
                .map(|left| self.object(left, now))
                .collect(),
        };
        Waiting {
            nodes: listed(nodes),
            services: listed(services),
            groups: groups(all, now),
        }
    }

    fn object(&self, left: &Left, now: Now) -> WaitingObject {
        let explanation = match &left.object.object {
            Object::Node(name) => self.explain.node(name),
            Object::Service(namespace, name) => self.explain.service(namespace, name),
        };
        let statements = explanation.map_or_else(Vec::new, |explanation| explanation.statements);
        let own = statements
            .into_iter()
            .find(|statement| statement.controller == left.controller.name());
        WaitingObject {
            name: named(&left.object.object),
            controller: left.controller.name(),
            provider: left.provider.clone(),
            since: left.object.since.map(|since| now.ago(since)),
            failed: left.object.failed,
            cause: left.object.cause.as_ref().map(|cause| cause.kind.label()),
            reason: left.object.cause.as_ref().map(|cause| cause.reason.to_string()),
            // It may be done by now.
            why: own.map_or_else(|| "has just changed.".into(), |own| own.text),
            explain: explain_page(&left.object.object),
        }
    }

    fn failures(&self, all: &[Left], now: Now) -> Vec<Failing> {
        let mut failures = failures(all, self.reports.troubles(), now);
        failures.extend(self.volumes.iter().flat_map(volumes::failures));
        failures
    }

    fn totals(&self) -> Totals {
        let all = self.explain.totals();
        let routes = self.reports.routes().into_iter().map(|routes| RouteTotals {
            desired: routes.desired,
            missing: routes.missing,
        });
        Totals {
            nodes: NodeTotals {
                total: all.nodes,
                ready: all.ready,
                uninitialised: all.uninitialised,
            },
            services: ServiceTotals {
                total: all.services,
                load_balancers: all.load_balancers,
                with_address: all.with_address,
            },
            routes: routes.reduce(|one, other| RouteTotals {
                desired: one.desired + other.desired,
                missing: one.missing + other.missing,
            }),
        }
    }

    fn search(&self, query: &str) -> Search {
        Search {
            query: query.to_owned(),
            found: self.explain.find(query).iter().map(affected).collect::<Vec<_>>().into(),
        }
    }
}

/// `NAME` of a Node, `NAMESPACE/NAME` of a Service.
fn named(object: &Object) -> String {
    match object {
        Object::Node(name) => name.clone(),
        Object::Service(namespace, name) => format!("{namespace}/{name}"),
    }
}

fn explain_page(object: &Object) -> String {
    match object {
        Object::Node(name) => format!("/explain/node/{name}"),
        Object::Service(namespace, name) => format!("/explain/service/{namespace}/{name}"),
    }
}

fn affected(object: &Object) -> Affected {
    Affected {
        kind: match object {
            Object::Node(_) => "Node",
            Object::Service(..) => "Service",
        },
        name: named(object),
        explain: Some(explain_page(object)),
    }
}

/// What fails, and has for long enough to be worth a look.
fn failures(all: &[Left], troubles: Vec<(Controller, String, Trouble)>, now: Now) -> Vec<Failing> {
    let of_object = |left: &Left| {
        Some(Failing {
            provider: left.provider.clone(),
            cause: left.object.cause.clone()?,
            since: left.object.since.map(|since| now.ago(since)),
            held_up: HeldUp::Object(left.controller.name(), affected(&left.object.object)),
        })
    };
    let of_task = |(_, provider, trouble): (Controller, String, Trouble)| Failing {
        provider,
        cause: trouble.cause,
        since: None,
        held_up: HeldUp::Task(trouble.what),
    };
    let overdue = all.iter().filter(|left| is_overdue(&left.object));
    let objects = overdue.filter_map(of_object);
    let troubles = troubles
        .into_iter()
        .filter(|(_, _, trouble)| trouble.cause.is_failure());
    objects.chain(troubles.map(of_task)).collect()
}

/// Now, from which spans become moments.
#[derive(Clone, Copy)]
pub(super) struct Now(Timestamp);

impl Now {
    pub(super) fn ago(self, span: Duration) -> Moment {
        Moment(self.0.checked_sub(span).unwrap_or(self.0))
    }

    pub(super) fn after(self, span: Duration) -> Moment {
        Moment(self.0.checked_add(span).unwrap_or(self.0))
    }
}

fn lease(status: LeaseStatus) -> LeaseFacts {
    let seen = status.holder.is_some();
    let holder = status.holder.unwrap_or_default();
    LeaseFacts {
        lease: status.lease,
        leads: status.leads,
        seen,
        holder: holder.identity,
        since: holder.since.map(Moment),
        renewed: holder.renewed.map(Moment),
        transitions: holder.transitions,
    }
}

fn deletion(deletions: Deletions, now: Now) -> Deletion {
    let candidate = |candidate: cloudwit_controllers::report::snapshot::Candidate| CandidateFacts {
        node: candidate.node,
        provider_id: candidate.provider_id,
        since: now.ago(candidate.since),
        answers: candidate.answers,
        held: candidate.held,
    };
    let candidates: Vec<CandidateFacts> = deletions.candidates.into_iter().map(candidate).collect();
    Deletion {
        provider: deletions.provider,
        policy: match deletions.policy {
            NodeDeletion::Off => "off",
            NodeDeletion::Taint => "taint",
            NodeDeletion::Delete => "delete",
        },
        braked_since: deletions.brake.map(|(_, engaged)| now.ago(engaged)),
        deleted: deletions.deleted,
        window_seconds: deletions.window.as_secs(),
        allowed: deletions.allowed,
        candidates: candidates.into(),
    }
}

/// One that has a loop for each provider is shown as a whole.
fn of_controller(controller: Controller, work: Work, hangs: bool, now: Now) -> ControllerFacts {
    let (state, why, loops) = match work {
        Work::Off(why) => (ControllerState::Off, Some(why), Vec::new()),
        Work::NotBegun => (ControllerState::StandingBy, None, Vec::new()),
        Work::Begun(loops) if hangs => (ControllerState::Hanging, None, loops),
        Work::Begun(loops) => (ControllerState::Running, None, loops),
    };
    let sum = |number: fn(&Progress) -> usize| loops.iter().map(number).sum();
    let troubles = loops.iter().filter_map(|progress| progress.trouble.as_ref());
    ControllerFacts {
        name: controller.name(),
        state,
        why,
        ready: sum(|progress| progress.ready),
        in_work: sum(|progress| progress.in_work),
        later: sum(|progress| progress.later),
        oldest_since: loops
            .iter()
            .filter_map(|progress| progress.oldest)
            .max()
            .map(|span| now.ago(span)),
        // As of several loops the one that has been without success for longest is shown.
        last_done: loops
            .iter()
            .filter_map(|progress| progress.last_done)
            .max()
            .map(|span| now.ago(span)),
        troubles: troubles
            .map(|trouble| ControllerTrouble {
                what: format!("{}: {}", trouble.what, trouble.cause.reason),
                next: now.after(trouble.next),
            })
            .collect(),
    }
}

fn groups(all: &[Left], now: Now) -> Vec<WaitingGroup> {
    let mut groups = BTreeMap::<Controller, WaitingGroup>::new();
    for Left { controller, object, .. } in all {
        let group = groups.entry(*controller).or_insert_with(|| WaitingGroup {
            controller: controller.name(),
            total: 0,
            overdue: 0,
            slow: 0,
            oldest_since: None,
        });
        group.total += 1;
        group.overdue += usize::from(is_overdue(object));
        group.slow += usize::from(is_overdue(object) && object.cause.is_none());
        let since = object.since.map(|since| now.ago(since));
        group.oldest_since = group.oldest_since.into_iter().chain(since).min();
    }
    groups.into_values().collect()
}

fn is_overdue(object: &Unfinished) -> bool {
    match object.since {
        Some(since) => since > LONG || (object.failed && since > FAILS),
        None => object.failed,
    }
}

#[cfg(test)]
mod tests;
