//! Requests that 500 Nodes cost; upstream's beside them in the provider's README.

use cloudwit_test_support::NodeBuilder;

use crate::scene::Scene;

const NODES: usize = 500;

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_nodes_take_few_requests() {
    let mut scene = Scene::new().await;
    let names = || (0..NODES).map(|number| format!("node-{number}"));
    scene.account().await.servers(names()).await.unwrap();
    for name in names() {
        NodeBuilder::new(&name).create(&scene.client).await.unwrap();
    }
    scene.mimic.cloud.forget_calls().await.unwrap();
    scene
        .start(&[
            "--controllers=cloud-node-controller,cloud-node-lifecycle-controller",
            "--node-status-update-frequency=1h",
        ])
        .await;
    scene.all_initialised().await;
    let joined = scene.mimic.cloud.count_calls("joined").await.unwrap();
    assert!(joined <= 4, "{joined}");
}
