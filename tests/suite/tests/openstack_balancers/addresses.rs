//! Where clients reach a Service: floating IPs that are found, wished for, kept and given up.

use cloudwit_test_support::ServiceBuilder;
use cloudwit_test_support::clouds::openstack::Service as Cloud;
use http::Method;
use serde_json::json;

use crate::stage::{PREFIX, Stage, ingress, word};

#[tokio::test(flavor = "multi_thread")]
async fn internal_balancer_has_no_floating_ip_and_can_switch() {
    let stage = Stage::new("").await;
    let internal = "service.beta.kubernetes.io/openstack-internal-load-balancer";
    let wished = ServiceBuilder::new("web").annotation(internal, "true");
    stage
        .create(wished.spec(|spec| spec.load_balancer_ip = Some("10.1.77.7".into())))
        .await;
    assert_eq!(
        stage.exposed("web").await,
        "10.1.77.7",
        "spec.loadBalancerIP is the virtual IP of an internal one"
    );
    assert_eq!(stage.shown().await.floating.len(), 0);

    stage
        .patch(
            "web",
            json!({ "metadata": { "annotations": { internal: "false" } }, "spec": { "loadBalancerIP": null } }),
        )
        .await;
    let shown = stage
        .shows("there is a floating IP", |shown| shown.floating.len() == 1)
        .await;
    published(&stage, &shown.address()).await;

    stage
        .patch("web", json!({ "metadata": { "annotations": { internal: "true" } } }))
        .await;
    stage.shows("it is given up", |shown| shown.floating.is_empty()).await;
    published(&stage, "10.1.77.7").await;
    stage.delete("web").await;
    stage.clean().await;
}

async fn published(stage: &Stage, address: &str) {
    stage
        .scene
        .settled("the address is published", || async {
            let found = ingress(&stage.service("web").await);
            let right = found.first().is_some_and(|point| point.ip.as_deref() == Some(address));
            if right { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn manual_floating_ip_is_used_never_deleted_taken_is_refused() {
    let stage = Stage::new("").await;
    let public = stage.scene.project.cloud.public_network().await.unwrap();
    let asked = json!({ "floatingip": { "floating_network_id": public.id, "description": "of a person" } });
    let (status, made) = stage
        .scene
        .project
        .ask(Cloud::Network, Method::POST, "/v2.0/floatingips", asked)
        .await
        .unwrap();
    assert_eq!(status, 201, "{made}");
    let address = word(&made["floatingip"]["floating_ip_address"]);
    let wishing = |name: &str| {
        let address = address.clone();
        ServiceBuilder::new(name).spec(move |spec| spec.load_balancer_ip = Some(address))
    };
    stage.create(wishing("web")).await;
    assert_eq!(stage.exposed("web").await, address);
    stage.create(wishing("late")).await;
    stage.told("late", "uses already; choose another").await;
    let shown = stage.shown().await;
    assert_eq!(
        (shown.balancers.len(), shown.floating.len()),
        (1, 1),
        "nothing is made for the one that cannot be"
    );
    stage.delete("late").await;
    stage.delete("web").await;
    let shown = stage.shown().await;
    assert_eq!((shown.balancers.len(), shown.floating.len()), (0, 1));
    assert_eq!(shown.floating[0]["port_id"], json!(null));
}

#[tokio::test(flavor = "multi_thread")]
async fn floating_ip_from_requested_subnet_is_kept() {
    let mut stage = Stage::stopped("").await;
    let public = stage.scene.project.cloud.public_network().await.unwrap().clone();
    // Which network is external is found out.
    stage.scene.sections = stage
        .scene
        .sections
        .replace(&format!("floating-network-id = {}\n", public.id), "");
    stage.start();
    for number in [1, 2] {
        stage.scene.initialised(&format!("node-{number}")).await;
    }
    let service = ServiceBuilder::new("web")
        .annotation(&format!("{PREFIX}floating-subnet"), "~^pub.*-subnet$")
        .annotation(&format!("{PREFIX}keep-floatingip"), "true");
    stage.create(service).await;
    let address = stage.exposed("web").await;
    assert!(address.starts_with("172.24."), "{address}");
    stage.delete("web").await;
    let shown = stage.shown().await;
    assert_eq!(
        (shown.balancers.len(), shown.floating.len(), shown.address()),
        (0, 1, address)
    );
}
