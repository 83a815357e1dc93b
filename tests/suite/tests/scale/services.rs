//! Services by the hundred, and Nodes that come and go under them.

use std::time::{Duration, Instant};

use cloudwit_sim_cloud::{Counters, Operation};
use cloudwit_test_support::eventually;
use cloudwit_test_support::objects::ready_condition;
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};

use crate::fleet::{Fleet, PATIENCE, Process, node};

const NODES: usize = 200;
const SERVICES: usize = 500;

/// Nodes whose kubelet comes and goes, for how long, and how often they change.
const FLAPPING: usize = 50;
const FLAPPING_TIME: Duration = Duration::from_secs(60);
const FLAP: Duration = Duration::from_secs(1);

/// A pass of the lifecycle controller, by default; it asks about all Nodes that are not Ready in one request.
const MONITOR_PERIOD: f64 = 5.0;

/// The looks for drift are there, and none of them falls into the test.
const FLAGS: [&str; 1] = ["--service-drift-period=2h"];

/// The requests that are about load balancers.
const BALANCER_OPERATIONS: [Operation; 6] = [
    Operation::ListLoadBalancers,
    Operation::GetLoadBalancer,
    Operation::CreateLoadBalancer,
    Operation::UpdateLoadBalancer,
    Operation::UpdateTargets,
    Operation::DeleteLoadBalancer,
];

fn balancer_requests(counters: &Counters) -> u64 {
    BALANCER_OPERATIONS
        .iter()
        .map(|operation| counters.requests(*operation))
        .sum()
}

/// What the process has cost so far.
#[derive(Debug, Clone, PartialEq)]
struct Cost {
    balancer_requests: u64,
    route_changes: u64,
    node_writes: f64,
    service_writes: f64,
    initialisations: f64,
}

async fn cost(fleet: &Fleet, process: &Process) -> Cost {
    let (counters, metrics) = (fleet.site.cloud.counters(), process.metrics().await);
    Cost {
        balancer_requests: balancer_requests(&counters),
        route_changes: counters.requests(Operation::ChangeRoutes),
        node_writes: metrics.sum("cloudwit_api_writes_total", &["resource=\"nodes"]),
        service_writes: metrics.sum("cloudwit_api_writes_total", &["resource=\"services"]),
        initialisations: metrics.sum("cloudwit_node_lookups_total", &["purpose=\"init\""]),
    }
}

/// Kubelets fall silent and come back, once a second, and are well in the end. Gives the number of changes.
async fn flap(fleet: &Fleet) -> usize {
    let (start, mut clock, mut changes) = (Instant::now(), interval(FLAP), 0);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for ready in [Some(false), Some(true), None, Some(true)].into_iter().cycle() {
        clock.tick().await;
        fleet
            .patch_nodes(
                0..FLAPPING,
                json!({ "status": { "conditions": [ready_condition(ready)] } }),
            )
            .await;
        changes += FLAPPING;
        if ready == Some(true) && start.elapsed() >= FLAPPING_TIME {
            return changes;
        }
    }
    changes
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo xtask test --all"]
async fn five_hundred_services_ignore_a_minute_of_flapping_nodes() {
    let fleet = Fleet::new().await;
    fleet.site.cloud.add_numbered_machines("node", NODES);
    fleet.add_nodes((0..NODES).map(|number| node(number).build())).await;
    let process = fleet.start(&FLAGS);
    fleet.nodes_initialised(NODES).await;
    let routes = || async { fleet.site.cloud.routes().len() == NODES };
    eventually(PATIENCE, "all Nodes have routes", routes).await;
    eventually(PATIENCE, "each Node knows of its route", || knows_its_route(&fleet)).await;

    services_become_ready(&fleet, &process).await;
    flapping_costs_nothing(&fleet, &process).await;
    a_real_change_costs_one_update_for_each_service(&fleet, &process).await;
}

/// Whether nothing is left to write to any Node.
async fn knows_its_route(fleet: &Fleet) -> Result<(), String> {
    let nodes = fleet.nodes().list(&ListParams::default()).await;
    let nodes = nodes.map_err(|error| error.to_string())?;
    let waits = nodes.iter().find(|node| {
        let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
        !conditions
            .into_iter()
            .flatten()
            .any(|one| one.type_ == "NetworkUnavailable" && one.status == "False")
    });
    waits.map_or(Ok(()), |node| Err(node.name_any()))
}

async fn services_become_ready(fleet: &Fleet, process: &Process) {
    fleet.site.cloud.reset_counters();
    let began = Instant::now();
    fleet.add_services(SERVICES).await;
    fleet.services_ready(SERVICES).await;
    let time = began.elapsed();
    // A write counts when its answer is there, which is after others can see it.
    eventually(PATIENCE, "all writes are counted", || async {
        cost(fleet, process).await.service_writes >= 2.0 * SERVICES as f64
    })
    .await;
    let cost = cost(fleet, process).await;
    let balancers = fleet.site.cloud.load_balancers();
    assert_eq!(balancers.len(), SERVICES);
    assert!(balancers.iter().all(|balancer| balancer.spec.targets.len() == NODES));
    let counters = fleet.site.cloud.counters();
    assert_eq!(counters.requests(Operation::CreateLoadBalancer), SERVICES as u64);
    assert_eq!(counters.requests(Operation::UpdateTargets), 0);
    assert_eq!(
        cost.service_writes,
        2.0 * SERVICES as f64,
        "finalizer and status of each"
    );
    let used = xtask::run::process::usage(process.child.pid()).unwrap();
    println!(
        "{SERVICES} Services with {NODES} Nodes ready in {time:.1?}: {} cloud requests, {} writes to Services, \
         {:.1} CPU seconds, peak {:.1} MiB (debug build)",
        cost.balancer_requests,
        cost.service_writes,
        used.cpu_seconds,
        used.peak_memory as f64 / f64::from(1 << 20)
    );
}

async fn flapping_costs_nothing(fleet: &Fleet, process: &Process) {
    let before = cost(fleet, process).await;
    let (lookups, began) = (
        fleet.site.cloud.counters().requests(Operation::ListInstances),
        Instant::now(),
    );
    let changes = flap(fleet).await;
    let lookups = fleet.site.cloud.counters().requests(Operation::ListInstances) - lookups;
    assert_eq!(cost(fleet, process).await, before, "after {changes} changes");
    let passes = began.elapsed().as_secs_f64() / MONITOR_PERIOD + 2.0;
    assert!(
        (1.0..=passes).contains(&(lookups as f64)),
        "{lookups} look-ups in {passes} passes"
    );
    println!(
        "{changes} changes of {FLAPPING} Nodes in {:.1?}: 0 requests about load balancers, {lookups} look-ups",
        began.elapsed()
    );
}

/// So that the nought above is no accident: the same Nodes, a change that matters.
async fn a_real_change_costs_one_update_for_each_service(fleet: &Fleet, process: &Process) {
    let before = cost(fleet, process).await;
    fleet.site.cloud.reset_counters();
    let exclude =
        json!({ "metadata": { "labels": { "node.kubernetes.io/exclude-from-external-load-balancers": "" } } });
    fleet.patch_nodes(0..1, exclude).await;
    eventually(PATIENCE, "all load balancers have one Node less", || async {
        let balancers = fleet.site.cloud.load_balancers();
        balancers
            .iter()
            .all(|balancer| balancer.spec.targets.len() == NODES - 1)
    })
    .await;
    let updates = || async {
        process
            .metrics()
            .await
            .sum("service_controller_loadbalancer_sync_total", &[])
    };
    eventually(PATIENCE, "all updates are counted", || async {
        updates().await >= SERVICES as f64
    })
    .await;
    assert_eq!(updates().await, SERVICES as f64);
    let counters = fleet.site.cloud.counters();
    for operation in BALANCER_OPERATIONS
        .into_iter()
        .filter(|operation| *operation != Operation::ListLoadBalancers)
    {
        let expected = if operation == Operation::UpdateTargets {
            SERVICES as u64
        } else {
            0
        };
        assert_eq!(counters.requests(operation), expected, "{operation}");
    }
    assert_eq!(
        cost(fleet, process).await.service_writes,
        before.service_writes,
        "nothing of it is on the Services"
    );
}
