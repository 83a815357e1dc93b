//! What is kept of a Node, against what all of core/v1 reads in the same text.

use k8s_openapi::api::core::v1 as core;
use kube::Resource as _;
use serde_json::{Value, json};

use super::*;

/// Reads the text as core/v1 has it and throws away what is not read.
fn all_read_then_trimmed(text: &str) -> Value {
    let mut node: core::Node = serde_json::from_str(text).unwrap();
    let old = node.metadata;
    let kept = |key: &String| ANNOTATIONS.contains(&key.as_str());
    let annotations = old.annotations.unwrap_or_default();
    let annotations: BTreeMap<_, _> = annotations.into_iter().filter(|(key, _)| kept(key)).collect();
    node.metadata = ObjectMeta {
        annotations: (!annotations.is_empty()).then_some(annotations),
        labels: old.labels.filter(|labels| !labels.is_empty()),
        managed_fields: None,
        owner_references: None,
        self_link: None,
        generate_name: None,
        generation: None,
        deletion_grace_period_seconds: None,
        namespace: None,
        ..old
    };
    node.spec = node.spec.map(|spec| core::NodeSpec {
        pod_cidrs: spec.pod_cidrs,
        provider_id: spec.provider_id,
        taints: spec.taints,
        ..core::NodeSpec::default()
    });
    node.status = node.status.map(|mut status| {
        if let Some(conditions) = &mut status.conditions {
            conditions.retain(|condition| CONDITIONS.contains(&condition.type_.as_str()));
            conditions
                .iter_mut()
                .for_each(|condition| condition.last_heartbeat_time = None);
        }
        core::NodeStatus {
            addresses: status.addresses,
            conditions: status.conditions,
            node_info: status.node_info,
            ..core::NodeStatus::default()
        }
    });
    let mut value = serde_json::to_value(node).unwrap();
    if let Some(info) = value.pointer_mut("/status/nodeInfo") {
        *info = json!({ "systemUUID": info["systemUUID"] });
    }
    let fields = value.as_object_mut().unwrap();
    fields.retain(|field, _| !["apiVersion", "kind"].contains(&field.as_str()));
    value
}

fn read(text: &str) -> Value {
    let mut node: Node = serde_json::from_str(text).unwrap();
    node.fit();
    let mut value = json!({ "metadata": node.metadata });
    if !node.labels.is_empty() {
        value["metadata"]["labels"] = json!(node.labels);
    }
    if let Some(spec) = node.spec {
        value["spec"] = json!(spec);
    }
    if let Some(status) = node.status {
        value["status"] = json!(status);
    }
    value
}

/// A Node with everything that core/v1 knows, and with fields it does not know.
fn rich() -> Value {
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind, "status": status, "lastHeartbeatTime": "2026-01-01T00:05:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Kubelet\"Quoted", "message": "line\nand \u{e4}", "observedGeneration": 3,
        })
    };
    json!({
        "apiVersion": "v1", "kind": "Node", "later": { "deep": [1, { "x": null }] },
        "metadata": {
            "name": "a", "uid": "u-1", "resourceVersion": "77", "generation": 4, "generateName": "a-", "selfLink": "/x",
            "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-02-01T00:00:00Z",
            "deletionGracePeriodSeconds": 30, "finalizers": ["x/y", "z/\"w"],
            "labels": { "kubernetes.io/os": "linux", "quoted": "a\"b", "empty": "" },
            "annotations": {
                "alpha.kubernetes.io/provided-node-ip": "10.0.0.1,fd00::1", "cloudwit.dev/waiting-for-cloud": "say \"why\"",
                "big": "x".repeat(1000), "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
            "ownerReferences": [{ "apiVersion": "v1", "kind": "X", "name": "x", "uid": "1" }],
            "managedFields": [{ "manager": "kubelet", "operation": "Update", "time": "2026-01-01T00:00:00Z",
                "fieldsV1": { "f:status": { "f:conditions": { "k:{\"type\":\"Ready\"}": {} } } } }],
            "later": 1,
        },
        "spec": {
            "podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24", "fd01::/64"], "providerID": "sim://zone/a", "unschedulable": true,
            "taints": [
                { "key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule" },
                { "key": "k", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z", "later": true },
            ],
            "configSource": { "configMap": { "name": "c", "namespace": "n", "kubeletConfigKey": "k" } }, "externalID": "e", "later": [],
        },
        "status": {
            "addresses": [
                { "type": "InternalIP", "address": "10.0.0.1" }, { "type": "InternalIP", "address": "fd00::1" },
                { "type": "Hostname", "address": "a" }, { "type": "Later", "address": "?", "more": 1 },
            ],
            "images": [{ "names": ["x@sha256:1", "x:1"], "sizeBytes": 1 }], "capacity": { "cpu": "4" }, "allocatable": { "cpu": "4" },
            "volumesInUse": ["v"], "volumesAttached": [{ "name": "v", "devicePath": "/dev/x" }], "phase": "Running",
            "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } }, "later": { "status": { "conditions": [] } },
            "conditions": [
                condition("MemoryPressure", "False"), condition("NetworkUnavailable", "True"), condition("DiskPressure", "Unknown"),
                condition("Ready", "True"), condition("Later", "True"),
            ],
            "nodeInfo": {
                "systemUUID": "uuid-1", "machineID": "m", "bootID": "b", "kernelVersion": "k", "osImage": "o", "containerRuntimeVersion": "c",
                "kubeletVersion": "v", "kubeProxyVersion": "v", "operatingSystem": "linux", "architecture": "amd64", "swap": { "capacity": 1 },
            },
        },
    })
}

/// The Node once for each of its fields, which is left out, null, or (a list or map) empty.
fn variations(node: &Value) -> Vec<Value> {
    fn paths(value: &Value, at: &str, found: &mut Vec<String>) {
        let below: Vec<(String, &Value)> = match value {
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| (name.replace('/', "~1"), value))
                .collect(),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(index, value)| (index.to_string(), value))
                .collect(),
            _ => Vec::new(),
        };
        for (name, value) in below {
            let path = format!("{at}/{name}");
            paths(value, &path, found);
            found.push(path);
        }
    }
    let mut found = Vec::new();
    paths(node, "", &mut found);
    let mut all = vec![node.clone()];
    for path in found {
        let (parent, name) = path.rsplit_once('/').unwrap();
        let mut without = node.clone();
        if let Some(fields) = without.pointer_mut(parent).unwrap().as_object_mut() {
            fields.remove(&name.replace("~1", "/"));
            all.push(without);
        }
        let empty = match node.pointer(&path).unwrap() {
            Value::Object(_) => json!({}),
            Value::Array(_) => json!([]),
            _ => Value::Null,
        };
        for instead in [Value::Null, empty] {
            let mut changed = node.clone();
            *changed.pointer_mut(&path).unwrap() = instead;
            all.push(changed);
        }
    }
    all
}

#[test]
fn node_view_equals_core_v1_for_missing_and_unknown_fields() {
    let mut compared = 0;
    for node in variations(&rich()) {
        let text = node.to_string();
        // What core/v1 itself refuses need not be read.
        if serde_json::from_str::<core::Node>(&text).is_err() {
            continue;
        }
        assert_eq!(read(&text), all_read_then_trimmed(&text), "{text}");
        compared += 1;
    }
    assert!(compared > 150, "only {compared} Nodes were compared");
}

/// Neither the order of fields nor a reader that holds the object before it knows the kind of event makes a difference.
#[test]
fn an_event_of_the_watch_is_read_alike_in_any_order() {
    use kube::api::WatchEvent;
    let node = rich();
    let expected: Node = serde_json::from_value(node.clone()).unwrap();
    for text in [
        format!(r#"{{"type":"MODIFIED","object":{node}}}"#),
        format!(r#"{{"object":{node},"type":"MODIFIED"}}"#),
    ] {
        match serde_json::from_str::<WatchEvent<Node>>(&text).unwrap() {
            WatchEvent::Modified(read) => assert_eq!(read, expected),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn unread_fields_are_not_kept() {
    let kept = read(&rich().to_string()).to_string();
    for gone in [
        "managedFields",
        "images",
        "capacity",
        "allocatable",
        "volumesInUse",
        "lastHeartbeatTime",
        "MemoryPressure",
        "kernelVersion",
        "later",
        "Later\",\"status",
        "\"big\"",
    ] {
        assert!(!kept.contains(gone), "{gone} in {kept}");
    }
}

#[test]
fn api_server_lists_nodes_only_where_needed() {
    assert_eq!(Node::url_path(&(), None), "/api/v1/nodes");
}
