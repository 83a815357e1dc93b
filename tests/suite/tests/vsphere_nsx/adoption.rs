//! What upstream's controller made is taken over as it is.

use cloudwit_test_support::ServiceBuilder;
use cloudwit_test_support::scenes::rig::CLEANUP_FINALIZER;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::scene::{BALANCERS, Scene};

#[tokio::test(flavor = "multi_thread")]
async fn services_of_upstream_stay_as_they_are_and_go_without_a_trace() {
    let mut scene = Scene::new().await;
    scene.joined("one").await;
    scene.joined("two").await;
    // Made by VMware's client, as upstream's controller makes it.
    let web = ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    let port = &web.spec.as_ref().unwrap().ports.as_ref().unwrap()[0];
    let left = json!({
        "cluster": "sandbox", "service": "default/web", "port": port.port, "node_port": port.node_port.unwrap(),
        "members": { "one": "10.0.0.1", "two": "10.0.0.2" },
    });
    let left = scene.client_says(&["leave", &left.to_string()]).await;
    let ip = left["ip"].as_str().unwrap();
    let how = PatchParams::default();
    let finalizer = json!({ "metadata": { "finalizers": [CLEANUP_FINALIZER] } });
    scene.patch("web", finalizer).await;
    let status = Patch::Merge(json!({ "status": { "loadBalancer": { "ingress": [{ "ip": ip }] } } }));
    scene.services().patch_status("web", &how, &status).await.unwrap();
    let before = scene.client_says(&["shown"]).await;
    scene.nsx.forget_calls().await.unwrap();
    scene.start(&[BALANCERS]).await;
    scene.looked_at(1).await;
    // Another look, which changes nothing either.
    scene
        .patch(
            "web",
            json!({ "metadata": { "annotations": { "example.com/touched": "1" } } }),
        )
        .await;
    scene.looked_at(2).await;
    assert_eq!(scene.writes().await, [""; 0]);
    assert_eq!(scene.client_says(&["shown"]).await, before);
    assert_eq!(scene.shown_address("web").await.as_deref(), Some(ip));

    // Its parts are brought in line under their own ids, and one more port joins them at the same address.
    let ports = json!([{ "name": "a", "port": 80, "protocol": "TCP", "nodePort": port.node_port.unwrap() }, { "name": "b", "port": 443, "protocol": "TCP" }]);
    scene.patch("web", json!({ "spec": { "ports": ports } })).await;
    scene
        .comes("two ports at one address", "lb-virtual-servers", |all| {
            all.len() == 2 && all.iter().all(|server| server["ip_address"] == ip)
        })
        .await;
    assert_eq!(
        (
            scene.has("lb-services").await.len(),
            scene.has("ip-allocations").await.len()
        ),
        (1, 1)
    );
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn load_balancers_of_others_stay() {
    let scene = Scene::with_nodes(BALANCERS).await;
    // Another cluster on the same gateway, and a pool of nobody.
    let other = json!({ "cluster": "other", "service": "default/web", "port": 80, "node_port": 30080, "members": { "x": "10.1.0.1" } });
    scene.client_says(&["leave", &other.to_string()]).await;
    scene
        .does(
            "put",
            json!({ "path": "/infra/lb-pools/by-hand", "body": { "display_name": "by hand" } }),
        )
        .await;
    let before = scene.client_says(&["shown"]).await;
    let port = |spec: &mut k8s_openapi::api::core::v1::ServiceSpec| spec.ports.as_mut().unwrap()[0].port = 8080;
    ServiceBuilder::new("web")
        .spec(port)
        .create(&scene.client)
        .await
        .unwrap();
    assert_eq!(scene.address("web").await, "192.0.2.11");
    assert_eq!(scene.has("lb-services").await.len(), 1, "a gateway has one");
    scene.is_gone("web").await;
    assert_eq!(scene.client_says(&["shown"]).await, before);
    let left = |all: Vec<Value>| all.len();
    assert_eq!(
        (left(scene.has("lb-services").await), left(scene.has("lb-pools").await)),
        (1, 2)
    );
}
