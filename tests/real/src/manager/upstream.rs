//! Upstream's controllers on the simulated cloud (`tests/peer`), as clusters have them before Cloudwit: a Deployment on Nodes of the control
//! plane that holds the Lease `cloud-controller-manager`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use cloudwit_test_support::scenes::deployment::{CLUSTER_CIDR, CLUSTER_NAME, TOKEN};
use serde_json::json;

use crate::hub::files;
use crate::hub::images::TAG;
use crate::hub::kubectl::Kubectl;
use crate::hub::network::{API_PORT, HUB};
use crate::manager::pods::{CONTROL_PLANE, NAMESPACE};

/// The name of its image.
pub const IMAGE: &str = "upstream";

/// The name of all its objects.
const NAME: &str = "cloud-controller-manager";

/// The label of its Pod.
pub const LABEL: &str = "app=cloud-controller-manager";

/// The port of its health check, on its Node's network. Cloudwit has the same one.
const PORT: u16 = 10258;

/// Upstream's controllers.
pub struct Upstream {
    kubectl: Kubectl,
    manifest: PathBuf,
}

impl Upstream {
    /// For the simulated cloud at this port of the hub; nothing is installed yet.
    ///
    /// # Errors
    ///
    /// When the manifest cannot be written.
    pub fn new(kubectl: Kubectl, folder: &Path, port: u16) -> Result<Self> {
        let manifest = files::write(folder, "upstream.json", &manifest(port).to_string())?;
        Ok(Self { kubectl, manifest })
    }

    /// Installs it.
    ///
    /// # Errors
    ///
    /// When kubectl fails.
    pub fn install(&self) -> Result<()> {
        let manifest = self.manifest.display().to_string();
        self.kubectl.run(&["apply", "-f", &manifest]).map(drop)
    }

    /// Deletes it.
    ///
    /// # Errors
    ///
    /// When kubectl fails.
    pub fn remove(&self) -> Result<()> {
        let manifest = self.manifest.display().to_string();
        self.kubectl.run(&["delete", "--wait=false", "-f", &manifest]).map(drop)
    }
}

fn manifest(port: u16) -> serde_json::Value {
    let metadata = json!({ "name": NAME, "namespace": NAMESPACE });
    let labels = json!({ "app": NAME });
    let config = json!({ "endpoint": format!("http://{HUB}:{port}"), "token": TOKEN }).to_string();
    let anything = |key: &str| json!({ "key": key, "operator": "Exists" });
    let container = json!({
        "name": NAME,
        "image": format!("localhost/{IMAGE}:{TAG}"),
        "imagePullPolicy": "Never",
        "args": [
            "--cloud-provider=sim",
            "--cloud-config=/etc/cloud/sim.json",
            format!("--cluster-name={CLUSTER_NAME}"),
            "--allocate-node-cidrs=true",
            format!("--cluster-cidr={CLUSTER_CIDR}"),
            "--node-monitor-period=1s",
            "--route-reconciliation-period=2s",
            "-v=2",
        ],
        // Before kube-proxy runs, the Service `kubernetes` leads nowhere.
        "env": [
            { "name": "KUBERNETES_SERVICE_HOST", "value": HUB },
            { "name": "KUBERNETES_SERVICE_PORT", "value": API_PORT.to_string() },
        ],
        "ports": [{ "containerPort": PORT }],
        "readinessProbe": { "httpGet": { "path": "/healthz", "port": PORT, "scheme": "HTTPS" }, "periodSeconds": 1 },
        "volumeMounts": [{ "name": "cloud", "mountPath": "/etc/cloud" }],
    });
    let pod = json!({
        "hostNetwork": true,
        "serviceAccountName": NAME,
        "terminationGracePeriodSeconds": 5,
        "nodeSelector": { CONTROL_PLANE: "" },
        "tolerations": [
            anything("node.cloudprovider.kubernetes.io/uninitialized"),
            anything("node.kubernetes.io/not-ready"),
            anything("node-role.kubernetes.io/control-plane"),
        ],
        "containers": [container],
        "volumes": [{ "name": "cloud", "secret": { "secretName": NAME } }],
    });
    json!({ "apiVersion": "v1", "kind": "List", "items": [
        { "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata },
        // What it may do is not what is tried here.
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": { "name": NAME },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE }],
        },
        { "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": { "sim.json": config } },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "replicas": 1,
                "strategy": { "type": "Recreate" },
                "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels }, "spec": pod },
            },
        },
    ] })
}
