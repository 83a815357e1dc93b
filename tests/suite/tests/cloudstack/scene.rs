//! A cluster, the stand-in for CloudStack, and Cloudwit as a process with the component `cloudstack`.

use std::ops::{Deref, DerefMut};

use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::cloudstack_files::cloudstack_files;
use cloudwit_test_support::installation::Installation;
use cloudwit_test_support::rig::address;
use cloudwit_test_support::stand_in::StandIn;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
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
        let (installation, cloud) = tokio::join!(Installation::new("cloudstack"), StandIn::start("cloudstack", &[]));
        Self {
            installation: installation.unwrap(),
            cloud: cloud.unwrap(),
            config: String::new(),
        }
    }

    /// Two Nodes, and Cloudwit.
    pub async fn with_nodes() -> Self {
        let mut scene = Self::new().await;
        scene.does("operations_take", json!({ "seconds": 0.2 })).await;
        scene.joins("one").await;
        scene.joins("two").await;
        scene.start(&[ALL]).await;
        scene.initialised("one").await;
        scene.initialised("two").await;
        scene
    }

    /// Starts Cloudwit with these flags beside those of the [`Installation`].
    pub async fn start(&mut self, flags: &[&str]) {
        let files = cloudstack_files(&self.cloud, &self.config, &self.installation.deployment).await;
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

    /// How often this command was called.
    pub async fn calls(&self, command: &str) -> usize {
        let calls = self.cloud.calls().await.unwrap();
        calls.iter().filter(|call| call.name == command).count()
    }

    /// How many calls were no lists.
    pub async fn writes(&self) -> usize {
        let calls = self.cloud.calls().await.unwrap();
        let reads = |name: &str| name.starts_with("list") || name.starts_with("query");
        calls.iter().filter(|call| !reads(&call.name)).count()
    }

    pub fn services(&self) -> Api<Service> {
        Api::default_namespaced(self.client.clone())
    }

    /// Waits for another address than this.
    pub async fn address(&self, service: &str, but: &str) -> String {
        self.settled("the Service has an address", || async {
            match self.shown_address(service).await {
                Some(ip) if ip != but => Ok(()),
                shown => Err(format!("{shown:?}")),
            }
        })
        .await;
        self.shown_address(service).await.unwrap()
    }

    pub async fn shown_address(&self, service: &str) -> Option<String> {
        address(&self.services().get_opt(service).await.unwrap()?)
    }

    /// What there is: `rules`, `firewall`, `openings` of an ACL, `addresses`.
    pub async fn has(&self, kind: &str) -> Vec<Value> {
        self.cloud.resources(json!({ "kind": kind })).await.unwrap()
    }

    /// Waits until what is there of a kind is as wished.
    pub async fn comes(&self, what: &str, kind: &str, wished: impl Fn(&[Value]) -> bool) {
        self.settled(what, || async {
            let all = self.has(kind).await;
            if wished(&all) { Ok(()) } else { Err(format!("{all:?}")) }
        })
        .await;
    }

    pub async fn patch(&self, service: &str, patch: Value) {
        let patch = Patch::Merge(patch);
        let how = PatchParams::default();
        self.services().patch(service, &how, &patch).await.unwrap();
    }

    pub async fn annotate(&self, service: &str, key: &str, value: Value) {
        self.patch(service, json!({ "metadata": { "annotations": { key: value } } }))
            .await;
    }

    pub async fn annotation(&self, service: &str, key: &str) -> Option<String> {
        let service = self.services().get(service).await.unwrap();
        service.metadata.annotations?.get(key).cloned()
    }

    pub async fn is_gone(&self, service: &str) {
        self.services().delete(service, &DeleteParams::default()).await.unwrap();
        self.settled("the Service is gone", || async {
            match self.services().get_opt(service).await.unwrap() {
                None => Ok(()),
                Some(_) => Err("it is there".into()),
            }
        })
        .await;
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
