//! How much memory 5,000 Nodes and 1,000 Services take.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cloudwit_sim_cloud::{Machine, NewMachine};
use cloudwit_test_support::eventually;
use k8s_openapi::api::core::v1::{ContainerImage, Node, NodeAddress, NodeCondition};
use kube::api::{DeleteParams, ListParams};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::interval;

use crate::fleet::{Fleet, PATIENCE, Process, each, node};

const FLAGS: [&str; 2] = ["--service-drift-period=2h", "--configure-cloud-routes=false"];

const NODES: usize = 5000;
const SERVICES: usize = 1000;

/// Images that a kubelet reports by default (`nodeStatusMaxImages`).
const IMAGES: usize = 50;

/// Nodes that wait for their initialisation when Cloudwit starts.
const JOINING: usize = 300;

/// What the process may allocate, in MiB. Not what a release build takes, which is much less, but what tells a mistake from none: with
/// the parts of these Nodes that nobody reads (some 25 KiB each, most of it images and managed fields) it would be about 120 MiB more,
/// and with a set of targets for each Service up to 500 MiB more. It had 116 at most; allocators differ.
const MOST: f64 = 160.0;

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Memory of a process that no file backs: what it allocated. The program itself, which is large in a debug build, is not in it.
fn allocated(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kibibytes = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .and_then(|text| text.parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}

/// Remembers the most that a process had.
struct Peak {
    bytes: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Peak {
    fn of(process: &Process) -> Self {
        let (bytes, pid) = (Arc::new(AtomicU64::new(0)), process.child.pid());
        let peak = bytes.clone();
        let task = tokio::spawn(async move {
            let mut looks = interval(Duration::from_millis(100));
            loop {
                looks.tick().await;
                peak.fetch_max(allocated(pid), Ordering::Relaxed);
            }
        });
        Self { bytes, task }
    }

    fn mebibytes(&self) -> f64 {
        mebibytes(self.bytes.load(Ordering::Relaxed))
    }
}

impl Drop for Peak {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// With all that a kubelet tells and no controller reads.
fn large_node(number: usize) -> Node {
    let mut node = node(number).label("topology.example.com/rack", "r17").build();
    let annotations = node.metadata.annotations.get_or_insert_default();
    annotations.insert(
        "csi.volume.kubernetes.io/nodeid".into(),
        format!("{{\"csi.example.com\":\"node-{number}\"}}"),
    );
    annotations.insert(
        "volumes.kubernetes.io/controller-managed-attach-detach".into(),
        "true".into(),
    );
    let status = node.status.get_or_insert_default();
    let image = |image: usize| ContainerImage {
        names: Some(vec![
            format!(
                "registry.example.com/project/image-{image}@sha256:{:064x}",
                image * 7919
            ),
            format!("registry.example.com/project/image-{image}:v1.{image}.{number}"),
        ]),
        size_bytes: Some(123_456_789),
    };
    status.images = Some((0..IMAGES).map(image).collect());
    let quantities =
        json!({ "cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "95Gi", "hugepages-2Mi": "0" });
    status.capacity = serde_json::from_value(quantities.clone()).unwrap();
    status.allocatable = serde_json::from_value(quantities).unwrap();
    let conditions = status.conditions.get_or_insert_default();
    conditions.extend(
        ["MemoryPressure", "DiskPressure", "PIDPressure"].map(|kind| NodeCondition {
            type_: kind.into(),
            status: "False".into(),
            reason: Some("KubeletHasSufficient".into()),
            message: Some("kubelet has sufficient of it available".into()),
            ..NodeCondition::default()
        }),
    );
    node
}

/// The same after its initialisation, so that nobody has to write to it: the machine's id and addresses are there.
fn initialised(mut node: Node, machine: &Machine) -> Node {
    let spec = node.spec.get_or_insert_default();
    spec.provider_id = Some(format!("sim://{}", machine.id));
    spec.taints = None;
    let addresses = node.status.get_or_insert_default().addresses.get_or_insert_default();
    addresses.extend(machine.addresses.iter().map(|address| NodeAddress {
        type_: "InternalIP".into(),
        address: address.ip.clone(),
    }));
    node
}

/// 5,000 Nodes, of which some hundreds join when Cloudwit starts, since writes of so many large objects take a test's time and no
/// memory; 1,000 Services.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo xtask test --all"]
async fn memory_is_bounded_at_5000_nodes_and_1000_services() {
    let fleet = Fleet::new().await;
    let machines = fleet.site.cloud.add_numbered_machines("node", NODES);
    let began = Instant::now();
    let nodes = machines.iter().enumerate().map(|(number, machine)| {
        let node = large_node(number);
        if number < JOINING {
            node
        } else {
            initialised(node, machine)
        }
    });
    let empty = allocated_without_nodes(&fleet).await;
    fleet.add_nodes(nodes).await;
    let process = fleet.start(&FLAGS);
    let peak = Peak::of(&process);
    // Asked for by number: to list that many large Nodes again and again would cost the test more than all else.
    let writes = async |resource: &str| {
        process
            .metrics()
            .await
            .sum("cloudwit_api_writes_total", &[resource, "result=\"ok\""])
    };
    let joined = || async { writes("resource=\"nodes").await >= 2.0 * JOINING as f64 };
    eventually(PATIENCE, "the new Nodes are initialised", joined).await;
    let of_a_node = allocated(process.child.pid()).saturating_sub(empty) / NODES as u64;
    println!("{of_a_node} bytes for each Node");
    fleet.add_services(SERVICES).await;
    let written = || async { writes("resource=\"services").await >= 2.0 * SERVICES as f64 };
    eventually(PATIENCE, "all Services are written to", written).await;
    fleet.services_ready(SERVICES).await;
    assert_eq!(
        writes("resource=\"nodes").await,
        2.0 * JOINING as f64,
        "only to those that join"
    );
    let balancers = fleet.site.cloud.load_balancers();
    assert_eq!(balancers.len(), SERVICES);
    assert!(balancers.iter().all(|balancer| balancer.spec.targets.len() == NODES));
    drop(balancers);
    let idle = mebibytes(allocated(process.child.pid()));
    println!(
        "{NODES} Nodes and {SERVICES} Services after {:.1?}: idle {idle:.1} MiB, peak {:.1} MiB",
        began.elapsed(),
        peak.mebibytes()
    );

    delete_services(&fleet).await;
    delete_nodes(&fleet, &process).await;
    let metrics = process.metrics().await;
    let named: Vec<&String> = metrics
        .0
        .keys()
        .filter(|line| line.contains("node-") && !line.contains("-controller") || line.contains("web-"))
        .collect();
    assert!(named.is_empty(), "metrics of single objects: {named:?}");
    let left = mebibytes(allocated(process.child.pid()));
    println!(
        "all Services and Nodes deleted after {:.1?}: {left:.1} MiB",
        began.elapsed()
    );
    assert!(
        idle > 10.0,
        "{idle:.1} MiB are not what 5,000 Nodes take: is it the right process?"
    );
    assert!(peak.mebibytes() <= MOST, "peak of {:.1} MiB", peak.mebibytes());
}

/// What the process takes in a cluster without Nodes, when the component's code is in the cache.
async fn allocated_without_nodes(fleet: &Fleet) -> u64 {
    fleet.start(&FLAGS).metrics().await;
    let process = fleet.start(&FLAGS);
    process.metrics().await;
    allocated(process.child.pid())
}

/// Deletes all Nodes and waits until the process knows: it has initialised one that came after that.
async fn delete_nodes(fleet: &Fleet, process: &Process) {
    let nodes = fleet.nodes();
    let (all, parameters) = (ListParams::default(), DeleteParams::default());
    drop(nodes.delete_collection(&parameters, &all).await.unwrap());
    eventually(PATIENCE, "all Nodes are gone", || async {
        nodes
            .list_metadata(&all)
            .await
            .map(|list| list.items.is_empty())
            .unwrap_or(false)
    })
    .await;
    fleet
        .site
        .cloud
        .add_machines([NewMachine::named(format!("node-{NODES}"))]);
    fleet.add_nodes([node(NODES).build()]).await;
    fleet.nodes_initialised(1).await;
    eventually(PATIENCE, "nothing is left to do", || async {
        let metrics = process.metrics().await;
        let gauge = "cloudwit_workqueue_unfinished_keys";
        metrics.0.keys().any(|line| line.starts_with(gauge)) && metrics.sum(gauge, &[]) == 0.0
    })
    .await;
}

async fn delete_services(fleet: &Fleet) {
    let (services, parameters) = (fleet.services(), DeleteParams::default());
    let names: Vec<String> = (0..SERVICES).map(|number| format!("web-{number}")).collect();
    let deletions = names.iter().map(|name| services.delete(name, &parameters));
    each(deletions, |deleted| drop(deleted.unwrap())).await;
    fleet.services_ready(0).await;
    assert!(
        fleet.site.cloud.load_balancers().is_empty(),
        "a Service goes after its load balancer"
    );
}
