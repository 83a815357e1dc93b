//! A cluster, a project of the shared OpenStack with a network and a router, gates before its services, and Cloudwit as a process with the
//! component `openstack`.

use std::time::Duration;

use cloudwit_test_support::child::Child;
use cloudwit_test_support::deployment::{CloudFiles, Deployment};
use cloudwit_test_support::gate::Gate;
use cloudwit_test_support::objects::{is_uninitialised, ready_condition};
use cloudwit_test_support::openstack_cloud::{OpenStackCloud, Service};
use cloudwit_test_support::openstack_project::{OpenStackNetwork, OpenStackProject};
use cloudwit_test_support::openstack_servers::OpenStackServer;
use cloudwit_test_support::{ApiServer, NodeBuilder, eventually, guests, programs};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use tempfile::TempDir;

/// How long anything may take on a busy machine.
pub const SOON: Duration = Duration::from_secs(120);

/// Flags with which the Nodes' controllers look often and believe what they see quickly.
pub const QUICK: [&str; 6] = [
    "--node-monitor-period=500ms",
    "--node-deletion-confirm-after=1s",
    "--node-deletion-grace-period=0s",
    "--node-deletion-max-percent=100",
    "--node-status-update-frequency=1s",
    "--route-reconciliation-period=1s",
];

/// All of it. The fields that others hold on to come last.
pub struct Scene {
    /// Cloudwit, while it runs.
    pub process: Option<Child>,
    /// With all rights.
    pub client: Client,
    /// Account, servers, quotas.
    pub project: OpenStackProject<'static>,
    /// Where servers are.
    pub network: OpenStackNetwork,
    /// The router's id.
    pub router: String,
    /// `[Global]` without the line that says with which secret.
    pub global: String,
    /// All that comes after `[Global]`.
    pub sections: String,
    /// One before each service, in the order of [`Service`].
    pub gates: Vec<Gate>,
    deployment: Deployment,
    server: ApiServer,
    _folder: TempDir,
}

impl Scene {
    /// A cluster without Nodes, a project without servers, and no process yet. The user has a password, as a secret.
    pub async fn new() -> Self {
        let built = || (programs::cloudwit(), guests::provider("openstack"));
        let (program, component) = tokio::task::spawn_blocking(built).await.unwrap();
        let cloud = OpenStackCloud::shared().await;
        let server = ApiServer::start().await.unwrap();
        let project = cloud.project().await.unwrap();
        let network = project.network("nodes", "10.1.0.0/16").await.unwrap();
        let router = project.router(&[&network]).await.unwrap();
        let public = cloud.public_network().await.unwrap();
        let mut gates = Vec::new();
        for service in Service::ALL {
            gates.push(Gate::to_url(cloud.url(service)).await.unwrap());
        }
        let region = format!("region-of-{}", project.name);
        let urls: Vec<String> = gates.iter().map(Gate::url).collect();
        let places: Vec<(Service, &str)> = Service::ALL
            .into_iter()
            .zip(urls.iter().map(String::as_str))
            .skip(1)
            .collect();
        cloud.region(&region, &places).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let programs = program.parent().unwrap();
        let deployment = Deployment::of("openstack", &folder.path().join("run"), programs, &component).unwrap();
        Self {
            process: None,
            client: server.client(),
            global: format!(
                "[Global]\nauth-url = {}/v3\nusername = {name}\ntenant-name = {name}\ndomain-name = Default\nregion = {region}\n",
                urls[0],
                name = project.name
            ),
            sections: format!(
                "[Route]\nrouter-id = {router}\n[LoadBalancer]\nsubnet-id = {}\nfloating-network-id = {}\n",
                network.subnet, public.id
            ),
            project,
            network,
            router,
            gates,
            deployment,
            server,
            _folder: folder,
        }
    }

    /// Starts Cloudwit with these flags beside [`QUICK`]. The secrets are files; each of them may be used in requests to Keystone alone.
    pub fn start(&mut self, secrets: &[(&str, &str)], flags: &[&str]) {
        let mut grants = String::from("grants:\n  cluster: {nodes: true, services: true}\n  http:\n");
        let port = |gate: &Gate| gate.url().rsplit_once(':').unwrap().1.to_owned();
        for gate in &self.gates {
            grants += &format!(
                "    - {{scheme: http, host: 127.0.0.1, port: {}, allowLoopback: true}}\n",
                port(gate)
            );
        }
        grants += if secrets.is_empty() { "" } else { "  secrets:\n" };
        for (name, secret) in secrets {
            let file = self.deployment.write(name, secret).unwrap();
            grants += &format!(
                "    - {{name: {name}, file: {}, hosts: [\"127.0.0.1:{}\"], uses: [placeholder]}}\n",
                file.display(),
                port(&self.gates[0])
            );
        }
        let files = CloudFiles {
            config: format!("{}{}", self.global, self.sections),
            settings: grants,
        };
        let flags: Vec<&str> = QUICK.iter().chain(flags).copied().collect();
        let (process, _) = self
            .deployment
            .start_on(self.server.kubeconfig(), &files, &flags)
            .unwrap();
        self.process = Some(process);
    }

    /// The same with the user's password.
    pub fn start_with_password(&mut self, flags: &[&str]) {
        let password = self.project.password.clone();
        self.start(&[("password", &password)], flags);
    }

    /// The gate before a service.
    pub fn gate(&self, service: Service) -> &Gate {
        &self.gates[service as usize]
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

    /// A server, and its Node as the kubelet registers it.
    pub async fn joins(&self, name: &str, pod_range: &str) -> OpenStackServer {
        let server = self.project.server(&self.network, name).await.unwrap();
        NodeBuilder::new(name)
            .pod_cidr(pod_range)
            .create(&self.client)
            .await
            .unwrap();
        server
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
        let silent = json!({ "status": { "conditions": [ready_condition(None)] } });
        let patch = Patch::Strategic(silent);
        self.nodes()
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
}
