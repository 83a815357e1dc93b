//! Verdict of the status page: one line, and a next step for each trouble. Pure.
//!
//! What stands still comes first, then what needs an operator's attention, in each the oldest first. Work that takes its usual time is no
//! trouble, and neither is a replica that waits for its turn.

use cloudwit_controllers::report::cause::CauseKind;
use serde::Serialize;

use crate::status::causes::Affected;
use crate::status::facts::{Deletion, Facts, LeaseFacts, Listed, Moment, ProviderFacts, WaitingGroup};

mod cause;

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
    /// An object is invalid: that object waits, and nothing else does.
    Notice,
    /// Work continues, and an operator should act.
    Attention,
    /// Something stands still.
    Failing,
}

/// Something that is not well.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// How bad it is: `notice`, `attention` or `failing`.
    pub state: State,
    /// What is wrong.
    pub what: String,
    /// Since when.
    pub since: Option<Moment>,
    /// What to do about it.
    pub next_step: String,
    /// Section of the page with details.
    pub section: &'static str,
    /// What it holds up, in a sentence.
    pub behind: Option<String>,
    /// The objects that it holds up, where it is the cause of their failures.
    pub objects: Option<Listed<Affected>>,
}

/// Judges the facts.
pub fn of(facts: &Facts) -> Verdict {
    let mut troubles = checks(facts);
    troubles.extend(leadership(facts));
    troubles.extend(facts.deletion.iter().filter_map(brake));
    troubles.extend(facts.causes.iter().map(cause::trouble));
    troubles.extend(
        facts
            .providers
            .iter()
            .flat_map(|provider| provider_troubles(provider, facts)),
    );
    troubles.extend(pauses(facts));
    troubles.extend(facts.waiting.groups.iter().filter_map(slow));
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
        (State::Well, _) => format!("All well. {} in progress.", count(in_hand, "object is", "objects are")),
        (State::StandingBy, _) => "All well. This replica stands by; another one leads.".into(),
        (State::Starting, _) => "Starting: nothing is known yet.".into(),
        (_, [only]) => only.what.clone(),
        (State::Failing, all) => format!("Not well: {}.", numbers(all)),
        (State::Attention, all) => format!("Needs attention: {}.", numbers(all)),
        (_, all) => format!("All well but for {}.", numbers(all)),
    }
}

/// `1 critical, 2 warnings, 1 notice`.
fn numbers(troubles: &[Trouble]) -> String {
    let severities = [
        (State::Failing, "critical", "critical"),
        (State::Attention, "warning", "warnings"),
        (State::Notice, "notice", "notices"),
    ];
    let number = |state| troubles.iter().filter(|trouble| trouble.state == state).count();
    let words = severities.map(|(state, one, many)| (number(state), one, many));
    let words = words.into_iter().filter(|(number, ..)| *number > 0);
    let words: Vec<String> = words.map(|(number, one, many)| count(number, one, many)).collect();
    words.join(", ")
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
            "leaderElection" => "The liveness probe will restart the process; see its log and at the API server.",
            _ => "The liveness probe will restart the process; its log shows what it was doing.",
        };
        Trouble {
            state: State::Failing,
            what: format!("Health check {} fails: {}.", check.name, check.why),
            since: None,
            next_step: next_step.into(),
            section: "controllers",
            behind: None,
            objects: None,
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
        behind: None,
        objects: None,
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
        behind: None,
        objects: None,
    })
}

fn provider_troubles(provider: &ProviderFacts, facts: &Facts) -> Vec<Trouble> {
    let (name, now) = (&provider.name, facts.at);
    let is_told = has_cause(facts, CauseKind::Fault, name);
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
            next_step: "The last good one stays in use. Fix the files, or put the old ones back.".into(),
            section: "providers",
            behind: None,
            objects: None,
        });
    let recent = |at: Moment| now.seconds_since(at) < RECENT_FAULT;
    let fault = provider.last_fault.as_ref().filter(|fault| recent(fault.at) && !is_told).map(|fault| Trouble {
        state: State::Attention,
        what: format!("Provider {name} has misbehaved in a call: {}", fault.message),
        since: Some(fault.at),
        next_step: "The call is made again by itself. If it comes back, send what is under \u{201c}last fault\u{201d} to the makers of \
                    the provider, or go back to the version before."
            .into(),
        section: "providers",
        behind: None,
        objects: None,
    });
    swap.into_iter().chain(fault).collect()
}

/// Whether there is a cause for it.
fn has_cause(facts: &Facts, kind: CauseKind, provider: &str) -> bool {
    let mut causes = facts.causes.iter();
    causes.any(|cause| cause.kind == kind && cause.provider == provider)
}

fn pauses(facts: &Facts) -> Vec<Trouble> {
    let trouble = |host: &crate::status::facts::ApiHost| {
        let until = host.paused_until?;
        let is_told = has_cause(facts, CauseKind::RateLimited, &host.provider);
        (!is_told).then(|| Trouble {
            state: State::Attention,
            what: format!("The cloud set a pause: no requests to {} until {}.", host.host, until.clock()),
            since: None,
            next_step: "Requests resume by themselves. If it happens often, set a lower requestsPerSecond in the grant, or request a higher quota."
                .into(),
            section: "hosts",
            behind: None,
            objects: None,
        })
    };
    facts.api_hosts.iter().filter_map(trouble).collect()
}

/// What has not failed and takes long all the same.
fn slow(group: &WaitingGroup) -> Option<Trouble> {
    (group.slow > 0).then(|| Trouble {
        state: State::Attention,
        what: format!(
            "{}, and nothing has failed.",
            cause::waiting(group.controller, group.slow)
        ),
        since: group.oldest_since,
        next_step: "The cloud takes long, or much is to be done. Read below what each waits for.".into(),
        section: "waiting",
        behind: None,
        objects: None,
    })
}

#[cfg(test)]
pub(crate) mod tests;
