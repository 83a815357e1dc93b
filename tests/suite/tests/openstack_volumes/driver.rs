//! `cloudwit csi` with the component `openstack` on a project of its own, behind gates.

use std::ops::Deref;

use cloudwit_csi::proto::*;
use cloudwit_suite::common::csi_process::{self, CsiProcess};
use cloudwit_test_support::clouds::openstack::project::OpenStackProject;
use cloudwit_test_support::clouds::openstack::servers::{OpenStackServer, ZONE};
use cloudwit_test_support::clouds::openstack::volumes::HOST;
use cloudwit_test_support::clouds::openstack::{OpenStackCloud, Service};
use cloudwit_test_support::gate::Gate;
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment};
use serde_json::json;

use crate::served::Controller;
use crate::sidecar_requests::wanted_at;

/// The driver's key of places.
pub const ZONE_KEY: &str = "topology.cinder.csi.openstack.org/zone";

/// The driver's process, and what it has to do with. It ends before the others.
pub struct Cinder {
    process: CsiProcess,
    pub project: OpenStackProject<'static>,
    /// One before each service, in the order of [`Service`].
    pub gates: Vec<Gate>,
    /// Two servers in [`ZONE`].
    pub servers: Vec<OpenStackServer>,
}

impl Deref for Cinder {
    type Target = CsiProcess;

    fn deref(&self) -> &CsiProcess {
        &self.process
    }
}

impl Cinder {
    /// For a project of its own.
    pub async fn start() -> Self {
        let cloud = OpenStackCloud::shared().await;
        cloud.volumes_ready().await.unwrap();
        let project = cloud.project().await.unwrap();
        let network = project.network("nodes", "10.1.0.0/24").await.unwrap();
        let mut servers = Vec::new();
        for name in ["node-1", "node-2"] {
            let on = json!({ "host": HOST });
            servers.push(project.server_with(&network, name, on).await.unwrap());
        }
        let mut gates = Vec::new();
        for service in Service::ALL {
            gates.push(Gate::to_url(cloud.url(service)).await.unwrap());
        }
        let urls: Vec<String> = gates.iter().map(Gate::url).collect();
        let region = format!("region-of-{}", project.name);
        let places: Vec<(Service, &str)> = Service::ALL.into_iter().zip(urls.iter().map(String::as_str)).collect();
        cloud.region(&region, &places).await.unwrap();
        let files = async |deployment: &_| files(&project, &region, &urls, deployment);
        Self {
            process: CsiProcess::start("openstack", files).await,
            project,
            gates,
            servers,
        }
    }

    /// The id of one of the servers.
    pub fn server(&self, number: usize) -> &str {
        &self.servers[number].id
    }

    /// The gate before a service.
    pub fn gate(&self, service: Service) -> &Gate {
        &self.gates[service as usize]
    }

    /// A volume of this name, made.
    pub async fn made(&self, client: &mut Controller, name: &str) -> String {
        csi_process::made(client, wanted(name)).await
    }

    /// How many calls of this method with this path, or one below it, the service got in this project.
    pub async fn count(&self, service: Service, method: &str, part: &str) -> usize {
        let calls = self.project.calls(service).await.unwrap();
        let fits = calls
            .iter()
            .filter(|call| call.method == method && call.target.contains(part));
        fits.count()
    }
}

/// A volume of two GiB where the servers are.
pub fn wanted(name: &str) -> CreateVolumeRequest {
    wanted_at(name, ZONE_KEY, ZONE)
}

/// `[Global]` for this project, with the services of a region.
pub fn cloud_config(project: &OpenStackProject<'_>, keystone: &str, region: &str) -> String {
    format!(
        "[Global]\nauth-url = {keystone}/v3\nusername = {name}\ntenant-name = {name}\ndomain-name = Default\nregion = {region}\n",
        name = project.name
    )
}

/// What an operator writes for a region at these URLs, Keystone's first.
fn files(project: &OpenStackProject<'_>, region: &str, urls: &[String], deployment: &Deployment) -> CloudFiles {
    let ports: Vec<&str> = urls.iter().map(|url| url.rsplit_once(':').unwrap().1).collect();
    let mut settings = String::from("grants:\n  http:\n");
    for port in &ports {
        settings += &format!("    - {{scheme: http, host: 127.0.0.1, port: {port}, allowLoopback: true}}\n");
    }
    let password = deployment.write("password", &project.password).unwrap();
    settings += &format!(
        "  secrets:\n    - {{name: password, file: {}, hosts: [\"127.0.0.1:{}\"], uses: [placeholder]}}\n",
        password.display(),
        ports[0]
    );
    CloudFiles {
        config: cloud_config(project, &urls[0], region),
        settings,
    }
}
