//! Requests that 500 Nodes and 20 Services cost; upstream's beside them in the provider's README.

use cloudwit_test_support::{NodeBuilder, ServiceBuilder};
use kube::api::DeleteParams;
use serde_json::json;

use crate::scene::Scene;
use crate::services::{CONTROLLERS, behind};

const NODES: u32 = 500;
const SERVICES: u32 = 20;

fn service(number: u32) -> String {
    format!("web-{number}")
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_nodes_and_twenty_services_take_few_requests() {
    let mut scene = Scene::new().await;
    scene.does("operations_take", json!({ "seconds": 0.2 })).await;
    let machines = json!({ "prefix": "node", "count": NODES });
    let ids: Vec<String> = serde_json::from_value(scene.does("add_machines", machines).await).unwrap();
    for id in &ids {
        let name = id.rsplit('/').next().unwrap();
        NodeBuilder::new(name).create(&scene.client).await.unwrap();
    }
    scene.start(&[CONTROLLERS, "--node-status-update-frequency=1h"]).await;
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
    let all = NODES as usize;
    scene
        .comes("all machines are behind it", "loadBalancers", |balancers| {
            balancers.first().is_some_and(|one| behind(one) == all)
        })
        .await;
    let made = scene.cloud.count_settled_calls("made").await.unwrap();
    scene.joins("one-more", "10.244.1.0/24").await;
    scene
        .comes("it is behind all", "loadBalancers", |balancers| {
            behind(&balancers[0]) == all + 1
        })
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
    // The second and the last are upstream's.
    let most = [15, 304, 40, 301];
    let found = [joined, made, one_more, deleted];
    assert!(found.iter().zip(most).all(|(found, most)| *found <= most), "{found:?}");
}
