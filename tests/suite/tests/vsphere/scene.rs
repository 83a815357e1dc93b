//! A cluster, one or several vCenters each with a gate before it, and Cloudwit as a process with the component `vsphere`.

use std::time::Duration;

use cloudwit_test_support::child::Child;
use cloudwit_test_support::deployment::{CloudFiles, Deployment};
use cloudwit_test_support::gate::{Gate, Point};
use cloudwit_test_support::objects::{is_uninitialised, ready_condition};
use cloudwit_test_support::vcsim::{PASSWORD, USERNAME, Vcsim, VcsimOptions, VirtualMachine};
use cloudwit_test_support::{ApiServer, NodeBuilder, eventually, guests, programs};
use http::Method;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use tempfile::TempDir;

/// How long anything may take on a busy machine.
pub const SOON: Duration = Duration::from_secs(120);

/// Flags with which the Nodes' controllers look often and believe what they see quickly.
const QUICK: [&str; 6] = [
    "--controllers=cloud-node-controller,cloud-node-lifecycle-controller",
    "--node-monitor-period=500ms",
    "--node-deletion-confirm-after=1s",
    "--node-deletion-grace-period=0s",
    "--node-deletion-max-percent=100",
    "--node-status-update-frequency=1s",
];

/// A vCenter and what stands before it.
pub struct VCenter {
    pub vcsim: Vcsim,
    pub gate: Gate,
}

impl VCenter {
    pub async fn start(options: VcsimOptions) -> Self {
        let vcsim = Vcsim::start(options).await.unwrap();
        let gate = vcsim.gate().await.unwrap();
        Self { vcsim, gate }
    }

    /// The port of the gate.
    pub fn port(&self) -> String {
        self.gate.url().rsplit_once(':').unwrap().1.to_owned()
    }

    /// How many SOAP calls of this method were made.
    pub fn calls(&self, method: &str) -> usize {
        self.gate.count(&soap(method))
    }

    /// The machine in this place with a guest that tells its name and address.
    pub async fn machine(&self, path: &str, host_name: &str, address: &str) -> VirtualMachine {
        self.vcsim.set_guest(path, host_name, address).await.unwrap();
        let machines = self.vcsim.machines().await.unwrap();
        machines.into_iter().find(|machine| machine.path == path).unwrap()
    }
}

/// Calls of this SOAP method.
pub fn soap(method: &str) -> Point {
    Point::before(Method::POST, "/sdk").with(format!("<{method} "))
}

/// All of it. The fields that others hold on to come last.
pub struct Scene {
    process: Option<Child>,
    /// With all rights.
    pub client: Client,
    /// The vCenters, called `a`, `b` and so on.
    pub vcenters: Vec<VCenter>,
    /// What stands in the cloud config before and after the vCenters.
    pub config: String,
    /// The password that Cloudwit is given.
    pub password: String,
    /// How the certificate is trusted: `ca`, or `thumbprints`.
    pub trust: Option<String>,
    deployment: Deployment,
    server: ApiServer,
    _folder: TempDir,
}

impl Scene {
    /// A cluster without Nodes, one vCenter with machines that tell nothing yet, and no process yet.
    pub async fn new() -> Self {
        Self::with(&[VcsimOptions::default()]).await
    }

    /// The same with several vCenters.
    pub async fn with(options: &[VcsimOptions]) -> Self {
        let built = || (programs::cloudwit(), guests::provider("vsphere"));
        let (program, component) = tokio::task::spawn_blocking(built).await.unwrap();
        let server = ApiServer::start().await.unwrap();
        let mut vcenters = Vec::new();
        for options in options {
            vcenters.push(VCenter::start(*options).await);
        }
        let folder = tempfile::tempdir().unwrap();
        let programs = program.parent().unwrap();
        let deployment = Deployment::of("vsphere", &folder.path().join("run"), programs, &component).unwrap();
        Self {
            process: None,
            client: server.client(),
            vcenters,
            config: String::new(),
            password: PASSWORD.into(),
            trust: None,
            deployment,
            server,
            _folder: folder,
        }
    }

    /// The first vCenter.
    pub fn vcenter(&self) -> &VCenter {
        &self.vcenters[0]
    }

    /// The cloud config, as upstream's YAML.
    fn cloud_config(&self) -> String {
        let mut config = String::from("# vSphere\nvcenter:\n");
        for (name, vcenter) in ["a", "b", "c"].iter().zip(&self.vcenters) {
            config += &format!(
                "  {name}:\n    server: 127.0.0.1\n    port: {}\n    secretName: vsphere\n    secretNamespace: kube-system\n",
                vcenter.port()
            );
        }
        config + &self.config
    }

    /// Starts Cloudwit with these flags beside the quick ones.
    pub fn start(&mut self, flags: &[&str]) {
        let config = self.cloud_config();
        self.start_with(config, flags);
    }

    /// The same with this cloud config.
    pub fn start_with(&mut self, config: String, flags: &[&str]) {
        let mut settings = String::from("grants:\n  http:\n");
        let mut hosts = Vec::new();
        for (number, vcenter) in self.vcenters.iter().enumerate() {
            let port = vcenter.port();
            let ca = std::fs::read_to_string(vcenter.vcsim.authority()).unwrap();
            let ca = self.deployment.write(&format!("ca-{number}.pem"), &ca).unwrap();
            let trust = self.trust.clone().unwrap_or_else(|| format!("ca: {}", ca.display()));
            settings += &format!(
                "    - {{host: 127.0.0.1, port: {port}, methods: [GET, POST], allowLoopback: true, {trust}}}\n"
            );
            hosts.push(format!("\"127.0.0.1:{port}\""));
        }
        settings += "  secrets:\n";
        for (name, secret) in [("username", USERNAME), ("password", self.password.as_str())] {
            let file = self.deployment.write(name, secret).unwrap();
            settings += &format!(
                "    - {{name: 127.0.0.1.{name}, file: {}, hosts: [{}], uses: [placeholder]}}\n",
                file.display(),
                hosts.join(", ")
            );
        }
        let files = CloudFiles { config, settings };
        let flags: Vec<&str> = QUICK.iter().chain(flags).copied().collect();
        let started = self.deployment.start_on(self.server.kubeconfig(), &files, &flags);
        self.process = Some(started.unwrap().0);
    }

    /// What the process has logged.
    pub fn log(&self) -> String {
        let log = self.process.as_ref().map(Child::log);
        log.and_then(|log| std::fs::read_to_string(log).ok())
            .unwrap_or_default()
    }

    /// Waits until `wrong` finds nothing wrong any more.
    #[track_caller]
    pub fn settled<Fut: Future<Output = Result<(), String>>>(
        &self,
        what: &str,
        mut wrong: impl FnMut() -> Fut,
    ) -> impl Future<Output = ()> {
        let log = || self.process.as_ref().map(Child::log_end).unwrap_or_default();
        eventually(SOON, what, move || {
            let look = wrong();
            async move { look.await.map_err(|wrong| format!("{wrong}\n{}", log())) }
        })
    }

    /// All Nodes.
    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    /// A Node by its name.
    pub async fn node(&self, name: &str) -> Option<Node> {
        self.nodes().get_opt(name).await.unwrap()
    }

    /// A machine whose guest tells this name, and its Node as the kubelet registers it.
    pub async fn joins(&self, path: &str, name: &str, address: &str) -> VirtualMachine {
        let machine = self.vcenter().machine(path, name, address).await;
        NodeBuilder::new(name).create(&self.client).await.unwrap();
        machine
    }

    /// Waits until the Node is initialised.
    #[track_caller]
    pub fn initialised(&self, name: &str) -> impl Future<Output = Node> {
        let nodes = self.nodes();
        let log = || self.process.as_ref().map(Child::log_end).unwrap_or_default();
        eventually(SOON, "the Node is initialised", move || {
            let (nodes, name) = (nodes.clone(), name.to_owned());
            async move {
                let node = nodes.get(&name).await.map_err(|error| error.to_string())?;
                if is_uninitialised(&node) {
                    Err(format!("it has the taint\n{}", log()))
                } else {
                    Ok(node)
                }
            }
        })
    }

    /// The kubelet falls silent, as when its machine is off.
    pub async fn falls_silent(&self, name: &str) {
        let patch = Patch::Strategic(json!({ "status": { "conditions": [ready_condition(None)] } }));
        self.nodes()
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
}

/// Kinds and values of a Node's addresses.
pub fn addresses(node: &Node) -> Vec<String> {
    let addresses = node.status.as_ref().and_then(|status| status.addresses.as_ref());
    let addresses = addresses.into_iter().flatten();
    addresses
        .map(|address| format!("{} {}", address.type_, address.address))
        .collect()
}

/// A Node's provider id.
pub fn provider_id(node: &Node) -> Option<&str> {
    node.spec.as_ref()?.provider_id.as_deref()
}

/// Whether a Node is marked as switched off.
pub fn is_shut_down(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints
        .into_iter()
        .flatten()
        .any(|taint| taint.key == "node.cloudprovider.kubernetes.io/shutdown")
}

/// A UUID with the bytes of its first three groups the other way round, as SMBIOS has them.
pub fn swapped(uuid: &str) -> String {
    let mut groups: Vec<String> = uuid.split('-').map(str::to_owned).collect();
    for group in &mut groups[..3] {
        let bytes: Vec<&str> = (0..group.len() / 2)
            .rev()
            .map(|at| &group[at * 2..at * 2 + 2])
            .collect();
        *group = bytes.concat();
    }
    groups.join("-")
}
