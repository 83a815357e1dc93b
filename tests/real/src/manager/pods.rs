//! Cloudwit as users run it: the image, and what `cloudwit install` makes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use cloudwit_test_support::scenes::deployment::{CLUSTER_CIDR, CLUSTER_NAME, TOKEN};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, LogParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use xtask::{tools, workspace};

use crate::hub::images::TAG;
use crate::hub::kubectl::Kubectl;
use crate::hub::network::{API_PORT, HUB};
use crate::manager::DEMO_FLAGS;

/// The name of the image.
pub const IMAGE: &str = "cloudwit";

/// Where the Pods are.
pub const NAMESPACE: &str = "kube-system";

/// Their label.
pub const LABEL: &str = "app.kubernetes.io/name=cloudwit";

/// The Lease of the one that leads.
const LEASE: &str = "cloud-controller-manager";

/// Nodes with this label may run them.
pub const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// The Pods, and what they are installed from.
pub struct Pods {
    client: Client,
    kubectl: Kubectl,
    binary: PathBuf,
    folder: PathBuf,
    kubeconfig: PathBuf,
}

impl Pods {
    /// Installs it for the simulated cloud at this port of the hub.
    ///
    /// # Errors
    ///
    /// When a file cannot be written or the installation fails.
    pub fn start(
        client: Client,
        kubectl: Kubectl,
        binary: &Path,
        folder: &Path,
        kubeconfig: &Path,
        provider: &Path,
        port: u16,
    ) -> Result<Self> {
        let folder = folder.join("install");
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let write = |name: &str, text: &str| {
            fs::write(folder.join(name), text).with_context(|| format!("writing {name} of the installation"))
        };
        write("token", TOKEN)?;
        write(
            "sim.json",
            &json!({ "endpoint": format!("http://{HUB}:{port}") }).to_string(),
        )?;
        let token = folder.join("token");
        let settings = json!({ "grants": {
            "http": [{ "scheme": "http", "host": HUB, "port": port, "methods": ["GET", "POST", "PUT", "DELETE"] }],
            "secrets": [{ "name": "token", "file": token, "hosts": [format!("{HUB}:{port}")], "uses": ["placeholder"] }],
        } });
        write("settings.yaml", &settings.to_string())?;
        let pods = Self {
            client,
            kubectl,
            binary: binary.to_owned(),
            folder,
            kubeconfig: kubeconfig.to_owned(),
        };
        pods.install(&fs::read(provider).with_context(|| format!("reading {}", provider.display()))?)?;
        Ok(pods)
    }

    /// Installs it with this component, or changes the installation to it.
    ///
    /// # Errors
    ///
    /// When `cloudwit install` fails; with what it says.
    pub fn install(&self, component: &[u8]) -> Result<()> {
        let path = |name: &str| self.folder.join(name).display().to_string();
        fs::write(self.folder.join("sim.wasm"), component).context("writing the component")?;
        let mut command = Command::new(&self.binary);
        command.args([
            "install",
            "--apply",
            // The machines come later.
            "--timeout=0",
            "--cloud-provider=sim",
            &format!("--component={}", path("sim.wasm")),
            &format!("--cloud-config={}", path("sim.json")),
            &format!("--provider-settings={}", path("settings.yaml")),
            &format!("--image=localhost/{IMAGE}:{TAG}"),
            &format!("--cluster-name={CLUSTER_NAME}"),
            &format!("--cluster-cidr={CLUSTER_CIDR}"),
            &format!("--api-server={HUB}:{API_PORT}"),
            &format!("--kubeconfig={}", self.kubeconfig.display()),
            "--",
        ]);
        tools::output(command.args(DEMO_FLAGS)).map(drop)
    }

    /// Lets a Node run Cloudwit, as installers of clusters do with Nodes of the control plane; kubelet may not say this of itself.
    ///
    /// # Errors
    ///
    /// When there is no such Node.
    pub async fn allow(&self, node: &str) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let patch = json!({ "metadata": { "labels": { CONTROL_PLANE: "" } } });
        nodes
            .patch(node, &PatchParams::default(), &Patch::Merge(&patch))
            .await?;
        Ok(())
    }

    /// All that there are.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    pub async fn list(&self) -> Result<Vec<Pod>> {
        Ok(self.pods().list(&ListParams::default().labels(LABEL)).await?.items)
    }

    /// The logs of those that run.
    ///
    /// # Errors
    ///
    /// When one cannot be read.
    pub async fn logs(&self) -> Result<Vec<String>> {
        let mut texts = Vec::new();
        for pod in self.list().await?.iter().filter(|pod| is_ready(pod)) {
            texts.push(self.pods().logs(&pod.name_any(), &LogParams::default()).await?);
        }
        Ok(texts)
    }

    /// Removes all that was installed, as `docs/guide/install.md` tells.
    ///
    /// # Errors
    ///
    /// When kubectl fails.
    pub fn remove(&self) -> Result<()> {
        let manifest = workspace::root().join("deploy/manifests/cloudwit.yaml");
        self.kubectl.run(&["delete", "-f", &manifest.display().to_string()])?;
        let files = [
            "configmap/cloudwit-config",
            "configmap/cloudwit-providers",
            "secret/cloudwit-secrets",
        ];
        self.kubectl
            .run(&[["-n", NAMESPACE, "delete"].as_slice(), &files].concat())
            .map(drop)
    }

    /// Whom the Lease names.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    pub async fn holder(&self) -> Result<Option<String>> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), NAMESPACE);
        let spec = leases.get_opt(LEASE).await?.and_then(|lease| lease.spec);
        Ok(spec.and_then(|spec| spec.holder_identity))
    }

    /// The name of the Pod that leads. On the network of its Node it is named in the Lease as the Node is.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    async fn leader(&self) -> Result<Option<String>> {
        let Some(holder) = self.holder().await? else {
            return Ok(None);
        };
        let pods = self.list().await?;
        let leads = |pod: &&Pod| {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
            node.is_some_and(|node| holder.starts_with(&format!("{node}_")))
        };
        Ok(pods.iter().find(leads).map(ResourceExt::name_any))
    }

    /// Kills the Pod that leads: it is deleted without time to end.
    ///
    /// # Errors
    ///
    /// When none leads.
    pub async fn kill_leader(&self) -> Result<String> {
        let Some(leader) = self.leader().await? else {
            bail!("no Pod of Cloudwit leads");
        };
        self.pods()
            .delete(&leader, &DeleteParams::default().grace_period(0))
            .await?;
        Ok(format!("the leader, Pod {leader}, is deleted without a grace period"))
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }
}

/// Whether a Pod is ready.
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions
        .clone()
        .any(|one| one.type_ == "Ready" && one.status == "True")
}
