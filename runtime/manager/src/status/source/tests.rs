//! What follows from what the controllers say.

use cloudwit_controllers::report::cause::{Cause, CauseKind};

use super::*;

fn node(since: Option<u64>, failed: bool) -> Unfinished {
    Unfinished {
        object: Object::Node("a".into()),
        since: since.map(Duration::from_secs),
        failed,
        cause: failed.then(|| Cause::new(CauseKind::Unavailable, "unavailable: down")),
    }
}

fn left(controller: Controller, object: Unfinished) -> Left {
    Left {
        controller,
        provider: "east".into(),
        object,
    }
}

#[test]
fn held_work_is_overdue_after_60_s_failing_after_10_s() {
    let overdue = |since, failed| is_overdue(&node(since, failed));
    assert_eq!([overdue(Some(60), false), overdue(Some(61), false)], [false, true]);
    assert_eq!([overdue(Some(10), true), overdue(Some(11), true)], [false, true]);
    assert_eq!([overdue(None, false), overdue(None, true)], [false, true]);
}

#[test]
fn objects_are_counted_for_each_controller() {
    let now = Now(Timestamp::from_second(1000).unwrap());
    let all = [
        left(Controller::ServiceLb, node(Some(5), false)),
        left(Controller::CloudNode, node(Some(70), false)),
        left(Controller::CloudNode, node(Some(2), true)),
    ];
    let groups = groups(&all, now);
    let counts: Vec<_> = groups
        .iter()
        .map(|group| (group.controller, group.total, group.overdue, group.slow))
        .collect();
    assert_eq!(
        counts,
        [("cloud-node-controller", 2, 1, 1), ("service-lb-controller", 1, 0, 0)]
    );
    assert_eq!(groups[0].oldest_since, Some(now.ago(Duration::from_secs(70))));
}

#[test]
fn loops_of_several_providers_are_one_controller() {
    let now = Now(Timestamp::from_second(1000).unwrap());
    let progress = |seconds, trouble: Option<&str>| Progress {
        later: 2,
        last_done: Some(Duration::from_secs(seconds)),
        trouble: trouble.map(|why| Trouble {
            what: "Failed to list",
            cause: Cause::new(CauseKind::Unavailable, why),
            next: Duration::from_secs(5),
        }),
        ..Progress::default()
    };
    let work = Work::Begun(vec![progress(1, None), progress(90, Some("down"))]);
    let facts = of_controller(Controller::CloudNodeLifecycle, work.clone(), false, now);
    assert_eq!(
        (facts.state, facts.later, facts.troubles.len()),
        (ControllerState::Running, 4, 1)
    );
    assert_eq!(
        facts.last_done,
        Some(now.ago(Duration::from_secs(90))),
        "the one that has been without success for longest"
    );
    assert_eq!(
        of_controller(Controller::CloudNodeLifecycle, work, true, now).state,
        ControllerState::Hanging
    );
    let off = of_controller(Controller::NodeRoute, Work::Off("no ranges".into()), false, now);
    assert_eq!(
        (off.state, off.why.as_deref()),
        (ControllerState::Off, Some("no ranges"))
    );
    assert_eq!(
        of_controller(Controller::NodeRoute, Work::NotBegun, false, now).state,
        ControllerState::StandingBy
    );
}

#[test]
fn brief_failure_is_none_yet_and_task_failure_is() {
    let now = Now(Timestamp::from_second(1000).unwrap());
    let all = [
        left(Controller::CloudNode, node(Some(5), true)),
        left(Controller::CloudNode, node(Some(11), true)),
        left(Controller::CloudNode, node(Some(90), false)),
    ];
    let trouble = Trouble {
        what: "Failed to list",
        cause: Cause::new(CauseKind::Unavailable, "unavailable: down"),
        next: Duration::from_secs(1),
    };
    let failures = failures(&all, vec![(Controller::NodeRoute, "east".into(), trouble)], now);
    assert_eq!(failures.len(), 2, "{failures:?}");
    assert_eq!(failures[0].since, Some(now.ago(Duration::from_secs(11))));
    assert!(matches!(failures[1].held_up, HeldUp::Task("Failed to list")));
}
