//! A cluster, an account in a mimic of its own, and Cloudwit as a process with the component `rackspace`.

use std::ops::Deref;

use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::clouds::mimic::{Mimic, RackspaceAccount};
use cloudwit_test_support::scenes::installation::Installation;
use serde_json::{Value, json};

/// All of it. The process ends before what it talks to.
pub struct Scene {
    installation: Installation,
    /// The cloud.
    pub mimic: Mimic,
}

impl Deref for Scene {
    type Target = Installation;

    fn deref(&self) -> &Installation {
        &self.installation
    }
}

impl Scene {
    /// Without servers, Nodes and process.
    pub async fn new() -> Self {
        Self {
            installation: Installation::new("rackspace").await.unwrap(),
            mimic: Mimic::start().await.unwrap(),
        }
    }

    /// The account of the scene.
    pub async fn account(&self) -> RackspaceAccount<'_> {
        self.mimic.account("scene").await.unwrap()
    }

    /// Starts Cloudwit with these flags beside those of the [`Installation`].
    pub async fn start(&mut self, flags: &[&str]) {
        let account = self.mimic.account("scene").await.unwrap();
        let files = account.files(&self.installation.deployment).unwrap();
        self.installation.start(&files, flags).unwrap();
    }

    /// Makes a server and its Node as the kubelet registers it. Gives the server's id.
    pub async fn joins(&self, name: &str) -> String {
        let id = self.account().await.server(name).await.unwrap();
        NodeBuilder::new(name).create(&self.client).await.unwrap();
        id
    }

    /// The next requests that fit meet a fault, an object with the fields of `frame.Fault`.
    pub async fn fault(&self, fault: Value) {
        self.mimic.cloud.faults(json!([fault])).await.unwrap();
    }

    /// How often this was called, by the name that the cloud gives it.
    pub async fn count(&self, name: &str) -> usize {
        let calls = self.mimic.cloud.calls().await.unwrap();
        calls.iter().filter(|call| call.name == name).count()
    }
}
