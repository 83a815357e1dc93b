//! A cluster with two Nodes in which Services get load balancers, and how to look at what they got.

use cloudwit_test_support::clouds::mimic::{Mimic, RackspaceAccount};
use cloudwit_test_support::foreign_events::is_of_the_api_server;
use cloudwit_test_support::gate::Gate;
use cloudwit_test_support::scenes::installation::Installation;
use cloudwit_test_support::{NodeBuilder, ServiceBuilder};
use k8s_openapi::api::core::v1::{Event, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

/// What annotations of load balancers begin with.
pub const PREFIX: &str = "service.beta.kubernetes.io/rackspace-load-balancer-";

/// All of it. The process ends before what it talks to.
pub struct Stage {
    pub installation: Installation,
    /// Between the process and the cloud.
    pub gate: Gate,
    pub mimic: Mimic,
    /// `[LoadBalancer]` of the cloud config.
    config: String,
}

impl Stage {
    /// Two Nodes, initialised by a Cloudwit that runs with these lines in `[LoadBalancer]`.
    pub async fn new(config: &str) -> Self {
        let mut stage = Self::stopped(config).await;
        stage.start().await;
        for name in ["node-1", "node-2"] {
            stage.installation.initialised(name).await;
        }
        stage
    }

    /// The same before Cloudwit runs.
    pub async fn stopped(config: &str) -> Self {
        let mimic = Mimic::start().await.unwrap();
        let stage = Self {
            installation: Installation::new("rackspace").await.unwrap(),
            gate: Gate::to_url(mimic.cloud.url()).await.unwrap(),
            mimic,
            config: format!("[LoadBalancer]\n{config}"),
        };
        for name in ["node-1", "node-2"] {
            stage.account().await.server(name).await.unwrap();
            NodeBuilder::new(name).create(&stage.installation.client).await.unwrap();
        }
        stage
    }

    pub async fn start(&mut self) {
        let account = self.mimic.account("stage").await.unwrap();
        let files = account.files_by(&self.gate.url(), &self.config, &self.installation.deployment);
        self.installation
            .start(&files.unwrap(), &["--cluster-name=lab"])
            .unwrap();
    }

    /// Ends the process as a power failure does; everything is open afterwards.
    pub fn kill(&mut self) {
        self.installation.kill().unwrap();
        self.gate.open();
    }

    pub async fn account(&self) -> RackspaceAccount<'_> {
        self.mimic.account("stage").await.unwrap()
    }

    /// The ServiceNet address of a Node's server, which is its first internal one.
    pub async fn address_of(&self, name: &str) -> String {
        let node = self.installation.node(name).await.unwrap();
        let addresses = node.status.unwrap().addresses.unwrap();
        let internal = addresses.into_iter().find(|address| address.type_ == "InternalIP");
        internal.unwrap().address
    }

    pub fn services(&self) -> Api<Service> {
        Api::default_namespaced(self.installation.client.clone())
    }

    pub async fn service(&self, name: &str) -> Service {
        self.services().get(name).await.unwrap()
    }

    pub async fn create(&self, service: ServiceBuilder) -> Service {
        service.create(&self.installation.client).await.unwrap()
    }

    pub async fn patch(&self, name: &str, change: Value) {
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(change));
        self.services().patch(name, &parameters, &patch).await.unwrap();
    }

    /// Sets an annotation of the provider; `null` removes it.
    pub async fn annotate(&self, name: &str, key: &str, value: Value) {
        let annotations = json!({ format!("{PREFIX}{key}"): value });
        self.patch(name, json!({ "metadata": { "annotations": annotations } }))
            .await;
    }

    /// Waits until the Service has an address; gives it.
    pub async fn exposed(&self, name: &str) -> String {
        self.installation
            .settled("the Service has an address", || async {
                match addresses(&self.service(name).await).is_empty() {
                    false => Ok(()),
                    true => Err(format!("{:?}", self.events(name).await)),
                }
            })
            .await;
        addresses(&self.service(name).await).remove(0)
    }

    /// Deletes a Service and waits until it is gone, and its load balancers with it.
    pub async fn delete(&self, name: &str) {
        self.services().delete(name, &DeleteParams::default()).await.unwrap();
        self.gone(name).await;
    }

    pub async fn gone(&self, name: &str) {
        self.installation
            .settled("the Service is gone", || async {
                match self.services().get_opt(name).await.unwrap() {
                    None => Ok(()),
                    Some(_) => Err(format!("{:?}", self.events(name).await)),
                }
            })
            .await;
    }

    /// Reason and message of all Events about a Service.
    pub async fn events(&self, name: &str) -> Vec<String> {
        let events: Api<Event> = Api::default_namespaced(self.installation.client.clone());
        let about = ListParams::default().fields(&format!("involvedObject.kind=Service,involvedObject.name={name}"));
        let events = events.list(&about).await.unwrap().into_iter();
        let ours = events.filter(|event| !is_of_the_api_server(event));
        ours.map(|event| {
            let (reason, message) = (event.reason.unwrap_or_default(), event.message.unwrap_or_default());
            format!("{reason}: {message}")
        })
        .collect()
    }

    /// Waits for an Event with this text.
    pub async fn told(&self, name: &str, text: &str) {
        self.installation
            .settled(text, || async {
                let events = self.events(name).await;
                match events.iter().any(|event| event.contains(text)) {
                    true => Ok(()),
                    false => Err(format!("{events:#?}")),
                }
            })
            .await;
    }

    /// Waits until `right` is content with the load balancers of the account, sorted by port; gives them.
    pub async fn shows(&self, what: &str, right: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        self.installation
            .settled(what, || async {
                let shown = self.balancers().await;
                match right(&shown) {
                    true => Ok(()),
                    false => Err(format!("{shown:#?}")),
                }
            })
            .await;
        self.balancers().await
    }

    pub async fn balancers(&self) -> Vec<Value> {
        self.account().await.balancers().await.unwrap()
    }

    /// The calls so far that change something, by the names that the stand-in gives them.
    pub async fn writes(&self) -> Vec<String> {
        let calls = self.mimic.cloud.calls().await.unwrap();
        let changes = calls
            .into_iter()
            .filter(|call| call.method != "GET" && call.name.contains("loadbalancers"));
        changes.map(|call| format!("{} {}", call.name, call.status)).collect()
    }

    /// How often all load balancers were listed.
    pub async fn lists(&self) -> usize {
        let calls = self.mimic.cloud.calls().await.unwrap();
        calls.iter().filter(|call| call.name == "GET loadbalancers").count()
    }

    /// Waits until `ensure` has looked once more and changed nothing.
    pub async fn looked_again(&self, since: usize) {
        self.installation
            .settled("it was looked at again", || async {
                match self.lists().await {
                    lists if lists > since => Ok(()),
                    lists => Err(format!("listed {lists} times")),
                }
            })
            .await;
    }

    /// The name that all load balancers of a Service have.
    pub async fn name_of(&self, service: &str) -> String {
        let uid = self.service(service).await.uid().unwrap();
        format!("a{}", uid.replace('-', ""))[..32].to_owned()
    }
}

/// The published addresses.
pub fn addresses(service: &Service) -> Vec<String> {
    let balancer = service.status.as_ref().and_then(|status| status.load_balancer.clone());
    let ingress = balancer.and_then(|balancer| balancer.ingress).unwrap_or_default();
    ingress.into_iter().filter_map(|ingress| ingress.ip).collect()
}

/// `TCP 80` and so on.
pub fn ports(shown: &[Value]) -> Vec<String> {
    let port = |one: &Value| format!("{} {}", one["protocol"].as_str().unwrap_or_default(), one["port"]);
    shown.iter().map(port).collect()
}

/// The addresses of the nodes behind a load balancer, sorted.
pub fn nodes(balancer: &Value) -> Vec<String> {
    let nodes = balancer["nodes"].as_array().into_iter().flatten();
    let mut nodes: Vec<String> = nodes
        .map(|node| node["address"].as_str().unwrap_or_default().to_owned())
        .collect();
    nodes.sort();
    nodes
}

/// The ids of its virtual IPs.
pub fn vips(balancer: &Value) -> Vec<u64> {
    let vips = balancer["virtualIps"].as_array().into_iter().flatten();
    vips.filter_map(|vip| vip["id"].as_u64()).collect()
}

pub fn id(balancer: &Value) -> u64 {
    balancer["id"].as_u64().unwrap()
}
