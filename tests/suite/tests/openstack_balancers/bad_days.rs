//! Bad days of Octavia and Neutron, and bad input.

use cloudwit_test_support::ServiceBuilder;
use cloudwit_test_support::clouds::openstack::Service as Cloud;
use cloudwit_test_support::gate::Point;
use cloudwit_test_support::gate::fault::Fault;
use http::{Method, StatusCode};
use serde_json::json;

use crate::stage::{LBAAS, PREFIX, Stage, ingress};

#[tokio::test(flavor = "multi_thread")]
async fn unbuildable_one_is_replaced_and_serving_one_is_left() {
    let stage = Stage::new("").await;
    stage.scene.project.fail_balancers(1).await.unwrap();
    stage.create(ServiceBuilder::new("web")).await;
    let address = stage.exposed("web").await;
    stage.told("web", "could not be built (ERROR) and is removed").await;
    let shown = stage.shows("there is one", |shown| shown.balancers.len() == 1).await;
    stage.scene.project.balancer_status(&shown.id(), "ERROR").await.unwrap();
    stage.annotate("web", "connection-limit", json!("5")).await;
    stage.told("web", "is in ERROR and cannot be changed").await;
    assert_eq!(stage.shown().await.id(), shown.id());
    assert_eq!(ingress(&stage.service("web").await)[0].ip.as_ref(), Some(&address));
    stage
        .scene
        .project
        .balancer_status(&shown.id(), "ACTIVE")
        .await
        .unwrap();
    stage
        .shows("it is changed when it can be", |shown| {
            shown.listeners[0]["connection_limit"] == 5
        })
        .await;
    stage.scene.project.balancer_status(&shown.id(), "ERROR").await.unwrap();
    stage.delete("web").await;
    stage.clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn externally_deleted_one_is_recreated_at_same_address() {
    let mut stage = Stage::new("").await;
    stage.create(ServiceBuilder::new("web")).await;
    let address = stage.exposed("web").await;
    let first = stage.shown().await.id();
    stage.scene.project.vanish_balancer(&first).await.unwrap();
    stage.annotate("web", "connection-limit", json!("5")).await;
    let shown = stage
        .shows("there is another one", |shown| {
            shown.balancers.len() == 1
                && shown.balancers[0]["id"] != json!(first)
                && shown.floating.iter().all(|floating| !floating["port_id"].is_null())
        })
        .await;
    assert_eq!(
        (shown.floating.len(), shown.address()),
        (1, address),
        "its address stays"
    );
    stage
        .told("web", "was deleted by somebody else; a new one is made")
        .await;
    let second = shown.id();
    stage.scene.project.vanish_balancer(&second).await.unwrap();
    stage.kill();
    stage.start();
    stage.delete("web").await;
    stage.clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reached_quota_is_reported_and_recovers_when_raised() {
    let stage = Stage::new("").await;
    let project = &stage.scene.project;
    project.quota(Cloud::LoadBalancer, "load_balancer", 0).await.unwrap();
    project.quota(Cloud::Network, "floatingip", 0).await.unwrap();
    stage.create(ServiceBuilder::new("web")).await;
    stage
        .told("web", "Quota has been met for resources: Load Balancer")
        .await;
    assert_eq!(stage.shown().await.balancers.len(), 0);
    project.quota(Cloud::LoadBalancer, "load_balancer", 5).await.unwrap();
    stage.annotate("web", "connection-limit", json!("5")).await;
    stage.told("web", "Quota exceeded for resources: ['floatingip']").await;
    assert_eq!(ingress(&stage.service("web").await).len(), 0);
    project.quota(Cloud::Network, "floatingip", 5).await.unwrap();
    stage.annotate("web", "connection-limit", json!("6")).await;
    stage.exposed("web").await;
    assert_eq!(stage.shown().await.balancers.len(), 1, "the one that was made is used");
    stage.delete("web").await;
    stage.clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mistake_is_reported_once_for_all_and_nothing_made() {
    let stage = Stage::new("").await;
    let service = ServiceBuilder::new("web")
        .annotation(&format!("{PREFIX}connection-limit"), "many")
        .annotation(&format!("{PREFIX}proxy-protocol"), "v9");
    stage.create(service).await;
    stage.told("web", "connection-limit is \"many\"").await;
    stage.told("web", "proxy-protocol is \"v9\"").await;
    // Each next mistake comes with the patch that takes the one before away.
    let becomes = async |old: &[&str], key: &str, value: &str| {
        let mut annotations = json!({ format!("{PREFIX}{key}"): value });
        for old in old {
            annotations[format!("{PREFIX}{old}")] = json!(null);
        }
        stage
            .patch("web", json!({ "metadata": { "annotations": annotations } }))
            .await;
    };
    becomes(&["connection-limit", "proxy-protocol"], "keep-floating-ip", "true").await;
    stage
        .told("web", "did you mean loadbalancer.openstack.org/keep-floatingip?")
        .await;
    let certificate = "https://barbican.test/v1/containers/c-1";
    becomes(&["keep-floating-ip"], "default-tls-container-ref", certificate).await;
    stage.told("web", "key-manager").await;
    let calls = stage.calls().await;
    let writes = calls
        .octavia
        .iter()
        .chain(&calls.neutron)
        .filter(|call| !call.starts_with("GET"));
    assert_eq!(writes.collect::<Vec<_>>(), Vec::<&String>::new());
    stage.annotate("web", "default-tls-container-ref", json!(null)).await;
    stage.exposed("web").await;
    // Of one that exists a bad change changes nothing.
    let before = stage.calls().await;
    stage
        .patch(
            "web",
            json!({ "metadata": { "annotations": {
        format!("{PREFIX}connection-limit"): "5", format!("{PREFIX}lb-method"): "RANDOM",
    } } }),
        )
        .await;
    stage.told("web", "lb-method is \"RANDOM\"").await;
    assert_eq!(stage.writes(&before).await, Vec::<String>::new());
    stage.delete("web").await;
    stage.clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn throttled_failing_and_cut_answers_make_no_second_balancer() {
    let stage = Stage::new("").await;
    let status = |code| Fault::status(StatusCode::from_u16(code).unwrap());
    let balancers = format!("{LBAAS}/loadbalancers");
    let faults = [
        (
            "a 429 with Retry-After to the search",
            Method::GET,
            Cloud::LoadBalancer,
            &*balancers,
            status(429).header("retry-after", "1"),
        ),
        (
            "a 503 to the creation",
            Method::POST,
            Cloud::LoadBalancer,
            &*balancers,
            status(503),
        ),
        (
            "a creation whose answer is cut",
            Method::POST,
            Cloud::LoadBalancer,
            &*balancers,
            Fault::cut(60),
        ),
        (
            "a creation whose answer never comes",
            Method::POST,
            Cloud::LoadBalancer,
            &*balancers,
            Fault::broken(10),
        ),
        (
            "a floating IP whose answer is cut",
            Method::POST,
            Cloud::Network,
            "/v2.0/floatingips",
            Fault::cut(40),
        ),
        (
            "listeners that are cut",
            Method::GET,
            Cloud::LoadBalancer,
            "/v2.0/lbaas/listeners",
            Fault::cut(80),
        ),
    ];
    for (number, (what, method, cloud, path, fault)) in faults.into_iter().enumerate() {
        let fault = stage
            .scene
            .gate(cloud)
            .fail(Point::before(method, path), fault.times(1));
        let name = format!("web-{number}");
        stage.create(ServiceBuilder::new(&name)).await;
        stage.exposed(&name).await;
        assert_eq!(fault.met(), 1, "{what}");
        let shown = stage.shown().await;
        assert_eq!(
            (shown.balancers.len(), shown.floating.len()),
            (number + 1, number + 1),
            "{what}"
        );
    }
    for number in 0..6 {
        stage.delete(&format!("web-{number}")).await;
    }
    stage.clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_in_the_middle_waits_until_octavia_is_ready() {
    let stage = Stage::new("").await;
    stage.create(ServiceBuilder::new("web")).await;
    stage.exposed("web").await;
    let id = stage.shown().await.id();
    // Somebody else's change keeps it in PENDING_UPDATE.
    stage.scene.project.pace(None).await.unwrap();
    stage
        .scene
        .project
        .balancer_status(&id, "PENDING_UPDATE")
        .await
        .unwrap();
    let before = stage.calls().await;
    stage.annotate("web", "connection-limit", json!("5")).await;
    stage
        .scene
        .settled("it was looked at twice", || async {
            let calls = stage.calls().await.octavia;
            let looks = calls
                .iter()
                .skip(before.octavia.len())
                .filter(|call| call.contains(&id))
                .count();
            if looks >= 2 { Ok(()) } else { Err(format!("{looks}")) }
        })
        .await;
    assert_eq!(stage.writes(&before).await, Vec::<String>::new());
    stage.scene.project.pace(Some(0.1)).await.unwrap();
    stage
        .shows("then it is changed", |shown| {
            shown.listeners[0]["connection_limit"] == 5
        })
        .await;
}
