//! A cluster, the stand-in for Alibaba Cloud, and Cloudwit as a process with the component `alibaba`.

use std::ops::{Deref, DerefMut};

use cloudwit_test_support::ServiceBuilder;
use cloudwit_test_support::files::alibaba::{CLUSTER_ID, alibaba_files};
use cloudwit_test_support::scenes::stand_in::StandInScene;
use serde_json::{Value, json};

/// Only Nodes are initialised.
pub const NODES: &str = "--controllers=cloud-node-controller";

/// What is about Nodes.
pub const LIFECYCLE: &str = "--controllers=cloud-node-controller,cloud-node-lifecycle-controller";

/// Services too.
pub const ALL: &str = "--controllers=cloud-node-controller,service-lb-controller,cloud-node-lifecycle-controller";

/// The class of Services that get a Network Load Balancer.
pub const NLB: &str = "alibabacloud.com/nlb";

/// The versions of the APIs of Classic and Network Load Balancers.
pub const CLB_API: &str = "2014-05-15";
pub const NLB_API: &str = "2022-04-30";

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
    format!("service.beta.kubernetes.io/alibaba-cloud-loadbalancer-{name}")
}

/// The name of a Service's listener or server group of a Classic Load Balancer.
pub fn name_of(port: i64, service: &str) -> String {
    format!("k8s/{port}/{service}/default/{CLUSTER_ID}")
}

/// How many machines are in a server group.
pub fn members(group: &Value) -> usize {
    group["servers"].as_array().map_or(0, Vec::len)
}

impl Scene {
    /// A cluster without Nodes, a cloud without machines, and no process yet.
    pub async fn new() -> Self {
        let scene = StandInScene::new("alibaba").await;
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
        scene.run(&[ALL]).await;
        scene.initialised("one").await;
        scene.initialised("two").await;
        scene
    }

    /// Starts Cloudwit with a configuration file that gives it Services of the class [`NLB`] too.
    pub async fn run(&mut self, flags: &[&str]) {
        let deployment = self.scene.deployment.clone();
        let files = alibaba_files(&self.scene.cloud, &self.config, &deployment)
            .await
            .unwrap();
        let file = deployment.write_config(&files, &[NLB]).unwrap();
        let config = format!("--config={}", file.display());
        let flags: Vec<&str> = flags.iter().copied().chain([config.as_str()]).collect();
        self.scene.start(&files, &flags).unwrap();
    }

    /// As another client of the account.
    pub async fn command(&self, version: &str, action: &str, parameters: Value) -> Value {
        let arguments = json!({ "version": version, "action": action, "parameters": parameters });
        self.does("command", arguments).await
    }

    /// Creates a Service of type `LoadBalancer`, of a class if there is one.
    pub async fn serves(
        &self,
        name: &str,
        class: Option<&str>,
        annotations: &[(&str, &str)],
    ) -> k8s_openapi::api::core::v1::Service {
        let class = class.map(str::to_owned);
        let service = ServiceBuilder::new(name).spec(move |spec| spec.load_balancer_class = class);
        let service = annotations
            .iter()
            .fold(service, |service, (name, value)| service.annotation(&key(name), value));
        service.create(&self.client).await.unwrap()
    }

    /// How many calls changed something.
    pub async fn writes(&self) -> Vec<String> {
        let calls = self.cloud.calls().await.unwrap();
        let reads = |name: &str| {
            ["Describe", "List", "Get"]
                .iter()
                .any(|start| name.split(':').nth(1).is_some_and(|name| name.starts_with(start)))
        };
        calls
            .into_iter()
            .map(|call| call.name)
            .filter(|name| !reads(name))
            .collect()
    }

    /// Deletes it; nothing is left in the cloud.
    pub async fn leaves_nothing(&self, service: &str) {
        self.is_gone(service).await;
        for kind in [
            "balancers",
            "groups",
            "listeners",
            "nlbs",
            "nlb-groups",
            "nlb-listeners",
        ] {
            assert_eq!(self.has(kind).await, Vec::<Value>::new(), "{kind}");
        }
        self.only_what_the_readme_lists().await;
    }

    /// All that was called is in the policy that the README advises, and none of it was a mistake of the stand-in.
    pub async fn only_what_the_readme_lists(&self) {
        let readme = include_str!("../../../../providers/alibaba/README.md");
        for call in self.cloud.calls().await.unwrap() {
            let known = readme.contains(&format!("\"{}\"", call.name)) || call.name == "metadata";
            assert!(known && call.status != 599, "{call:?}");
        }
    }
}
