//! Failures are made up; what they are grouped into is compared.

use super::*;
use crate::status::verdict::tests::at;

fn node(name: &str) -> HeldUp {
    let affected = Affected {
        kind: "Node",
        name: name.into(),
        explain: Some(format!("/explain/node/{name}")),
    };
    HeldUp::Object("cloud-node-controller", affected)
}

fn service(name: &str) -> HeldUp {
    let affected = Affected {
        kind: "Service",
        name: name.into(),
        explain: None,
    };
    HeldUp::Object("service-lb-controller", affected)
}

fn failing(kind: CauseKind, reason: &str, held_up: HeldUp) -> Failing {
    Failing {
        provider: "east".into(),
        cause: Cause::new(kind, reason),
        since: Some(at(3000)),
        held_up,
    }
}

#[test]
fn an_outage_is_one_cause_with_all_behind_it() {
    let mut failures: Vec<Failing> = (0..13)
        .map(|number| {
            failing(
                CauseKind::Unavailable,
                "unavailable: 503",
                node(&format!("node-{number}")),
            )
        })
        .collect();
    failures.push(failing(
        CauseKind::Unavailable,
        "unavailable: POST /lb timed out",
        service("default/web"),
    ));
    failures.push(failing(
        CauseKind::Unavailable,
        "unavailable: 503",
        HeldUp::Task("Failed to list"),
    ));
    failures[4].since = Some(at(100));
    let causes = group(failures);
    assert_eq!(causes.len(), 1, "{causes:?}");
    let outage = &causes[0];
    assert_eq!(
        (outage.message.as_str(), outage.other_messages),
        ("unavailable: 503", 1)
    );
    assert_eq!((outage.objects.total, outage.since), (14, Some(at(100))));
    assert_eq!(outage.tasks, ["Failed to list"]);
    assert_eq!(
        outage.counts,
        BTreeMap::from([("cloud-node-controller", 13), ("service-lb-controller", 1)])
    );
}

#[test]
fn the_mistake_of_one_user_stays_apart_from_an_outage() {
    let causes = group(vec![
        failing(
            CauseKind::Object,
            "invalid: scheme: \"x\" can be public or internal",
            service("default/a"),
        ),
        failing(CauseKind::Unavailable, "unavailable: 503", node("node-1")),
        failing(CauseKind::Object, "invalid: port 70000 is none", service("default/b")),
    ]);
    let kinds: Vec<CauseKind> = causes.iter().map(|cause| cause.kind).collect();
    assert_eq!(kinds, [CauseKind::Unavailable, CauseKind::Object, CauseKind::Object]);
}

#[test]
fn texts_that_differ_in_names_and_numbers_are_one_cause() {
    let text = |node: &str, id: &str| format!("denied: not authorized to describe {node}, request id: {id}");
    let causes = group(vec![
        failing(CauseKind::Denied, &text("a", "6f3-77"), node("a")),
        failing(CauseKind::Denied, &text("b", "9aa-01"), node("b")),
        failing(CauseKind::Denied, "denied: wrong password", node("c")),
    ]);
    let totals: Vec<usize> = causes.iter().map(|cause| cause.objects.total).collect();
    assert_eq!(totals, [2, 1]);
}

#[test]
fn causes_are_per_provider_and_one_for_the_api_server() {
    let mut other = failing(CauseKind::Unavailable, "unavailable: 503", node("b"));
    other.provider = "west".into();
    assert_eq!(
        group(vec![
            failing(CauseKind::Unavailable, "unavailable: 503", node("a")),
            other
        ])
        .len(),
        2
    );
    let mut other = failing(CauseKind::ApiServer, "forbidden", node("b"));
    other.provider = "west".into();
    assert_eq!(
        group(vec![failing(CauseKind::ApiServer, "forbidden", node("a")), other]).len(),
        1
    );
}

#[test]
fn a_node_that_fails_at_two_controllers_is_one_object() {
    let affected = |held_up: HeldUp| match held_up {
        HeldUp::Object(_, affected) => affected,
        HeldUp::Task(_) => unreachable!("it is an object"),
    };
    let routes = HeldUp::Object("node-route-controller", affected(node("a")));
    let causes = group(vec![
        failing(CauseKind::Unavailable, "unavailable: 503", node("a")),
        failing(CauseKind::Unavailable, "unavailable: 503", routes),
    ]);
    assert_eq!((causes[0].objects.total, causes[0].counts.len()), (1, 2));
}
