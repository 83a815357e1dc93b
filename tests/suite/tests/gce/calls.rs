//! Requests that 500 Nodes and 20 Services cost; upstream's beside them in the provider's README.

use cloudwit_test_support::{NodeBuilder, ServiceBuilder};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::scene::{Scene, ZONE};

const NODES: u32 = 500;
const SERVICES: u32 = 20;

fn service(number: u32) -> String {
    format!("web-{number}")
}

/// Size of the target pools.
fn behind(pools: &Value) -> Vec<usize> {
    let pools = pools.as_object().into_iter().flat_map(|pools| pools.values());
    pools
        .map(|pool| pool["instances"].as_array().map_or(0, Vec::len))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_nodes_and_twenty_services_take_few_requests() {
    let mut scene = Scene::new().await;
    scene.does("operations_take", json!({ "seconds": 0.2 })).await;
    let machines = json!({ "prefix": "node", "count": NODES, "tags": ["node"] });
    let names: Vec<String> = serde_json::from_value(scene.does("add_machines", machines).await).unwrap();
    for name in &names {
        NodeBuilder::new(name).create(&scene.client).await.unwrap();
    }
    scene
        .start(&[
            "--controllers=cloud-node-controller,service-lb-controller,cloud-node-lifecycle-controller",
            "--node-status-update-frequency=1h",
        ])
        .await;
    scene.all_initialised().await;
    let joined = scene.cloud.count_settled_calls("joined").await.unwrap();
    for number in 0..SERVICES {
        ServiceBuilder::new(&service(number))
            .create(&scene.client)
            .await
            .unwrap();
    }
    for number in 0..SERVICES {
        scene.address(&service(number), "").await;
    }
    let all = |size: usize| move |pools: &Value| behind(pools) == [size; SERVICES as usize];
    scene
        .comes("all machines are behind each", "targetPools", all(NODES as usize))
        .await;
    let made = scene.cloud.count_settled_calls("made").await.unwrap();
    scene.joins("one-more", ZONE, "10.244.1.0/24").await;
    scene
        .comes("it is behind all", "targetPools", all(NODES as usize + 1))
        .await;
    let one_more = scene.cloud.count_settled_calls("one more").await.unwrap();
    for number in 0..SERVICES {
        let services = scene.services();
        services
            .delete(&service(number), &DeleteParams::default())
            .await
            .unwrap();
    }
    scene.services_gone().await;
    let deleted = scene.cloud.count_settled_calls("deleted").await.unwrap();
    // On a busy machine what was read minutes ago is read again. The last two are upstream's numbers.
    let most = [10, 500, 120, 223];
    let found = [joined, made, one_more, deleted];
    assert!(found.iter().zip(most).all(|(found, most)| *found <= most), "{found:?}");
}
