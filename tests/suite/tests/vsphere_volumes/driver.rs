//! `cloudwit csi` with the component `vsphere` on a vCenter with two zones, behind a gate.

use std::path::PathBuf;
use std::time::Duration;

use cloudwit_csi::proto::*;
use cloudwit_test_support::child::Child;
use cloudwit_test_support::deployment::Deployment;
use cloudwit_test_support::gate::{Gate, Point};
use cloudwit_test_support::vcsim::{PASSWORD, USERNAME, Vcsim, VcsimOptions, VirtualMachine, VolumeOptions};
use cloudwit_test_support::{eventually, guests, programs};
use http::Method;
use serde_json::Value;

use crate::served::{Controller, dial};
use crate::sidecar_requests::wanted_at;

/// How long anything may take on a busy machine.
pub const SOON: Duration = Duration::from_secs(120);

/// The key of zones: that of their tag category.
pub const ZONE_KEY: &str = "topology.csi.vmware.com/k8s-zone";

/// The zone of the cluster's hosts, and so of the first two machines.
pub const ZONE: &str = "a";

/// The id that distinguishes the cluster's volumes in CNS.
pub const CLUSTER: &str = "shop-7";

/// The driver's process, and what it has to do with. It ends before the others.
pub struct Cns {
    process: Option<Child>,
    arguments: Vec<String>,
    program: PathBuf,
    folder: tempfile::TempDir,
    pub vcsim: Vcsim,
    pub gate: Gate,
    /// Two in [`ZONE`], two in zone `b`.
    pub machines: Vec<VirtualMachine>,
}

/// One datacenter with two zones: a cluster, and a host of its own.
pub async fn vcenter(volumes: VolumeOptions) -> Vcsim {
    let options = VcsimOptions {
        datacenters: 1,
        volumes: Some(volumes),
        ..VcsimOptions::default()
    };
    let vcsim = Vcsim::start(options).await.unwrap();
    vcsim.tag("k8s-zone", ZONE, "/DC0/host/DC0_C0").await.unwrap();
    vcsim.tag("k8s-zone", "b", "/DC0/host/DC0_H0").await.unwrap();
    vcsim.tag("k8s-region", "north", "/DC0").await.unwrap();
    vcsim
}

/// The cloud config for a vCenter at this port, with this in `volumes` beside the cluster's id.
pub fn config(port: &str, volumes: &str) -> String {
    format!(
        "global: {{port: {port}}}\nvcenter: {{vcsim: {{server: 127.0.0.1, secretName: vsphere, secretNamespace: kube-system}}}}\n\
         labels: {{zone: k8s-zone, region: k8s-region}}\nvolumes: {{clusterId: {CLUSTER}{volumes}}}\n"
    )
}

impl Cns {
    /// With this in the section `volumes` of the cloud config.
    pub async fn start(options: VolumeOptions, volumes: &str) -> Self {
        let built = tokio::task::spawn_blocking(|| (programs::cloudwit(), guests::provider("vsphere"))).await;
        let (program, component) = built.unwrap();
        let vcsim = vcenter(options).await;
        let (machines, gate) = (vcsim.machines().await.unwrap(), vcsim.gate().await.unwrap());
        let folder = tempfile::tempdir().unwrap();
        let deployment = Deployment::of(
            "vsphere",
            &folder.path().join("run"),
            program.parent().unwrap(),
            &component,
        )
        .unwrap();
        let port = gate.url().rsplit_once(':').unwrap().1.to_owned();
        let mut settings = format!(
            "grants:\n  http:\n    - {{host: 127.0.0.1, port: {port}, methods: [GET, POST], allowLoopback: true, ca: {}}}\n  secrets:\n",
            vcsim.authority().display()
        );
        for (name, secret) in [("username", USERNAME), ("password", PASSWORD)] {
            let file = deployment.write(name, secret).unwrap();
            settings += &format!(
                "    - {{name: 127.0.0.1.{name}, file: {}, hosts: [\"127.0.0.1:{port}\"], uses: [placeholder]}}\n",
                file.display()
            );
        }
        let config = deployment.write("cloud-config", &config(&port, volumes)).unwrap();
        let settings = deployment.write("settings.yaml", &settings).unwrap();
        let cache = xtask::workspace::target().join("tmp/code-cache");
        let arguments = vec![
            "csi".to_owned(),
            component.display().to_string(),
            format!("--cloud-config={}", config.display()),
            format!("--settings={}", settings.display()),
            format!("--endpoint={}", folder.path().join("csi.sock").display()),
            format!("--cache-dir={}", cache.display()),
        ];
        let mut cns = Self {
            process: None,
            arguments,
            program,
            folder,
            vcsim,
            gate,
            machines,
        };
        cns.run().await;
        cns
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("csi.sock")
    }

    async fn run(&mut self) {
        let log = self.folder.path().join("csi.log");
        let process = Child::start(&self.program, &self.arguments, &log).unwrap();
        let socket = self.socket();
        eventually(SOON, "the driver listens", || async {
            let connected = tokio::net::UnixStream::connect(&socket).await;
            connected
                .map(drop)
                .map_err(|error| format!("{error}\n{}", process.log_end()))
        })
        .await;
        self.process = Some(process);
    }

    /// Kills the process in the middle of whatever it does, and starts it again.
    pub async fn restart(&mut self) {
        let process = self.process.take().unwrap();
        tokio::task::spawn_blocking(move || process.kill())
            .await
            .unwrap()
            .unwrap();
        drop(std::fs::remove_file(self.socket()));
        self.run().await;
    }

    /// A client of the controller service.
    pub async fn client(&self) -> Controller {
        Controller::new(dial(self.socket()).await)
    }

    /// The id of one of the machines for the driver.
    pub fn machine(&self, number: usize) -> &str {
        &self.machines[number].bios_uuid
    }

    /// A volume of this name, made.
    pub async fn made(&self, client: &mut Controller, name: &str) -> String {
        let answer = client.create_volume(wanted(name)).await.unwrap().into_inner();
        answer.volume.unwrap().volume_id
    }

    /// The volumes as VMware's client shows them.
    pub async fn volumes(&self) -> Vec<Value> {
        let listed = self.vcsim.govc(&["volume.ls", "-json"]).await.unwrap();
        let listed: Value = serde_json::from_str(&listed).unwrap();
        listed["volume"].as_array().cloned().unwrap_or_default()
    }

    /// How many SOAP calls of this method were made.
    pub fn calls(&self, method: &str) -> usize {
        self.gate.count(&point(method))
    }
}

/// Calls of this method of CNS, before they are made.
pub fn point(method: &str) -> Point {
    Point::before(Method::POST, "/vsanHealth").with(format!("<{method} "))
}

/// A volume of two GiB in [`ZONE`].
pub fn wanted(name: &str) -> CreateVolumeRequest {
    wanted_at(name, ZONE_KEY, ZONE)
}

/// It with parameters of a class.
pub fn with_parameters(name: &str, parameters: &[(&str, &str)]) -> CreateVolumeRequest {
    let parameters = parameters.iter();
    CreateVolumeRequest {
        parameters: parameters
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        ..wanted(name)
    }
}

/// A volume grows to so many bytes.
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

pub fn delete(volume_id: &str) -> DeleteVolumeRequest {
    DeleteVolumeRequest {
        volume_id: volume_id.into(),
        ..Default::default()
    }
}
