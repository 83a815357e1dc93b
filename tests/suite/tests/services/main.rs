//! The service controller on the real kube-apiserver, with a cloud in memory that can be scripted.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod nodes;
mod restarts;

use std::sync::Arc;
use std::time::{Duration, Instant};

use cloudwit_controllers::{Controller, Options};
use cloudwit_model::Failure;
use cloudwit_suite::common::fake_balancers;
use cloudwit_suite::common::harness;
use cloudwit_test_support::{NodeBuilder, ServiceBuilder, eventually};
use fake_balancers::FakeBalancers;
use futures::StreamExt;
use harness::{Alone, Running, alone, until};
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

fn run(alone: &Alone, cloud: &Arc<FakeBalancers>) -> Running {
    alone.run(Controller::ServiceLb, cloud.clone(), Options::default())
}

async fn create(alone: &Alone, name: &str) -> Service {
    ServiceBuilder::new(name).create(&alone.client).await.unwrap()
}

async fn node(alone: &Alone, name: &str) {
    NodeBuilder::new(name)
        .initialised()
        .ready(Some(true))
        .create(&alone.client)
        .await
        .unwrap();
}

async fn node_named(alone: &Alone, name: String) {
    node(alone, &name).await;
}

async fn patch(alone: &Alone, name: &str, change: Value) {
    alone
        .services()
        .patch(name, &PatchParams::default(), &Patch::Merge(change))
        .await
        .unwrap();
}

async fn delete(alone: &Alone, name: &str) {
    alone.services().delete(name, &DeleteParams::default()).await.unwrap();
}

async fn get(alone: &Alone, name: &str) -> Option<Service> {
    alone.services().get_opt(name).await.unwrap()
}

fn address(service: &Service) -> Option<Value> {
    let ingress = service.status.as_ref()?.load_balancer.as_ref()?.ingress.as_ref()?;
    Some(json!(ingress))
}

/// What the status of a Service has for the fake cloud's first address. `ipMode` is kept from Kubernetes 1.30 on, where `LoadBalancerIPMode` became beta.
async fn first_address(alone: &Alone) -> Value {
    let version = alone.client.apiserver_version().await.unwrap();
    let digits = version.minor.trim_end_matches(|end: char| !end.is_ascii_digit());
    if digits.parse::<u32>().unwrap() < 30 {
        json!([{ "ip": "203.0.113.7" }])
    } else {
        json!([{ "ip": "203.0.113.7", "ipMode": "VIP" }])
    }
}

async fn has_address(alone: &Alone, name: &str) -> bool {
    get(alone, name)
        .await
        .is_some_and(|service| address(&service).is_some())
}

async fn is_gone(alone: &Alone, name: &str) -> bool {
    get(alone, name).await.is_none()
}

/// Waits until everything that was queued before is done: there is one worker and it is fair.
async fn settle(alone: &Alone, marker: &str) {
    create(alone, marker).await;
    until("the marker Service is ready", || has_address(alone, marker)).await;
}

fn pending(after: Duration, token: &str) -> Failure {
    Failure::Pending {
        after,
        token: token.into(),
        message: "the cloud is building".into(),
    }
}

fn other(message: &str) -> Failure {
    Failure::Other(message.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn service_gets_finalizer_balancer_address_and_events() {
    let alone = alone().await;
    let cloud = Arc::new(FakeBalancers::new());
    cloud.annotate("example.com/id", "lb-1");
    cloud.fail_next("ensure", pending(Duration::from_millis(200), "t1"));
    cloud.fail_next("ensure", pending(Duration::from_millis(200), "t2"));
    node(&alone, "node-1").await;
    let mut service = ServiceBuilder::new("web").annotation("user", "keep").build();
    service.metadata.finalizers = Some(vec!["example.com/keep".into()]);
    alone.services().create(&Default::default(), &service).await.unwrap();
    cloud.hold("ensure");
    let running = run(&alone, &cloud);

    until("the cloud is asked", || async { cloud.count("ensure") == 1 }).await;
    let service = get(&alone, "web").await.unwrap();
    assert_eq!(
        service.finalizers(),
        ["example.com/keep", FINALIZER],
        "the finalizer comes before the first call"
    );
    patch(
        &alone,
        "web",
        json!({ "metadata": { "labels": { "added": "meanwhile" } } }),
    )
    .await;
    let condition = json!({
        "type": "example.com/other", "status": "True", "reason": "Other", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z",
    });
    let others = Patch::Merge(json!({ "status": { "conditions": [condition] } }));
    alone
        .services()
        .patch_status("web", &PatchParams::default(), &others)
        .await
        .unwrap();
    let spec = get(&alone, "web").await.unwrap().spec;
    cloud.release();

    until("the address is there", || has_address(&alone, "web")).await;
    let service = get(&alone, "web").await.unwrap();
    assert_eq!(address(&service).unwrap(), first_address(&alone).await);
    assert_eq!(service.annotations()["example.com/id"], "lb-1");
    assert_eq!(service.annotations()["user"], "keep");
    assert_eq!(service.labels()["added"], "meanwhile");
    assert_eq!(
        service.status.as_ref().unwrap().conditions.iter().flatten().count(),
        1,
        "another writer's condition stays"
    );
    assert_eq!(service.spec, spec);
    assert_eq!(service.finalizers(), ["example.com/keep", FINALIZER]);
    assert_eq!(cloud.only().unwrap().targets, ["node-1"]);

    settle(&alone, "marker").await;
    let tokens: Vec<Option<String>> = cloud
        .calls()
        .into_iter()
        .filter(|call| call.name == "web")
        .map(|call| call.token)
        .collect();
    assert_eq!(
        tokens,
        [None, Some("t1".into()), Some("t2".into())],
        "our own annotation leads to no further call"
    );
    until("the Events are there", || async {
        alone.event_reasons("web").await == ["EnsuringLoadBalancer", "EnsuringLoadBalancer", "EnsuredLoadBalancer"]
    })
    .await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn service_goes_after_its_balancer_keeping_foreign_finalizers() {
    let alone = alone().await;
    let cloud = Arc::new(FakeBalancers::new());
    let _running = run(&alone, &cloud);
    create(&alone, "web").await;
    until("the address is there", || has_address(&alone, "web")).await;
    patch(
        &alone,
        "web",
        json!({ "metadata": { "finalizers": [FINALIZER, "example.com/keep"] } }),
    )
    .await;
    cloud.fail_next("delete", pending(Duration::from_millis(100), "draining"));
    delete(&alone, "web").await;
    until("our finalizer is off", || async {
        get(&alone, "web")
            .await
            .is_some_and(|service| service.finalizers() == ["example.com/keep"])
    })
    .await;
    assert_eq!(cloud.balancers(), []);
    assert_eq!(address(&get(&alone, "web").await.unwrap()), None);
    let tokens: Vec<Option<String>> = cloud
        .calls()
        .into_iter()
        .filter(|call| call.operation == "delete")
        .map(|call| call.token)
        .collect();
    assert_eq!(tokens, [None, Some("draining".into())]);
    patch(&alone, "web", json!({ "metadata": { "finalizers": null } })).await;
    until("it is gone", || is_gone(&alone, "web")).await;
    settle(&alone, "marker").await;
    assert_eq!(cloud.count("delete"), 2, "nothing is deleted twice");
}

/// kubernetes/cloud-provider-openstack#2751: the id that an annotation still had blocked the next load balancer.
#[tokio::test(flavor = "multi_thread")]
async fn openstack_2751_type_change_is_reversible_and_cleans_up() {
    let alone = alone().await;
    let cloud = Arc::new(FakeBalancers::new());
    cloud.annotate("example.com/id", "lb-1");
    let _running = run(&alone, &cloud);
    create(&alone, "web").await;
    until("the annotation is there", || async {
        get(&alone, "web")
            .await
            .is_some_and(|service| service.annotations().contains_key("example.com/id"))
    })
    .await;
    patch(&alone, "web", json!({ "spec": { "type": "ClusterIP" } })).await;
    until("finalizer, address and annotation are gone", || async {
        get(&alone, "web").await.is_some_and(|service| {
            service.finalizers().is_empty() && address(&service).is_none() && service.annotations().is_empty()
        })
    })
    .await;
    assert_eq!(cloud.balancers(), []);
    patch(&alone, "web", json!({ "spec": { "type": "LoadBalancer" } })).await;
    until("it is built again", || has_address(&alone, "web")).await;
    assert_eq!(cloud.count("ensure"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_changes_that_concern_the_balancer_reach_the_cloud() {
    let alone = alone().await;
    let cloud = Arc::new(FakeBalancers::new());
    let running = run(&alone, &cloud);
    create(&alone, "web").await;
    until("the address is there", || has_address(&alone, "web")).await;
    patch(&alone, "web", json!({ "metadata": { "labels": { "a": "b" } } })).await;
    patch(&alone, "web", json!({ "spec": { "selector": { "app": "other" } } })).await;
    settle(&alone, "marker").await;
    assert_eq!(cloud.count("ensure"), 2, "one for each Service");
    let writes = r#"cloudwit_api_writes_total{resource="services/status",verb="patch",result="ok"}"#;
    // A write counts when its answer is there, which is after others can see it.
    until("the writes are counted", || async { running.metric(writes) >= 4.0 }).await;
    let before = running.metric(writes);
    assert_eq!(before, 4.0, "finalizer and address of two Services");

    patch(
        &alone,
        "web",
        json!({ "spec": { "ports": [{ "name": "tls", "port": 443 }] } }),
    )
    .await;
    until("the new port is open", || async {
        cloud.balancers().iter().any(|balancer| balancer.ports == [443])
    })
    .await;
    settle(&alone, "marker-2").await;
    until("the writes are counted", || async {
        running.metric(writes) >= before + 2.0
    })
    .await;
    assert_eq!(
        running.metric(writes),
        before + 2.0,
        "the same address is not written again"
    );
    let service = get(&alone, "web").await.unwrap();
    assert_eq!(address(&service).unwrap(), first_address(&alone).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_cloud_is_reported_and_tried_again() {
    let alone = alone().await;
    let cloud = Arc::new(FakeBalancers::new());
    cloud.fail_next("ensure", other("no capacity"));
    let _running = run(&alone, &cloud);
    create(&alone, "web").await;
    until("the address is there at the second try", || has_address(&alone, "web")).await;
    assert_eq!(cloud.count("ensure"), 2);
    until("the Events tell", || async {
        let reasons = alone.event_reasons("web").await;
        reasons.iter().any(|reason| reason == "SyncLoadBalancerFailed")
            && reasons.iter().any(|reason| reason == "UnAvailableLoadBalancer")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rate_limit_is_honoured_and_reported_once() {
    let alone = alone().await;
    let cloud = Arc::new(FakeBalancers::new());
    let limited = || Failure::RateLimited {
        after: Some(Duration::from_millis(100)),
        message: "slow down".into(),
    };
    for _ in 0..3 {
        cloud.fail_next("ensure", limited());
    }
    let _running = run(&alone, &cloud);
    create(&alone, "web").await;
    until("the address is there", || has_address(&alone, "web")).await;
    assert_eq!(cloud.count("ensure"), 4);
    until("the last Event is there", || async {
        alone.event_reasons("web").await.contains(&"EnsuredLoadBalancer".into())
    })
    .await;
    let reasons = alone.event_reasons("web").await;
    assert_eq!(
        reasons
            .iter()
            .filter(|reason| *reason == "SyncLoadBalancerFailed")
            .count(),
        1,
        "{reasons:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_cloud_holds_no_worker() {
    let alone = alone().await;
    let cloud = Arc::new(FakeBalancers::new());
    cloud.fail_next("ensure", pending(Duration::from_secs(3600), "slow"));
    let _running = run(&alone, &cloud);
    create(&alone, "slow").await;
    until("the slow one is being built", || async { cloud.count("ensure") == 1 }).await;
    create(&alone, "quick").await;
    until("the quick one is ready", || has_address(&alone, "quick")).await;
    patch(
        &alone,
        "slow",
        json!({ "metadata": { "annotations": { "size": "small" } } }),
    )
    .await;
    until("a change is looked at without delay", || has_address(&alone, "slow")).await;
    let last = cloud.calls().into_iter().rfind(|call| call.name == "slow").unwrap();
    assert_eq!(last.token, None, "what it waited for may be moot");
}

#[tokio::test(flavor = "multi_thread")]
async fn work_on_one_service_never_overlaps() {
    let alone = alone().await;
    let cloud = Arc::new(FakeBalancers::new());
    let mut options = Options::default();
    options.service.concurrent_syncs = 8;
    let _running = alone.run(Controller::ServiceLb, cloud.clone(), options);
    create(&alone, "web").await;
    until("the address is there", || has_address(&alone, "web")).await;
    cloud.hold("ensure");
    patch(
        &alone,
        "web",
        json!({ "metadata": { "annotations": { "size": "big" } } }),
    )
    .await;
    until("an ensure is in flight", || async { cloud.count("ensure") == 2 }).await;
    node(&alone, "node-1").await;
    delete(&alone, "web").await;
    create(&alone, "other").await;
    until("another Service goes on meanwhile", || async {
        cloud.calls().iter().any(|call| call.name == "other")
    })
    .await;
    assert_eq!(cloud.count("delete"), 0, "the delete waits for the ensure");
    cloud.release();
    until("the Service is gone", || is_gone(&alone, "web")).await;
    until("the other is ready", || has_address(&alone, "other")).await;
    assert!(!cloud.overlapped());
    assert_eq!(cloud.balancers().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn service_with_class_is_ignored_even_while_deleted() {
    let alone = alone().await;
    let cloud = Arc::new(FakeBalancers::new());
    let classed = |name: &str| {
        let mut service = ServiceBuilder::new(name)
            .spec(|spec| spec.load_balancer_class = Some("example.com/x".into()))
            .build();
        service.metadata.finalizers = Some(vec![FINALIZER.into()]);
        service
    };
    alone
        .services()
        .create(&Default::default(), &classed("dying"))
        .await
        .unwrap();
    alone
        .services()
        .create(&Default::default(), &classed("retyped"))
        .await
        .unwrap();
    let _running = run(&alone, &cloud);
    settle(&alone, "marker").await;
    delete(&alone, "dying").await;
    patch(
        &alone,
        "retyped",
        json!({ "spec": { "type": "ClusterIP", "loadBalancerClass": null } }),
    )
    .await;
    settle(&alone, "marker-2").await;
    for name in ["dying", "retyped"] {
        assert_eq!(
            get(&alone, name).await.unwrap().finalizers(),
            [FINALIZER],
            "{name}: its owner needs the finalizer"
        );
    }
    assert!(
        cloud.calls().iter().all(|call| call.name.starts_with("marker")),
        "{:?}",
        cloud.calls()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dying_service_never_gets_the_finalizer() {
    let alone = alone().await;
    let cloud = Arc::new(FakeBalancers::new());
    let mut service = ServiceBuilder::new("web").build();
    service.metadata.finalizers = Some(vec!["example.com/keep".into()]);
    alone.services().create(&Default::default(), &service).await.unwrap();
    delete(&alone, "web").await;
    let _running = run(&alone, &cloud);
    settle(&alone, "marker").await;
    assert_eq!(get(&alone, "web").await.unwrap().finalizers(), ["example.com/keep"]);
    assert!(cloud.calls().iter().all(|call| call.name == "marker"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_implemented_elsewhere_is_left_to_others() {
    let alone = alone().await;
    let cloud = Arc::new(FakeBalancers::new());
    cloud.fail_next("ensure", Failure::ImplementedElsewhere("another controller".into()));
    let _running = run(&alone, &cloud);
    create(&alone, "web").await;
    until("the cloud is asked", || async { cloud.count("ensure") == 1 }).await;
    create(&alone, "ours").await;
    node(&alone, "node-1").await;
    until("our own one gets the node", || async {
        cloud.only().is_some_and(|balancer| balancer.targets == ["node-1"])
    })
    .await;
    let about_web = || cloud.calls().into_iter().filter(|call| call.name == "web").count();
    assert_eq!(about_web(), 1);
    let service = get(&alone, "web").await.unwrap();
    assert_eq!(address(&service), None);
    assert_eq!(service.finalizers(), [FINALIZER], "as upstream");
    cloud.fail_next("delete", Failure::ImplementedElsewhere("another controller".into()));
    delete(&alone, "web").await;
    until("the Service is gone", || is_gone(&alone, "web")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_vanished_without_cleanup_leaves_no_balancer() {
    let alone = alone().await;
    let cloud = Arc::new(FakeBalancers::new());
    let _running = run(&alone, &cloud);
    create(&alone, "web").await;
    until("the address is there", || has_address(&alone, "web")).await;
    cloud.hold("delete");
    // Both at once, so that nobody is asked: the finalizer goes in the same moment as the Service.
    delete(&alone, "web").await;
    until("the delete has begun", || async { cloud.count("delete") == 1 }).await;
    patch(&alone, "web", json!({ "metadata": { "finalizers": null } })).await;
    until("the Service is gone", || is_gone(&alone, "web")).await;
    create(&alone, "web").await;
    cloud.release();
    until("the new one of that name is ready", || has_address(&alone, "web")).await;
    assert_eq!(cloud.balancers().len(), 1, "that of the old one is gone");
    assert!(!cloud.overlapped());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_writes_nothing_and_changes_no_cloud() {
    let alone = alone().await;
    let cloud = Arc::new(FakeBalancers::new());
    let before = create(&alone, "web").await;
    let options = Options {
        dry_run: true,
        ..Options::default()
    };
    let running = alone.run(Controller::ServiceLb, cloud.clone(), options);
    let would = r#"cloudwit_api_writes_total{resource="services/status",verb="patch",result="dry_run"}"#;
    until("the write is counted", || async { running.metric(would) == 1.0 }).await;
    assert_eq!(
        get(&alone, "web").await.unwrap().resource_version(),
        before.resource_version()
    );
    // The first write that is left out is that of the finalizer, which comes before the cloud is asked.
    until("what there is decides what would be done", || async {
        cloud.count("get") > 0
    })
    .await;
    let calls = cloud.calls();
    assert!(calls.iter().all(|call| call.operation == "get"), "{calls:?}");
}
