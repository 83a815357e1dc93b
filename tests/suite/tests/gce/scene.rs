//! A cluster, the stand-in for Compute Engine, and Cloudwit as a process with the component `gce`.

use std::ops::{Deref, DerefMut};

use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::gce::gce_files;
use cloudwit_test_support::scenes::installation::Installation;
use serde_json::{Map, Value, json};

/// Zone of machines for which a test names none.
pub const ZONE: &str = "us-central1-a";

/// All of it. The process ends before what it talks to.
pub struct Scene {
    installation: Installation,
    pub cloud: StandIn,
    /// Further lines of the cloud config.
    pub config: String,
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
        let (installation, cloud) = tokio::join!(Installation::new("gce"), StandIn::start("gce", &[]));
        Self {
            installation: installation.unwrap(),
            cloud: cloud.unwrap(),
            config: String::new(),
        }
    }

    /// Starts Cloudwit with these flags beside those of the [`Installation`].
    pub async fn start(&mut self, flags: &[&str]) {
        let files = gce_files(&self.cloud, &self.config, &self.installation.deployment).await;
        self.installation.start(&files.unwrap(), flags).unwrap();
    }

    /// What only an administrator does.
    pub async fn does(&self, what: &str, arguments: Value) -> Value {
        self.cloud.call(what, arguments).await.unwrap()
    }

    /// A machine and its Node as the kubelet registers it.
    pub async fn joins(&self, name: &str, zone: &str, pods: &str) -> Value {
        let machine = json!({ "name": name, "zone": zone, "tags": ["node"] });
        let machine = self.does("add_machine", machine).await;
        NodeBuilder::new(name)
            .pod_cidr(pods)
            .create(&self.client)
            .await
            .unwrap();
        machine
    }

    /// What is in a collection, by its path.
    pub async fn has(&self, collection: &str) -> Map<String, Value> {
        let all = self.does("resources", json!({ "collection": collection })).await;
        all.as_object().unwrap().clone()
    }

    /// How often this method was called, such as `instances.get`.
    pub async fn calls(&self, name: &str) -> usize {
        let calls = self.cloud.calls().await.unwrap();
        calls.iter().filter(|call| call.name == name).count()
    }
}
