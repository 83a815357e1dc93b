//! A cluster, one or several vCenters each with a gate before it, and Cloudwit as a process with the component `vsphere`.

use std::ops::Deref;

use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::clouds::vcsim::inventory::VirtualMachine;
use cloudwit_test_support::clouds::vcsim::{PASSWORD, USERNAME, Vcsim, VcsimOptions};
use cloudwit_test_support::gate::{Gate, Point};
use cloudwit_test_support::scenes::deployment::CloudFiles;
use cloudwit_test_support::scenes::installation::Installation;
use http::Method;

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

/// All of it. The process ends before what it talks to.
pub struct Scene {
    installation: Installation,
    /// The vCenters, called `a`, `b` and so on.
    pub vcenters: Vec<VCenter>,
    /// What stands in the cloud config before and after the vCenters.
    pub config: String,
    /// The password that Cloudwit is given.
    pub password: String,
    /// How the certificate is trusted: `ca`, or `thumbprints`.
    pub trust: Option<String>,
}

impl Deref for Scene {
    type Target = Installation;

    fn deref(&self) -> &Installation {
        &self.installation
    }
}

impl Scene {
    /// A cluster without Nodes, one vCenter with machines that tell nothing yet, and no process yet.
    pub async fn new() -> Self {
        Self::with(&[VcsimOptions::default()]).await
    }

    /// The same with several vCenters.
    pub async fn with(options: &[VcsimOptions]) -> Self {
        let installation = Installation::new("vsphere").await.unwrap();
        let mut vcenters = Vec::new();
        for options in options {
            vcenters.push(VCenter::start(*options).await);
        }
        Self {
            installation,
            vcenters,
            config: String::new(),
            password: PASSWORD.into(),
            trust: None,
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

    /// Starts Cloudwit with these flags beside those of the [`Installation`].
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
            let ca = self
                .installation
                .deployment
                .write(&format!("ca-{number}.pem"), &ca)
                .unwrap();
            let trust = self.trust.clone().unwrap_or_else(|| format!("ca: {}", ca.display()));
            settings += &format!(
                "    - {{host: 127.0.0.1, port: {port}, methods: [GET, POST], allowLoopback: true, {trust}}}\n"
            );
            hosts.push(format!("\"127.0.0.1:{port}\""));
        }
        settings += "  secrets:\n";
        for (name, secret) in [("username", USERNAME), ("password", self.password.as_str())] {
            let file = self.installation.deployment.write(name, secret).unwrap();
            settings += &format!(
                "    - {{name: 127.0.0.1.{name}, file: {}, hosts: [{}], uses: [placeholder]}}\n",
                file.display(),
                hosts.join(", ")
            );
        }
        let files = CloudFiles { config, settings };
        let nodes = "--controllers=cloud-node-controller,cloud-node-lifecycle-controller";
        let flags = [&[nodes], flags].concat();
        self.installation.start(&files, &flags).unwrap();
    }

    /// A machine whose guest tells this name, and its Node as the kubelet registers it.
    pub async fn joins(&self, path: &str, name: &str, address: &str) -> VirtualMachine {
        let machine = self.vcenter().machine(path, name, address).await;
        NodeBuilder::new(name).create(&self.client).await.unwrap();
        machine
    }
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
