//! A scene with two Nodes in which Services get load balancers, and how to look at what they got.

use std::collections::BTreeMap;

use cloudwit_test_support::ServiceBuilder;
use cloudwit_test_support::clouds::openstack::Service as Cloud;
use cloudwit_test_support::clouds::openstack::servers::OpenStackServer;
use cloudwit_test_support::foreign_events::is_of_the_api_server;
use k8s_openapi::api::core::v1::{Event, LoadBalancerIngress, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::scene::Scene;

/// What annotations of load balancers begin with.
pub const PREFIX: &str = "loadbalancer.openstack.org/";

/// Octavia's paths.
pub const LBAAS: &str = "/v2.0/lbaas";

pub struct Stage {
    pub scene: Scene,
    pub servers: Vec<OpenStackServer>,
}

impl Stage {
    /// Two Nodes, initialised by a Cloudwit that runs, with these lines more in `[LoadBalancer]`.
    pub async fn new(more: &str) -> Self {
        let mut stage = Self::stopped(more).await;
        stage.start();
        for number in [1, 2] {
            stage.scene.initialised(&format!("node-{number}")).await;
        }
        stage
    }

    /// The same before Cloudwit runs.
    pub async fn stopped(more: &str) -> Self {
        let mut scene = Scene::new().await;
        // No routes: their calls would be among those of load balancers.
        let (_, balancers) = scene.sections.split_once("[LoadBalancer]").unwrap();
        scene.sections = format!("[LoadBalancer]{balancers}{more}");
        let mut servers = Vec::new();
        for number in [1, 2] {
            servers.push(
                scene
                    .joins(&format!("node-{number}"), &format!("10.244.{number}.0/24"))
                    .await,
            );
        }
        Self { scene, servers }
    }

    pub fn start(&mut self) {
        self.scene.start_with_password(&["--cluster-name=lab"]);
    }

    /// Ends the process as a power failure does; everything is open afterwards.
    pub fn kill(&mut self) {
        self.scene.installation.kill().unwrap();
        for gate in &self.scene.gates {
            gate.open();
        }
    }

    pub fn services(&self) -> Api<Service> {
        Api::default_namespaced(self.scene.client.clone())
    }

    pub async fn service(&self, name: &str) -> Service {
        self.services().get(name).await.unwrap()
    }

    pub async fn create(&self, service: ServiceBuilder) -> Service {
        service.create(&self.scene.client).await.unwrap()
    }

    pub async fn patch(&self, name: &str, change: Value) {
        let patch = Patch::Merge(change);
        self.services()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Sets an annotation of ours; `null` removes it.
    pub async fn annotate(&self, name: &str, key: &str, value: Value) {
        self.patch(
            name,
            json!({ "metadata": { "annotations": { format!("{PREFIX}{key}"): value } } }),
        )
        .await;
    }

    /// Waits until the Service has an address; gives it.
    pub async fn exposed(&self, name: &str) -> String {
        self.scene
            .settled("the Service has an address", || async {
                let service = self.service(name).await;
                match ingress(&service).first() {
                    Some(_) => Ok(()),
                    None => Err(format!("{:?}", self.events(&service).await)),
                }
            })
            .await;
        ingress(&self.service(name).await)[0].ip.clone().unwrap_or_default()
    }

    /// Deletes a Service and waits until it is gone.
    pub async fn delete(&self, name: &str) {
        self.services().delete(name, &DeleteParams::default()).await.unwrap();
        self.gone(name).await;
    }

    pub async fn gone(&self, name: &str) {
        self.scene
            .settled("the Service is gone", || async {
                match self.services().get_opt(name).await.unwrap() {
                    None => Ok(()),
                    Some(service) => Err(format!("{:?}", self.events(&service).await)),
                }
            })
            .await;
    }

    /// Reason and message of all Events about a Service.
    pub async fn events(&self, service: &Service) -> Vec<String> {
        let events: Api<Event> = Api::default_namespaced(self.scene.client.clone());
        let about = format!("involvedObject.uid={}", service.uid().unwrap());
        let events = events.list(&ListParams::default().fields(&about)).await.unwrap();
        let text = |event: Event| {
            format!(
                "{}: {}",
                event.reason.unwrap_or_default(),
                event.message.unwrap_or_default()
            )
        };
        let ours = events.into_iter().filter(|event| !is_of_the_api_server(event));
        ours.map(text).collect()
    }

    /// Waits for an Event with this text.
    pub async fn told(&self, name: &str, text: &str) {
        self.scene
            .settled(text, || async {
                let events = self.events(&self.service(name).await).await;
                if events.iter().any(|event| event.contains(text)) {
                    Ok(())
                } else {
                    Err(format!("{events:#?}"))
                }
            })
            .await;
    }

    /// Waits until `right` is content with everything below a load balancer, and Octavia is at rest.
    pub async fn shows(&self, what: &str, right: impl Fn(&Shown) -> bool) -> Shown {
        self.scene
            .settled(what, || async {
                // First the one call that shows whether the others are worth it: each takes a real Octavia a while.
                let balancers = self.scene.project.balancers().await.unwrap();
                let rests = |balancer: &Value| balancer["provisioning_status"] == "ACTIVE";
                if !balancers.iter().all(rests) {
                    return Err(format!("{balancers:#?}"));
                }
                let shown = self.shown().await;
                if shown.balancers.iter().all(rests) && right(&shown) {
                    Ok(())
                } else {
                    Err(format!("{shown:#?}"))
                }
            })
            .await;
        self.shown().await
    }

    pub async fn shown(&self) -> Shown {
        let project = &self.scene.project;
        let octavia = async |what: &str| {
            project
                .list(Cloud::LoadBalancer, &format!("{LBAAS}/{what}"), what)
                .await
                .unwrap()
        };
        let pools = octavia("pools").await;
        let mut members = BTreeMap::new();
        for pool in &pools {
            let id = pool["id"].as_str().unwrap();
            // It may have gone since it was listed.
            let path = format!("{LBAAS}/pools/{id}/members");
            let Ok(answer) = project.cloud.get(Cloud::LoadBalancer, &path).await else {
                continue;
            };
            let of_pool = answer["members"].as_array().unwrap().iter();
            let words = of_pool.map(|member| format!("{} {}", word(&member["name"]), word(&member["address"])));
            let mut words: Vec<String> = words.collect();
            words.sort();
            members.insert(id.to_owned(), words);
        }
        Shown {
            balancers: project.balancers().await.unwrap(),
            listeners: octavia("listeners").await,
            monitors: octavia("healthmonitors").await,
            floating: project
                .list(Cloud::Network, "/v2.0/floatingips", "floatingips")
                .await
                .unwrap(),
            pools,
            members,
        }
    }

    /// The security groups of Services.
    pub async fn groups(&self) -> Vec<Value> {
        let groups = self
            .scene
            .project
            .list(Cloud::Network, "/v2.0/security-groups", "security_groups")
            .await
            .unwrap();
        groups
            .into_iter()
            .filter(|group| word(&group["name"]).starts_with("lb-sg-"))
            .collect()
    }

    /// The calls since a moment (their number then) that change something in Octavia or Neutron.
    pub async fn writes(&self, since: &Moment) -> Vec<String> {
        let now = self.calls().await;
        let new = now
            .octavia
            .iter()
            .skip(since.octavia.len())
            .chain(now.neutron.iter().skip(since.neutron.len()));
        new.filter(|call| !call.starts_with("GET")).cloned().collect()
    }

    /// All calls so far.
    pub async fn calls(&self) -> Moment {
        let project = &self.scene.project;
        let calls = async |service| {
            let calls = project.calls(service).await.unwrap();
            calls
                .into_iter()
                .map(|call| format!("{} {} {}", call.method, call.target, call.status))
                .collect()
        };
        Moment {
            octavia: calls(Cloud::LoadBalancer).await,
            neutron: calls(Cloud::Network).await,
        }
    }

    /// Nothing of any Service is left in the cloud.
    pub async fn clean(&self) {
        let shown = self.shown().await;
        assert!(
            shown.balancers.is_empty() && shown.listeners.is_empty() && shown.pools.is_empty(),
            "{shown:#?}"
        );
        assert!(shown.monitors.is_empty() && shown.floating.is_empty(), "{shown:#?}");
        assert_eq!(self.groups().await, [Value::Null; 0]);
    }
}

/// All calls up to a moment.
pub struct Moment {
    pub octavia: Vec<String>,
    pub neutron: Vec<String>,
}

/// What the cloud shows of a project.
#[derive(Debug)]
pub struct Shown {
    pub balancers: Vec<Value>,
    pub listeners: Vec<Value>,
    pub pools: Vec<Value>,
    pub monitors: Vec<Value>,
    pub floating: Vec<Value>,
    /// Names and addresses for each pool.
    pub members: BTreeMap<String, Vec<String>>,
}

impl Shown {
    /// Protocols and ports, sorted.
    pub fn ports(&self) -> Vec<String> {
        let word = |listener: &Value| format!("{} {}", word(&listener["protocol"]), listener["protocol_port"]);
        let mut ports: Vec<String> = self.listeners.iter().map(word).collect();
        ports.sort();
        ports
    }

    /// The id of the only load balancer.
    pub fn id(&self) -> String {
        assert_eq!(self.balancers.len(), 1, "{self:#?}");
        word(&self.balancers[0]["id"])
    }

    pub fn address(&self) -> String {
        word(&self.floating[0]["floating_ip_address"])
    }
}

pub fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub fn ingress(service: &Service) -> Vec<LoadBalancerIngress> {
    let balancer = service.status.as_ref().and_then(|status| status.load_balancer.clone());
    balancer.and_then(|balancer| balancer.ingress).unwrap_or_default()
}

pub fn annotation(service: &Service, key: &str) -> Option<String> {
    service.annotations().get(&format!("{PREFIX}{key}")).cloned()
}
