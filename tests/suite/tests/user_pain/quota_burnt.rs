//! Theme 3: API quota burnt. What counts is what the cloud counts: its requests.

use std::ops::Range;
use std::time::{Duration, Instant};

use cloudwit_controllers::{Controller, Options};
use cloudwit_sim_cloud::{Fault, Operation, SimCloudOptions};
use cloudwit_test_support::{NodeBuilder, ServiceBuilder};
use futures::{StreamExt, stream};
use serde_json::json;

use crate::harness::until;
use crate::stack::*;

const INSTANCES: [Operation; 3] = [Operation::ListZones, Operation::ListInstances, Operation::GetInstance];
const BALANCERS: [Operation; 6] = [
    Operation::ListLoadBalancers,
    Operation::GetLoadBalancer,
    Operation::CreateLoadBalancer,
    Operation::UpdateLoadBalancer,
    Operation::UpdateTargets,
    Operation::DeleteLoadBalancer,
];

fn services() -> Options {
    quick([Controller::ServiceLb])
}

/// Routes of a cluster whose full pass is far away.
fn routes() -> Options {
    let mut options = quick([Controller::NodeRoute]);
    options.route.cluster_cidrs = vec!["10.128.0.0/9".parse().unwrap()];
    options.route.reconciliation_period = Duration::from_secs(3600);
    options
}

/// Members of the cluster, Ready and with Pod ranges.
async fn members(stack: &Stack, prefix: &str, numbers: Range<usize>) {
    let create = |number: usize| async move {
        let name = format!("{prefix}-{number}");
        let id = format!("sim://{}", stack.machine(&name));
        let node = NodeBuilder::new(&name).initialised().provider_id(&id).ready(Some(true));
        let cidr = format!("10.{}.{}.0/24", 128 + number / 256, number % 256);
        node.pod_cidr(&cidr).create(&stack.alone.client).await.unwrap();
    };
    stream::iter(numbers.map(create))
        .buffer_unordered(16)
        .collect::<()>()
        .await;
}

async fn create_services(stack: &Stack, prefix: &str, count: usize) {
    let names = (0..count).map(|number| format!("{prefix}-{number}"));
    let create = |name: String| async move { ServiceBuilder::new(&name).create(&stack.alone.client).await.unwrap() };
    stream::iter(names.map(create))
        .buffer_unordered(16)
        .map(drop)
        .collect::<()>()
        .await;
}

/// Whether all Services of type `LoadBalancer` have their address.
async fn all_ready(stack: &Stack) -> bool {
    let services = stack.alone.services().list(&Default::default()).await.unwrap();
    services
        .iter()
        .filter(|service| service.spec.as_ref().unwrap().type_.as_deref() == Some("LoadBalancer"))
        .all(|service| {
            let status = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
            status.is_some_and(|status| status.ingress.is_some())
        })
}

/// Every Node is not Ready, and Ready again.
async fn flap(stack: &Stack, prefix: &str, count: usize) {
    for ready in [false, true] {
        let names: Vec<String> = (0..count).map(|number| format!("{prefix}-{number}")).collect();
        let flaps = names.iter().map(|name| stack.set_ready(name, Some(ready)));
        stream::iter(flaps).buffer_unordered(16).collect::<()>().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hcloud_661_a_node_that_changes_all_the_time_costs_no_request() {
    let stack = Stack::start().await;
    members(&stack, "busy", 0..3).await;
    let running = stack.run(quick(NODES));
    until("the first refresh is over", || async {
        lookups(&running, "refresh", "success") == 1.0
    })
    .await;
    stack.cloud.reset_counters();
    for round in 0..100 {
        let change = json!({ "metadata": { "labels": { "round": round.to_string() }, "annotations": { "a": round.to_string() } } });
        stack.patch_node(&format!("busy-{}", round % 3), change).await;
    }
    stack.joins("marker-661").await;
    until("a Node that came later is initialised", || {
        stack.is_initialised("marker-661")
    })
    .await;
    let asked = stack.cloud.counters();
    // Until its kubelet says that it is Ready, each of the lifecycle's ticks asks about the newcomer; one may be on its way.
    let ticks = lookups(&running, LIFECYCLE, "success");
    assert!(
        u32::try_from(asked.total()).map(f64::from).unwrap() <= ticks + 2.0,
        "{asked:?} and {ticks} look-ups of the lifecycle, though only the newcomer is worth asking"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn hcloud_308_routes_are_listed_once_for_all_nodes() {
    let stack = Stack::start().await;
    members(&stack, "routed", 0..30).await;
    let running = stack.run(routes());
    until("all routes are there", || async { stack.cloud.routes().len() == 30 }).await;
    let asked = || [Operation::ListRoutes, Operation::ChangeRoutes].map(|operation| stack.requests(&[operation]));
    assert!(asked()[0] <= 2 && asked()[1] <= 2, "lists and changes: {:?}", asked());
    stack.cloud.reset_counters();
    flap(&stack, "routed", 30).await;
    members(&stack, "newcomer", 30..31).await;
    until("the new one has its route", || async {
        stack.cloud.routes().len() == 31
    })
    .await;
    assert_eq!(
        asked(),
        [1, 1],
        "sixty updates cost nothing, a new Node one list and one change"
    );
    running.stop().await;

    // In the steady state a pass is one list, whatever the number of Nodes, and they become rarer.
    stack.cloud.reset_counters();
    let mut options = routes();
    options.route.reconciliation_period = Duration::from_millis(200);
    let _running = stack.run(options);
    until("four passes", || async { asked()[0] >= 4 }).await;
    assert_eq!(asked()[1], 0, "nothing is written that is right");
}

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_25610_no_machine_lookups_per_service() {
    let stack = Stack::start().await;
    members(&stack, "node-25610", 0..5).await;
    create_services(&stack, "web-25610", 10).await;
    let running = stack.run(services());
    until("all are ready", || all_ready(&stack)).await;
    stack.cloud.reset_counters();
    stack.member("node-25610-new", Some(true)).await;
    until("all have the new Node", || async {
        stack
            .cloud
            .load_balancers()
            .iter()
            .all(|balancer| balancer.spec.targets.len() == 6)
    })
    .await;
    assert_eq!(stack.requests(&INSTANCES), 0);
    assert_eq!(stack.requests(&[Operation::UpdateTargets]), 10);
    running.stop().await;
    stack.cloud.reset_counters();
    let _running = stack.run(services());
    until("all were looked at", || async {
        stack.requests(&[Operation::ListLoadBalancers]) >= 10
    })
    .await;
    create_services(&stack, "marker-25610", 1).await;
    until("the next is ready", || all_ready(&stack)).await;
    assert_eq!(stack.requests(&INSTANCES), 0);
    let found = stack.requests(&BALANCERS) - stack.requests(&[Operation::CreateLoadBalancer]);
    assert_eq!(
        found, 11,
        "a restart finds each load balancer with one request, and another sees that there is none for the new one"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_111539_flapping_nodes_touch_no_load_balancer() {
    let stack = Stack::start().await;
    members(&stack, "flaps", 0..30).await;
    create_services(&stack, "web-111539", 20).await;
    let _running = stack.run(services());
    until("all are ready", || all_ready(&stack)).await;
    stack.cloud.reset_counters();
    flap(&stack, "flaps", 30).await;
    // A Node that comes after all this is the only reason to call.
    stack.member("joins-111539", Some(true)).await;
    until("it is in all of them", || async {
        let balancers = stack.cloud.load_balancers();
        balancers.iter().all(|balancer| balancer.spec.targets.len() == 31)
    })
    .await;
    assert_eq!(
        stack.requests(&[Operation::UpdateTargets]),
        20,
        "each is given its targets, once"
    );
    let lists = stack.requests(&[Operation::ListLoadBalancers]);
    assert!(
        (1..=10).contains(&lists),
        "{lists} lists, though many are found together"
    );
    assert_eq!(stack.requests(&BALANCERS), 20 + lists);
}

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_26119_routes_are_batched_and_retried_early() {
    let stack = Stack::start().await;
    members(&stack, "many-26119", 0..200).await;
    let fault = Fault::status(503).on(Operation::ChangeRoutes).times(2);
    stack.cloud.set_faults([fault]);
    let _running = stack.run(routes());
    until("all routes are there, an hour before the next pass", || async {
        stack.cloud.routes().len() == 200
    })
    .await;
    let changes = stack.requests(&[Operation::ChangeRoutes]);
    assert!(
        (3..=8).contains(&changes),
        "{changes} requests for 200 routes, two of which failed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn azure_5904_many_load_balancers_converge_within_the_budget() {
    let (rate, burst) = (40.0, 10);
    let stack = Stack::with(SimCloudOptions::default(), TOKEN, |grants| {
        grants.http[0].requests_per_second = Some(rate);
        grants.http[0].burst = Some(burst);
    })
    .await;
    members(&stack, "node-5904", 0..3).await;
    create_services(&stack, "web-5904", 120).await;
    let mut options = services();
    options.service.concurrent_syncs = 10;
    let began = Instant::now();
    let _running = stack.run(options);
    until("all are ready", || all_ready(&stack)).await;
    let most = began.elapsed().as_secs_f64() * rate + f64::from(burst);
    let requests = stack.cloud.counters().total();
    assert_eq!(requests, 240, "a search and a creation for each, nothing twice");
    assert!(requests as f64 <= most, "{requests} requests where {most} were allowed");
    let failed = stack.events("web-5904-119").await;
    assert!(
        !failed.iter().any(|event| event.starts_with("SyncLoadBalancerFailed")),
        "{failed:?}"
    );
    assert_eq!(stack.cloud.load_balancers().len(), 120);
}
