//! `cloudwit csi` with the component `vsphere` on a vCenter with two zones, behind a gate.

use std::ops::Deref;

use cloudwit_csi::proto::CreateVolumeRequest;
use cloudwit_suite::common::csi_process::{self, CsiProcess};
use cloudwit_test_support::clouds::vcsim::inventory::VirtualMachine;
use cloudwit_test_support::clouds::vcsim::{PASSWORD, USERNAME, Vcsim, VcsimOptions, VolumeOptions};
use cloudwit_test_support::gate::{Gate, Point};
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment};
use http::Method;
use serde_json::Value;

use crate::served::Controller;
use crate::sidecar_requests::wanted_at;

/// The key of zones: that of their tag category.
pub const ZONE_KEY: &str = "topology.csi.vmware.com/k8s-zone";

/// The zone of the cluster's hosts, and so of the first two machines.
pub const ZONE: &str = "a";

/// The id that distinguishes the cluster's volumes in CNS.
pub const CLUSTER: &str = "shop-7";

/// The driver's process, and what it has to do with. It ends before the others.
pub struct Cns {
    process: CsiProcess,
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

impl Deref for Cns {
    type Target = CsiProcess;

    fn deref(&self) -> &CsiProcess {
        &self.process
    }
}

impl Cns {
    /// With this in the section `volumes` of the cloud config.
    pub async fn start(options: VolumeOptions, volumes: &str) -> Self {
        let vcsim = vcenter(options).await;
        let (machines, gate) = (vcsim.machines().await.unwrap(), vcsim.gate().await.unwrap());
        let files = async |deployment: &_| files(&vcsim, &gate, volumes, deployment);
        Self {
            process: CsiProcess::start("vsphere", files).await,
            vcsim,
            gate,
            machines,
        }
    }

    /// Kills the process in the middle of whatever it does, and starts it again.
    pub async fn restart(&mut self) {
        self.process.restart().await;
    }

    /// The id of one of the machines for the driver.
    pub fn machine(&self, number: usize) -> &str {
        &self.machines[number].bios_uuid
    }

    /// A volume of this name, made.
    pub async fn made(&self, client: &mut Controller, name: &str) -> String {
        csi_process::made(client, wanted(name)).await
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

/// What an operator writes for this vCenter behind its gate.
fn files(vcsim: &Vcsim, gate: &Gate, volumes: &str, deployment: &Deployment) -> CloudFiles {
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
    CloudFiles {
        config: config(&port, volumes),
        settings,
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
