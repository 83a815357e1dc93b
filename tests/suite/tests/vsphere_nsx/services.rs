//! Load balancers from the first address to the last, in two classes, and without NSX.

use cloudwit_test_support::ServiceBuilder;
use serde_json::{Value, json};

use crate::scene::{BALANCERS, Scene};

fn members(pool: &Value) -> usize {
    pool["members"].as_array().map_or(0, Vec::len)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_lives_changes_and_goes() {
    let mut scene = Scene::with_nodes(BALANCERS).await;
    let web = ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    let ip = scene.address("web").await;
    let node_port = web.spec.unwrap().ports.unwrap()[0].node_port.unwrap();
    // As VMware's client reads it, under upstream's names and tags.
    let shown = scene.client_says(&["shown"]).await;
    let tags = json!({
        "owner": "vsphere-cloud-controller-manager", "cluster": "sandbox", "service": "default/web", "port": "TCP/80", "ippoolid": "public-pool",
        "lbclass": "default",
    });
    let expected = json!([{
        "tags": tags, "name": "cluster:sandbox:default/web", "at": [ip, ["80"], [node_port.to_string()]], "monitors": 1,
        "profile": "/infra/lb-app-profiles/default-tcp-lb-app-profile-id", "members": { "10.0.0.1": "sandbox:one", "10.0.0.2": "sandbox:two" },
    }]);
    assert_eq!(shown["servers"], expected);
    let service = &scene.has("lb-services").await[0];
    assert_eq!(
        (&service["size"], &service["connectivity_path"]),
        (&json!("SMALL"), &json!("/infra/tier-1s/t1"))
    );

    // A change that changes nothing at the manager: reads only.
    scene.nsx.forget_calls().await.unwrap();
    scene
        .patch(
            "web",
            json!({ "metadata": { "annotations": { "example.com/touched": "1" } } }),
        )
        .await;
    scene.looked_at(1).await;
    assert_eq!(scene.writes().await, [""; 0]);

    scene.joins("three").await;
    scene
        .comes("a new Node is behind it", "lb-pools", |all| members(&all[0]) == 3)
        .await;
    assert_eq!(scene.calls("PUT lb-pools/{id}").await, 1);

    let ports = json!([
        { "name": "a", "port": 443, "protocol": "TCP" }, { "name": "b", "port": 53, "protocol": "UDP" }, { "name": "c", "port": 53, "protocol": "TCP" },
    ]);
    scene.patch("web", json!({ "spec": { "ports": ports } })).await;
    scene
        .comes("three ports at the same address", "lb-virtual-servers", |all| {
            all.len() == 3
                && all
                    .iter()
                    .all(|one| one["ip_address"] == ip.as_str() && one["ports"] != json!(["80"]))
        })
        .await;
    scene
        .comes("UDP is not watched", "lb-monitor-profiles", |all| all.len() == 2)
        .await;
    assert!(scene.has("lb-pools").await.iter().all(|pool| members(pool) == 3));
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn classes_have_addresses_of_their_own_pools() {
    let scene = Scene::with_nodes(BALANCERS).await;
    let class = "loadbalancer.vmware.io/class";
    let inside = |name: &str| ServiceBuilder::new(name).annotation(class, "inside");
    inside("private").create(&scene.client).await.unwrap();
    ServiceBuilder::new("public").create(&scene.client).await.unwrap();
    assert!(scene.address("private").await.starts_with("10.99.0."));
    assert!(scene.address("public").await.starts_with("192.0.2."));
    ServiceBuilder::new("gold")
        .annotation(class, "gold")
        .create(&scene.client)
        .await
        .unwrap();
    scene
        .warned("gold", "SyncLoadBalancerFailed", &["\"gold\"", "default, inside"])
        .await;
    // The address stays when the class changes, and an Event says so.
    let ip = scene.address("private").await;
    scene
        .patch("private", json!({ "metadata": { "annotations": { class: null } } }))
        .await;
    scene
        .warned("private", "LoadBalancerClassKept", &["\"inside\"", "\"default\""])
        .await;
    assert_eq!(scene.shown_address("private").await, Some(ip));
    scene.is_gone("gold").await;
    scene.is_gone("private").await;
    scene.leaves_nothing("public").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_config_without_nsx_touches_no_service_and_no_route() {
    let mut scene = Scene::new().await;
    scene.config = String::new();
    scene.joins("one").await;
    ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    scene.start(&[]).await;
    scene.initialised("one").await;
    for controller in ["service-lb-controller", "node-route-controller"] {
        scene
            .settled("it is said why a controller is not started", || async {
                let log = scene.log();
                let mut lines = log.lines().filter(|line| line.contains(controller));
                match lines.any(|line| line.contains("its configuration disables it")) {
                    true => Ok(()),
                    false => Err("not yet".into()),
                }
            })
            .await;
    }
    let web = scene.services().get("web").await.unwrap();
    assert_eq!(web.metadata.finalizers, None, "as before: it is somebody else's");
    assert_eq!(scene.warnings("web").await, []);
    assert_eq!(scene.warnings("one").await, []);
    assert_eq!(scene.nsx.calls().await.unwrap(), []);
}
