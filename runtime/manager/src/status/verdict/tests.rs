//! Facts are made up; each test changes what it is about.

use super::*;
use crate::status::facts::{
    ApiHost, ControllerFacts, ControllerTrouble, FailedCheck, FaultFacts, Leading, Listed, Process, SwapFacts, Waiting,
};

pub fn at(seconds: i64) -> Moment {
    Moment(jiff::Timestamp::from_second(1_800_000_000 + seconds).unwrap())
}

/// A process that leads and has nothing to do, an hour after its start.
pub fn facts() -> Facts {
    Facts {
        at: at(3600),
        process: Process {
            version: "0.1.0".into(),
            identity: "cp-1_a".into(),
            started: at(0),
        },
        leadership: Leading {
            elects: true,
            leads: true,
            leases: vec![lease("cp-1_a", true)],
        },
        providers: vec![provider()],
        api_hosts: vec![host()],
        deletion: vec![deletion()],
        controllers: vec![controller()],
        waiting: Waiting {
            nodes: Listed::from(Vec::new()),
            services: Listed::from(Vec::new()),
            groups: Vec::new(),
        },
        checks: Vec::new(),
    }
}

pub fn lease(holder: &str, leads: bool) -> LeaseFacts {
    LeaseFacts {
        lease: "kube-system/cloud-controller-manager".into(),
        leads,
        seen: true,
        holder: Some(holder.into()),
        since: Some(at(10)),
        renewed: Some(at(3599)),
        transitions: 1,
    }
}

pub fn provider() -> ProviderFacts {
    ProviderFacts {
        name: "east".into(),
        provider: "sim".into(),
        version: "1.2.3".into(),
        contract: "0.1".into(),
        component_digest: "ab".repeat(32),
        abilities: vec!["instances"],
        provider_id_prefixes: vec!["sim://".into()],
        granted: vec!["GET https://api.example.com:443".into()],
        lacking: Vec::new(),
        since: at(1),
        last_swap: None,
        last_fault: None,
    }
}

pub fn host() -> ApiHost {
    ApiHost {
        provider: "east".into(),
        host: "https://api.example.com".into(),
        per_second: Some(5.0),
        burst: Some(10),
        left: Some(7),
        paused_until: None,
        waiting: 0,
    }
}

pub fn deletion() -> Deletion {
    Deletion {
        provider: "sim".into(),
        policy: "delete",
        braked_since: None,
        deleted: 0,
        window_seconds: 600,
        allowed: 3,
        candidates: Listed::from(Vec::new()),
    }
}

pub fn controller() -> ControllerFacts {
    ControllerFacts {
        name: "cloud-node-controller",
        state: ControllerState::Running,
        why: None,
        ready: 0,
        in_work: 0,
        later: 0,
        oldest_since: None,
        last_done: Some(at(3000)),
        troubles: Vec::new(),
    }
}

fn group(controller: &'static str, total: usize, overdue: usize) -> WaitingGroup {
    WaitingGroup {
        controller,
        total,
        overdue,
        oldest_since: Some(at(3000)),
    }
}

#[test]
fn a_leader_with_nothing_to_do_is_well_and_says_so_in_two_words() {
    let verdict = of(&facts());
    assert_eq!(
        (verdict.state, verdict.summary.as_str(), verdict.troubles.len()),
        (State::Well, "All well.", 0)
    );
}

#[test]
fn usual_work_is_no_trouble_and_what_takes_long_is() {
    let mut facts = facts();
    facts.waiting.groups = vec![group("cloud-node-controller", 3, 0)];
    assert_eq!(of(&facts).summary, "All well. 3 objects are in hand.");
    facts.waiting.groups = vec![group("cloud-node-controller", 3, 1)];
    let verdict = of(&facts);
    assert_eq!(
        (verdict.state, verdict.summary.as_str()),
        (State::Attention, "1 Node waits to be initialised.")
    );
    assert_eq!(
        (verdict.troubles[0].since, verdict.troubles[0].section),
        (Some(at(3000)), "waiting")
    );
}

#[test]
fn a_replica_that_waits_is_well_unless_the_leader_is_silent() {
    let mut facts = facts();
    facts.leadership.leads = false;
    facts.leadership.leases = vec![lease("cp-2_b", false)];
    assert_eq!(of(&facts).state, State::StandingBy);
    facts.leadership.leases[0].renewed = Some(at(3600 - 61));
    let verdict = of(&facts);
    assert_eq!(verdict.state, State::Failing);
    assert!(
        verdict.summary.contains("The leader cp-2_b has been silent"),
        "{}",
        verdict.summary
    );
    facts.leadership.leases[0] = LeaseFacts {
        seen: false,
        holder: None,
        renewed: None,
        ..lease("", false)
    };
    assert_eq!(of(&facts).state, State::Starting, "it has not looked yet");
}

#[test]
fn a_process_that_just_starts_is_not_ill_and_one_that_still_does_after_a_minute_is() {
    let mut facts = facts();
    facts.checks = vec![FailedCheck {
        name: "informer-sync".into(),
        why: "the first list of Nodes is not complete".into(),
    }];
    facts.at = at(59);
    assert_eq!(of(&facts).state, State::Starting);
    facts.at = at(60);
    let verdict = of(&facts);
    assert_eq!(verdict.state, State::Failing);
    assert!(
        verdict.troubles[0].next_step.contains("may it list Nodes and Services"),
        "{verdict:?}"
    );
}

#[test]
fn what_stands_still_comes_before_what_needs_attention_and_the_oldest_first() {
    let mut facts = facts();
    facts.providers[0].last_swap = Some(SwapFacts {
        at: at(100),
        result: "probe",
        refused: true,
        message: "denied".into(),
        took_seconds: 1.0,
    });
    facts.api_hosts[0].paused_until = Some(at(3700));
    facts.waiting.groups = vec![group("service-lb-controller", 2, 2)];
    facts.deletion[0].braked_since = Some(at(3500));
    facts.deletion[0].candidates = Listed {
        total: 7,
        shown: Vec::new(),
    };
    facts.controllers[0].troubles = vec![ControllerTrouble {
        what: "The routes of the cloud could not be listed: denied".into(),
        next: at(3700),
    }];
    let verdict = of(&facts);
    let sections: Vec<&str> = verdict.troubles.iter().map(|trouble| trouble.section).collect();
    assert_eq!(sections, ["controllers", "deletion", "providers", "waiting", "hosts"]);
    assert_eq!(
        (verdict.state, verdict.summary.as_str()),
        (State::Failing, "5 things are not well.")
    );
    assert!(
        verdict.troubles[1]
            .what
            .contains("7 Nodes seem to be gone and 0 were deleted, only 3 may go."),
        "{verdict:?}"
    );
    assert!(verdict.troubles.iter().all(|trouble| !trouble.next_step.is_empty()));
}

#[test]
fn a_swap_that_was_not_refused_and_an_old_fault_are_history() {
    let mut facts = facts();
    let swap = SwapFacts {
        at: at(100),
        result: "swapped",
        refused: false,
        message: "sim 2 runs".into(),
        took_seconds: 1.0,
    };
    facts.providers[0].last_swap = Some(swap);
    let fault = |at| FaultFacts {
        at,
        kind: "trap",
        message: "provider \"sim 1\" crashed: unreachable".into(),
        output: String::new(),
    };
    facts.providers[0].last_fault = Some(fault(at(3000)));
    assert_eq!(of(&facts).state, State::Well);
    facts.providers[0].last_fault = Some(fault(at(3001)));
    let verdict = of(&facts);
    assert_eq!(
        (verdict.state, verdict.troubles[0].section),
        (State::Attention, "providers")
    );
    assert!(
        verdict
            .summary
            .starts_with("Provider east has misbehaved in a call: provider \"sim 1\" crashed"),
        "{}",
        verdict.summary
    );
}
