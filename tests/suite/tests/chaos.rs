//! Everything at once: a cloud of which every tenth request fails and that is slow at times, an API server that restarts, Nodes and
//! Services that come, change and go, and Cloudwit as a process. However it went, in the end everything is as it should be, while the
//! cloud still fails as before.
//!
//! A minute by default; `CLOUDWIT_CHAOS_MINUTES=10` makes it longer.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use cloudwit_sim_cloud::{Fault, FaultKind};
use cloudwit_test_support::objects::{is_uninitialised, ready_condition};
use cloudwit_test_support::scenes::site::Site;
use cloudwit_test_support::{NodeBuilder, ServiceBuilder, eventually};
use k8s_openapi::api::core::v1::{Node, Service, Taint};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

/// How long the turmoil lasts unless the environment says otherwise.
const TURMOIL: Duration = Duration::from_secs(35);
/// From its end until everything is as it should be; the longest pauses of the controllers have to pass.
const SETTLE: Duration = Duration::from_secs(420);
/// Between two changes.
const STEP: Duration = Duration::from_millis(400);
/// A spike of latency: every request takes so long.
const SPIKE: Duration = Duration::from_secs(2);
/// An API server that restarts refuses connections for some seconds.
const ANSWER: Duration = Duration::from_secs(120);

/// Short periods, so that a minute is long.
const FLAGS: [&str; 8] = [
    "--node-monitor-period=1s",
    "--node-status-update-frequency=10s",
    "--route-reconciliation-period=2s",
    "--node-deletion-confirm-after=3s",
    "--node-deletion-by-name-after=6s",
    "--node-deletion-grace-period=0s",
    "--node-deletion-max-percent=100",
    "-v=2",
];

struct Chaos {
    site: Site,
    /// uid and Pod range of every Node that has a machine.
    nodes: BTreeMap<String, (String, String)>,
    /// Name and port.
    services: Vec<(String, i32)>,
    made: usize,
    restarts: usize,
    spikes: usize,
}

impl Chaos {
    fn nodes(&self) -> Api<Node> {
        Api::all(self.site.server.client())
    }

    fn services(&self) -> Api<Service> {
        Api::namespaced(self.site.server.client(), "default")
    }

    async fn add(&mut self) {
        let number = self.made;
        self.made += 1;
        let (node, service) = (format!("chaos-{number}"), format!("web-{number}"));
        self.site
            .cloud
            .add_machines([cloudwit_sim_cloud::NewMachine::named(&node)]);
        let client = self.site.server.client();
        let cidr = format!("10.244.{}.{}/26", number / 4 % 256, number % 4 * 64);
        let made = eventually(ANSWER, "the Node is made", || async {
            let new = NodeBuilder::new(&node).pod_cidr(&cidr).create(&client).await;
            match new {
                Err(kube::Error::Api(status)) if status.code == 409 => {
                    Api::<Node>::all(client.clone()).get(&node).await
                }
                other => other,
            }
        });
        let uid = made.await.uid().unwrap();
        self.nodes.insert(node, (uid, cidr));
        eventually(ANSWER, "the Service is made", || async {
            match ServiceBuilder::new(&service).create(&client).await {
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
                other => other.map(|_| ()),
            }
        })
        .await;
        self.services.push((service, 80));
    }

    /// The Service that was made last listens at another port from now on.
    async fn change(&mut self) {
        let port = 1000 + i32::try_from(self.made).unwrap();
        let api = self.services();
        let Some((name, known)) = self.services.last_mut() else {
            return;
        };
        *known = port;
        let patch = Patch::Merge(json!({ "spec": { "ports": [{ "name": "http", "port": port }] } }));
        eventually(ANSWER, "the Service is changed", || async {
            api.patch(name, &PatchParams::default(), &patch).await
        })
        .await;
    }

    /// A machine goes away, and its kubelet falls silent; a Service is deleted.
    async fn remove(&mut self) {
        if self.nodes.len() > 3
            && let Some((node, _)) = self.nodes.pop_first()
        {
            self.site.cloud.delete_machines([&node]);
            self.set_ready(&node, None).await;
        }
        if self.services.len() > 3 {
            let ((name, _), api) = (self.services.remove(0), self.services());
            eventually(ANSWER, "the Service is deleted", || async {
                match api.delete(&name, &DeleteParams::default()).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                    other => other.map(|_| ()),
                }
            })
            .await;
        }
    }

    /// Sets the Ready condition; the Node may be gone already when its machine is.
    async fn set_ready(&self, node: &str, ready: Option<bool>) {
        let api = self.nodes();
        let patch = Patch::Strategic(json!({ "status": { "conditions": [ready_condition(ready)] } }));
        eventually(ANSWER, "the Ready condition is set", || async {
            match api.patch_status(node, &PatchParams::default(), &patch).await {
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                other => other.map(|_| ()),
            }
        })
        .await;
    }

    /// A Node whose machine is well is not Ready for a while, or Ready again.
    async fn flap(&self, ready: Option<bool>) {
        if let Some((node, _)) = self.nodes.last_key_value() {
            self.set_ready(node, ready).await;
        }
    }

    async fn turmoil(&mut self, time: Duration) {
        let (start, mut step) = (Instant::now(), 0_u32);
        // On a busy machine the steps of this time may be too few for the first restart.
        while start.elapsed() < time || self.restarts == 0 {
            match step % 10 {
                0 | 1 | 4 => self.add().await,
                2 => self.flap(None).await,
                3 => self.flap(Some(true)).await,
                5 => self.remove().await,
                6 => {
                    self.site.cloud.set_latency(SPIKE);
                    self.spikes += 1;
                }
                // In the middle of a spike.
                7 => self.change().await,
                8 => {}
                _ => self.site.cloud.set_latency(Duration::ZERO),
            }
            if step % 40 == 38 {
                self.site.server.restart().await.unwrap();
                self.restarts += 1;
            }
            step += 1;
            tokio::time::sleep(STEP).await;
        }
        self.site.cloud.set_latency(Duration::ZERO);
        for node in self.nodes.keys() {
            self.set_ready(node, Some(true)).await;
        }
    }

    /// What is not as it should be, if anything. A Node that was deleted although its machine is there can never be made good.
    async fn wrong(&self) -> Result<(), String> {
        let nodes = self.nodes().list(&ListParams::default()).await.map_err(text)?.items;
        let found: BTreeMap<String, String> = nodes
            .iter()
            .map(|node| (node.name_any(), node.uid().unwrap_or_default()))
            .collect();
        if let Some((lost, _)) = self.nodes.iter().find(|(name, (uid, _))| found.get(*name) != Some(uid)) {
            panic!("Node {lost} was deleted although its machine is there");
        }
        equal("Nodes", found.len(), self.nodes.len())?;
        let waiting = nodes.iter().filter(|node| is_uninitialised(node)).count();
        equal("Nodes without initialisation", waiting, 0)?;
        let marked = nodes.iter().filter(|node| cloud_taints(node) > 0).count();
        equal("Nodes that a controller of clouds has tainted", marked, 0)?;
        self.wrong_services().await?;
        self.wrong_routes()
    }

    /// Each Service has the one load balancer that it owns, with its port and all machines, and the address of it in its status.
    async fn wrong_services(&self) -> Result<(), String> {
        let mut services = self.services().list(&ListParams::default()).await.map_err(text)?.items;
        services.retain(|service| service.name_any() != "kubernetes");
        equal("Services", services.len(), self.services.len())?;
        let balancers = self.site.cloud.load_balancers();
        equal("load balancers", balancers.len(), services.len())?;
        let mut machines: Vec<String> = self
            .site
            .cloud
            .machines()
            .into_iter()
            .map(|machine| machine.id)
            .collect();
        machines.sort();
        for service in &services {
            let (name, uid) = (service.name_any(), service.uid());
            let balancer = balancers.iter().find(|balancer| balancer.spec.owner == uid);
            let balancer = balancer.ok_or_else(|| format!("{name} has no load balancer"))?;
            equal(
                &format!("address of {name}"),
                address(service),
                balancer.address.clone(),
            )?;
            let ports: Vec<i32> = balancer.spec.ports.iter().map(|port| port.port.into()).collect();
            let wanted = self.services.iter().find(|(known, _)| *known == name);
            equal(
                &format!("ports of {name}"),
                ports,
                wanted.map(|(_, port)| *port).into_iter().collect(),
            )?;
            let mut targets = balancer.spec.targets.clone();
            targets.sort();
            equal(&format!("targets of {name}"), targets.len(), machines.len())?;
            equal(&format!("targets of {name}"), &targets, &machines)?;
        }
        Ok(())
    }

    /// Each Node has the one route to its own machine.
    fn wrong_routes(&self) -> Result<(), String> {
        let machines: BTreeMap<String, String> = self
            .site
            .cloud
            .machines()
            .into_iter()
            .map(|machine| (machine.id, machine.name))
            .collect();
        let routes = self.site.cloud.routes();
        equal("routes", routes.len(), self.nodes.len())?;
        for route in routes {
            let node = machines.get(&route.spec.machine);
            let wanted = node
                .and_then(|node| self.nodes.get(node))
                .map(|(_, cidr)| cidr.as_str());
            equal(
                &format!("route to {node:?}"),
                Some(route.spec.destination.as_str()),
                wanted,
            )?;
        }
        Ok(())
    }
}

fn equal<T: PartialEq + Debug>(what: &str, found: T, wanted: T) -> Result<(), String> {
    if found == wanted {
        Ok(())
    } else {
        Err(format!("{what}: {found:?} instead of {wanted:?}"))
    }
}

fn text(error: kube::Error) -> String {
    error.to_string()
}

/// Taints of ours and of upstream's cloud controllers. Others are there: the API server gives one to each new Node, and nobody here
/// takes it away.
fn cloud_taints(node: &Node) -> usize {
    let taints = node
        .spec
        .as_ref()
        .and_then(|spec| spec.taints.as_deref())
        .unwrap_or_default();
    let ours = |taint: &&Taint| {
        taint.key.starts_with("node.cloudprovider.kubernetes.io/") || taint.key.starts_with("cloudwit.dev/")
    };
    taints.iter().filter(ours).count()
}

fn address(service: &Service) -> Option<String> {
    let balancer = service.status.as_ref()?.load_balancer.as_ref()?;
    balancer.ingress.as_ref()?.first()?.ip.clone()
}

fn duration() -> Duration {
    let minutes = std::env::var("CLOUDWIT_CHAOS_MINUTES").ok();
    minutes.map_or(TURMOIL, |minutes| {
        Duration::from_secs(60 * minutes.parse::<u64>().expect("a number of minutes"))
    })
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo xtask test --all"]
async fn after_any_turmoil_everything_is_as_it_should_be() {
    let site = Site::new().await.unwrap();
    // Of the errors, some come after the work was done: the answer is lost.
    site.cloud.set_faults([
        Fault::status(500).rate(0.04),
        Fault::new(FaultKind::CutAfter).rate(0.01),
        Fault::slow_down(1).rate(0.05),
    ]);
    let (mut cloudwit, _) = site.start(&FLAGS).unwrap();

    let mut chaos = Chaos {
        site,
        nodes: BTreeMap::new(),
        services: Vec::new(),
        made: 0,
        restarts: 0,
        spikes: 0,
    };
    chaos.turmoil(duration()).await;
    let calm = Instant::now();
    eventually(SETTLE, "everything is as it should be", || chaos.wrong()).await;
    assert_eq!(cloudwit.ended().unwrap(), None, "{}", cloudwit.log_end());
    let counters = chaos.site.cloud.counters();
    let injected: u64 = counters.operations.values().map(|count| count.injected_faults).sum();
    println!(
        "{} Nodes and Services made, {} Nodes and {} Services left, {} restarts of the API server, {} spikes of {SPIKE:?}, \
         {injected} of {} requests failed, settled in {:.1?}",
        chaos.made,
        chaos.nodes.len(),
        chaos.services.len(),
        chaos.restarts,
        chaos.spikes,
        counters.total(),
        calm.elapsed()
    );
    assert!(
        injected > 0 && chaos.restarts > 0 && chaos.spikes > 0,
        "there was no turmoil"
    );
}
