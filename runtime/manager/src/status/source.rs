//! Collects the facts of the status page from state in memory; no call, no request.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cloudwit_controllers::report::snapshot::{Deletions, Object, Progress, Unfinished, Work};
use cloudwit_controllers::{Controller, Explain, Health, Leadership, NodeDeletion, Reports};
use cloudwit_host::{LastFault, ProviderStatus, Swap, SwappableProvider};
use jiff::Timestamp;

use crate::election::board::{LeaseBoard, LeaseStatus};
use crate::serving::health::checks::{Check, Checks, State};
use crate::status::facts::{
    ApiHost, CandidateFacts, ControllerFacts, ControllerState, ControllerTrouble, Deletion, Facts, FailedCheck,
    FaultFacts, Leading, LeaseFacts, Listed, Moment, Process, ProviderFacts, SHOWN, Status, SwapFacts, Waiting,
    WaitingGroup, WaitingObject,
};

/// What takes longer than this is worth a look.
const LONG: Duration = Duration::from_secs(60);

/// What fails for longer than this is worth a look: a cloud that does not know a machine in its first seconds is no news.
const FAILS: Duration = Duration::from_secs(10);

/// Everybody who knows something.
#[derive(Clone)]
pub struct StatusSource {
    /// The name of this process in leader election.
    pub identity: String,
    /// When it was started.
    pub started: Timestamp,
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
    /// How it is now, with what the health checks said.
    pub fn look(&self, checks: Vec<Check>) -> Status {
        let now = Now(Timestamp::now());
        let leases: Vec<LeaseFacts> = self.boards.iter().map(|board| lease(board.status())).collect();
        Status::of(Facts {
            at: Moment(now.0),
            process: Process {
                version: env!("CARGO_PKG_VERSION").into(),
                identity: self.identity.clone(),
                started: Moment(self.started),
            },
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
            waiting: self.waiting(now),
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

    fn waiting(&self, now: Now) -> Waiting {
        let all = self.reports.unfinished();
        let groups = groups(&all, now);
        let (nodes, services): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|(_, unfinished)| matches!(unfinished.object, Object::Node(_)));
        let listed = |objects: Vec<(Controller, Unfinished)>| Listed {
            total: objects.len(),
            shown: objects
                .into_iter()
                .take(SHOWN)
                .map(|(controller, object)| self.object(controller, object, now))
                .collect(),
        };
        Waiting {
            nodes: listed(nodes),
            services: listed(services),
            groups,
        }
    }

    fn object(&self, controller: Controller, unfinished: Unfinished, now: Now) -> WaitingObject {
        let (name, explain, explanation) = match &unfinished.object {
            Object::Node(name) => (name.clone(), format!("/explain/node/{name}"), self.explain.node(name)),
            Object::Service(namespace, name) => (
                format!("{namespace}/{name}"),
                format!("/explain/service/{namespace}/{name}"),
                self.explain.service(namespace, name),
            ),
        };
        let statements = explanation.map_or_else(Vec::new, |explanation| explanation.statements);
        let own = statements
            .into_iter()
            .find(|statement| statement.controller == controller.name());
        WaitingObject {
            name,
            controller: controller.name(),
            since: unfinished.since.map(|since| now.ago(since)),
            failed: unfinished.failed,
            // It may be done by now.
            why: own.map_or_else(|| "has just changed.".into(), |own| own.text),
            explain,
        }
    }
}

/// Now, from which spans become moments.
#[derive(Clone, Copy)]
struct Now(Timestamp);

impl Now {
    fn ago(self, span: Duration) -> Moment {
        Moment(self.0.checked_sub(span).unwrap_or(self.0))
    }

    fn after(self, span: Duration) -> Moment {
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

fn of_provider(status: ProviderStatus) -> ProviderFacts {
    ProviderFacts {
        name: status.name,
        provider: status.provider,
        version: status.version,
        contract: status.contract,
        component_digest: status.component_digest,
        abilities: status.abilities.names(),
        provider_id_prefixes: status.provider_id_prefixes,
        granted: status.granted,
        lacking: status.lacking,
        since: Moment(status.since),
        last_swap: status.last_swap.map(swap),
        last_fault: status.last_fault.map(fault),
    }
}

fn swap(swap: Swap) -> SwapFacts {
    SwapFacts {
        at: Moment(swap.at),
        result: swap.result.label(),
        refused: swap.result.is_refusal(),
        message: swap.message,
        took_seconds: swap.took.as_secs_f64(),
    }
}

fn fault(LastFault { at, mut fault }: LastFault) -> FaultFacts {
    let output = std::mem::take(&mut fault.output);
    FaultFacts {
        at: Moment(at),
        kind: fault.kind.label(),
        message: fault.to_string(),
        output,
    }
}

fn api_hosts(provider: &SwappableProvider, now: Now) -> Vec<ApiHost> {
    let host = |budget: cloudwit_host::BudgetStatus| ApiHost {
        provider: provider.name().to_owned(),
        host: budget.host,
        per_second: budget.rate.map(|rate| rate.per_second),
        burst: budget.rate.map(|rate| rate.burst),
        left: budget.rate.map(|rate| rate.left),
        paused_until: budget.paused_for.map(|pause| now.after(pause)),
        waiting: budget.waiting,
    };
    provider.budgets().into_iter().map(host).collect()
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
        // As of several loops the one that has been without success for longest tells most.
        last_done: loops
            .iter()
            .filter_map(|progress| progress.last_done)
            .max()
            .map(|span| now.ago(span)),
        troubles: troubles
            .map(|trouble| ControllerTrouble {
                what: trouble.what.clone(),
                next: now.after(trouble.next),
            })
            .collect(),
    }
}

fn groups(all: &[(Controller, Unfinished)], now: Now) -> Vec<WaitingGroup> {
    let mut groups = BTreeMap::<Controller, WaitingGroup>::new();
    for (controller, object) in all {
        let group = groups.entry(*controller).or_insert_with(|| WaitingGroup {
            controller: controller.name(),
            total: 0,
            overdue: 0,
            oldest_since: None,
        });
        group.total += 1;
        group.overdue += usize::from(is_overdue(object));
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
