//! Cloudwit by its Helm chart, as `docs/guide/install.md` tells.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloudwit_test_support::scenes::deployment::{CLUSTER_CIDR, CLUSTER_NAME, TOKEN};
use serde_json::{Map, json};
use xtask::{tools, workspace};

use crate::hub::files;
use crate::hub::images::TAG;
use crate::hub::kubectl::Kubectl;
use crate::hub::network::{API_PORT, HUB};
use crate::manager::DEMO_FLAGS;
use crate::manager::pods::NAMESPACE;
use crate::volumes::{DRIVER, NODE_IMAGE, SIDECARS, SYSFS};

/// The Secret that is made for the chart.
const SECRET: &str = "cloudwit-token";

/// The chart and what it is installed with.
pub struct Chart {
    helm: PathBuf,
    kubectl: Kubectl,
    kubeconfig: PathBuf,
    folder: PathBuf,
    values: PathBuf,
    component: PathBuf,
}

impl Chart {
    /// For the simulated cloud at this port of the hub; nothing is installed yet.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or written.
    pub fn new(
        helm: &Path,
        kubectl: Kubectl,
        folder: &Path,
        kubeconfig: &Path,
        provider: &Path,
        port: u16,
    ) -> Result<Self> {
        let folder = folder.join("chart");
        let component = fs::read(provider).with_context(|| format!("reading {}", provider.display()))?;
        let image = |name: &str| json!({ "enabled": true, "image": format!("localhost/csi-{name}:{TAG}") });
        let sidecars = SIDECARS.iter().map(|name| ((*name).to_owned(), image(name)));
        let values = json!({
            "image": { "repository": "localhost/cloudwit", "tag": TAG },
            "clusterName": CLUSTER_NAME,
            "clusterCIDR": CLUSTER_CIDR,
            "apiServer": { "host": HUB, "port": API_PORT.to_string() },
            "existingSecret": SECRET,
            "extraArgs": DEMO_FLAGS,
            "csi": {
                "enabled": true,
                "driver": DRIVER,
                "sidecars": sidecars.collect::<Map<_, _>>(),
                "node": {
                    "enabled": true,
                    "image": format!("localhost/{NODE_IMAGE}:{TAG}"),
                    // Devices of this machine that stand for those of the cloud's.
                    "extraArgs": [format!("--sysfs={SYSFS}"), "-v=2".to_owned()],
                },
            },
            "configuration": { "providers": [{
                "name": "sim",
                "component": "sim.wasm",
                "cloudConfig": json!({ "endpoint": format!("http://{HUB}:{port}") }).to_string(),
                "grants": {
                    "http": [{ "scheme": "http", "host": HUB, "port": port }],
                    "secrets": [{
                        "name": "token",
                        "file": "/etc/cloudwit/secrets/token",
                        "hosts": [format!("{HUB}:{port}")],
                        "uses": ["placeholder"],
                    }],
                },
            }] },
        });
        Ok(Self {
            values: files::write(&folder, "values.yaml", &values.to_string())?,
            component: files::write(&folder, "sim.b64", &STANDARD.encode(component))?,
            helm: helm.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            kubectl,
            folder,
        })
    }

    /// Installs it.
    ///
    /// # Errors
    ///
    /// When kubectl or Helm fails; with what it says.
    pub fn install(&self) -> Result<()> {
        let token = format!("--from-literal=token={TOKEN}");
        self.kubectl
            .run(&["-n", NAMESPACE, "create", "secret", "generic", SECRET, &token])?;
        let mut command = Command::new(&self.helm);
        command
            .args(["install", "cloudwit"])
            .arg(workspace::root().join("deploy/chart"));
        command.args(["-n", NAMESPACE, "-f"]).arg(&self.values);
        command.arg(format!("--set-file=components.sim={}", self.component.display()));
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        // What it keeps for itself goes where everything of the sandbox is.
        for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(variable, self.folder.join("helm"));
        }
        tools::output(&mut command).map(drop)
    }
}
