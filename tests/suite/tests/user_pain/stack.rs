//! The whole stack for one test: kube-apiserver, controllers, host, the component `sim`, the simulated cloud.

use std::time::Duration;

use cloudwit_controllers::{Controller, Options};
use cloudwit_host::grants::Grants;
use cloudwit_sim_cloud::{LoadBalancer, NewMachine, Operation, SimCloud, SimCloudOptions};
use cloudwit_test_support::foreign_events::is_of_the_api_server;
use cloudwit_test_support::objects::{is_uninitialised, ready_condition};
use cloudwit_test_support::{NodeBuilder, ServiceBuilder};
use k8s_openapi::api::core::v1::{Event, Node, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::harness::{Alone, Running, alone, until};
use crate::sim_provider::{LoadedSim, load_sim};

pub const TOKEN: &str = "sim-token";
pub const CLEANUP: &str = "service.kubernetes.io/load-balancer-cleanup";
pub const NODES: [Controller; 2] = [Controller::CloudNode, Controller::CloudNodeLifecycle];
/// Long ago for `quick` options, whatever the pause between two look-ups has become.
pub const LIFECYCLE: &str = "lifecycle";

/// A cluster, a cloud, and the provider between them.
pub struct Stack {
    pub alone: Alone,
    pub cloud: SimCloud,
    pub sim: LoadedSim,
}

/// Passes that follow each other quickly, and no brake but the confirmation, so that nothing else hides a wrong answer.
pub fn quick(controllers: impl IntoIterator<Item = Controller>) -> Options {
    let mut options = Options::default();
    options.lifecycle.monitor_period = Duration::from_millis(50);
    options.lifecycle.confirm_after = Duration::from_millis(300);
    options.lifecycle.registration_grace = Duration::ZERO;
    options.lifecycle.share.percent = 100;
    options.controllers = controllers.into_iter().collect();
    options
}

impl Stack {
    pub async fn start() -> Self {
        Self::with(SimCloudOptions::default(), TOKEN, |_| {}).await
    }

    pub async fn with(options: SimCloudOptions, token: &str, change: impl FnOnce(&mut Grants)) -> Self {
        let alone = alone().await;
        let cloud = SimCloud::start(options).await.unwrap();
        let sim = load_sim(&cloud, token, change).await;
        Self { alone, cloud, sim }
    }

    /// Runs controllers as this stack's user.
    pub fn run(&self, options: Options) -> Running {
        self.alone.run_all(self.sim.provider.clone(), options)
    }

    /// A machine, and its Node as the kubelet registers it: tainted, without an id, not Ready.
    pub async fn joins(&self, name: &str) -> Node {
        self.machine(name);
        let node = NodeBuilder::new(name).ready(Some(false));
        node.create(&self.alone.client).await.unwrap()
    }

    /// A machine; gives its id.
    pub fn machine(&self, name: &str) -> String {
        self.cloud.add_machines([NewMachine::named(name)])[0].id.clone()
    }

    /// A machine and its Node, initialised long ago.
    pub async fn member(&self, name: &str, ready: Option<bool>) -> Node {
        let id = format!("sim://{}", self.machine(name));
        let node = NodeBuilder::new(name).initialised().provider_id(&id).ready(ready);
        node.create(&self.alone.client).await.unwrap()
    }

    pub async fn node(&self, name: &str) -> Option<Node> {
        self.alone.nodes().get_opt(name).await.unwrap()
    }

    pub async fn is_initialised(&self, name: &str) -> bool {
        self.node(name).await.is_some_and(|node| !is_uninitialised(&node))
    }

    pub async fn is_gone(&self, name: &str) -> bool {
        self.node(name).await.is_none()
    }

    pub async fn set_ready(&self, name: &str, ready: Option<bool>) {
        let patch = Patch::Strategic(json!({ "status": { "conditions": [ready_condition(ready)] } }));
        let params = PatchParams::default();
        self.alone.nodes().patch_status(name, &params, &patch).await.unwrap();
    }

    pub async fn patch_node(&self, name: &str, change: Value) {
        let (params, change) = (PatchParams::default(), Patch::Strategic(change));
        self.alone.nodes().patch(name, &params, &change).await.unwrap();
    }

    pub async fn delete_node(&self, name: &str) {
        self.alone.nodes().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// The Events about an object of this name, as `Reason: message`.
    pub async fn events(&self, name: &str) -> Vec<String> {
        let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
        let events = Api::<Event>::namespaced(self.alone.client.clone(), "default");
        let text = |event: Event| {
            let (reason, message) = (event.reason.unwrap_or_default(), event.message.unwrap_or_default());
            format!("{reason}: {message}")
        };
        let events = events.list(&about).await.unwrap().items.into_iter();
        events.filter(|event| !is_of_the_api_server(event)).map(text).collect()
    }

    /// Waits for an Event that begins like this; gives its text.
    pub async fn told(&self, name: &str, start: &str) -> String {
        until(&format!("{name} is told {start:?}"), || async {
            self.events(name).await.iter().any(|event| event.starts_with(start))
        })
        .await;
        let events = self.events(name).await;
        events.into_iter().find(|event| event.starts_with(start)).unwrap()
    }

    pub async fn create_service(&self, name: &str) {
        ServiceBuilder::new(name).create(&self.alone.client).await.unwrap();
    }

    pub async fn service(&self, name: &str) -> Option<Service> {
        self.alone.services().get_opt(name).await.unwrap()
    }

    pub async fn patch_service(&self, name: &str, change: Value) {
        let (params, change) = (PatchParams::default(), Patch::Merge(change));
        self.alone.services().patch(name, &params, &change).await.unwrap();
    }

    pub async fn delete_service(&self, name: &str) {
        let params = DeleteParams::default();
        self.alone.services().delete(name, &params).await.unwrap();
    }

    /// The address in the Service's status.
    pub async fn address(&self, name: &str) -> Option<String> {
        let ingress = self.service(name).await?.status?.load_balancer?.ingress?;
        ingress.first()?.ip.clone()
    }

    /// A Service with its load balancer; gives its address.
    pub async fn ready_service(&self, name: &str) -> String {
        self.create_service(name).await;
        self.wait_for_address(name).await
    }

    pub async fn wait_for_address(&self, name: &str) -> String {
        until(&format!("{name} has an address"), || async {
            self.address(name).await.is_some()
        })
        .await;
        self.address(name).await.unwrap()
    }

    pub async fn service_is_gone(&self, name: &str) -> bool {
        self.service(name).await.is_none()
    }

    /// The load balancer of a Service.
    pub async fn balancer(&self, name: &str) -> Option<LoadBalancer> {
        let uid = self.service(name).await?.uid()?;
        let all = self.cloud.load_balancers();
        all.into_iter()
            .find(|balancer| balancer.spec.owner.as_ref() == Some(&uid))
    }

    /// Requests of these operations since the counters were reset.
    pub fn requests(&self, operations: &[Operation]) -> u64 {
        let counters = self.cloud.counters();
        operations.iter().map(|operation| counters.requests(*operation)).sum()
    }

    /// Somebody else, who has the token too, changes the cloud; what it answers.
    pub async fn by_hand(&self, method: reqwest::Method, path: &str, body: Value) -> Value {
        let url = format!("{}/v1/{path}", self.cloud.url());
        let request = reqwest::Client::new().request(method, url).bearer_auth(TOKEN);
        let answer = request
            .header("content-type", "application/json")
            .body(body.to_string());
        let answer = answer.send().await.unwrap().error_for_status().unwrap();
        // A deletion is answered with nothing.
        serde_json::from_str(&answer.text().await.unwrap()).unwrap_or_default()
    }
}

/// Look-up calls for a purpose that ended like this.
pub fn lookups(running: &Running, purpose: &str, result: &str) -> f64 {
    let labels = format!("purpose=\"{purpose}\",result=\"{result}\"");
    running.metric(&format!("cloudwit_node_lookups_total{{{labels}}}"))
}

/// Waits until the cloud answered so many more times about Nodes that are not Ready.
pub async fn looked_again(running: &Running, result: &str, times: f64) {
    let before = lookups(running, LIFECYCLE, result);
    until("more look-ups", || async {
        lookups(running, LIFECYCLE, result) >= before + times
    })
    .await;
}

/// Writes to the API server that succeeded.
pub fn writes(running: &Running, resource: &str, verb: &str) -> f64 {
    let labels = format!("resource=\"{resource}\",verb=\"{verb}\",result=\"ok\"");
    running.metric(&format!("cloudwit_api_writes_total{{{labels}}}"))
}
