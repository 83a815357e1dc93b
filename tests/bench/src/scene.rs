//! What stands before a side starts: a fresh API server and a fresh simulated cloud for each run, so that no run finds what another left.

use std::time::Duration;

use anyhow::{Context, Result};
use cloudwit_sim_cloud::Machine;
use cloudwit_test_support::{ApiServer, NodeBuilder, ServiceBuilder};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Service};
use kube::Client;
use tempfile::TempDir;

use crate::cloud::Cloud;
use crate::contestant::{Running, Side, Tuning};
use crate::setting::Setting;

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
    _folder: TempDir,
}

impl<'a> Scene<'a> {
    /// Starts both. Each request to the cloud takes so long.
    ///
    /// # Errors
    ///
    /// When one of them does not start.
    pub async fn set(setting: &'a Setting, latency: Duration) -> Result<Self> {
        let folder = tempfile::tempdir().context("making a folder")?;
        let cloud = Cloud::start(&setting.contestants.programs, &folder.path().join("cloud.log"), latency)?;
        let server = ApiServer::start().await?;
        Ok(Self {
            client: server.client(),
            server,
            cloud,
            setting,
            _folder: folder,
        })
    }

    /// Starts a side on it.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start(&self, side: Side, tuning: &Tuning) -> Result<Running> {
        let (kubeconfig, cloud) = (self.server.kubeconfig(), self.cloud.url());
        self.setting.contestants.start(side, kubeconfig, cloud, tuning)
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
