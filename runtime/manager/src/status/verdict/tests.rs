//! Facts are made up; each test changes what it is about.

use super::*;
use crate::status::causes::CauseFacts;
use crate::status::facts::{
    ApiHost, ControllerFacts, ControllerState, FailedCheck, FaultFacts, HostError, Leading, Listed, Process, SwapFacts,
    Totals, Waiting,
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
            cluster: "blue".into(),
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
        totals: Totals::default(),
        causes: Vec::new(),
        volumes: Vec::new(),
        search: None,
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
        requests: 12,
        errors: 1,
        errors_in_a_row: 0,
        last_success: Some(at(3590)),
        last_error: Some(HostError {
            at: at(100),
            what: "503".into(),
        }),
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
        slow: overdue,
        oldest_since: Some(at(3000)),
    }
}

#[test]
fn idle_leader_is_healthy_in_two_words() {
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
    assert_eq!(of(&facts).summary, "All well. 3 objects are in progress.");
    facts.waiting.groups = vec![group("cloud-node-controller", 3, 1)];
    let verdict = of(&facts);
    assert_eq!(
        (verdict.state, verdict.summary.as_str()),
        (
            State::Attention,
            "1 Node waits to be initialised, and nothing has failed."
        )
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
fn starting_process_is_healthy_until_a_minute_passed() {
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
fn stuck_precedes_attention_and_oldest_comes_first() {
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
    facts.causes = vec![cause(
        CauseKind::Denied,
        &["The routes of the cloud could not be listed"],
        at(50),
    )];
    let verdict = of(&facts);
    let sections: Vec<&str> = verdict.troubles.iter().map(|trouble| trouble.section).collect();
    assert_eq!(sections, ["waiting", "deletion", "providers", "waiting", "hosts"]);
    assert_eq!(
        (verdict.state, verdict.summary.as_str()),
        (State::Failing, "Not well: 2 critical, 3 warnings.")
    );
    assert!(
        verdict.troubles[1]
            .what
            .contains("7 Nodes seem to be gone and 0 were deleted, only 3 may go."),
        "{verdict:?}"
    );
    assert!(verdict.troubles.iter().all(|trouble| !trouble.next_step.is_empty()));
}

fn cause(kind: CauseKind, tasks: &[&'static str], since: Moment) -> CauseFacts {
    CauseFacts {
        provider: "east".into(),
        kind,
        message: "no".into(),
        other_messages: 0,
        since: Some(since),
        tasks: tasks.to_vec(),
        counts: [("service-lb-controller", 1)].into(),
        objects: Listed {
            total: 1,
            shown: Vec::new(),
        },
    }
}

#[test]
fn the_mistake_of_one_user_is_a_notice_beside_all_well() {
    let mut facts = facts();
    facts.causes = vec![cause(CauseKind::Object, &[], at(1))];
    let verdict = of(&facts);
    assert_eq!(
        (verdict.state, verdict.summary.as_str()),
        (
            State::Notice,
            "1 Service waits for its load balancer; the object is invalid: no."
        )
    );
    facts.causes.push(cause(CauseKind::Object, &[], at(2)));
    assert_eq!(of(&facts).summary, "All well but for 2 notices.");
    facts.causes.push(cause(CauseKind::Cloud, &[], at(2)));
    assert_eq!(of(&facts).summary, "Needs attention: 1 warning, 2 notices.");
}

#[test]
fn pause_and_fault_as_cause_are_listed_once() {
    let mut facts = facts();
    facts.api_hosts[0].paused_until = Some(at(3700));
    facts.providers[0].last_fault = Some(FaultFacts {
        at: at(3599),
        kind: "trap",
        message: "crashed".into(),
        output: String::new(),
    });
    assert_eq!(of(&facts).troubles.len(), 2);
    facts.causes = vec![
        cause(CauseKind::RateLimited, &[], at(1)),
        cause(CauseKind::Fault, &[], at(1)),
    ];
    let troubles = of(&facts).troubles;
    assert_eq!(troubles.len(), 2, "{troubles:?}");
    assert!(troubles.iter().all(|trouble| trouble.section == "waiting"));
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
