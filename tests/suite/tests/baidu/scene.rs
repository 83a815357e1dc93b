//! A cluster, the stand-in for Baidu AI Cloud, and Cloudwit as a process with the component `baidu`.

use std::ops::{Deref, DerefMut};

use cloudwit_test_support::files::baidu::{CLUSTER_ID, baidu_files};
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
    /// Further keys of the cloud config.
    pub config: Value,
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

/// The whole key of an annotation.
pub fn key(name: &str) -> String {
    format!("service.beta.kubernetes.io/cce-{name}")
}

/// The name of a Service's load balancer.
pub fn name_of(service: &str) -> String {
    format!("CCE/SVC/{CLUSTER_ID}/default/{service}")
}

/// How many machines are behind a load balancer.
pub fn behind(blb: &Value) -> usize {
    blb["backends"].as_object().map_or(0, serde_json::Map::len)
}

/// Kind, port, port at the machines and scheduler of each listener, sorted.
pub fn listeners(blb: &Value) -> Vec<Value> {
    let all = blb["listeners"].as_array().cloned().unwrap_or_default();
    let shown = |one: &Value| json!([one["kind"], one["port"], one["backendPort"], one["scheduler"]]);
    let mut all: Vec<Value> = all.iter().map(shown).collect();
    all.sort_by_key(Value::to_string);
    all
}

impl Scene {
    /// A cluster without Nodes, a cloud without machines, and no process yet.
    pub async fn new() -> Self {
        let scene = StandInScene::new("baidu").await;
        scene.does("operations_take", json!({ "seconds": 0.1 })).await;
        Self {
            scene,
            config: json!({}),
        }
    }

    /// Two Nodes, and Cloudwit.
    pub async fn with_nodes() -> Self {
        let mut scene = Self::new().await;
        scene.joins("one").await;
        scene.joins("two").await;
        scene.start(&[ALL]).await;
        scene.initialised("one").await;
        scene.initialised("two").await;
        scene
    }

    /// Starts Cloudwit with these flags beside those of every installation.
    pub async fn start(&mut self, flags: &[&str]) {
        let files = baidu_files(&self.scene.cloud, &self.config, &self.scene.deployment).await;
        self.scene.start(&files.unwrap(), flags).unwrap();
    }

    /// Calls that were no reads.
    pub async fn writes(&self) -> Vec<String> {
        let calls = self.cloud.calls().await.unwrap();
        let names = calls.into_iter().map(|call| call.name);
        let reads = ["List", "Get", "Describe"];
        names
            .filter(|name| !reads.iter().any(|read| name.starts_with(read)))
            .collect()
    }

    /// Deletes the Service; nothing is left in the cloud.
    pub async fn leaves_nothing(&self, service: &str) {
        self.is_gone(service).await;
        for kind in ["blbs", "eips"] {
            assert_eq!(self.has(kind).await, Vec::<Value>::new(), "{kind}");
        }
        self.only_what_the_readme_lists().await;
    }

    /// All that was called is in the list of permissions, and none of it was a mistake of the stand-in.
    pub async fn only_what_the_readme_lists(&self) {
        let readme = include_str!("../../../../providers/baidu/README.md");
        for call in self.cloud.calls().await.unwrap() {
            let known = readme.contains(&format!("`{}`", call.name));
            assert!(known && call.status != 599, "{call:?}");
        }
    }
}
