//! The cluster's objects and the cloud's machines: made, changed, and compared in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use cloudwit_sim_cloud::{NewMachine, SimCloud};
use cloudwit_test_support::objects::{is_uninitialised, ready_condition};
use cloudwit_test_support::{NodeBuilder, ServiceBuilder};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::files::HOSTILE;

/// Writes at a time.
const WRITERS: usize = 16;

/// Nodes of the hostile provider, beside the one at which it misbehaves.
const HOSTILE_NODES: usize = 20;

/// The Node at which guests misbehave.
const TRIGGER: &str = "trigger";

/// How often a write is tried that the API server did not take, and the pause after each. Together longer than the API server is ever away, since a
/// machine whose Node was given up would count as one that lost it.
const TRIES: usize = 300;
const PAUSE: Duration = Duration::from_secs(1);

/// What should be there.
#[derive(Default)]
struct Wanted {
    /// Nodes whose machines exist, with their uid.
    nodes: BTreeMap<String, String>,
    /// Nodes of the hostile provider, with their uid.
    hostile: BTreeMap<String, String>,
    /// Nodes whose machines were deleted.
    gone: BTreeSet<String>,
    services: BTreeSet<String>,
    /// Nodes and Services ever made.
    made: usize,
}

/// The cluster, seen past the replicas and their proxy.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    cloud: Arc<SimCloud>,
    wanted: Arc<Mutex<Wanted>>,
}

impl Cluster {
    /// An empty one.
    pub fn new(client: Client, cloud: Arc<SimCloud>) -> Self {
        Self {
            client,
            cloud,
            wanted: Arc::default(),
        }
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// With all rights.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    fn services(&self) -> Api<Service> {
        Api::default_namespaced(self.client.clone())
    }

    /// So many machines with their Nodes, and the Nodes of the hostile provider.
    ///
    /// # Errors
    ///
    /// When the API server refuses one.
    pub async fn populate(&self, nodes: usize, services: usize) -> Result<()> {
        let join = stream::iter(0..nodes).map(|_| self.join());
        join.buffer_unordered(WRITERS).try_collect::<Vec<_>>().await?;
        for number in 0..=HOSTILE_NODES {
            let name = if number == 0 {
                TRIGGER.to_owned()
            } else {
                format!("hostile-{number}")
            };
            // The UUID is the time that the guest waits which behaves. Nodes that are not Ready are looked up all the time.
            let node = NodeBuilder::new(&name)
                .label("cloudwit.dev/provider", HOSTILE)
                .system_uuid("0")
                .ready((number > 0).then_some(true));
            let made = node.create(&self.client).await?;
            self.wanted().hostile.insert(name, made.uid().unwrap_or_default());
        }
        let expose = stream::iter(0..services).map(|_| self.expose());
        expose.buffer_unordered(WRITERS).try_collect::<Vec<_>>().await?;
        Ok(())
    }

    /// One machine more, with its Node; gives its name.
    ///
    /// # Errors
    ///
    /// When the API server refuses it again and again.
    pub async fn join(&self) -> Result<String> {
        let number = self.number();
        let name = format!("soak-{number}");
        self.cloud.add_machines([NewMachine::named(&name)]);
        let node = NodeBuilder::new(&name).pod_cidr(&pod_cidr(number)).build();
        let node = persistently(|| async {
            let made = self.nodes().create(&kube::api::PostParams::default(), &node).await;
            match made {
                // It arrived before, and its answer was lost.
                Err(kube::Error::Api(status)) if status.code == 409 => self.nodes().get(&name).await,
                other => other,
            }
        });
        let uid = node.await?.uid().unwrap_or_default();
        self.wanted().nodes.insert(name.clone(), uid);
        Ok(name)
    }

    /// Deletes the machine of one Node and silences its kubelet.
    ///
    /// # Errors
    ///
    /// When the API server refuses it again and again.
    pub async fn lose_machine(&self) -> Result<()> {
        let name = {
            let mut wanted = self.wanted();
            let Some((name, _)) = wanted.nodes.pop_first() else {
                return Ok(());
            };
            wanted.gone.insert(name.clone());
            name
        };
        self.cloud.delete_machines([&name]);
        self.set_ready(&[name], None).await
    }

    /// A Service more.
    ///
    /// # Errors
    ///
    /// When the API server refuses it again and again.
    pub async fn expose(&self) -> Result<()> {
        let name = format!("soak-{}", self.number());
        let service = ServiceBuilder::new(&name).build();
        persistently(|| async {
            let made = self
                .services()
                .create(&kube::api::PostParams::default(), &service)
                .await;
            match made {
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
                other => other.map(drop),
            }
        })
        .await?;
        self.wanted().services.insert(name);
        Ok(())
    }

    /// Deletes one Service, or all of them.
    ///
    /// # Errors
    ///
    /// When the API server refuses it again and again.
    pub async fn unexpose(&self, all: bool) -> Result<()> {
        let names: Vec<String> = {
            let mut wanted = self.wanted();
            let count = if all { wanted.services.len() } else { 1 };
            std::iter::from_fn(|| wanted.services.pop_first()).take(count).collect()
        };
        let delete = stream::iter(names).map(async |name| {
            persistently(|| async {
                match self.services().delete(&name, &DeleteParams::default()).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                    other => other.map(drop),
                }
            })
            .await
        });
        delete.buffer_unordered(WRITERS).try_collect().await
    }

    /// The names of one of so many Nodes.
    pub fn one_of(&self, every: usize) -> Vec<String> {
        self.wanted().nodes.keys().step_by(every).cloned().collect()
    }

    /// What these kubelets report; none for silence.
    ///
    /// # Errors
    ///
    /// When the API server refuses it again and again.
    pub async fn set_ready(&self, names: &[String], ready: Option<bool>) -> Result<()> {
        let patch = Patch::Strategic(json!({ "status": { "conditions": [ready_condition(ready)] } }));
        let report = stream::iter(names.to_vec()).map(async |name| {
            persistently(|| async {
                match self.nodes().patch_status(&name, &PatchParams::default(), &patch).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                    other => other.map(drop),
                }
            })
            .await
        });
        report.buffer_unordered(WRITERS).try_collect().await
    }

    /// Whether the machine of a Node of this name exists, as far as the cluster knows.
    pub fn is_wanted(&self, node: &str) -> bool {
        let wanted = self.wanted();
        wanted.nodes.contains_key(node) || wanted.hostile.contains_key(node)
    }

    /// Whether the Node is initialised.
    pub async fn is_initialised(&self, name: &str) -> bool {
        self.nodes().get(name).await.is_ok_and(|node| !is_uninitialised(&node))
    }

    /// Healthy Nodes that are missing or were replaced.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    pub async fn lost_nodes(&self) -> Result<Vec<String>> {
        let found = self.node_list().await?;
        let uids: BTreeMap<String, String> = found
            .into_iter()
            .map(|node| (node.name_any(), node.uid().unwrap_or_default()))
            .collect();
        let wanted = self.wanted();
        let all = wanted.nodes.iter().chain(&wanted.hostile);
        Ok(all
            .filter(|(name, uid)| uids.get(*name) != Some(*uid))
            .map(|(name, _)| name.clone())
            .collect())
    }

    /// What is wrong with the Nodes; empty when all have converged.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    pub async fn wrong_nodes(&self) -> Result<Vec<String>> {
        let found = self.node_list().await?;
        let wanted = self.wanted();
        let mut wrong: Vec<String> = found
            .iter()
            .filter(|node| is_uninitialised(node))
            .map(|node| format!("{} is not initialised", node.name_any()))
            .collect();
        let left = found
            .iter()
            .map(ResourceExt::name_any)
            .filter(|name| wanted.gone.contains(name));
        wrong.extend(left.map(|name| format!("{name} is there, its machine is gone")));
        Ok(wrong)
    }

    /// What is wrong with Services and load balancers; empty when all have converged.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    pub async fn wrong_balancers(&self) -> Result<Vec<String>> {
        let services = self.services().list(&ListParams::default()).await?;
        let wanted = self.wanted().services.clone();
        let is_balanced =
            |service: &&Service| service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer");
        let mut wrong = Vec::new();
        for service in services.iter().filter(is_balanced) {
            let name = service.name_any();
            if !wanted.contains(&name) {
                wrong.push(format!("Service {name} is deleted and still there"));
            } else if cloudwit_test_support::scenes::rig::ingress(service).is_empty() {
                wrong.push(format!("Service {name} has no address"));
            }
        }
        let balancers = self.cloud.load_balancers();
        if balancers.len() != wanted.len() {
            wrong.push(format!(
                "{} load balancers for {} Services",
                balancers.len(),
                wanted.len()
            ));
        }
        let machines = self.cloud.machines().len();
        let stale = balancers
            .iter()
            .filter(|balancer| balancer.spec.targets.len() != machines);
        wrong.extend(stale.map(|balancer| {
            format!(
                "{} has {} targets of {machines}",
                balancer.id,
                balancer.spec.targets.len()
            )
        }));
        Ok(wrong)
    }

    /// What is wrong with the routes; empty when all have converged.
    pub fn wrong_routes(&self) -> Vec<String> {
        let routes = self.cloud.routes();
        let by_id: BTreeMap<String, String> = self
            .cloud
            .machines()
            .into_iter()
            .map(|machine| (machine.id, machine.name))
            .collect();
        let mut missing: BTreeSet<&String> = by_id.values().collect();
        let mut wrong = Vec::new();
        for route in &routes {
            match by_id.get(&route.spec.machine) {
                Some(name) if route.spec.destination == cidr_of(name) => drop(missing.remove(name)),
                Some(name) => wrong.push(format!(
                    "route {} to {name} is not its Pod range",
                    route.spec.destination
                )),
                None => wrong.push(format!(
                    "route {} leads to a machine that is gone",
                    route.spec.destination
                )),
            }
        }
        wrong.extend(missing.into_iter().map(|name| format!("{name} has no route")));
        wrong
    }

    async fn node_list(&self) -> Result<Vec<Node>> {
        let list = self.nodes().list(&ListParams::default()).await;
        Ok(list.context("listing Nodes")?.items)
    }

    fn number(&self) -> usize {
        let mut wanted = self.wanted();
        wanted.made += 1;
        wanted.made
    }
}

/// 64 addresses of [`crate::files::CLUSTER_CIDR`].
fn pod_cidr(number: usize) -> String {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    let first = u32::from(Ipv4Addr::new(10, 128, 0, 0)).wrapping_add(number.wrapping_mul(64));
    format!("{}/26", Ipv4Addr::from(first))
}

fn cidr_of(node: &str) -> String {
    node.rsplit('-')
        .next()
        .and_then(|number| number.parse().ok())
        .map_or_else(String::new, pod_cidr)
}

/// Tries a write until the API server takes it, since it may be away on purpose.
async fn persistently<T, Fut: Future<Output = kube::Result<T>>>(mut write: impl FnMut() -> Fut) -> Result<T> {
    let mut last = None;
    for _ in 0..TRIES {
        match write().await {
            Ok(done) => return Ok(done),
            Err(error) => last = Some(error),
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(last.expect("it was tried at least once")).context("writing to the API server")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pod_ranges_are_apart_and_inside_the_clusters() {
        assert_eq!(pod_cidr(1), "10.128.0.64/26");
        assert_eq!(pod_cidr(100_000), "10.225.168.0/26");
        assert_eq!(cidr_of("soak-1"), pod_cidr(1));
    }
}
