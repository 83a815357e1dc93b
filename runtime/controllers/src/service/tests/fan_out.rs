//! How often, and how soon, load balancers get Nodes that come and go.

use std::collections::HashMap;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::stage::{Stage, balancer};
use crate::service::*;

/// From one pass to the next, as `service::targets::debounce` has it.
const WINDOW: Duration = Duration::from_millis(750);

/// A pass after quiet comes this soon, and so do its calls where the cloud answers at once.
const SOON: Duration = Duration::from_millis(25);

/// So many load balancers that are ready and have one node.
async fn ready(balancers: usize, workers: usize) -> Stage {
    let services = (0..balancers).map(|index| balancer(&format!("s{index}"))).collect();
    let stage = Stage::new(services, 1, workers, true);
    stage
        .until("all are ready", |stage| {
            stage.count("ensure") == balancers && stage.controller.queue.is_empty()
        })
        .await;
    stage
}

fn node(name: &str, version: usize, spec: Value, labels: Value) -> Node {
    let metadata = json!({ "name": name, "uid": name, "resourceVersion": version.to_string(), "labels": labels });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
}

fn plain(name: &str) -> Node {
    node(name, 1, json!({}), json!({}))
}

impl Stage {
    /// They come, or are as they are now.
    fn see_nodes(&self, nodes: impl IntoIterator<Item = Node>) {
        let mut all = lock(&self.nodes);
        for node in nodes {
            all.retain(|old| old.metadata.name != node.metadata.name);
            all.push(node);
        }
        self.controller.context.nodes.fill(all.clone());
    }

    /// Since the start of the cloud.
    fn clock(&self) -> Duration {
        self.cloud.began.elapsed()
    }

    fn given(&self) -> Vec<usize> {
        self.cloud.calls("update").iter().map(|call| call.targets).collect()
    }

    /// The most updates of one load balancer, and how many have so many targets now.
    fn updates_of_each(&self, targets: usize) -> (usize, usize) {
        let mut of_each: HashMap<String, Vec<usize>> = HashMap::new();
        for call in self.cloud.calls("update") {
            of_each.entry(call.service).or_default().push(call.targets);
        }
        let most = of_each.values().map(Vec::len).max().unwrap_or_default();
        let whole = of_each.values().filter(|given| given.last() == Some(&targets));
        (most, whole.count())
    }
}

#[tokio::test(start_paused = true)]
async fn first_change_after_quiet_reaches_all_balancers_at_once() {
    let out = |labels, taints: Value| node("n0", 2, json!({ "taints": taints }), labels);
    let excluded = out(
        json!({ "node.kubernetes.io/exclude-from-external-load-balancers": "" }),
        json!([]),
    );
    let leaving = out(
        json!({}),
        json!([{ "key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule" }]),
    );
    for (changed, targets) in [
        (Some(plain("n1")), 2),
        (Some(excluded), 0),
        (Some(leaving), 0),
        (None, 0),
    ] {
        let stage = ready(20, 1).await;
        sleep(Duration::from_secs(3600)).await;
        let began = stage.clock();
        match changed {
            Some(node) => stage.see_nodes([node]),
            None => stage.set_nodes(0),
        }
        stage.until("all were told", |stage| stage.count("update") == 20).await;
        let calls = stage.cloud.calls("update");
        assert!(calls.iter().all(|call| call.targets == targets), "{calls:?}");
        let last = calls.iter().map(|call| call.at).max().unwrap();
        assert!(last - began < SOON, "{:?}", last - began);
        sleep(Duration::from_secs(60)).await;
        assert_eq!(stage.count("update"), 20, "and nothing follows");
    }
}

#[tokio::test(start_paused = true)]
async fn ten_nodes_that_come_one_after_the_other_are_two_rounds() {
    let stage = ready(200, 10).await;
    let began = stage.clock();
    for number in 0..10 {
        stage.see_nodes([plain(&format!("late-{number}"))]);
        sleep(Duration::from_millis(50)).await;
    }
    sleep(Duration::from_secs(10)).await;
    let (first, second) = (vec![2; 200], vec![11; 200]);
    assert_eq!(stage.given(), [first, second].concat());
    let last = stage.cloud.calls("update").last().unwrap().at;
    assert!(last - began < WINDOW + SOON, "{:?}", last - began);
}

#[tokio::test(start_paused = true)]
async fn flapping_node_costs_at_most_one_call_per_window() {
    let stage = ready(1, 1).await;
    for turn in 0..200 {
        stage.set_nodes(if turn % 2 == 0 { 2 } else { 1 });
        sleep(Duration::from_millis(300)).await;
    }
    sleep(Duration::from_secs(10)).await;
    let pauses = stage.cloud.pauses("update");
    let window = WINDOW.as_secs_f64();
    assert!(pauses.iter().all(|pause| *pause > window - 0.001), "{pauses:?}");
    assert!((20..=81).contains(&stage.count("update")), "{}", stage.count("update"));
    assert_eq!(stage.given().last(), Some(&1), "it ended without");
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_taken_back_before_the_pass_costs_no_call() {
    let stage = ready(3, 1).await;
    stage.set_nodes(2);
    sleep(Duration::from_millis(10)).await;
    stage.set_nodes(1);
    sleep(Duration::from_secs(10)).await;
    assert!(stage.given().is_empty(), "back at once");
    stage.set_nodes(2);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(stage.given(), [2, 2, 2]);
    stage.set_nodes(3);
    sleep(Duration::from_millis(100)).await;
    stage.set_nodes(2);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(stage.given(), [2, 2, 2], "back within the window");
}

/// Nodes come while load balancers are told of others: those that are at work then get them with all others, in the next pass.
#[tokio::test(start_paused = true)]
async fn thousand_new_nodes_cost_each_balancer_one_call_per_window() {
    for workers in [1, 10, 40] {
        let stage = ready(40, workers).await;
        *lock(&stage.cloud.takes) = Duration::from_millis(60);
        for batch in 0..200 {
            stage.see_nodes((0..5).map(|number| plain(&format!("late-{batch}-{number}"))));
            sleep(Duration::from_millis(25)).await;
        }
        stage
            .until("all have all", |stage| stage.updates_of_each(1001).1 == 40)
            .await;
        sleep(Duration::from_secs(10)).await;
        let (most, whole) = stage.updates_of_each(1001);
        // Passes at 0.02, 0.77, ... 4.52 and 5.27 s.
        assert!(most <= 8, "{most} with {workers} workers");
        assert_eq!(whole, 40);
    }
}

#[tokio::test(start_paused = true)]
async fn update_longer_than_window_is_followed_by_current_nodes() {
    let stage = ready(1, 4).await;
    *lock(&stage.cloud.takes) = Duration::from_secs(3);
    for count in 2..=21 {
        stage.set_nodes(count);
        sleep(Duration::from_millis(500)).await;
    }
    sleep(Duration::from_secs(60)).await;
    let pauses = stage.cloud.pauses("update");
    assert!(
        pauses.iter().all(|pause| *pause > 2.999),
        "never two at once: {pauses:?}"
    );
    let given = stage.given();
    assert!(given.len() <= 5, "{given:?}");
    assert!(given.is_sorted() && given.last() == Some(&21), "{given:?}");
}

#[tokio::test(start_paused = true)]
async fn node_waiting_for_cloud_is_one_round_once_initialised() {
    let taint = json!([{ "key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule" }]);
    let waiting = |name: &str| node(name, 1, json!({ "taints": taint }), json!({}));
    let stage = ready(5, 1).await;
    let began = stage.clock();
    stage.see_nodes([waiting("quick")]);
    sleep(Duration::from_millis(300)).await;
    assert!(stage.given().is_empty());
    stage.see_nodes([node("quick", 2, json!({ "providerID": "x://1" }), json!({}))]);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(stage.given(), [2; 5]);
    let last = stage.cloud.calls("update").last().unwrap().at - began;
    assert!(last < Duration::from_millis(300) + SOON, "{last:?}");

    // As upstream: who is not initialised gets traffic too.
    stage.see_nodes([waiting("slow")]);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(stage.given()[5..], [3; 5]);
}

#[tokio::test(start_paused = true)]
async fn the_nodes_and_services_of_the_start_are_no_change() {
    let stage = ready(20, 1).await;
    sleep(Duration::from_secs(60)).await;
    assert!(stage.given().is_empty());
    let controller = &stage.controller;
    assert_eq!(controller.targets.last_pass().pass, 0, "there was no pass");
    assert!(controller.node_queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn changes_of_nodes_lead_to_nothing_where_another_replica_leads() {
    let stage = Stage::new(vec![balancer("web")], 1, 1, false);
    for count in 2..10 {
        stage.set_nodes(count);
        sleep(Duration::from_millis(500)).await;
    }
    sleep(Duration::from_secs(10)).await;
    assert_eq!(*lock(&stage.cloud.calls), []);
    let controller = &stage.controller;
    assert_eq!(
        (controller.targets.walked(), controller.targets.last_pass().pass),
        (0, 0)
    );
}
