//! What is left of a Service that is gone: no call about another Service touches it, and the README's searches find it.

use cloudwit_test_support::ServiceBuilder;
use serde_json::{Value, json};

use crate::scene::{BALANCERS, Scene};

/// The searches of the README, for this cluster.
fn searches(cluster: &str) -> Vec<String> {
    let readme = include_str!("../../../../providers/vsphere/README.md");
    let lines = readme.lines().filter_map(|line| line.strip_prefix("- `resource_type:"));
    lines
        .map(|line| format!("resource_type:{}", line.trim_end_matches('`')).replace("CLUSTER", cluster))
        .collect()
}

/// Kinds of objects; the load balancer service comes last.
const KINDS: [&str; 5] = [
    "lb-virtual-servers",
    "lb-pools",
    "lb-monitor-profiles",
    "ip-allocations",
    "lb-services",
];

/// All of each kind. What becomes of them in NSX by itself is left out.
async fn objects(scene: &Scene) -> Vec<Vec<Value>> {
    let mut all = Vec::new();
    for kind in KINDS {
        let mut found = scene.has(kind).await;
        for one in &mut found {
            one.as_object_mut().unwrap().remove("state");
        }
        all.push(found);
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn leftovers_of_a_vanished_service_stay_until_it_returns() {
    let scene = Scene::with_nodes(BALANCERS).await;
    // As upstream's controller made it, for a Service whose finalizer was removed by hand.
    let left = json!({ "cluster": "sandbox", "service": "default/gone", "port": 80, "node_port": 30080, "members": { "one": "10.0.0.1" } });
    let left = scene.client_says(&["leave", &left.to_string()]).await;
    let before = objects(&scene).await;
    assert!(before.iter().all(|all| all.len() == 1), "{before:?}");

    // A Service of the same cluster comes, changes, gets a Node and goes.
    let other_port = |spec: &mut k8s_openapi::api::core::v1::ServiceSpec| spec.ports.as_mut().unwrap()[0].port = 8080;
    let web = ServiceBuilder::new("web").spec(other_port);
    web.create(&scene.client).await.unwrap();
    assert_ne!(scene.address("web").await, left["ip"].as_str().unwrap());
    let ports =
        json!([{ "name": "a", "port": 443, "protocol": "TCP" }, { "name": "b", "port": 53, "protocol": "UDP" }]);
    scene.patch("web", json!({ "spec": { "ports": ports } })).await;
    scene
        .comes("both ports beside the leftover", "lb-virtual-servers", |all| {
            all.len() == 3 && all.iter().all(|one| one["ports"] != json!(["8080"]))
        })
        .await;
    scene.is_gone("web").await;
    assert_eq!(objects(&scene).await, before);

    let mut found = Vec::new();
    for search in searches("sandbox") {
        let seen = scene.client_says(&["search", &search]).await;
        for (path, tags) in seen.as_object().unwrap() {
            assert_eq!(
                (&tags["owner"], &tags["cluster"], &tags["service"]),
                (
                    &json!("vsphere-cloud-controller-manager"),
                    &json!("sandbox"),
                    &json!("default/gone")
                ),
                "{path}"
            );
            found.push(path.clone());
        }
    }
    let mut expected: Vec<&str> = before[..4].iter().map(|all| all[0]["path"].as_str().unwrap()).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);

    // The first of the README's two ways to remove them. VMware's client has made calls of its own so far.
    scene.nsx.forget_calls().await.unwrap();
    ServiceBuilder::new("gone").create(&scene.client).await.unwrap();
    assert_eq!(scene.address("gone").await, left["ip"].as_str().unwrap());
    scene.leaves_nothing("gone").await;
}
