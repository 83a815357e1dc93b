//! The route controller on the real kube-apiserver, with a cloud in memory that can be scripted.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::time::Duration;

use cloudwit_controllers::{Controller, Options};
use cloudwit_suite::common::fake_routes;
use cloudwit_suite::common::harness;
use cloudwit_test_support::{NodeBuilder, eventually};
use fake_routes::FakeRoutes;
use harness::{Alone, Running, SOON, alone, until};
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

fn run(alone: &Alone, cloud: &Arc<FakeRoutes>) -> Running {
    run_every(alone, cloud, Duration::from_millis(500))
}

fn run_every(alone: &Alone, cloud: &Arc<FakeRoutes>, period: Duration) -> Running {
    let mut options = Options::default();
    options.route.cluster_cidrs = vec!["10.120.0.0/16".parse().unwrap(), "fd00:120::/32".parse().unwrap()];
    options.route.reconciliation_period = period;
    alone.run(Controller::NodeRoute, cloud.clone(), options)
}

async fn node(alone: &Alone, name: &str, range: &str) {
    NodeBuilder::new(name)
        .initialised()
        .pod_cidr(range)
        .create(&alone.client)
        .await
        .unwrap();
    cached(alone, name).await;
}

/// Waits until the API server's cache of Nodes, which a controller begins with, has this one: it lags behind their creation.
async fn cached(alone: &Alone, name: &str) {
    until("the Node is in the cache", || async {
        let nodes = alone.nodes().list(&ListParams::default().match_any()).await.unwrap();
        nodes.iter().any(|node| node.name_any() == name)
    })
    .await;
}

/// Status, reason and the time of the last transition of `NetworkUnavailable`.
async fn condition(alone: &Alone, name: &str) -> Option<(String, String, String)> {
    let node = alone.nodes().get(name).await.unwrap();
    let conditions = node.status?.conditions?;
    let found = conditions
        .into_iter()
        .find(|condition| condition.type_ == "NetworkUnavailable")?;
    Some((found.status, found.reason?, found.last_transition_time?.0.to_string()))
}

async fn is(alone: &Alone, name: &str, status: &str, reason: &str) -> bool {
    condition(alone, name)
        .await
        .is_some_and(|found| (found.0.as_str(), found.1.as_str()) == (status, reason))
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_with_pod_ranges_get_routes_and_conditions_in_one_call() {
    let alone = alone().await;
    let cloud = Arc::new(FakeRoutes::default());
    let mut dual = NodeBuilder::new("node-1")
        .initialised()
        .pod_cidr("10.120.1.0/24")
        .build();
    dual.spec.as_mut().unwrap().pod_cidrs = Some(vec!["10.120.1.0/24".into(), "fd00:120:0:1::/64".into()]);
    alone.nodes().create(&PostParams::default(), &dual).await.unwrap();
    cached(&alone, "node-1").await;
    node(&alone, "node-2", "10.120.2.0/24").await;
    NodeBuilder::new("node-3")
        .initialised()
        .create(&alone.client)
        .await
        .unwrap();
    let running = run(&alone, &cloud);
    until("both have their routes", || async {
        is(&alone, "node-1", "False", "RouteCreated").await && is(&alone, "node-2", "False", "RouteCreated").await
    })
    .await;
    let routes = [
        "node-1 10.120.1.0/24",
        "node-1 fd00:120:0:1::/64",
        "node-2 10.120.2.0/24",
    ];
    assert_eq!(cloud.routes(), routes);
    assert_eq!(cloud.applies().len(), 1, "one call for all");
    assert_eq!(
        condition(&alone, "node-3").await,
        None,
        "without a range it is none of our business"
    );
    let changed = r#"route_controller_route_sync_total{outcome="changed",trigger="periodic"}"#;
    until("the pass is counted", || async { running.metric(changed) == 1.0 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_gets_route_only_after_initialisation() {
    let alone = alone().await;
    let cloud = Arc::new(FakeRoutes::default());
    let joining = NodeBuilder::new("joining").pod_cidr("10.120.1.0/24");
    joining.create(&alone.client).await.unwrap();
    node(&alone, "node-2", "10.120.2.0/24").await;
    let _running = run(&alone, &cloud);
    until("the other one has its route", || {
        is(&alone, "node-2", "False", "RouteCreated")
    })
    .await;
    assert_eq!(cloud.routes(), ["node-2 10.120.2.0/24"]);
    assert_eq!(condition(&alone, "joining").await, None);
    assert_eq!(alone.event_reasons("joining").await, Vec::<String>::new());
    let initialised = Patch::Merge(json!({ "spec": { "taints": null } }));
    alone
        .nodes()
        .patch("joining", &PatchParams::default(), &initialised)
        .await
        .unwrap();
    until("it has its route", || is(&alone, "joining", "False", "RouteCreated")).await;
    assert_eq!(cloud.routes(), ["joining 10.120.1.0/24", "node-2 10.120.2.0/24"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_come_and_go_and_change_their_machine_are_followed() {
    let alone = alone().await;
    let cloud = Arc::new(FakeRoutes::default());
    let running = run_every(&alone, &cloud, Duration::from_secs(3600));
    until("the first look found nothing", || async { cloud.lists() == 1 }).await;
    node(&alone, "node-1", "10.120.1.0/24").await;
    until("it has its route", || is(&alone, "node-1", "False", "RouteCreated")).await;
    alone.nodes().delete("node-1", &DeleteParams::default()).await.unwrap();
    node(&alone, "node-2", "10.120.1.0/24").await;
    until("the range has moved", || async {
        cloud.routes() == ["node-2 10.120.1.0/24"]
    })
    .await;
    until("the condition follows", || {
        is(&alone, "node-2", "False", "RouteCreated")
    })
    .await;
    alone.nodes().delete("node-2", &DeleteParams::default()).await.unwrap();
    until("the last route is gone", || async { cloud.routes().is_empty() }).await;
    assert!(running.metric(r#"route_controller_route_sync_total{outcome="changed",trigger="node_change"}"#) >= 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_routes_stay_and_blackholes_are_replaced_at_once() {
    let alone = alone().await;
    let cloud = Arc::new(FakeRoutes::default());
    cloud.add(None, "10.7.0.0/24", false);
    cloud.add(None, "10.0.0.0/8", true);
    cloud.add(Some("node-1"), "10.120.1.0/24", true);
    cloud.add(Some("gone"), "10.120.9.0/24", false);
    node(&alone, "node-1", "10.120.1.0/24").await;
    let _running = run(&alone, &cloud);
    until("it has its route", || is(&alone, "node-1", "False", "RouteCreated")).await;
    assert_eq!(
        cloud.routes(),
        ["- 10.0.0.0/8", "- 10.7.0.0/24", "node-1 10.120.1.0/24"]
    );
    assert_eq!(cloud.applies().len(), 1, "delete and create travel together");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_route_is_reported_and_tried_again_alone() {
    let alone = alone().await;
    let cloud = Arc::new(FakeRoutes::default());
    // Twice, so that the failure lasts for 15 s and is seen on a busy machine too.
    cloud.fail("10.120.1.0/24", 2);
    node(&alone, "node-1", "10.120.1.0/24").await;
    node(&alone, "node-2", "10.120.2.0/24").await;
    let running = run(&alone, &cloud);
    let failed_at = eventually(SOON, "one failed", || async {
        let found = condition(&alone, "node-1").await;
        found.filter(|found| (found.0.as_str(), found.1.as_str()) == ("True", "NoRouteCreated"))
    })
    .await
    .2;
    until("one did not", || is(&alone, "node-2", "False", "RouteCreated")).await;
    until("the Event tells", || async {
        alone
            .event_reasons("node-1")
            .await
            .contains(&"FailedToCreateRoute".into())
    })
    .await;
    until("it is tried again", || is(&alone, "node-1", "False", "RouteCreated")).await;
    let creations: Vec<Vec<String>> = cloud.applies().into_iter().map(|(created, _)| created).collect();
    assert_eq!(
        creations.last(),
        Some(&vec!["10.120.1.0/24".to_owned()]),
        "{creations:?}"
    );
    let mut all = creations.concat();
    all.sort();
    let expected = ["10.120.1.0/24"; 3].into_iter().chain(["10.120.2.0/24"]);
    assert!(all.iter().map(String::as_str).eq(expected), "{creations:?}");
    assert_ne!(
        condition(&alone, "node-1").await.unwrap().2,
        failed_at,
        "the status has flipped"
    );
    // Where a pass and the retry are due at the same time, either may be the first.
    let counted = |outcome: &str| -> f64 {
        let triggers = ["periodic", "node_change", "retry"].into_iter();
        let lines = triggers
            .map(|trigger| format!(r#"route_controller_route_sync_total{{outcome="{outcome}",trigger="{trigger}"}}"#));
        lines.map(|line| running.metric(&line)).sum()
    };
    until("each try is counted", || async {
        (counted("error"), counted("changed")) == (2.0, 1.0)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_condition_is_replaced_keeping_transition_time() {
    let alone = alone().await;
    let cloud = Arc::new(FakeRoutes::default());
    node(&alone, "node-1", "10.120.1.0/24").await;
    let _running = run(&alone, &cloud);
    until("it has its route", || is(&alone, "node-1", "False", "RouteCreated")).await;
    let other = json!({ "status": { "conditions": [{
        "type": "NetworkUnavailable", "status": "False", "reason": "CalicoIsUp", "lastTransitionTime": "2020-01-02T03:04:05Z",
    }] } });
    alone
        .nodes()
        .patch_status("node-1", &PatchParams::default(), &Patch::Strategic(other))
        .await
        .unwrap();
    until("our reason is back", || is(&alone, "node-1", "False", "RouteCreated")).await;
    assert_eq!(condition(&alone, "node-1").await.unwrap().2, "2020-01-02T03:04:05Z");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_outside_of_the_cluster_gets_no_route_but_an_event() {
    let alone = alone().await;
    let cloud = Arc::new(FakeRoutes::default());
    node(&alone, "node-1", "10.99.0.0/24").await;
    let _running = run(&alone, &cloud);
    until("the condition says so", || {
        is(&alone, "node-1", "True", "NoRouteCreated")
    })
    .await;
    until("the Event tells", || async {
        alone
            .event_reasons("node-1")
            .await
            .contains(&"FailedToCreateRoute".into())
    })
    .await;
    assert_eq!(cloud.applies(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_fails_changes_nothing_and_is_tried_again() {
    let alone = alone().await;
    let cloud = Arc::new(FakeRoutes::default());
    cloud.fail_lists(1);
    cloud.add(Some("node-1"), "10.120.9.0/24", false);
    node(&alone, "node-1", "10.120.1.0/24").await;
    let running = run(&alone, &cloud);
    until("the list has failed", || async { cloud.lists() >= 1 }).await;
    let seen = (cloud.applies(), condition(&alone, "node-1").await);
    // On a busy machine the next one may have come meanwhile.
    assert!(cloud.lists() > 1 || seen == (vec![], None), "{seen:?}");
    until("the second one did not", || {
        is(&alone, "node-1", "False", "RouteCreated")
    })
    .await;
    assert_eq!(
        running.metric(r#"route_controller_route_sync_total{outcome="error",trigger="periodic"}"#),
        1.0
    );
    assert_eq!(cloud.routes(), ["node-1 10.120.1.0/24"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_what_exists_is_listed_once_and_left_as_it_is() {
    let alone = alone().await;
    let cloud = Arc::new(FakeRoutes::default());
    node(&alone, "node-1", "10.120.1.0/24").await;
    let running = run(&alone, &cloud);
    until("it has its route", || is(&alone, "node-1", "False", "RouteCreated")).await;
    running.stop().await;
    let before = alone.nodes().get("node-1").await.unwrap().metadata.resource_version;
    let lists = cloud.lists();
    let running = run_every(&alone, &cloud, Duration::from_secs(3600));
    let noop = r#"route_controller_route_sync_total{outcome="noop",trigger="periodic"}"#;
    until("the first pass is over", || async { running.metric(noop) == 1.0 }).await;
    assert_eq!((cloud.applies().len(), cloud.lists()), (1, lists + 1));
    assert_eq!(
        alone.nodes().get("node-1").await.unwrap().metadata.resource_version,
        before
    );
}
