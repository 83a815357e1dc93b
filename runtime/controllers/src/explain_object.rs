//! Explanations of a Node or Service from the object alone, for when no process answers. Pure.
//!
//! All of them continue `Node NAME ` or `Service NAMESPACE/NAME `.
//!
//! State kept by the controllers (tries, pauses, the provider's last answer) is not in here; see [`report::explain`](crate::report::explain) for that.

use k8s_openapi::api::core::v1::{NodeCondition, Service};
use kube::api::ObjectMeta;

use crate::kube::node::Node;
use crate::kube::node::view::{ABSENT, SHUTDOWN, UNINITIALIZED, has_taint, provider_id};
use crate::kube::service::{has_cleanup_finalizer, ingress, service_type};
use crate::options::classes::Classes;
use crate::service::plan::{dying, wants_balancer};

/// What the object of a Node shows by itself.
pub fn node(node: &Node) -> Vec<String> {
    let mut said = vec![ready(node)];
    said.push(match provider_id(node) {
        Some(id) => format!("is machine {id}."),
        None => "has no provider id yet.".into(),
    });
    if has_taint(node, UNINITIALIZED) {
        said.push(format!(
            "waits to be initialised: it carries the taint {UNINITIALIZED}."
        ));
    }
    if has_taint(node, SHUTDOWN) {
        said.push("was found to be stopped in the cloud.".into());
    }
    if has_taint(node, ABSENT) {
        said.push("was found to be gone from the cloud.".into());
    }
    if let Some(network) = condition(node, "NetworkUnavailable") {
        said.push(match network.status.as_str() {
            "False" => "has all its routes, or needs none.".into(),
            _ => format!("lacks a route for its Pods: {}.", words(network)),
        });
    }
    said.extend(deletion(&node.metadata));
    said
}

/// What the object of a Service shows by itself.
pub fn service(service: &Service) -> Vec<String> {
    let mut said = Vec::new();
    let class = service
        .spec
        .as_ref()
        .and_then(|spec| spec.load_balancer_class.as_deref());
    if let Some(class) = class {
        said.push(format!("belongs to the controller of class {class}."));
    } else if wants_balancer(service, &Classes::default()) && !dying(service) {
        said.push(balancer(service));
    } else if !wants_balancer(service, &Classes::default()) {
        said.push(format!(
            "is of type {}: it needs no load balancer.",
            service_type(service)
        ));
    }
    if class.is_none()
        && has_cleanup_finalizer(service)
        && (dying(service) || !wants_balancer(service, &Classes::default()))
    {
        said.push("still waits for its load balancer to be deleted.".into());
    }
    said.extend(deletion(&service.metadata));
    said
}

fn balancer(service: &Service) -> String {
    let addresses: Vec<&str> = ingress(service)
        .iter()
        .filter_map(|point| point.ip.as_deref().or(point.hostname.as_deref()))
        .collect();
    match (addresses.is_empty(), has_cleanup_finalizer(service)) {
        (false, _) => format!("has its load balancer at {}.", addresses.join(", ")),
        (true, true) => "has no address yet; a controller has begun to work on it.".into(),
        (true, false) => "has no address yet, and no controller has begun to work on it.".into(),
    }
}

fn ready(node: &Node) -> String {
    match condition(node, "Ready") {
        Some(ready) if ready.status == "True" => "is Ready.".into(),
        Some(other) => format!("is not Ready: {}.", words(other)),
        None => "is not Ready: its kubelet has said nothing yet.".into(),
    }
}

fn condition<'a>(node: &'a Node, kind: &str) -> Option<&'a NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_deref()?;
    conditions.iter().find(|condition| condition.type_ == kind)
}

fn words(condition: &NodeCondition) -> String {
    let texts = [&condition.reason, &condition.message].map(|text| text.as_deref().filter(|text| !text.is_empty()));
    let texts: Vec<&str> = texts.into_iter().flatten().collect();
    match texts.is_empty() {
        true => format!("the condition is {}", condition.status),
        false => texts.join(", ").trim_end_matches('.').to_owned(),
    }
}

fn deletion(metadata: &ObjectMeta) -> Option<String> {
    metadata.deletion_timestamp.as_ref()?;
    let finalizers = metadata.finalizers.as_deref().unwrap_or_default();
    Some(format!(
        "is being deleted and goes when its finalizers do: {}.",
        finalizers.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::service::state::testing::{balancer as lb, of_type};

    fn of(value: serde_json::Value) -> Vec<String> {
        node(&serde_json::from_value(value).unwrap())
    }

    #[test]
    fn node_reports_what_holds_it_up() {
        assert_eq!(
            of(json!({
                "metadata": { "name": "a" },
                "spec": { "taints": [{ "key": UNINITIALIZED, "effect": "NoSchedule" }] },
                "status": { "conditions": [{ "type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "no CNI." }] },
            })),
            [
                "is not Ready: KubeletNotReady, no CNI.".to_owned(),
                "has no provider id yet.".into(),
                format!("waits to be initialised: it carries the taint {UNINITIALIZED}."),
            ]
        );
        assert_eq!(
            of(json!({
                "metadata": { "name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"] },
                "spec": { "providerID": "sim://vm-1", "taints": [{ "key": SHUTDOWN, "effect": "NoSchedule" }] },
                "status": { "conditions": [
                    { "type": "Ready", "status": "True" },
                    { "type": "NetworkUnavailable", "status": "True", "reason": "NoRouteCreated" },
                ] },
            })),
            [
                "is Ready.",
                "is machine sim://vm-1.",
                "was found to be stopped in the cloud.",
                "lacks a route for its Pods: NoRouteCreated.",
                "is being deleted and goes when its finalizers do: x/y.",
            ]
        );
    }

    #[test]
    fn service_reports_how_far_it_is() {
        let say = |build: &crate::service::state::testing::Build| service(&build.0).join(" ");
        assert_eq!(
            say(&lb()),
            "has no address yet, and no controller has begun to work on it."
        );
        assert_eq!(
            say(&lb().finalizer()),
            "has no address yet; a controller has begun to work on it."
        );
        assert_eq!(
            say(&lb().finalizer().ingress("1.1.1.1")),
            "has its load balancer at 1.1.1.1."
        );
        assert_eq!(
            say(&lb().class()),
            "belongs to the controller of class example.com/other."
        );
        assert_eq!(
            say(&of_type("ClusterIP").finalizer()),
            "is of type ClusterIP: it needs no load balancer. still waits for its load balancer to be deleted."
        );
        assert!(say(&lb().finalizer().dying()).starts_with(
            "still waits for its load balancer to be deleted. is being deleted and goes when its finalizers do: other/keep, "
        ));
    }
}
