//! A cluster, a cloud, and the files to start Cloudwit from: what most tests of the whole process stand on.

use std::path::PathBuf;

use anyhow::{Context, Result};
use cloudwit_sim_cloud::{NewMachine, SimCloud, SimCloudOptions};
use k8s_openapi::api::core::v1::{Node, Service};
use kube::{Api, Client};
use tempfile::TempDir;

use crate::objects::is_uninitialised;
use crate::programs::child::Child;
use crate::programs::guests;
use crate::scenes::deployment::{Deployment, TOKEN};
use crate::{ApiServer, NodeBuilder, ServiceBuilder, programs};

/// An API server and a simulated cloud of its own, both empty, and a deployment that leads from one to the other.
pub struct Site {
    /// The API server.
    pub server: ApiServer,
    /// With all rights.
    pub client: Client,
    /// The cloud.
    pub cloud: SimCloud,
    /// The binary.
    pub program: PathBuf,
    /// To start it from.
    pub deployment: Deployment,
    /// All files; gone with this.
    pub folder: TempDir,
}

impl Site {
    /// With the provider `sim`.
    ///
    /// # Errors
    ///
    /// When something cannot be built or started.
    pub async fn new() -> Result<Self> {
        Self::with(|| guests::provider("sim")).await
    }

    /// With this component under the name `sim`.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub async fn with(component: impl FnOnce() -> PathBuf + Send + 'static) -> Result<Self> {
        let built = move || (programs::cloudwit(), component());
        let (program, component) = tokio::task::spawn_blocking(built).await?;
        let server = ApiServer::start().await?;
        let options = SimCloudOptions {
            token: TOKEN.into(),
            ..SimCloudOptions::default()
        };
        let cloud = SimCloud::start(options).await.context("starting the cloud")?;
        let folder = tempfile::tempdir().context("making a folder")?;
        let programs = program.parent().context("a program lies in a folder")?;
        Ok(Self {
            client: server.client(),
            deployment: Deployment::new(&folder.path().join("run"), programs, &component)?,
            server,
            cloud,
            program,
            folder,
        })
    }

    /// Starts Cloudwit with these flags; gives the URL of its pages too.
    ///
    /// # Errors
    ///
    /// As [`Deployment::start_cloudwit`].
    pub fn start(&self, flags: &[&str]) -> Result<(Child, String)> {
        self.deployment
            .start_cloudwit(self.server.kubeconfig(), &self.cloud.url(), flags)
    }
}

/// A machine and its Node, as the kubelet registers it.
///
/// # Errors
///
/// When the API server refuses the Node.
pub async fn join(cloud: &SimCloud, client: &Client, name: &str) -> Result<Node> {
    cloud.add_machines([NewMachine::named(name)]);
    let node = NodeBuilder::new(name).pod_cidr("10.244.1.0/24");
    Ok(node.create(client).await?)
}

/// Whether the Node is initialised.
pub async fn is_initialised(client: &Client, name: &str) -> bool {
    let node = Api::<Node>::all(client.clone()).get(name).await;
    node.is_ok_and(|node| !is_uninitialised(&node))
}

/// A Service that wants a load balancer.
///
/// # Errors
///
/// When the API server refuses it.
pub async fn expose(client: &Client, name: &str) -> Result<Service> {
    Ok(ServiceBuilder::new(name).create(client).await?)
}

/// Whether the Service has an address.
pub async fn is_exposed(client: &Client, name: &str) -> bool {
    let service = Api::<Service>::default_namespaced(client.clone()).get(name).await.ok();
    let ingress = service.and_then(|service| service.status?.load_balancer?.ingress);
    ingress.is_some_and(|ingress| !ingress.is_empty())
}
