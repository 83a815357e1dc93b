//! The provider under trial, and what it is tried with.

use std::sync::Arc;
use std::time::Duration;

use cloudwit_host::wire::Wire;
use cloudwit_host::{Host, Provider};
use cloudwit_model::{CloudError, ClusterNode, Failure, NodeRef, Service, Target};
use tempfile::TempDir;

use crate::commands::cluster::Cluster;
use crate::commands::provider::conformance::faults::Faults;
use crate::commands::provider::source;
use crate::providers::swap::Source;

/// Pending answers that one operation may have.
const MOST_PENDING: usize = 200;

/// The longest that is waited between them, whatever the provider asks for: a stand-in is quick.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// A provider with its cloud.
pub struct Trial {
    /// The provider.
    pub provider: Provider,
    /// What can be made to fail on its way to the cloud.
    pub faults: Arc<Faults>,
    /// Machines that the cloud has.
    pub nodes: Vec<NodeRef>,
    /// The Service whose load balancer is made.
    pub service: Service,
    source: Source,
    loader: Loader,
}

/// One host for all that is loaded, so that the component is compiled once.
struct Loader {
    host: Host,
    /// Compiled code.
    _cache: TempDir,
}

impl Trial {
    /// Loads it. Fails when the configuration is not accepted, since then nothing else can be tried.
    pub async fn begin(source: Source, nodes: Vec<NodeRef>, service: Service) -> anyhow::Result<Self> {
        let faults = Arc::new(Faults::default());
        let loader = Loader::new(faults.clone())?;
        let provider = loader.load(&source, &nodes, &service).await?;
        source::insist_on_soundness(&provider, &source).await?;
        Ok(Self {
            provider,
            faults,
            nodes,
            service,
            source,
            loader,
        })
    }

    /// The same trial in a cluster with these Nodes.
    pub async fn on(self, nodes: Vec<NodeRef>) -> anyhow::Result<Self> {
        let provider = self.loader.load(&self.source, &nodes, &self.service).await?;
        Ok(Self {
            provider,
            nodes,
            ..self
        })
    }

    /// The same provider loaded anew: it remembers nothing.
    pub async fn anew(&self) -> anyhow::Result<Provider> {
        self.loader.load(&self.source, &self.nodes, &self.service).await
    }

    /// The provider with another configuration.
    pub async fn configured(&self, config_text: &str) -> anyhow::Result<Provider> {
        let mut source = self.source.clone();
        source.settings.config_text = config_text.to_owned();
        self.loader.load(&source, &self.nodes, &self.service).await
    }

    /// The Nodes as targets.
    pub fn targets(&self) -> Vec<Target> {
        let nodes = self.nodes.iter().cloned();
        nodes.map(|node| Target { node, ready: true }).collect()
    }
}

impl Loader {
    fn new(wire: Arc<dyn Wire>) -> anyhow::Result<Self> {
        let cache = tempfile::tempdir()?;
        Ok(Self {
            host: source::host(wire, Some(cache.path().to_path_buf()))?,
            _cache: cache,
        })
    }

    async fn load(&self, source: &Source, nodes: &[NodeRef], service: &Service) -> anyhow::Result<Provider> {
        let cluster_node = |node: &NodeRef| ClusterNode {
            node: node.clone(),
            ..ClusterNode::default()
        };
        let cluster = Arc::new(Cluster {
            nodes: nodes.iter().map(cluster_node).collect(),
            services: vec![service.clone()],
            ..Cluster::default()
        });
        let settings = source.settings.clone();
        Ok(self.host.load(&source.component, settings, cluster.outside()).await?)
    }
}

/// Calls until the answer is not pending. The error says what came instead of an answer.
pub async fn until_done<T, F: Future<Output = Result<T, CloudError>>>(
    call: impl Fn(Option<String>) -> F,
) -> Result<T, String> {
    let mut token = None;
    for _ in 0..MOST_PENDING {
        match call(token.clone()).await {
            Ok(answer) => return Ok(answer),
            Err(CloudError::Failure(Failure::Pending { after, token: next, .. })) => {
                tokio::time::sleep(after.min(LONGEST_WAIT)).await;
                token = Some(next);
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(format!("it answered {MOST_PENDING} times that it waits"))
}
