//! The condition `NetworkUnavailable` of a Node, which says whether its Pods can be reached.
//!
//! Pure. Words: `spec/route-controller.md`, section 6. One difference: upstream renews `lastTransitionTime` with every write; here it
//! moves only when the status flips, as the API conventions say, so that it shows since when.

use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use crate::kube::node::Node;

const NETWORK_UNAVAILABLE: &str = "NetworkUnavailable";

/// The patch for `nodes/NAME/status` that brings the condition up to date; none when it is.
///
/// Another writer's reason counts as outdated even where the status is right (a CNI that sets `False` with its own reason).
pub fn condition_patch(node: &Node, routes_created: bool, now: &Time) -> Option<Value> {
    let (status, reason, message) = words(routes_created);
    let current = condition(node);
    if current.is_some_and(|current| current.status == status && current.reason.as_deref() == Some(reason)) {
        return None;
    }
    let since = current
        .filter(|current| current.status == status)
        .and_then(|current| current.last_transition_time.clone());
    let condition = NodeCondition {
        type_: NETWORK_UNAVAILABLE.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_heartbeat_time: Some(now.clone()),
        last_transition_time: Some(since.unwrap_or_else(|| now.clone())),
    };
    Some(json!({ "status": { "conditions": [condition] } }))
}

/// Whether the Node's condition says that it has all its routes, by this process or one before.
pub fn has_routes(node: &Node) -> bool {
    let (status, reason, _) = words(true);
    condition(node).is_some_and(|current| current.status == status && current.reason.as_deref() == Some(reason))
}

fn words(routes_created: bool) -> (&'static str, &'static str, &'static str) {
    match routes_created {
        true => ("False", "RouteCreated", "RouteController created a route"),
        false => ("True", "NoRouteCreated", "RouteController failed to create a route"),
    }
}

fn condition(node: &Node) -> Option<&NodeCondition> {
    let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.find(|condition| condition.type_ == NETWORK_UNAVAILABLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kube::node::NodeStatus;
    use k8s_openapi::jiff::Timestamp;

    fn time(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    fn node(condition: Option<(&str, &str)>) -> Node {
        let conditions = condition.map(|(status, reason)| {
            vec![NodeCondition {
                type_: NETWORK_UNAVAILABLE.into(),
                status: status.into(),
                reason: Some(reason.into()),
                last_transition_time: Some(time(100)),
                ..NodeCondition::default()
            }]
        });
        Node {
            status: Some(NodeStatus {
                conditions,
                ..NodeStatus::default()
            }),
            ..Node::default()
        }
    }

    fn patched(existing: Option<(&str, &str)>, created: bool) -> Option<Value> {
        condition_patch(&node(existing), created, &time(200)).map(|patch| patch["status"]["conditions"][0].clone())
    }

    #[test]
    fn a_missing_condition_is_written() {
        let created = patched(None, true).unwrap();
        assert_eq!(created["type"], "NetworkUnavailable");
        assert_eq!(created["status"], "False");
        assert_eq!(created["reason"], "RouteCreated");
        assert_eq!(created["message"], "RouteController created a route");
        let failed = patched(None, false).unwrap();
        assert_eq!(failed["status"], "True");
        assert_eq!(failed["reason"], "NoRouteCreated");
        assert_eq!(failed["message"], "RouteController failed to create a route");
    }

    #[test]
    fn a_condition_that_is_right_is_left_alone() {
        assert_eq!(patched(Some(("False", "RouteCreated")), true), None);
        assert_eq!(patched(Some(("True", "NoRouteCreated")), false), None);
    }

    #[test]
    fn the_reason_of_another_writer_is_replaced() {
        for existing in [("False", "CalicoIsUp"), ("False", "ExternalCNI")] {
            let condition = patched(Some(existing), true).unwrap();
            assert_eq!(
                (&condition["status"], &condition["reason"]),
                (&json!("False"), &json!("RouteCreated"))
            );
        }
        let condition = patched(Some(("True", "SomeOtherReason")), false).unwrap();
        assert_eq!(
            (&condition["status"], &condition["reason"]),
            (&json!("True"), &json!("NoRouteCreated"))
        );
    }

    #[test]
    fn a_flip_is_written() {
        let condition = patched(Some(("False", "RouteCreated")), false).unwrap();
        assert_eq!(
            (&condition["status"], &condition["reason"]),
            (&json!("True"), &json!("NoRouteCreated"))
        );
    }

    #[test]
    fn the_transition_time_moves_only_when_the_status_flips() {
        let kept = patched(Some(("False", "CalicoIsUp")), true).unwrap();
        assert_eq!(kept["lastTransitionTime"], json!(time(100)));
        assert_eq!(kept["lastHeartbeatTime"], json!(time(200)));
        let flipped = patched(Some(("False", "RouteCreated")), false).unwrap();
        assert_eq!(flipped["lastTransitionTime"], json!(time(200)));
    }
}
