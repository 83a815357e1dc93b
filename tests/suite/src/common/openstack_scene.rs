//! A cluster, a project of the shared OpenStack with a network and a router, gates before its services, and Cloudwit as a process with the
//! component `openstack`.

use std::ops::Deref;

use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::clouds::openstack::project::{OpenStackNetwork, OpenStackProject};
use cloudwit_test_support::clouds::openstack::servers::OpenStackServer;
use cloudwit_test_support::clouds::openstack::{OpenStackCloud, Service};
use cloudwit_test_support::gate::Gate;
use cloudwit_test_support::scenes::deployment::CloudFiles;
use cloudwit_test_support::scenes::installation::Installation;

/// All of it. The process ends before what it talks to.
pub struct Scene {
    /// The cluster, and Cloudwit while it runs.
    pub installation: Installation,
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
    /// `limits:` of the provider's settings; empty for those by default.
    pub limits: &'static str,
}

impl Deref for Scene {
    type Target = Installation;

    fn deref(&self) -> &Installation {
        &self.installation
    }
}

impl Scene {
    /// A cluster without Nodes, a project without servers, and no process yet. The user has a password, as a secret.
    pub async fn new() -> Self {
        let installation = Installation::new("openstack").await.unwrap();
        let cloud = OpenStackCloud::shared().await;
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
        Self {
            installation,
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
            limits: "",
        }
    }

    /// Starts Cloudwit with these flags beside those of the [`Installation`]. The secrets are files; each of them may be used in requests to Keystone alone.
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
            let file = self.installation.deployment.write(name, secret).unwrap();
            grants += &format!(
                "    - {{name: {name}, file: {}, hosts: [\"127.0.0.1:{}\"], uses: [placeholder]}}\n",
                file.display(),
                port(&self.gates[0])
            );
        }
        let files = CloudFiles {
            config: format!("{}{}", self.global, self.sections),
            settings: grants + self.limits,
        };
        self.installation.start(&files, flags).unwrap();
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
}
