//! What happens in the sandbox: each step changes the cloud or the cluster from outside, waits for Cloudwit's answer, and checks
//! all of it. What was awaited and what was found instead is in the error.

use std::cell::RefCell;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use cloudwit_test_support::objects::{is_uninitialised, ready_condition};
use cloudwit_test_support::{NodeBuilder, ServiceBuilder, within};
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

use crate::clouds::{Cloud, Machine};
use crate::narrator::Narrator;

/// How long Cloudwit may take for a step. It usually takes less than a tenth of it.
const PATIENCE: Duration = Duration::from_secs(180);

/// The Service of the story.
const SERVICE: &str = "sandbox-web";

/// The finalizer that keeps a Service until its load balancer is gone (`k8s.io/cloud-provider/service/helpers`,
/// `LoadBalancerCleanupFinalizer`).
const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

/// The story and its people.
pub struct Story<'a, C> {
    narrator: &'a Narrator,
    client: Client,
    nodes: Api<Node>,
    services: Api<Service>,
    cloud: &'a C,
    /// The machines that were made so far, in their order.
    cast: RefCell<Vec<Machine>>,
    size: u8,
}

impl<'a, C: Cloud> Story<'a, C> {
    /// A story with so many Nodes.
    pub fn new(client: Client, cloud: &'a C, narrator: &'a Narrator, nodes: u8) -> Self {
        Self {
            narrator,
            nodes: Api::all(client.clone()),
            services: Api::default_namespaced(client.clone()),
            client,
            cloud,
            cast: RefCell::default(),
            size: nodes,
        }
    }

    /// All of it. With `to_the_end` the Service goes too; otherwise it stays for whoever wants to look at it.
    pub async fn tell(&self, to_the_end: bool) -> Result<()> {
        self.nodes_join().await?;
        let routed = self.cloud.routes().await?.is_some();
        let balanced = self.cloud.balancers().await?.is_some();
        if routed {
            self.routes_appear().await?;
        }
        if balanced {
            self.a_service_gets_its_address().await?;
        }
        self.a_machine_is_deleted(routed, balanced).await?;
        if balanced && to_the_end {
            self.the_service_is_deleted().await?;
        }
        for (made, what) in [(routed, "routes"), (balanced, "load balancers")] {
            if !made {
                self.narrator
                    .say(&format!("the provider {} makes no {what}", C::PROVIDER));
            }
        }
        Ok(())
    }

    /// Machines are made, their kubelets register Nodes, and Cloudwit initialises them.
    async fn nodes_join(&self) -> Result<()> {
        for number in 1..=self.size {
            let machine = self.cloud.create_machine(number).await?;
            let node = NodeBuilder::new(&machine.node)
                .node_ip(&machine.ip)
                .system_uuid(&machine.system_uuid)
                .pod_cidr(&pod_cidr(usize::from(number)));
            node.create(&self.client)
                .await
                .with_context(|| format!("registering the Node {}", machine.node))?;
            self.narrator.say(&format!(
                "machine {} is made, its Node {} has joined and waits, tainted",
                machine.id, machine.node
            ));
            self.cast.borrow_mut().push(machine);
        }
        for machine in self.cast() {
            let node = self
                .until("the Node is initialised", || self.initialised(&machine))
                .await?;
            self.narrator
                .say(&format!("Node {} is initialised: {}", machine.node, summary(&node)));
        }
        Ok(())
    }

    fn cast(&self) -> Vec<Machine> {
        self.cast.borrow().clone()
    }

    /// The Node without its taint, with all that only the cloud knows; or what is missing.
    async fn initialised(&self, machine: &Machine) -> Result<Node> {
        let node = self.nodes.get(&machine.node).await?;
        ensure!(!is_uninitialised(&node), "{} still has its taint", machine.node);
        let spec = node.spec.clone().unwrap_or_default();
        ensure!(
            spec.provider_id.as_ref() == Some(&machine.provider_id),
            "provider id is {:?}, not {}",
            spec.provider_id,
            machine.provider_id
        );
        let labels = node.metadata.labels.clone().unwrap_or_default();
        for (label, value) in &machine.labels {
            ensure!(
                labels.get(*label) == Some(value),
                "label {label} is {:?}, not {value}",
                labels.get(*label)
            );
        }
        let addresses = node.status.clone().unwrap_or_default().addresses.unwrap_or_default();
        for address in &machine.addresses {
            ensure!(
                addresses.iter().any(|one| one.address == *address),
                "address {address} is missing"
            );
        }
        Ok(node)
    }

    /// Each Node's Pod range gets a route, and the Node learns that its network works.
    async fn routes_appear(&self) -> Result<()> {
        for (machine, pod_cidr) in self.cast().iter().zip((1..).map(pod_cidr)) {
            self.until("a route leads to the Node", || async {
                let routes = self.cloud.routes().await?.unwrap_or_default();
                let leads = |by: &str| by == machine.id || by == machine.ip;
                ensure!(
                    routes
                        .iter()
                        .any(|route| route.destination == pod_cidr && leads(&route.by)),
                    "no route to {pod_cidr}"
                );
                let status = self.nodes.get(&machine.node).await?.status.unwrap_or_default();
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
            self.narrator
                .say(&format!("a route to {pod_cidr} leads to {}", machine.node));
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
                let address = ingress.unwrap_or_default().into_iter();
                let address = address.filter_map(|ingress| ingress.ip.or(ingress.hostname)).next();
                self.balancer_has_targets(self.size.into()).await?;
                address.ok_or_else(|| anyhow!("its status has no address"))
            })
            .await?;
        self.narrator.say(&format!(
            "Service {SERVICE} has its address: {address}, with {} Nodes behind it",
            self.size
        ));
        Ok(())
    }

    /// A machine is deleted and its kubelet falls silent: the Node, its route and its place behind the load balancer go, and the
    /// other Nodes stay.
    async fn a_machine_is_deleted(&self, routed: bool, balanced: bool) -> Result<()> {
        let cast = self.cast();
        let (machine, others) = cast.split_last().context("there are no Nodes")?;
        let (name, id) = (&machine.node, &machine.id);
        self.cloud.delete_machine(machine).await?;
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
        let pod_cidr = pod_cidr(cast.len());
        self.until("its route and its place behind the load balancer are gone", || async {
            let routes = self.cloud.routes().await?.unwrap_or_default();
            ensure!(
                routes.iter().all(|route| route.destination != pod_cidr),
                "the route to {pod_cidr} is still there"
            );
            if balanced {
                self.balancer_has_targets(others.len()).await?;
            }
            Ok(())
        })
        .await?;
        for other in others {
            ensure!(
                self.nodes.get_opt(&other.node).await?.is_some(),
                "Node {} went too, although its machine is there",
                other.node
            );
        }
        self.narrator.say(match (routed, balanced) {
            (true, true) => "its route and its place behind the load balancer are gone too; the other Nodes stay",
            _ => "the other Nodes stay",
        });
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
            let balancers = self.cloud.balancers().await?.unwrap_or_default();
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
        for machine in self.cast() {
            gone(
                self.nodes.delete(&machine.node, &parameters).await.map(drop),
                &machine.node,
            );
        }
    }

    async fn balancer_has_targets(&self, count: usize) -> Result<()> {
        match self.cloud.balancers().await?.unwrap_or_default().as_slice() {
            [one] if *one == count => Ok(()),
            [one] => bail!("the load balancer has {one} targets, not {count}"),
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

/// The Pod range of the Node with this number, counted from 1.
fn pod_cidr(number: usize) -> String {
    format!("10.244.{number}.0/24")
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
