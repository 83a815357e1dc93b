//! What stands before a side starts: a fresh API server and a fresh simulated cloud for each run, so that no run finds what another left.

pub mod binary;
pub mod cloud;
pub mod contestant;
pub mod mount;
pub mod run_folder;
pub mod setting;

use std::time::Duration;

use crate::scene::cloud::Cloud;
use crate::scene::contestant::{Place, Running, Side, Tuning};
use crate::scene::run_folder::RunFolder;
use crate::scene::setting::Setting;
use anyhow::{Context, Result, ensure};
use cloudwit_sim_cloud::{LoadBalancer, Machine};
use cloudwit_test_support::{ApiServer, NodeBuilder, ServiceBuilder};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Service};
use kube::Client;

/// Objects that are made at the same time; more do not make the API server faster.
const MAKERS: usize = 16;

/// A cluster and a cloud.
pub struct Scene<'a> {
    /// The API server.
    pub server: ApiServer,
    /// With all rights on it.
    pub client: Client,
    /// The cloud.
    pub cloud: Cloud,
    setting: &'a Setting,
    folder: RunFolder,
}

impl<'a> Scene<'a> {
    /// Starts both for the work of this name. Each request to the cloud takes so long.
    ///
    /// # Errors
    ///
    /// When one of them does not start.
    pub async fn set(setting: &'a Setting, work: &str, latency: Duration) -> Result<Self> {
        let folder = RunFolder::new(work)?;
        let file = |name: &str| folder.path().join(name);
        let cloud = Cloud::start(&setting.contestants.programs, &file("cloud.log"), latency)?;
        let server = ApiServer::start_in(file("cluster"), file("cluster.log")).await?;
        Ok(Self {
            client: server.client(),
            server,
            cloud,
            setting,
            folder,
        })
    }

    /// Starts a side on it.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start(&self, side: Side, tuning: &Tuning) -> Result<Running> {
        let place = Place {
            folder: self.folder.path(),
            kubeconfig: self.server.kubeconfig(),
            cloud: self.cloud.url(),
        };
        self.setting.contestants.start(side, &place, tuning)
    }

    /// The work is done: ends the side, as kubelet does, and everything else, and removes the logs, which stay after a run that ends in any other way.
    ///
    /// # Errors
    ///
    /// When the side is gone already or does not end, or the folder cannot be removed.
    pub fn end(self, running: Running) -> Result<()> {
        running.stop()?;
        let Self {
            server, cloud, folder, ..
        } = self;
        drop((server, cloud));
        folder.done()
    }

    /// So many machines whose Nodes wait, tainted, as kubelet registers them without `--provider-id`.
    ///
    /// # Errors
    ///
    /// When an object cannot be made.
    pub async fn waiting_nodes(&self, count: usize) -> Result<()> {
        let machines = self.cloud.add_machines("node", count).await?;
        let nodes = machines.iter().map(|machine| NodeBuilder::new(&machine.name));
        self.nodes(nodes).await
    }

    /// So many machines more whose Nodes are Ready and initialised already.
    ///
    /// # Errors
    ///
    /// When an object cannot be made.
    pub async fn ready_nodes(&self, prefix: &str, count: usize) -> Result<()> {
        let machines = self.cloud.add_machines(prefix, count).await?;
        self.nodes(machines.iter().map(initialised)).await
    }

    /// So many Services of type `LoadBalancer`, named `web-0` and so on.
    ///
    /// # Errors
    ///
    /// When an object cannot be made.
    pub async fn services(&self, count: usize) -> Result<()> {
        let made = (0..count)
            .map(|number| async move { ServiceBuilder::new(&format!("web-{number}")).create(&self.client).await });
        let made = stream::iter(made).buffer_unordered(MAKERS);
        made.try_collect::<Vec<Service>>().await.context("making Services")?;
        Ok(())
    }

    /// Whether the cloud has so many load balancers, each with so many machines behind it: a Service may have an address without.
    ///
    /// # Errors
    ///
    /// When it is not so, or the cloud does not answer.
    pub async fn is_balanced(&self, count: usize, machines: usize) -> Result<()> {
        let balancers = self.cloud.content().await?.load_balancers;
        ensure!(
            balancers.len() == count,
            "the cloud has {} load balancers instead of {count}",
            balancers.len()
        );
        let whole = |balancer: &&LoadBalancer| balancer.spec.targets.len() == machines;
        let whole = balancers.iter().filter(whole).count();
        ensure!(
            whole == count,
            "{whole} of {count} load balancers have {machines} machines"
        );
        Ok(())
    }

    async fn nodes(&self, nodes: impl Iterator<Item = NodeBuilder>) -> Result<()> {
        let made = stream::iter(nodes.map(|node| node.create(&self.client))).buffer_unordered(MAKERS);
        made.try_collect::<Vec<Node>>().await.context("making Nodes")?;
        Ok(())
    }
}

/// As a controller leaves it. `InternalIP` is the machine's own, so that nobody has anything to correct.
fn initialised(machine: &Machine) -> NodeBuilder {
    let mut node = NodeBuilder::new(&machine.name)
        .provider_id(&format!("sim://{}", machine.id))
        .label("node.kubernetes.io/instance-type", &machine.kind)
        .label("topology.kubernetes.io/zone", &machine.zone)
        .label("topology.kubernetes.io/region", &machine.region)
        .initialised();
    if let Some(address) = machine.addresses.first() {
        node = node.node_ip(&address.ip);
    }
    node
}
