//! Reading Nodes and Services as the API server keeps them.

use std::collections::BTreeSet;
use std::time::Duration;

use cloudwit_controllers::ambient;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

pub(crate) const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
pub(crate) const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
pub(crate) const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";
pub(crate) const ANNOUNCED: &str = "ToBeDeletedByClusterAutoscaler";
pub(crate) const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

pub(crate) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

pub(crate) fn provider_id(node: &Value) -> &str {
    text(node, "/spec/providerID")
}

pub(crate) fn strings<'a>(object: &'a Value, path: &str) -> BTreeSet<&'a str> {
    items(object, path).iter().filter_map(Value::as_str).collect()
}

pub(crate) fn items<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    object
        .pointer(path)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

pub(crate) fn taints(node: &Value) -> BTreeSet<&str> {
    items(node, "/spec/taints")
        .iter()
        .map(|taint| text(taint, "/key"))
        .collect()
}

pub(crate) fn has_finalizer(service: &Value) -> bool {
    strings(service, "/metadata/finalizers").contains(FINALIZER)
}

pub(crate) fn is_dying(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
}

pub(crate) fn condition<'a>(node: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = items(node, "/status/conditions");
    conditions
        .iter()
        .find(|condition| condition["type"] == kind)
        .map(|condition| text(condition, "/status"))
}

pub(crate) fn is_ready(node: &Value) -> bool {
    condition(node, "Ready") == Some("True")
}

/// Whether the Service is one that the controllers look after.
pub(crate) fn wants_balancer(service: &Value) -> bool {
    text(service, "/spec/type") == "LoadBalancer"
        && text(service, "/spec/loadBalancerClass").is_empty()
        && !is_dying(service)
}

/// Whether the Node takes traffic of load balancers.
pub(crate) fn is_target(node: &Value) -> bool {
    !is_dying(node)
        && node
            .pointer("/metadata/labels")
            .and_then(|labels| labels.get(EXCLUDED))
            .is_none()
        && !taints(node).contains(ANNOUNCED)
}

pub(crate) fn ports(service: &Value) -> BTreeSet<u64> {
    items(service, "/spec/ports")
        .iter()
        .filter_map(|port| port["port"].as_u64())
        .collect()
}

/// The address in the status.
pub(crate) fn address(service: &Value) -> &str {
    text(service, "/status/loadBalancer/ingress/0/ip")
}

/// The time since it was created.
pub(crate) fn age(object: &Value) -> Duration {
    let created = text(object, "/metadata/creationTimestamp").parse::<Timestamp>();
    created.map_or(Duration::ZERO, |at| {
        Duration::try_from(ambient::now().duration_since(at)).unwrap_or_default()
    })
}
