//! A cluster, the stand-in for Azure, and Cloudwit as a process with the component `azure`.

use std::ops::{Deref, DerefMut};

use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::azure::azure_files;
use cloudwit_test_support::scenes::installation::Installation;
use serde_json::{Value, json};

/// Only Nodes are initialised.
pub const NODES: &str = "--controllers=cloud-node-controller";

/// All of it. The process ends before what it talks to.
pub struct Scene {
    installation: Installation,
    pub cloud: StandIn,
    /// Further keys of the cloud config.
    pub config: Value,
}

impl Deref for Scene {
    type Target = Installation;

    fn deref(&self) -> &Installation {
        &self.installation
    }
}

impl DerefMut for Scene {
    fn deref_mut(&mut self) -> &mut Installation {
        &mut self.installation
    }
}

impl Scene {
    /// A cluster without Nodes, a cloud without machines, and no process yet.
    pub async fn new() -> Self {
        let (installation, cloud) = tokio::join!(Installation::new("azure"), StandIn::start("azure", &[]));
        Self {
            installation: installation.unwrap(),
            cloud: cloud.unwrap(),
            config: json!({}),
        }
    }

    /// Starts Cloudwit with these flags beside those of the [`Installation`].
    pub async fn start(&mut self, flags: &[&str]) {
        let files = azure_files(&self.cloud, &self.config, &self.installation.deployment).await;
        self.installation.start(&files.unwrap(), flags).unwrap();
    }

    /// What only an administrator does.
    pub async fn does(&self, what: &str, arguments: Value) -> Value {
        self.cloud.call(what, arguments).await.unwrap()
    }

    /// A Node as the kubelet registers it.
    pub async fn registers(&self, name: &str, pods: &str) {
        let node = NodeBuilder::new(name).pod_cidr(pods);
        node.create(&self.client).await.unwrap();
    }

    /// A machine with addresses of both families, and its Node; the machine's id.
    pub async fn joins(&self, name: &str, pods: &str) -> String {
        let machine = self.does("add_machine", json!({ "name": name, "ipv6": true })).await;
        self.registers(name, pods).await;
        machine["id"].as_str().unwrap().to_owned()
    }

    /// How often this call was made, such as `GET Microsoft.Compute/virtualMachines`.
    pub async fn calls(&self, name: &str) -> usize {
        let calls = self.cloud.calls().await.unwrap();
        calls.iter().filter(|call| call.name == name).count()
    }
}
