//! `cloudwit csi` with the component `openstack` on a project of its own, behind gates.

use std::path::PathBuf;
use std::time::Duration;

use cloudwit_csi::proto::*;
use cloudwit_test_support::child::Child;
use cloudwit_test_support::deployment::Deployment;
use cloudwit_test_support::gate::Gate;
use cloudwit_test_support::openstack_cloud::{OpenStackCloud, Service};
use cloudwit_test_support::openstack_project::OpenStackProject;
use cloudwit_test_support::openstack_servers::{OpenStackServer, ZONE};
use cloudwit_test_support::openstack_volumes::HOST;
use cloudwit_test_support::{eventually, guests, programs};
use serde_json::json;

use crate::served::{Controller, dial};
use crate::sidecar_requests::wanted_at;

/// How long anything may take on a busy machine.
pub const SOON: Duration = Duration::from_secs(120);

/// The driver's key of places.
pub const ZONE_KEY: &str = "topology.cinder.csi.openstack.org/zone";

/// The driver's process, and what it has to do with. It ends before the others.
pub struct Cinder {
    _process: Child,
    socket: PathBuf,
    pub project: OpenStackProject<'static>,
    /// One before each service, in the order of [`Service`].
    pub gates: Vec<Gate>,
    /// Two servers in [`ZONE`].
    pub servers: Vec<OpenStackServer>,
    _folder: tempfile::TempDir,
}

impl Cinder {
    /// For a project of its own.
    pub async fn start() -> Self {
        let built = tokio::task::spawn_blocking(|| (programs::cloudwit(), guests::provider("openstack"))).await;
        let (program, component) = built.unwrap();
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

        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        let deployment = Deployment::of("openstack", &run, program.parent().unwrap(), &component).unwrap();
        let config = format!(
            "[Global]\nauth-url = {}/v3\nusername = {name}\ntenant-name = {name}\ndomain-name = Default\nregion = {region}\n",
            urls[0],
            name = project.name
        );
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
        let config = deployment.write("cloud-config", &config).unwrap();
        let settings = deployment.write("settings.yaml", &settings).unwrap();
        let socket = folder.path().join("csi.sock");
        let cache = xtask::workspace::target().join("tmp/code-cache");
        let arguments = [
            "csi".to_owned(),
            component.display().to_string(),
            format!("--cloud-config={}", config.display()),
            format!("--settings={}", settings.display()),
            format!("--endpoint={}", socket.display()),
            format!("--cache-dir={}", cache.display()),
        ];
        let process = Child::start(&program, &arguments, &folder.path().join("csi.log")).unwrap();
        eventually(SOON, "the driver listens", || async {
            let connected = tokio::net::UnixStream::connect(&socket).await;
            connected
                .map(drop)
                .map_err(|error| format!("{error}\n{}", process.log_end()))
        })
        .await;
        Self {
            _process: process,
            socket,
            project,
            gates,
            servers,
            _folder: folder,
        }
    }

    /// A client of the controller service.
    pub async fn client(&self) -> Controller {
        Controller::new(dial(self.socket.clone()).await)
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
        let answer = client.create_volume(wanted(name)).await.unwrap().into_inner();
        answer.volume.unwrap().volume_id
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

/// What deletes it.
pub fn delete(volume_id: &str) -> DeleteVolumeRequest {
    DeleteVolumeRequest {
        volume_id: volume_id.into(),
        ..Default::default()
    }
}

/// Lets it grow to so many bytes.
pub fn grow(volume_id: &str, bytes: i64) -> ControllerExpandVolumeRequest {
    ControllerExpandVolumeRequest {
        volume_id: volume_id.into(),
        capacity_range: Some(CapacityRange {
            required_bytes: bytes,
            limit_bytes: 0,
        }),
        ..Default::default()
    }
}
