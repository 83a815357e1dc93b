//! A cluster, the stand-in of a cloud, and Cloudwit as a process between them: what the tests of these clouds have in common.

use std::ops::{Deref, DerefMut};

use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::clouds::stand_in::StandIn;
use crate::objects::NodeBuilder;
use crate::scenes::installation::Installation;
use crate::scenes::rig::address;

/// All of it. The process ends before what it talks to.
pub struct StandInScene {
    installation: Installation,
    /// The cloud.
    pub cloud: StandIn,
}

impl Deref for StandInScene {
    type Target = Installation;

    fn deref(&self) -> &Installation {
        &self.installation
    }
}

impl DerefMut for StandInScene {
    fn deref_mut(&mut self) -> &mut Installation {
        &mut self.installation
    }
}

/// Every method ends the test when the cloud or the API server refuses.
impl StandInScene {
    /// A cluster without Nodes, a cloud without machines, and no process yet.
    pub async fn new(provider: &'static str) -> Self {
        let (installation, cloud) = tokio::join!(Installation::new(provider), StandIn::start(provider, &[]));
        Self {
            installation: installation.expect("an API server starts"),
            cloud: cloud.expect("the stand-in starts"),
        }
    }

    /// What only an administrator of the cloud does.
    pub async fn does(&self, what: &str, arguments: Value) -> Value {
        self.cloud.call(what, arguments).await.expect("the stand-in does it")
    }

    /// A machine and its Node; the machine's id.
    pub async fn joins(&self, name: &str) -> String {
        let machine = self.does("add_machine", json!({ "name": name })).await;
        let node = NodeBuilder::new(name).create(&self.client).await;
        node.expect("the API server takes a Node");
        machine["id"].as_str().expect("a machine has an id").to_owned()
    }

    /// How often this was called.
    pub async fn calls(&self, name: &str) -> usize {
        let calls = self.cloud.calls().await.expect("the stand-in answers");
        calls.iter().filter(|call| call.name == name).count()
    }

    /// Waits until this was called so often since the calls were forgotten.
    pub async fn called(&self, name: &str, times: usize) {
        self.settled(&format!("{name} is called {times} times"), || async {
            match self.calls(name).await {
                calls if calls >= times => Ok(()),
                calls => Err(format!("{calls} times")),
            }
        })
        .await;
    }

    /// Services of the namespace `default`.
    pub fn services(&self) -> Api<Service> {
        Api::default_namespaced(self.client.clone())
    }

    /// Waits until the Service shows another address than this.
    pub async fn address(&self, service: &str, but: &str) -> String {
        self.settled("the Service has an address", || async {
            match self.shown_address(service).await {
                Some(ip) if ip != but => Ok(()),
                shown => Err(format!("{shown:?}")),
            }
        })
        .await;
        self.shown_address(service).await.expect("it had one just now")
    }

    /// The address that the Service shows.
    pub async fn shown_address(&self, service: &str) -> Option<String> {
        let found = self.services().get_opt(service).await;
        address(&found.expect("the API server answers")?)
    }

    /// What there is of a kind.
    pub async fn has(&self, kind: &str) -> Vec<Value> {
        let all = self.cloud.resources(json!({ "kind": kind })).await;
        all.expect("the stand-in answers")
    }

    /// Waits until what there is of a kind is as wished.
    pub async fn comes(&self, what: &str, kind: &str, wished: impl Fn(&[Value]) -> bool) {
        self.settled(what, || async {
            let all = self.has(kind).await;
            if wished(&all) { Ok(()) } else { Err(format!("{all:?}")) }
        })
        .await;
    }

    /// Changes a Service.
    pub async fn patch(&self, service: &str, patch: Value) {
        let (patch, how) = (Patch::Merge(patch), PatchParams::default());
        let patched = self.services().patch(service, &how, &patch).await;
        patched.expect("the API server takes the change");
    }

    /// Changes the status of a Service, as another controller left it.
    pub async fn patch_status(&self, service: &str, status: Value) {
        let (patch, how) = (Patch::Merge(json!({ "status": status })), PatchParams::default());
        let patched = self.services().patch_status(service, &how, &patch).await;
        patched.expect("the API server takes the status");
    }

    /// Sets an annotation of a Service, or removes it with null.
    pub async fn annotate(&self, service: &str, key: &str, value: Value) {
        self.patch(service, json!({ "metadata": { "annotations": { key: value } } }))
            .await;
    }

    /// An annotation of a Service.
    pub async fn annotation(&self, service: &str, key: &str) -> Option<String> {
        let service = self.services().get(service).await;
        let service = service.expect("the Service is there");
        service.metadata.annotations?.get(key).cloned()
    }

    /// Deletes a Service and waits until it is gone.
    pub async fn is_gone(&self, service: &str) {
        let deleted = self.services().delete(service, &DeleteParams::default()).await;
        deleted.expect("the API server takes the deletion");
        self.settled("the Service is gone", || async {
            match self.services().get_opt(service).await {
                Ok(None) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }
}
