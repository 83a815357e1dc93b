//! Which changes of Nodes lead to a pass, and when.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;

fn node(spec: Value, labels: Value) -> Arc<Node> {
    let node = json!({ "metadata": { "name": "n", "uid": "n", "labels": labels }, "spec": spec });
    Arc::new(serde_json::from_value(node).unwrap())
}

fn with_id() -> Arc<Node> {
    node(json!({ "providerID": "x://1" }), json!({}))
}

fn tainted(key: &str, provider_id: Value) -> Arc<Node> {
    let taints = json!([{ "key": key, "effect": "NoSchedule" }]);
    node(json!({ "providerID": provider_id, "taints": taints }), json!({}))
}

fn excluded() -> Arc<Node> {
    let labels = json!({ "node.kubernetes.io/exclude-from-external-load-balancers": "" });
    node(json!({ "providerID": "x://1" }), labels)
}

/// Milliseconds from a change to the pass, after quiet.
fn pause(old: Option<&Arc<Node>>, new: Option<&Arc<Node>>) -> Option<u128> {
    let change = match (old, new) {
        (None, Some(new)) => Change::Added(new),
        (Some(old), Some(new)) => Change::Updated { old, new },
        (Some(old), None) => Change::Deleted(old),
        (None, None) => panic!("no change"),
    };
    let now = Instant::now();
    let at = NodeDebounce::default().pass_at(&change, now)?;
    Some((at - now).as_millis())
}

#[test]
fn urgent_goes_at_once_and_node_waiting_for_cloud_may_wait() {
    let waiting = tainted(UNINITIALIZED, Value::Null);
    let waiting_with_id = tainted(UNINITIALIZED, json!("x://1"));
    let leaving = tainted("ToBeDeletedByClusterAutoscaler", json!("x://1"));
    let other = tainted("example.com/other", json!("x://1"));
    for (old, new, expected, why) in [
        (None, Some(with_id()), Some(20), "it comes"),
        (Some(with_id()), None, Some(20), "it goes"),
        (Some(with_id()), Some(excluded()), Some(20), "it is excluded"),
        (Some(excluded()), Some(with_id()), Some(20), "it is let in again"),
        (
            Some(with_id()),
            Some(leaving.clone()),
            Some(20),
            "the autoscaler will delete it",
        ),
        (Some(leaving), Some(with_id()), Some(20), "the autoscaler spares it"),
        (Some(with_id()), Some(with_id()), None, "a heartbeat"),
        (Some(with_id()), Some(other), None, "another taint"),
        (
            None,
            Some(waiting.clone()),
            Some(1000),
            "kubelet made it, its id is to come",
        ),
        (
            None,
            Some(waiting_with_id.clone()),
            Some(1000),
            "its addresses may be to come",
        ),
        (Some(waiting.clone()), Some(waiting.clone()), None, "it waits on"),
        (
            Some(waiting.clone()),
            Some(waiting_with_id.clone()),
            Some(1000),
            "its id alone",
        ),
        (Some(waiting.clone()), Some(with_id()), Some(20), "it is initialised"),
        (
            Some(waiting_with_id),
            Some(with_id()),
            Some(20),
            "the same, with kubelet's id",
        ),
        (Some(waiting), None, Some(20), "it goes before it was initialised"),
    ] {
        assert_eq!(pause(old.as_ref(), new.as_ref()), expected, "{why}");
    }
}

#[test]
fn changes_after_a_pass_wait_for_the_window_end_only() {
    let (pace, began, came) = (NodeDebounce::default(), Instant::now(), with_id());
    let at = |milliseconds| began + Duration::from_millis(milliseconds);
    let due = |now| pace.pass_at(&Change::Added(&came), at(now)).unwrap();
    assert_eq!(due(0), at(20));
    pace.begin(at(20));
    for (now, expected) in [(20, 770), (21, 770), (700, 770), (760, 780), (770, 790), (5000, 5020)] {
        assert_eq!(due(now), at(expected), "{now}");
    }
    pace.begin(at(770));
    assert_eq!(due(800), at(1520), "one window follows the other");
}
