//! A cluster, the stand-in for CloudStack, and Cloudwit as a process with the component `cloudstack`.

use std::ops::{Deref, DerefMut};

use cloudwit_test_support::files::cloudstack::cloudstack_files;
use cloudwit_test_support::scenes::stand_in::StandInScene;
use serde_json::{Value, json};

/// Only Nodes are initialised.
pub const NODES: &str = "--controllers=cloud-node-controller";

/// What is about Nodes.
pub const LIFECYCLE: &str = "--controllers=cloud-node-controller,cloud-node-lifecycle-controller";

/// Services too.
pub const ALL: &str = "--controllers=cloud-node-controller,service-lb-controller,cloud-node-lifecycle-controller";

/// All of it.
pub struct Scene {
    scene: StandInScene,
    /// Further lines of the cloud config.
    pub config: String,
}

impl Deref for Scene {
    type Target = StandInScene;

    fn deref(&self) -> &StandInScene {
        &self.scene
    }
}

impl DerefMut for Scene {
    fn deref_mut(&mut self) -> &mut StandInScene {
        &mut self.scene
    }
}

impl Scene {
    /// A cluster without Nodes, a cloud without machines, and no process yet.
    pub async fn new() -> Self {
        Self {
            scene: StandInScene::new("cloudstack").await,
            config: String::new(),
        }
    }

    /// Two Nodes, and Cloudwit.
    pub async fn with_nodes() -> Self {
        Self::with_nodes_by(&[ALL]).await
    }

    /// Two Nodes, and Cloudwit with these flags.
    pub async fn with_nodes_by(flags: &[&str]) -> Self {
        let mut scene = Self::new().await;
        scene.does("operations_take", json!({ "seconds": 0.2 })).await;
        scene.joins("one").await;
        scene.joins("two").await;
        scene.start(flags).await;
        scene.initialised("one").await;
        scene.initialised("two").await;
        scene
    }

    /// Starts Cloudwit with these flags beside those of every installation.
    pub async fn start(&mut self, flags: &[&str]) {
        let files = cloudstack_files(&self.scene.cloud, &self.config, &self.scene.deployment).await;
        self.scene.start(&files.unwrap(), flags).unwrap();
    }

    /// How many calls were no lists.
    pub async fn writes(&self) -> usize {
        let calls = self.cloud.calls().await.unwrap();
        let reads = |name: &str| name.starts_with("list") || name.starts_with("query");
        calls.iter().filter(|call| !reads(&call.name)).count()
    }

    /// Deletes it; nothing is left in the cloud.
    pub async fn leaves_nothing(&self, service: &str) {
        self.is_gone(service).await;
        for kind in ["rules", "firewall", "openings", "addresses"] {
            assert_eq!(self.has(kind).await, Vec::<Value>::new(), "{kind}");
        }
        self.only_what_the_readme_lists().await;
    }

    /// All that was called is in the role that the README advises, and none of it was a mistake of the stand-in.
    async fn only_what_the_readme_lists(&self) {
        let readme = include_str!("../../../../providers/cloudstack/README.md");
        for call in self.cloud.calls().await.unwrap() {
            let known = readme.contains(&format!("`{}`", call.name));
            assert!((known || call.agent == "cs") && call.status != 599, "{call:?}");
        }
    }
}
