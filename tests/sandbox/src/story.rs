//! What happens in the sandbox: each step changes the cloud or the cluster from outside, waits for Cloudwit's answer, and checks
//! all of it. What was awaited and what was found instead is in the error.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use cloudwit_sim_cloud::{Machine, Network, Route};
use cloudwit_test_support::objects::{is_uninitialised, ready_condition};
use cloudwit_test_support::{NodeBuilder, ServiceBuilder, within};
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

use crate::cloud::Cloud;
use crate::narrator::Narrator;
use crate::stage::Stage;

/// How long Cloudwit may take for a step. It usually takes less than a tenth of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The Service of the story.
const SERVICE: &str = "sandbox-web";

/// The finalizer that keeps a Service until its load balancer is gone (`k8s.io/cloud-provider/service/helpers`,
/// `LoadBalancerCleanupFinalizer`).
const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

/// The story and its people.
pub struct Story<'a> {
    narrator: &'a Narrator,
    client: Client,
    nodes: Api<Node>,
    services: Api<Service>,
    cloud: Cloud,
    /// Names of the Nodes and their Pod ranges.
    cast: BTreeMap<String, String>,
}

impl<'a> Story<'a> {
    /// A story with so many Nodes.
    pub fn new(stage: &Stage, narrator: &'a Narrator, nodes: u8) -> Result<Self> {
        let client = stage.client();
        Ok(Self {
            narrator,
            nodes: Api::all(client.clone()),
            services: Api::default_namespaced(client.clone()),
            client,
            cloud: Cloud::new(stage.cloud_url())?,
            cast: (1..=nodes)
                .map(|number| (format!("sandbox-{number}"), format!("10.244.{number}.0/24")))
                .collect(),
        })
    }

    /// All of it. With `to_the_end` the Service goes too; otherwise it stays for whoever wants to look at it.
    pub async fn tell(&self, to_the_end: bool) -> Result<()> {
        self.nodes_join().await?;
        self.routes_appear().await?;
        self.a_service_gets_its_address().await?;
        self.a_machine_is_deleted().await?;
        if to_the_end {
            self.the_service_is_deleted().await?;
        }
        Ok(())
    }

    /// Machines are made, their kubelets register Nodes, and Cloudwit initialises them.
    async fn nodes_join(&self) -> Result<()> {
        let mut machines = Vec::new();
        for (name, pod_cidr) in &self.cast {
            let machine = self.cloud.create_machine(name).await?;
            let private = machine
                .addresses
                .iter()
                .find(|address| address.network == Network::Private);
            let ip = &private
                .with_context(|| format!("machine {name} has no private address"))?
                .ip;
            let node = NodeBuilder::new(name)
                .node_ip(ip)
                .system_uuid(&machine.id)
                .pod_cidr(pod_cidr);
            node.create(&self.client)
                .await
                .with_context(|| format!("registering the Node {name}"))?;
            self.narrator.say(&format!(
                "machine {} is made, its Node {name} has joined and waits, tainted",
                machine.id
            ));
            machines.push(machine);
        }
        for machine in &machines {
            let node = self
                .until("the Node is initialised", || self.initialised(machine))
                .await?;
            self.narrator
                .say(&format!("Node {} is initialised: {}", machine.name, summary(&node)));
        }
        Ok(())
    }

    /// The Node without its taint, with all that only the cloud knows; or what is missing.
    async fn initialised(&self, machine: &Machine) -> Result<Node> {
        let node = self.nodes.get(&machine.name).await?;
        ensure!(!is_uninitialised(&node), "{} still has its taint", machine.name);
        let spec = node.spec.clone().unwrap_or_default();
        let provider_id = format!("sim://{}", machine.id);
        ensure!(
            spec.provider_id.as_ref() == Some(&provider_id),
            "provider id is {:?}, not {provider_id}",
            spec.provider_id
        );
        let labels = node.metadata.labels.clone().unwrap_or_default();
        for (label, value) in [
            ("node.kubernetes.io/instance-type", &machine.kind),
            ("topology.kubernetes.io/zone", &machine.zone),
            ("topology.kubernetes.io/region", &machine.region),
        ] {
            ensure!(
                labels.get(label) == Some(value),
                "label {label} is {:?}, not {value}",
                labels.get(label)
            );
        }
        let addresses = node.status.clone().unwrap_or_default().addresses.unwrap_or_default();
        for address in &machine.addresses {
            ensure!(
                addresses.iter().any(|one| one.address == address.ip),
                "address {} is missing",
                address.ip
            );
        }
        Ok(node)
    }

    /// Each Node's Pod range gets a route, and the Node learns that its network works.
    async fn routes_appear(&self) -> Result<()> {
        for (name, pod_cidr) in &self.cast {
            self.until("a route leads to the Node", || async {
                let routes = self.cloud.inventory().await?.routes;
                let leads =
                    |route: &Route| route.spec.destination == *pod_cidr && route.spec.node == *name && !route.blackhole;
                ensure!(routes.iter().any(leads), "no route to {pod_cidr}");
                let status = self.nodes.get(name).await?.status.unwrap_or_default();
                let conditions = status.conditions.unwrap_or_default();
                let network = conditions
                    .iter()
                    .find(|condition| condition.type_ == "NetworkUnavailable");
                ensure!(
                    network.is_some_and(|network| network.status == "False"),
                    "condition NetworkUnavailable: {network:?}"
                );
                Ok(())
            })
            .await?;
            self.narrator.say(&format!("a route to {pod_cidr} leads to {name}"));
        }
        Ok(())
    }

    /// A Service of type `LoadBalancer` gets a load balancer with all Nodes behind it.
    async fn a_service_gets_its_address(&self) -> Result<()> {
        ServiceBuilder::new(SERVICE)
            .create(&self.client)
            .await
            .context("making the Service")?;
        self.narrator
            .say(&format!("Service {SERVICE} of type LoadBalancer is made"));
        let address = self
            .until("the Service has its address", || async {
                let service = self.services.get(SERVICE).await?;
                let finalizers = service.metadata.finalizers.clone().unwrap_or_default();
                ensure!(
                    finalizers.iter().any(|one| one == FINALIZER),
                    "the finalizer is missing: {finalizers:?}"
                );
                let ingress = service
                    .status
                    .and_then(|status| status.load_balancer)
                    .and_then(|status| status.ingress);
                let ip = ingress.unwrap_or_default().into_iter().find_map(|ingress| ingress.ip);
                self.balancer_has_targets(self.cast.len()).await?;
                ip.ok_or_else(|| anyhow!("its status has no address"))
            })
            .await?;
        self.narrator.say(&format!(
            "Service {SERVICE} has its address: {address}, with {} Nodes behind it",
            self.cast.len()
        ));
        Ok(())
    }

    /// A machine is deleted and its kubelet falls silent: the Node, its route and its place behind the load balancer go, and the
    /// other Nodes stay.
    async fn a_machine_is_deleted(&self) -> Result<()> {
        let (name, pod_cidr) = self.cast.last_key_value().context("there are no Nodes")?;
        let node = self.nodes.get(name).await?;
        let id = node.spec.and_then(|spec| spec.provider_id).unwrap_or_default();
        let id = id
            .strip_prefix("sim://")
            .with_context(|| format!("provider id of {name} is {id:?}"))?;
        self.cloud.delete_machine(id).await?;
        // What kube-controller-manager does when a kubelet is silent for 40 s.
        let silent = json!({"status": {"conditions": [ready_condition(None)]}});
        self.nodes
            .patch_status(name, &PatchParams::default(), &Patch::Strategic(silent))
            .await
            .context("silencing a Node")?;
        self.narrator.say(&format!(
            "machine {id} is deleted in the cloud, and Node {name} is silent"
        ));
        self.until("the Node of the deleted machine is gone", || async {
            ensure!(self.nodes.get_opt(name).await?.is_none(), "{name} is still there");
            Ok(())
        })
        .await?;
        self.narrator.say(&format!(
            "Node {name} is deleted, after the cloud said twice that its machine is gone"
        ));
        self.until("its route and its place behind the load balancer are gone", || async {
            let routes = self.cloud.inventory().await?.routes;
            ensure!(
                routes.iter().all(|route| route.spec.destination != *pod_cidr),
                "the route to {pod_cidr} is still there"
            );
            self.balancer_has_targets(self.cast.len() - 1).await
        })
        .await?;
        for other in self.cast.keys().filter(|other| *other != name) {
            ensure!(
                self.nodes.get_opt(other).await?.is_some(),
                "Node {other} went too, although its machine is there"
            );
        }
        self.narrator
            .say("its route and its place behind the load balancer are gone too; the other Nodes stay");
        Ok(())
    }

    /// The Service goes, and its load balancer with it.
    async fn the_service_is_deleted(&self) -> Result<()> {
        self.services
            .delete(SERVICE, &DeleteParams::default())
            .await
            .context("deleting the Service")?;
        self.until("the Service and its load balancer are gone", || async {
            ensure!(
                self.services.get_opt(SERVICE).await?.is_none(),
                "the Service is still there"
            );
            let balancers = self.cloud.inventory().await?.load_balancers;
            ensure!(
                balancers.is_empty(),
                "{} load balancers are still there",
                balancers.len()
            );
            Ok(())
        })
        .await?;
        self.narrator
            .say(&format!("Service {SERVICE} is deleted, and its load balancer with it"));
        Ok(())
    }

    /// Removes what the story left in the cluster; for clusters that live on. What cannot be removed is told.
    pub async fn clean_up(&self) {
        let gone = |result: kube::Result<()>, what: &str| match result {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => self.narrator.say(&format!("{what} could not be deleted: {error}")),
            Ok(()) => {}
        };
        let parameters = DeleteParams::default();
        gone(self.services.delete(SERVICE, &parameters).await.map(drop), SERVICE);
        for name in self.cast.keys() {
            gone(self.nodes.delete(name, &parameters).await.map(drop), name);
        }
    }

    async fn balancer_has_targets(&self, count: usize) -> Result<()> {
        match self.cloud.inventory().await?.load_balancers.as_slice() {
            [one] if one.spec.targets.len() == count => Ok(()),
            [one] => bail!("the load balancer has the targets {:?}, not {count}", one.spec.targets),
            many => bail!("there are {} load balancers, not one", many.len()),
        }
    }

    /// Waits for a condition; the error says what was awaited and what was there instead.
    async fn until<T, Fut>(&self, what: &str, look: impl FnMut() -> Fut) -> Result<T>
    where
        Fut: Future<Output = Result<T>>,
    {
        within(PATIENCE, look)
            .await
            .map_err(|last| anyhow!("not within {PATIENCE:?}: {what}; last seen: {last}"))
    }
}

/// What the cloud told about a Node, in a line.
fn summary(node: &Node) -> String {
    let labels = node.metadata.labels.clone().unwrap_or_default();
    let label = |key: &str| labels.get(key).cloned().unwrap_or_default();
    let addresses = node.status.clone().unwrap_or_default().addresses.unwrap_or_default();
    let addresses: Vec<_> = addresses
        .into_iter()
        .filter(|one| one.type_.ends_with("IP"))
        .map(|one| one.address)
        .collect();
    format!(
        "{}, {} in {}, {}",
        node.spec.clone().unwrap_or_default().provider_id.unwrap_or_default(),
        label("node.kubernetes.io/instance-type"),
        label("topology.kubernetes.io/zone"),
        addresses.join(" ")
    )
}
