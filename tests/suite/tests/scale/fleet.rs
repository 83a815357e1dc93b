//! Many Nodes and Services on a real API server, the process `cloudwit`, and the simulated cloud over HTTP.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use cloudwit_test_support::objects::is_uninitialised;
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::scenes::site::Site;
use cloudwit_test_support::{NodeBuilder, ServiceBuilder, eventually};
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::Value;

/// Objects that are written at the same time; more do not make the API server faster.
const WRITERS: usize = 16;

/// Everything ends long before, also on a machine that is busy with other things.
pub const PATIENCE: Duration = Duration::from_secs(900);

/// A cluster and a cloud, and what is needed to start Cloudwit between them.
pub struct Fleet {
    pub site: Site,
}

impl Fleet {
    /// An empty cluster and an empty cloud.
    pub async fn new() -> Self {
        Self {
            site: Site::new().await.unwrap(),
        }
    }

    /// Starts Cloudwit with these flags beside the usual ones.
    pub fn start(&self, flags: &[&str]) -> Process {
        let (child, pages) = self.site.start(flags).unwrap();
        Process { child, pages }
    }

    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.site.client.clone())
    }

    pub fn services(&self) -> Api<Service> {
        Api::default_namespaced(self.site.client.clone())
    }

    /// Registers these Nodes.
    pub async fn add_nodes(&self, nodes: impl IntoIterator<Item = Node>) {
        let (api, parameters) = (self.nodes(), PostParams::default());
        let creations = nodes.into_iter().map(|node| {
            let (api, parameters) = (&api, &parameters);
            async move { api.create(parameters, &node).await }
        });
        each(creations, |created| drop(created.unwrap())).await;
    }

    /// Creates Services `web-0`, `web-1` and so on.
    pub async fn add_services(&self, count: usize) {
        let creations =
            (0..count).map(|number| ServiceBuilder::new(&format!("web-{number}")).create(&self.site.client));
        each(creations, |created| drop(created.unwrap())).await;
    }

    /// Changes the Nodes of these numbers, their status if the change is about it.
    pub async fn patch_nodes(&self, numbers: Range<usize>, change: Value) {
        let (api, parameters) = (self.nodes(), PatchParams::default());
        let status = change.get("status").is_some();
        let change = Patch::Strategic(change);
        let patches = numbers.map(|number| {
            let (api, parameters, change, name) = (&api, &parameters, &change, format!("node-{number}"));
            async move {
                if status {
                    api.patch_status(&name, parameters, change).await
                } else {
                    api.patch(&name, parameters, change).await
                }
            }
        });
        each(patches, |patched| drop(patched.unwrap())).await;
    }

    /// Waits until so many Nodes are there and each is initialised.
    pub async fn nodes_initialised(&self, count: usize) {
        eventually(PATIENCE, "all Nodes are initialised", || async {
            let nodes = self.nodes().list(&ListParams::default()).await.map_err(text)?.items;
            let done = nodes.iter().filter(|node| !is_uninitialised(node)).count();
            if (nodes.len(), done) == (count, count) {
                Ok(())
            } else {
                Err(format!("{done} of {}", nodes.len()))
            }
        })
        .await;
    }

    /// Waits until so many Services of type `LoadBalancer` are there and each has an address.
    pub async fn services_ready(&self, count: usize) {
        eventually(PATIENCE, "all Services have an address", || async {
            let mut services = self.services().list(&ListParams::default()).await.map_err(text)?.items;
            services.retain(|service| service.name_any() != "kubernetes");
            let done = services.iter().filter(|service| has_address(service)).count();
            if (services.len(), done) == (count, count) {
                Ok(())
            } else {
                Err(format!("{done} of {}", services.len()))
            }
        })
        .await;
    }
}

/// The running process.
pub struct Process {
    pub child: Child,
    pages: String,
}

impl Process {
    /// All its metrics, as soon as it serves them.
    pub async fn metrics(&self) -> Metrics {
        let page = format!("{}/metrics", self.pages);
        let text = eventually(PATIENCE, "there are metrics", || async {
            reqwest::get(&page).await?.text().await
        });
        Metrics::parse(&text.await)
    }
}

/// What `/metrics` showed: each line's name with labels, and its value.
pub struct Metrics(pub BTreeMap<String, f64>);

impl Metrics {
    fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self(
            lines
                .filter_map(|line| line.rsplit_once(' '))
                .filter_map(|(name, value)| Some((name.into(), value.parse().ok()?)))
                .collect(),
        )
    }

    /// The sum over all lines with this name whose labels contain each of these.
    pub fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        let fits =
            |line: &&String| line.split('{').next() == Some(name) && labels.iter().all(|label| line.contains(label));
        self.0
            .iter()
            .filter(|(line, _)| fits(line))
            .map(|(_, value)| value)
            .sum()
    }
}

/// Node number so, `node-NUMBER`, as its kubelet registers it. Up to 8192 Pod ranges are in that of the cluster.
pub fn node(number: usize) -> NodeBuilder {
    let cidr = format!("10.244.{}.{}/29", number / 32, number % 32 * 8);
    NodeBuilder::new(&format!("node-{number}")).pod_cidr(&cidr)
}

/// Carries out many at a time and hands over each answer.
pub async fn each<F: Future>(work: impl IntoIterator<Item = F>, mut answered: impl FnMut(F::Output)) {
    let mut answers = stream::iter(work).buffer_unordered(WRITERS);
    while let Some(answer) = answers.next().await {
        answered(answer);
    }
}

fn has_address(service: &Service) -> bool {
    let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    balancer
        .and_then(|balancer| balancer.ingress.as_ref())
        .is_some_and(|points| !points.is_empty())
}

fn text(error: kube::Error) -> String {
    error.to_string()
}
