//! Upstream's decision table, row by row. What follows from "gone" is in the tests of [`lifecycle::brake`](crate::lifecycle::brake).

use cloudwit_model::Instance;
use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::ObjectMeta;

use super::*;
use crate::kube::node::{NodeSpec, NodeStatus};

fn provider() -> ProviderIdentity {
    ProviderIdentity {
        provider_id_prefixes: vec!["sim://".into()],
        ..ProviderIdentity::default()
    }
}

fn node(ready: Option<&str>, id: Option<&str>, keys: &[&str]) -> Node {
    let condition = |status: &str| NodeCondition {
        type_: "Ready".into(),
        status: status.into(),
        ..NodeCondition::default()
    };
    Node {
        metadata: ObjectMeta {
            name: Some("node0".into()),
            uid: Some("uid".into()),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            provider_id: id.map(str::to_owned),
            taints: Some(keys.iter().map(|key| taint(key)).collect()),
            ..NodeSpec::default()
        }),
        status: Some(NodeStatus {
            conditions: Some(ready.map(condition).into_iter().collect()),
            ..NodeStatus::default()
        }),
        ..Node::default()
    }
}

fn taint(key: &str) -> Taint {
    Taint {
        key: key.into(),
        effect: "NoSchedule".into(),
        ..Taint::default()
    }
}

fn machine() -> Instance {
    Instance {
        provider_id: "sim://a".into(),
        ..Instance::default()
    }
}

#[test]
fn only_nodes_that_are_not_ready_are_looked_up() {
    let id = Some("sim://a");
    for (name, node, expected) in [
        ("Ready", node(Some("True"), id, &[]), Before::Leave),
        (
            "Ready with another taint",
            node(Some("True"), id, &["x"]),
            Before::Leave,
        ),
        (
            "Ready again after a shutdown",
            node(Some("True"), id, &[SHUTDOWN]),
            Before::Recovered,
        ),
        (
            "Ready although it was taken for gone",
            node(Some("True"), id, &[ABSENT]),
            Before::Recovered,
        ),
        ("False", node(Some("False"), id, &[]), Before::Ask),
        ("Unknown", node(Some("Unknown"), id, &[]), Before::Ask),
        ("no such condition", node(None, id, &[]), Before::Ask),
        ("without an id", node(Some("False"), None, &[]), Before::Ask),
        (
            "another provider's",
            node(Some("False"), Some("aws://a"), &[]),
            Before::Leave,
        ),
        (
            "another provider's, Ready again",
            node(Some("True"), Some("aws://a"), &[SHUTDOWN]),
            Before::Leave,
        ),
        (
            "waiting for initialisation",
            node(Some("False"), id, &[UNINITIALIZED]),
            Before::Leave,
        ),
    ] {
        assert_eq!(before(&node, &provider()), expected, "{name}");
    }
    let mut going = node(Some("False"), id, &[]);
    going.metadata.deletion_timestamp = Some(Time(Timestamp::now()));
    assert_eq!(
        before(&going, &provider()),
        Before::Leave,
        "held by a finalizer: no delete in each period"
    );
}

/// kubernetes/cloud-provider-openstack#2062: asked with an empty id and then by name, the cloud found nothing during a
/// longer reboot.
#[test]
fn only_absence_by_the_nodes_own_id_means_gone() {
    let (own, none, foreign) = (
        node(None, Some("sim://a"), &[]),
        node(None, None, &[]),
        node(None, Some("aws://a"), &[]),
    );
    let (by_id, by_name) = (Presence::Absent(Evidence::ById), Presence::Absent(Evidence::ByName));
    assert_eq!(after(&own, &Presence::Running(machine()), &provider()), After::Running);
    assert_eq!(after(&own, &Presence::Stopped(machine()), &provider()), After::Stopped);
    assert_eq!(after(&own, &by_id, &provider()), After::Gone);
    assert_eq!(after(&own, &by_name, &provider()), After::Unclear);
    assert_eq!(after(&none, &by_id, &provider()), After::Unclear);
    assert_eq!(after(&none, &by_name, &provider()), After::Unclear);
    assert_eq!(after(&foreign, &by_id, &provider()), After::Unclear);
    assert_eq!(
        after(&own, &by_id, &ProviderIdentity::default()),
        After::Unclear,
        "without prefixes no id is its own"
    );
}

#[test]
fn taints_are_written_only_where_they_differ() {
    let keys = |mark, current: &[&str]| -> Option<Vec<String>> {
        let taints = plan_taints(&node(None, None, current), mark)?;
        Some(taints.into_iter().map(|taint| taint.key).collect())
    };
    let some = |keys: &[&str]| Some(keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>());
    assert_eq!(keys(Mark::Shutdown, &["x"]), some(&["x", SHUTDOWN]));
    assert_eq!(keys(Mark::Shutdown, &["x", SHUTDOWN]), None);
    assert_eq!(keys(Mark::Shutdown, &[ABSENT]), some(&[SHUTDOWN]));
    assert_eq!(
        keys(Mark::NotAbsent, &["x", SHUTDOWN]),
        None,
        "a shutdown taint stays until the Node is Ready"
    );
    assert_eq!(keys(Mark::NotAbsent, &[ABSENT, SHUTDOWN]), some(&[SHUTDOWN]));
    assert_eq!(keys(Mark::Absent, &[]), some(&[ABSENT]));
    assert_eq!(keys(Mark::Absent, &[ABSENT]), None);
    assert_eq!(keys(Mark::None, &["x"]), None);
    assert_eq!(keys(Mark::None, &[SHUTDOWN, "x", ABSENT]), some(&["x"]));
}

/// `TestTaintExists`, `TestRemoveTaint`, `TestDeleteTaint`.
#[test]
fn taints_are_distinguished_by_key_and_effect() {
    let mut other_effect = node(None, None, &[]);
    let no_execute = Taint {
        effect: "NoExecute".into(),
        ..taint(SHUTDOWN)
    };
    other_effect.spec.get_or_insert_default().taints = Some(vec![no_execute.clone()]);
    assert_eq!(plan_taints(&other_effect, Mark::None), None);
    assert_eq!(
        plan_taints(&other_effect, Mark::Shutdown),
        Some(vec![no_execute, taint(SHUTDOWN)])
    );
    let mut with_value = node(None, None, &[]);
    with_value.spec.get_or_insert_default().taints = Some(vec![Taint {
        value: Some("v".into()),
        ..taint(SHUTDOWN)
    }]);
    assert_eq!(
        plan_taints(&with_value, Mark::Shutdown),
        Some(vec![taint(SHUTDOWN)]),
        "replaced in place"
    );
    let mut without = node(None, None, &[]);
    without.spec = None;
    assert_eq!(plan_taints(&without, Mark::None), None);
}

#[test]
fn a_node_that_changed_since_it_was_judged_stays() {
    let judged = node(Some("False"), Some("sim://a"), &[]);
    assert!(may_still_go(&judged, &judged, &provider()));
    let mut replaced = judged.clone();
    replaced.metadata.uid = Some("another".into());
    assert!(!may_still_go(&replaced, &judged, &provider()));
    assert!(!may_still_go(
        &node(Some("True"), Some("sim://a"), &[]),
        &judged,
        &provider()
    ));
    assert!(!may_still_go(
        &node(Some("False"), Some("sim://b"), &[]),
        &judged,
        &provider()
    ));
    assert!(!may_still_go(
        &node(Some("False"), Some("sim://a"), &[UNINITIALIZED]),
        &judged,
        &provider()
    ));
}
