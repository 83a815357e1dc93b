//! Theme 2: new Nodes stay tainted, or wait minutes, and nobody knows why.

use cloudwit_sim_cloud::{Fault, Operation};
use cloudwit_test_support::NodeBuilder;
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use serde_json::json;

use crate::harness::until;
use crate::stack::*;

const WAITING: &str = "cloudwit.dev/waiting-for-cloud";

fn waits_for(node: &Node) -> Option<&str> {
    node.metadata.annotations.as_ref()?.get(WAITING).map(String::as_str)
}

fn taints(node: &Node) -> Vec<&str> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
    let keys = taints.unwrap_or_default().iter().map(|taint| taint.key.as_str());
    // The API server adds those of the conditions.
    keys.filter(|key| !key.starts_with("node.kubernetes.io/")).collect()
}

async fn join_all(stack: &Stack, names: &[String]) {
    let joins = names.iter().map(|name| stack.joins(name));
    stream::iter(joins).buffer_unordered(16).collect::<Vec<_>>().await;
}

async fn all_initialised(stack: &Stack) -> bool {
    let nodes = stack.alone.nodes().list(&Default::default()).await.unwrap();
    let tainted = |node: &Node| taints(node).iter().any(|key| key.ends_with("/uninitialized"));
    !nodes.iter().any(tainted)
}

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_75285_update_storm_initialises_each_node_once() {
    let stack = Stack::start().await;
    let names: Vec<String> = (0..40).map(|number| format!("storm-{number}")).collect();
    stack.cloud.set_latency(std::time::Duration::from_millis(300));
    let running = stack.run(quick([NODES[0]]));
    join_all(&stack, &names).await;
    for round in 0..5 {
        let label = json!({ "metadata": { "labels": { "round": round.to_string() } } });
        let updates = names.iter().map(|name| stack.patch_node(name, label.clone()));
        stream::iter(updates).buffer_unordered(16).collect::<()>().await;
    }
    until("all are initialised", || all_initialised(&stack)).await;
    // The last Node to be written may have been updated meanwhile; nothing is left to do once the queue is empty.
    until("the queue is empty", || async {
        running.metric("workqueue_unfinished_work_seconds{name=\"Nodes\"}") == 0.0
    })
    .await;
    assert_eq!(writes(&running, "nodes/status", "patch"), 40.0, "addresses, once each");
    assert_eq!(
        writes(&running, "nodes", "patch"),
        40.0,
        "everything else with the taint, once each"
    );
    let asked = running.metric("cloudwit_node_lookup_nodes_total{purpose=\"init\"}");
    assert!(
        asked <= 80.0,
        "the cloud was asked about {asked} Nodes, where 40 had 200 updates"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_75405_later_update_does_not_reinitialise_node() {
    let stack = Stack::start().await;
    stack.joins("once").await;
    let running = stack.run(quick([NODES[0]]));
    until("it is initialised", || stack.is_initialised("once")).await;
    // Counted when the answers are there, which is after others can see what they did.
    let seen = || (lookups(&running, "init", "success"), writes(&running, "nodes", "patch"));
    until("look-up and write are counted", || async { seen() == (1.0, 1.0) }).await;
    for round in 0..20 {
        stack
            .patch_node(
                "once",
                json!({ "metadata": { "labels": { "round": round.to_string() } } }),
            )
            .await;
        stack.set_ready("once", Some(round % 2 == 0)).await;
    }
    // One that comes after them is done, so they are done with too.
    stack.joins("afterwards").await;
    until("the next is initialised", || stack.is_initialised("afterwards")).await;
    until("those of the next are counted, and no others", || async {
        seen() == (2.0, 2.0)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn openstack_540_a_node_that_waits_gives_reason_on_itself() {
    let stack = Stack::start().await;
    stack.joins("silent-540").await;
    stack.cloud.set_faults([Fault::status(503)]);
    let running = stack.run(quick([NODES[0]]));
    let told = stack.told("silent-540", "InitializationFailed").await;
    assert!(
        told.contains("Still waiting for cloud provider \"sim\"") && told.contains("503"),
        "{told}"
    );
    until("the annotation says it too", || async {
        let node = stack.node("silent-540").await.unwrap();
        waits_for(&node).is_some_and(|reason| reason.starts_with("unavailable: ") && reason.contains("503"))
    })
    .await;
    until("the annotation is counted", || async {
        writes(&running, "nodes", "patch") >= 1.0
    })
    .await;
    let before = writes(&running, "nodes", "patch");
    stack.cloud.set_faults([]);
    until("the cloud is back", || stack.is_initialised("silent-540")).await;
    assert_eq!(waits_for(&stack.node("silent-540").await.unwrap()), None);
    stack.joins("next-540").await;
    until("the next one is initialised", || stack.is_initialised("next-540")).await;
    until("it goes in the same write as the taint", || async {
        writes(&running, "nodes", "patch") - before == 2.0
    })
    .await;

    // "Removing the taint by hand helps": then nothing may say any more that the Node waits.
    stack.cloud.set_faults([Fault::status(503)]);
    stack.joins("by-hand-540").await;
    until("the annotation is there", || async {
        waits_for(&stack.node("by-hand-540").await.unwrap()).is_some()
    })
    .await;
    stack
        .patch_node("by-hand-540", json!({ "spec": { "taints": null } }))
        .await;
    until("the annotation is gone", || async {
        waits_for(&stack.node("by-hand-540").await.unwrap()).is_none()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rke2_7822_the_first_node_of_a_fresh_cluster_loses_the_taint() {
    let stack = Stack::start().await;
    // Nothing else runs yet, the network included: the Node is not Ready and carries what keeps everybody else away.
    let running = stack.run(quick(NODES));
    let mut first = NodeBuilder::new("server-0").ready(Some(false)).build();
    let more = json!([{ "key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule" }]);
    let more: Vec<k8s_openapi::api::core::v1::Taint> = serde_json::from_value(more).unwrap();
    first
        .spec
        .get_or_insert_default()
        .taints
        .get_or_insert_default()
        .extend(more);
    stack.machine("server-0");
    stack.alone.nodes().create(&Default::default(), &first).await.unwrap();
    until("the taint is gone", || stack.is_initialised("server-0")).await;
    let node = stack.node("server-0").await.unwrap();
    assert_eq!(taints(&node), ["node-role.kubernetes.io/control-plane"]);
    until("the delay is measured under upstream's name", || async {
        running.metric("node_controller_cloud_provider_taint_removal_delay_seconds_count ") == 1.0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn equinix_metal_531_node_wait_reason_is_visible_without_pod() {
    let stack = Stack::start().await;
    let lonely = NodeBuilder::new("metal-531").ready(Some(false));
    lonely.create(&stack.alone.client).await.unwrap();
    let _running = stack.run(quick(NODES));
    // `kubectl get node -o jsonpath` is enough: no Pod, which the taint would keep away, and no log.
    until("the Node says it", || async {
        let node = stack.node("metal-531").await.unwrap();
        waits_for(&node) == Some("the cloud has no machine that matches this Node's name, system UUID or addresses")
    })
    .await;
    stack.machine("metal-531");
    until("once there is one, it is initialised", || {
        stack.is_initialised("metal-531")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn azure_1700_many_nodes_are_requested_in_few_requests() {
    let stack = Stack::start().await;
    let names: Vec<String> = (0..300).map(|number| format!("many-{number}")).collect();
    join_all(&stack, &names).await;
    let _running = stack.run(quick([NODES[0]]));
    until("all are initialised", || all_initialised(&stack)).await;
    let requests = stack.cloud.counters().total();
    assert!(requests <= 8, "{requests} requests for the initialisation of 300 Nodes");
    assert_eq!(stack.requests(&[Operation::GetInstance]), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn hcloud_611_two_uninitialized_taints_are_distinguished() {
    let stack = Stack::start().await;
    let other = "node.cluster.x-k8s.io/uninitialized";
    let mut both = NodeBuilder::new("both-611").build();
    let taint = json!({ "key": other, "effect": "NoSchedule" });
    let taint = serde_json::from_value(taint).unwrap();
    let taints_of = both.spec.get_or_insert_default().taints.get_or_insert_default();
    taints_of.insert(0, taint);
    stack.machine("both-611");
    stack.alone.nodes().create(&Default::default(), &both).await.unwrap();
    let running = stack.run(quick([NODES[0]]));
    stack.told("both-611", "Synced").await;
    assert_eq!(taints(&stack.node("both-611").await.unwrap()), [other]);
    // Ours is gone for good; the other one is no work for us.
    let asked = lookups(&running, "init", "success");
    stack
        .patch_node("both-611", json!({ "metadata": { "labels": { "a": "b" } } }))
        .await;
    stack.joins("after-611").await;
    until("the next is initialised", || stack.is_initialised("after-611")).await;
    until("one look-up more is counted", || async {
        lookups(&running, "init", "success") == asked + 1.0
    })
    .await;
}
