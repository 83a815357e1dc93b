//! Verdict of the status page: one line, and a next step for each trouble. Pure.
//!
//! What stands still comes first, then what needs somebody's attention, in each the oldest first. Work that takes its usual time is no
//! trouble, and neither is a replica that waits for its turn.

use serde::Serialize;

use crate::status::facts::{ControllerState, Deletion, Facts, LeaseFacts, Moment, ProviderFacts, WaitingGroup};

/// A fault this old is history: it stays in the provider's card.
const RECENT_FAULT: u64 = 600;

/// A process that has not read Nodes and Services after so many seconds does not just start.
const STARTING: u64 = 60;

/// A leader that has been silent for so many seconds by the Lease. Much longer than any usual lease duration, since clocks differ.
const SILENT: u64 = 60;

/// The answer, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// The worst that was found.
    pub state: State,
    /// One line.
    pub summary: String,
    /// What is not well.
    pub troubles: Vec<Trouble>,
}

/// How it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// All is well.
    Well,
    /// All is well, and another replica works.
    StandingBy,
    /// Nothing is known yet.
    Starting,
    /// Work goes on, and something needs somebody's attention.
    Attention,
    /// Something stands still.
    Failing,
}

/// Something that is not well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// How bad it is: `attention` or `failing`.
    pub state: State,
    /// What is wrong.
    pub what: String,
    /// Since when.
    pub since: Option<Moment>,
    /// What to do about it.
    pub next_step: String,
    /// Where on the page more is told.
    pub section: &'static str,
}

/// Judges the facts.
pub fn of(facts: &Facts) -> Verdict {
    let mut troubles = checks(facts);
    troubles.extend(leadership(facts));
    troubles.extend(facts.deletion.iter().filter_map(brake));
    troubles.extend(controllers(facts));
    troubles.extend(
        facts
            .providers
            .iter()
            .flat_map(|provider| provider_troubles(provider, facts.at)),
    );
    troubles.extend(pauses(facts));
    troubles.extend(facts.waiting.groups.iter().filter_map(waiting));
    // What stands still first; in each kind the oldest, and last what has no beginning.
    troubles.sort_by_key(|trouble| (std::cmp::Reverse(trouble.state), trouble.since.is_none(), trouble.since));
    let worst = troubles.iter().map(|trouble| trouble.state).max();
    let state = worst.unwrap_or_else(|| quiet(facts));
    Verdict {
        summary: summary(state, &troubles, facts),
        state,
        troubles,
    }
}

/// How it is when nothing is wrong.
fn quiet(facts: &Facts) -> State {
    let unseen = |lease: &LeaseFacts| !lease.seen || lease.holder.is_none();
    if is_starting(facts) || (!facts.leadership.leads && facts.leadership.leases.first().is_some_and(unseen)) {
        State::Starting
    } else if facts.leadership.leads {
        State::Well
    } else {
        State::StandingBy
    }
}

/// Whether the first list of Nodes and Services is awaited, and not for long.
fn is_starting(facts: &Facts) -> bool {
    let unsynced = facts.checks.iter().any(|check| check.name == SYNC);
    unsynced && facts.at.seconds_since(facts.process.started) < STARTING
}

/// The check of the first lists.
const SYNC: &str = "informer-sync";

fn summary(state: State, troubles: &[Trouble], facts: &Facts) -> String {
    let in_hand: usize = facts.waiting.groups.iter().map(|group| group.total).sum();
    match (state, troubles) {
        (State::Well, _) if in_hand == 0 => "All well.".into(),
        (State::Well, _) => format!("All well. {} in hand.", count(in_hand, "object is", "objects are")),
        (State::StandingBy, _) => "All well. This replica stands by; another one leads.".into(),
        (State::Starting, _) => "Starting: nothing is known yet.".into(),
        (_, [only]) => only.what.clone(),
        (State::Failing, all) => format!("{} not well.", count(all.len(), "thing is", "things are")),
        (_, all) => format!("{} attention.", count(all.len(), "thing needs", "things need")),
    }
}

/// A number and its noun.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn checks(facts: &Facts) -> Vec<Trouble> {
    let starting = is_starting(facts);
    let shown = facts.checks.iter().filter(|check| !(starting && check.name == SYNC));
    let trouble = |check: &crate::status::facts::FailedCheck| {
        let next_step = match check.name.as_str() {
            SYNC => "Can this process reach the API server, and may it list Nodes and Services? Its log says why not.",
            "leaderElection" => {
                "The process will be started anew by its liveness probe; look at its log and at the API server."
            }
            _ => "The process will be started anew by its liveness probe; its log says what it was busy with.",
        };
        Trouble {
            state: State::Failing,
            what: format!("Health check {} fails: {}.", check.name, check.why),
            since: None,
            next_step: next_step.into(),
            section: "controllers",
        }
    };
    shown.map(trouble).collect()
}

fn leadership(facts: &Facts) -> Option<Trouble> {
    let lease = facts
        .leadership
        .leases
        .first()
        .filter(|lease| !lease.leads && lease.seen)?;
    let (holder, renewed) = (lease.holder.as_ref()?, lease.renewed?);
    (facts.at.seconds_since(renewed) > SILENT).then(|| Trouble {
        state: State::Failing,
        what: format!("The leader {holder} has been silent, and this replica has not taken over."),
        since: Some(renewed),
        next_step: format!(
            "Look at Lease {} and at the logs of both; their clocks may differ.",
            lease.lease
        ),
        section: "leadership",
    })
}

fn brake(deletion: &Deletion) -> Option<Trouble> {
    let since = deletion.braked_since?;
    Some(Trouble {
        state: State::Failing,
        what: format!(
            "The deletion brake is engaged for provider {}: {} to be gone and {} deleted, only {} may go.",
            deletion.provider,
            count(deletion.candidates.total, "Node seems", "Nodes seem"),
            count(deletion.deleted, "was", "were"),
            deletion.allowed
        ),
        since: Some(since),
        next_step: "Check the cloud, its region and its credentials. If the machines are really gone, delete the Nodes by hand."
            .into(),
        section: "deletion",
    })
}

fn controllers(facts: &Facts) -> Vec<Trouble> {
    let of = |controller: &crate::status::facts::ControllerFacts| {
        let trouble = |trouble: &crate::status::facts::ControllerTrouble| Trouble {
            state: State::Failing,
            what: format!("{}.", trouble.what),
            since: controller.last_done,
            next_step: "It is tried again by itself. Does the cloud answer, and are the credentials right?".into(),
            section: "controllers",
        };
        controller.troubles.iter().map(trouble).collect::<Vec<_>>()
    };
    let at_work = |controller: &&crate::status::facts::ControllerFacts| controller.state == ControllerState::Running;
    facts.controllers.iter().filter(at_work).flat_map(of).collect()
}

fn provider_troubles(provider: &ProviderFacts, now: Moment) -> Vec<Trouble> {
    let name = &provider.name;
    let swap = provider
        .last_swap
        .as_ref()
        .filter(|swap| swap.refused)
        .map(|swap| Trouble {
            state: State::Attention,
            what: format!(
                "Changed files of provider {name} are refused ({}): {}",
                swap.result, swap.message
            ),
            since: Some(swap.at),
            next_step: "The last good one goes on. Put the files right, or put the old ones back.".into(),
            section: "providers",
        });
    let recent = |at: Moment| now.seconds_since(at) < RECENT_FAULT;
    let fault = provider.last_fault.as_ref().filter(|fault| recent(fault.at)).map(|fault| Trouble {
        state: State::Attention,
        what: format!("Provider {name} has misbehaved in a call: {}", fault.message),
        since: Some(fault.at),
        next_step: "The call is made again by itself. If it comes back, send what is under \u{201c}last fault\u{201d} to the makers of \
                    the provider, or go back to the version before."
            .into(),
        section: "providers",
    });
    swap.into_iter().chain(fault).collect()
}

fn pauses(facts: &Facts) -> Vec<Trouble> {
    let trouble = |host: &crate::status::facts::ApiHost| {
        let until = host.paused_until?;
        Some(Trouble {
            state: State::Attention,
            what: format!("The cloud asks for a pause: no requests to {} until {}.", host.host, until.clock()),
            since: None,
            next_step: "It goes on by itself. If it happens often, set a lower requestsPerSecond in the grant, or ask for a higher quota."
                .into(),
            section: "hosts",
        })
    };
    facts.api_hosts.iter().filter_map(trouble).collect()
}

fn waiting(group: &WaitingGroup) -> Option<Trouble> {
    if group.overdue == 0 {
        return None;
    }
    let number = group.overdue;
    let (what, next_step) = match group.controller {
        "cloud-node-controller" => (
            count(number, "Node waits to be initialised.", "Nodes wait to be initialised."),
            "Pods stay away from them until then. Read below what the cloud says about each.",
        ),
        "service-lb-controller" => (
            count(
                number,
                "Service waits for its load balancer.",
                "Services wait for their load balancers.",
            ),
            "Read below what the cloud says about each.",
        ),
        "node-route-controller" => (
            count(
                number,
                "Node has routes that are not right.",
                "Nodes have routes that are not right.",
            ),
            "Pods on them may be out of reach. Read below what the cloud says about each.",
        ),
        _ => (
            count(
                number,
                "Node is not Ready, and the cloud cannot say whether its machine exists.",
                "Nodes are not Ready, and the cloud cannot say whether their machines exist.",
            ),
            "They stay until it can. Read below what it says about each.",
        ),
    };
    Some(Trouble {
        state: State::Attention,
        what,
        since: group.oldest_since,
        next_step: next_step.into(),
        section: "waiting",
    })
}

#[cfg(test)]
pub(crate) mod tests;
