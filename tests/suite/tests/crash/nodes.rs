//! Nodes: initialised and deleted while the process dies.

use std::time::{Duration, Instant};

use cloudwit_sim_cloud::{NewMachine, Operation};
use cloudwit_test_support::gate::Point;
use cloudwit_test_support::objects::is_uninitialised;
use cloudwit_test_support::scenes::rig::{Rig, SOON};
use cloudwit_test_support::{NodeBuilder, eventually};
use http::Method;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::ListParams;

const INITIALISATION: [&str; 1] = ["--controllers=cloud-node-controller"];

/// How long the cloud has to say that a machine is gone.
const CONFIRM_AFTER: Duration = Duration::from_secs(3);

const DELETION: [&str; 5] = [
    "--controllers=cloud-node-lifecycle-controller",
    "--node-monitor-period=500ms",
    "--node-deletion-confirm-after=3s",
    "--node-deletion-grace-period=0s",
    "--node-deletion-max-percent=100",
];

/// What the controller writes on a Node, without what differs between two Nodes: their names, ids and addresses.
fn written(node: &Node) -> String {
    let (spec, status) = (node.spec.clone().unwrap(), node.status.clone().unwrap());
    let mut labels = node.labels().clone();
    labels.remove("kubernetes.io/hostname");
    let addresses = status.addresses.unwrap_or_default();
    let kinds: Vec<String> = addresses.into_iter().map(|address| address.type_).collect();
    let id = spec.provider_id.map(|id| id.starts_with("sim://"));
    format!("{labels:?} {kinds:?} {id:?} {:?}", spec.taints)
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_at_any_initialisation_step_leaves_consistent_nodes() {
    let mut rig = Rig::new(&INITIALISATION).await.unwrap();
    let machine = |name: &str| NewMachine {
        zone: Some("sim-1a".into()),
        ..NewMachine::named(name)
    };
    let steps = [
        (
            "before-addresses",
            Point::before(Method::PATCH, "/nodes/before-addresses"),
        ),
        (
            "after-addresses",
            Point::after(Method::PATCH, "/nodes/after-addresses/status"),
        ),
        (
            "before-taint",
            Point::before(Method::PATCH, "/nodes/before-taint").with("providerID"),
        ),
        (
            "after-taint",
            Point::after(Method::PATCH, "/nodes/after-taint").with("providerID"),
        ),
        (
            "before-event",
            Point::before(Method::POST, "/events")
                .with("Synced")
                .with("before-event"),
        ),
    ];
    for (name, _) in &steps {
        rig.cloud.add_machines([machine(name)]);
        NodeBuilder::new(name).create(&rig.client).await.unwrap();
    }
    let stops: Vec<_> = steps
        .iter()
        .map(|(_, point)| rig.to_api.stop_at(point.clone()))
        .collect();
    rig.start().unwrap();
    for stop in &stops {
        stop.reached().await;
    }
    rig.cloud.add_machines([machine("asking")]);
    let asking = rig.to_cloud.stop_at(Point::before(Method::GET, "/v1/instances"));
    NodeBuilder::new("asking").create(&rig.client).await.unwrap();
    asking.reached().await;
    rig.kill().unwrap();

    rig.cloud.add_machines([machine("undisturbed")]);
    NodeBuilder::new("undisturbed").create(&rig.client).await.unwrap();
    rig.start().unwrap();
    rig.settled("all are initialised", async || {
        let nodes = rig.nodes().list(&ListParams::default()).await.unwrap();
        match nodes.iter().find(|node| is_uninitialised(node)) {
            Some(node) => Err(node.name_any()),
            None => Ok(()),
        }
    })
    .await;
    let expected = written(&rig.nodes().get("undisturbed").await.unwrap());
    assert!(
        expected.contains("topology.kubernetes.io/zone") && expected.contains("InternalIP"),
        "{expected}"
    );
    for name in steps.iter().map(|(name, _)| *name).chain(["asking"]) {
        let node = rig.nodes().get(name).await.unwrap();
        assert_eq!(written(&node), expected, "{name}");
        let machine = rig
            .cloud
            .machines()
            .into_iter()
            .find(|machine| machine.name == name)
            .unwrap();
        let id = node.spec.unwrap().provider_id.unwrap();
        assert_eq!(id, format!("sim://{}", machine.id), "{name}");
    }
}

fn lookups(rig: &Rig) -> u64 {
    let counters = rig.cloud.counters();
    counters.requests(Operation::ListInstances) + counters.requests(Operation::GetInstance)
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_between_confirmations_does_not_delete_node_early() {
    let mut rig = Rig::new(&DELETION).await.unwrap();
    let machines = rig.cloud.add_numbered_machines("machine", 2);
    for (name, machine) in ["gone", "back"].into_iter().zip(&machines) {
        let node = NodeBuilder::new(name).provider_id(&format!("sim://{}", machine.id));
        node.initialised().ready(None).create(&rig.client).await.unwrap();
    }
    rig.cloud.delete_machines(["machine-0", "machine-1"]);
    // Three processes in a row find the machine gone and die before they may act on it.
    for process in 1..=3 {
        let delete = rig.to_api.stop_at(Point::before(Method::DELETE, "/nodes/"));
        rig.cloud.reset_counters();
        let began = Instant::now();
        rig.start().unwrap();
        eventually(SOON, "the cloud has been asked twice", || async { lookups(&rig) >= 2 }).await;
        let early = delete.count() > 0 && began.elapsed() < CONFIRM_AFTER;
        assert!(!early, "process {process} wants to delete too early");
        rig.kill().unwrap();
    }
    rig.cloud.add_machines([NewMachine {
        id: Some(machines[1].id.clone()),
        ..NewMachine::named("back")
    }]);
    let began = Instant::now();
    // In its last request it dies once more.
    let stop = rig.to_api.stop_at(Point::before(Method::DELETE, "/nodes/gone"));
    rig.start().unwrap();
    stop.reached().await;
    assert!(
        began.elapsed() >= CONFIRM_AFTER,
        "the confirmations of dead processes count"
    );
    rig.kill().unwrap();
    assert!(rig.nodes().get_opt("gone").await.unwrap().is_some());

    let began = Instant::now();
    let stop = rig.to_api.stop_at(Point::after(Method::DELETE, "/nodes/gone"));
    rig.start().unwrap();
    stop.reached().await;
    assert!(began.elapsed() >= CONFIRM_AFTER);
    rig.kill().unwrap();
    assert!(rig.nodes().get_opt("gone").await.unwrap().is_none());

    // A Node of the same name that registers meanwhile has nothing to do with the old one.
    let machine = rig.cloud.add_numbered_machines("machine", 1).remove(0);
    let node = NodeBuilder::new("gone").provider_id(&format!("sim://{}", machine.id));
    node.initialised().ready(None).create(&rig.client).await.unwrap();
    rig.cloud.reset_counters();
    let began = Instant::now();
    rig.start().unwrap();
    eventually(SOON, "it was looked at for longer than a deletion takes", || async {
        lookups(&rig) >= 4 && began.elapsed() > CONFIRM_AFTER * 2
    })
    .await;
    for name in ["gone", "back"] {
        assert!(rig.nodes().get_opt(name).await.unwrap().is_some(), "{name}");
    }
}
