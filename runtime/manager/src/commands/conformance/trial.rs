//! The provider under trial, and what it is tried with.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cloudwit_host::wire::Wire;
use cloudwit_host::{Host, Provider};
use cloudwit_model::{CloudError, ClusterNode, Failure, NodeRef, Service, Target};
use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;

use crate::commands::cluster::Cluster;
use crate::commands::conformance::faults::Faults;
use crate::commands::provider::source;
use crate::commands::recordings::cassette::{Cassette, RecordedTrial};
use crate::commands::recordings::exchanges::Exchange;
use crate::providers::swap::Source;

/// Tries that an operation may need on a cloud that refuses requests now and then.
const TRIES: usize = 60;

/// Pending answers that one operation may have.
const MOST_PENDING: usize = 200;

/// The longest pause between them, whatever `pending` requests: a stand-in is quick.
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
    /// The longest that is waited for a pending answer.
    patience: Duration,
    source: Source,
    loader: Loader,
}

/// One host for all that is loaded, so that the component is compiled once.
struct Loader {
    host: Host,
    /// All that was loaded.
    loaded: Mutex<Vec<Provider>>,
    /// Compiled code.
    _cache: TempDir,
}

impl Trial {
    /// Loads it. Fails when the configuration is not accepted, since then nothing else can be tried.
    pub async fn begin(source: Source, nodes: Vec<NodeRef>, service: Service) -> anyhow::Result<Self> {
        Self::with(Faults::default(), None, LONGEST_WAIT, source, nodes, service).await
    }

    /// The same with a recording in the cloud's place.
    pub async fn again(
        source: Source,
        exchanges: Vec<Exchange>,
        time: SystemTime,
        nodes: Vec<NodeRef>,
        service: Service,
    ) -> anyhow::Result<Self> {
        let faults = Faults::answered_from(exchanges);
        Self::with(faults, Some(time), Duration::ZERO, source, nodes, service).await
    }

    async fn with(
        faults: Faults,
        time: Option<SystemTime>,
        patience: Duration,
        source: Source,
        nodes: Vec<NodeRef>,
        service: Service,
    ) -> anyhow::Result<Self> {
        let faults = Arc::new(faults);
        let loader = Loader::new(faults.clone(), time)?;
        let provider = loader.load(&source, &nodes, &service).await?;
        source::insist_on_soundness(&provider, &source).await?;
        Ok(Self {
            provider,
            faults,
            nodes,
            service,
            patience,
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

    /// The same provider loaded anew: it keeps nothing.
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

    /// Calls until the answer is not pending. The error says what came instead of an answer.
    pub async fn until_done<T, F: Future<Output = Result<T, CloudError>>>(
        &self,
        call: impl Fn(Option<String>) -> F,
    ) -> Result<T, String> {
        let mut token = None;
        for _ in 0..MOST_PENDING {
            match call(token.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(CloudError::Failure(Failure::Pending { after, token: next, .. })) => {
                    tokio::time::sleep(after.min(self.patience)).await;
                    token = Some(next);
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        Err(format!("it answered {MOST_PENDING} times that it waits"))
    }

    /// The first texts with a secret in them that the provider wrote until now, without it.
    pub fn redacted_texts(&self) -> Vec<String> {
        let loaded = self.loader.loaded.lock();
        loaded.iter().flat_map(Provider::redacted_texts).collect()
    }

    /// What it was set to and what went to the cloud until now.
    pub fn recording(&self, service: Value, route: &str, nodes: &[NodeRef]) -> Cassette {
        let mut cassette = Cassette::new(&self.source.settings, |text| self.provider.redacted(text));
        cassette.trial = Some(RecordedTrial::of(nodes, service, route, self.faults.exchanges()));
        cassette
    }
}

impl Loader {
    fn new(wire: Arc<dyn Wire>, time: Option<SystemTime>) -> anyhow::Result<Self> {
        let cache = tempfile::tempdir()?;
        Ok(Self {
            host: source::host(wire, Some(cache.path().to_path_buf()), time)?,
            loaded: Mutex::default(),
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
        let file = source.component.file(None).await?;
        let provider = self.host.load(&file, settings, cluster.outside()).await?;
        self.loaded.lock().push(provider.clone());
        Ok(provider)
    }
}

/// Tries it until it works; the last error where it never does.
pub(super) async fn repeated<T, F: Future<Output = Result<T, String>>>(attempt: impl Fn() -> F) -> Result<T, String> {
    let mut last = attempt().await;
    for _ in 1..TRIES {
        if last.is_ok() {
            break;
        }
        last = attempt().await;
    }
    last
}
