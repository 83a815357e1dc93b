//! A cluster, a stand-in, and Cloudwit as a process with the component of its cloud.

use std::ops::{Deref, DerefMut};

use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::small_clouds::{mesos_files, ovirt_files, photon_files, rancher_files};
use cloudwit_test_support::scenes::installation::Installation;
use serde_json::{Value, json};

/// Only Nodes are initialised.
pub const NODES: &str = "--controllers=cloud-node-controller";

/// What is about Nodes.
pub const LIFECYCLE: &str = "--controllers=cloud-node-controller,cloud-node-lifecycle-controller";

/// Services too.
pub const ALL: &str = "--controllers=cloud-node-controller,service-lb-controller,cloud-node-lifecycle-controller";

/// All of it. The process ends before what it talks to.
pub struct Scene {
    installation: Installation,
    pub cloud: StandIn,
    name: &'static str,
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
    pub async fn new(name: &'static str) -> Self {
        let (installation, cloud) = tokio::join!(Installation::new(name), StandIn::start(name, &[]));
        Self {
            installation: installation.unwrap(),
            cloud: cloud.unwrap(),
            name,
            config: String::new(),
        }
    }

    /// Starts Cloudwit with these flags beside those of the [`Installation`].
    pub async fn start(&mut self, flags: &[&str]) {
        let (cloud, more, deployment) = (&self.cloud, &self.config, &self.installation.deployment);
        let files = match self.name {
            "mesos" => mesos_files(cloud, more, deployment).await,
            "ovirt" => ovirt_files(cloud, more, deployment).await,
            "photon" => photon_files(cloud, more, deployment).await,
            "rancher" => rancher_files(cloud, more, deployment).await,
            other => panic!("{other} is no small cloud"),
        };
        self.installation.start(&files.unwrap(), flags).unwrap();
    }

    /// What only an administrator does.
    pub async fn does(&self, what: &str, arguments: Value) -> Value {
        self.cloud.call(what, arguments).await.unwrap()
    }

    /// A machine and its Node; the machine's id.
    pub async fn joins(&self, name: &str) -> String {
        let machine = self.does("add_machine", json!({ "name": name })).await;
        NodeBuilder::new(name).create(&self.client).await.unwrap();
        machine["id"].as_str().unwrap().to_owned()
    }

    /// A machine and a Node that another controller has initialised, with this provider id; `{}` stands for the machine's.
    pub async fn left_behind(&self, name: &str, provider_id: &str) -> String {
        let machine = self.does("add_machine", json!({ "name": name })).await;
        let id = machine["id"].as_str().unwrap();
        let node = NodeBuilder::new(name).provider_id(&provider_id.replace("{}", id));
        node.initialised().ready(Some(true)).create(&self.client).await.unwrap();
        id.to_owned()
    }

    /// How many calls have this in their names.
    pub async fn calls(&self, part: &str) -> usize {
        let calls = self.cloud.calls().await.unwrap();
        assert!(
            calls.iter().all(|call| call.status != 599),
            "the stand-in made a mistake"
        );
        calls.iter().filter(|call| call.name.contains(part)).count()
    }

    /// Waits until this is in the log.
    pub async fn logs(&self, text: &str) {
        self.settled("it is in the log", || async {
            match self.log().contains(text) {
                true => Ok(()),
                false => Err(self.log()),
            }
        })
        .await;
    }

    /// Waits until so many more calls have this in their names.
    pub async fn is_asked(&self, what: &str, part: &str, more: usize) {
        let total = self.calls(part).await + more;
        self.has_calls(what, part, total).await;
    }

    /// Waits until so many calls in all have this in their names.
    pub async fn has_calls(&self, what: &str, part: &str, total: usize) {
        self.settled(what, || async {
            match self.calls(part).await {
                count if count >= total => Ok(()),
                count => Err(format!("{count} calls of {total}")),
            }
        })
        .await;
    }

    /// All that was called is in the README of the provider, as what it needs rights for.
    pub async fn wrote_nothing(&self, but: &str) {
        for call in self.cloud.calls().await.unwrap() {
            assert!(call.method == "GET" || call.name.contains(but), "{call:?}");
        }
    }
}
