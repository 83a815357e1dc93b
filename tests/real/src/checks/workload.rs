//! What runs in the cluster: Pods that answer, Services of type LoadBalancer for them, and a Pod that asks.

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Pod, Service};
use serde_json::json;
use xtask::kubernetes::node_parts::IMAGE;

/// The port that Pods serve.
pub const PORT: u16 = 8080;

/// The port of load balancers.
pub const SERVICE_PORT: u16 = 80;

/// Answers with the Pod, its machine, and the client's address.
pub const PATH: &str = "/cgi-bin/who";

/// The label that the Pods have.
pub const LABEL: &str = "app=web";

/// A Pod on each machine that serves [`PATH`].
///
/// # Errors
///
/// When Kubernetes has other fields.
pub fn web() -> Result<DaemonSet> {
    let script = format!(
        r#"mkdir -p /tmp/www/cgi-bin
printf '#!/bin/sh\necho\necho "$POD $NODE $REMOTE_ADDR"\n' > /tmp/www{PATH}
chmod +x /tmp/www{PATH}
exec httpd -f -p {PORT} -h /tmp/www"#
    );
    let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
    serde_json::from_value(json!({
        "metadata": { "name": "web" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "automountServiceAccountToken": false,
                    "containers": [{
                        "name": "web",
                        "image": IMAGE,
                        "imagePullPolicy": "Never",
                        "command": ["sh", "-c", script],
                        "env": [field("POD", "metadata.name"), field("NODE", "spec.nodeName")],
                        // Without a request they get next to no time while Pods that have one are busy, and answer too late.
                        "resources": { "requests": { "cpu": "100m" } },
                        "readinessProbe": { "httpGet": { "path": PATH, "port": PORT }, "periodSeconds": 1 },
                    }],
                },
            },
        },
    }))
    .context("describing the DaemonSet")
}

/// A load balancer for those Pods.
///
/// # Errors
///
/// When Kubernetes has other fields.
pub fn service(name: &str, policy: &str) -> Result<Service> {
    serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "type": "LoadBalancer",
            "externalTrafficPolicy": policy,
            "selector": { "app": "web" },
            "ports": [{ "port": SERVICE_PORT, "targetPort": PORT }],
        },
    }))
    .context("describing a Service")
}

/// The name of the Pod without tolerations.
pub const ORDINARY: &str = "ordinary";

/// A Pod that tolerates no taint, as CoreDNS and most others.
///
/// # Errors
///
/// When Kubernetes has other fields.
pub fn ordinary() -> Result<Pod> {
    serde_json::from_value(json!({
        "metadata": { "name": ORDINARY },
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": false,
            "containers": [{ "name": "sleep", "image": IMAGE, "imagePullPolicy": "Never", "command": ["sleep", "86400"] }],
        },
    }))
    .context("describing the Pod that waits")
}

/// A Pod on a machine that asks another by its address, and leaves the answer as its termination message.
///
/// # Errors
///
/// When Kubernetes has other fields.
pub fn asker(machine: &str, address: &str) -> Result<Pod> {
    let script =
        format!(r"printf 'GET {PATH} HTTP/1.0\r\n\r\n' | nc -w 5 {address} {PORT} | tail -n 1 > /dev/termination-log");
    serde_json::from_value(json!({
        "metadata": { "name": "asker" },
        "spec": {
            // Placed by the scheduler, which looks at taints.
            "nodeSelector": { "kubernetes.io/hostname": machine },
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "containers": [{
                "name": "asker",
                "image": IMAGE,
                "imagePullPolicy": "Never",
                "command": ["sh", "-c", script],
            }],
        },
    }))
    .context("describing the Pod that asks")
}
