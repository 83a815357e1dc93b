//! Routes of the VPC: made in batches, found again, kept out, deleted; in all tables that are configured.

use cloudwit_test_support::NodeBuilder;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::scene::Scene;

const CONTROLLERS: &str = "--controllers=cloud-node-controller,node-route-controller";

impl Scene {
    /// A machine and its Node with a Pod range; the machine's id.
    async fn has_pods(&self, name: &str, pods: &str) -> String {
        let machine = self.does("add_machine", json!({ "name": name })).await;
        NodeBuilder::new(name)
            .pod_cidr(pods)
            .create(&self.client)
            .await
            .unwrap();
        machine["id"].as_str().unwrap().to_owned()
    }

    async fn have_routes(&self, what: &str, wanted: &[(&str, &str, &str)]) {
        let mut wanted: Vec<_> = wanted.to_vec();
        wanted.sort_unstable();
        self.comes(what, "routes", |entries| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let mut entries: Vec<_> = entries
                .iter()
                .map(|entry| {
                    (
                        text(&entry["DestinationCidrBlock"]),
                        text(&entry["NextHops"]["NextHop"][0]["NextHopId"]),
                        text(&entry["RouteTableId"]),
                    )
                })
                .collect();
            entries.sort();
            entries
                .iter()
                .map(|(to, by, table)| (to.as_str(), by.as_str(), table.as_str()))
                .eq(wanted.iter().copied())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn node_routes_live_with_nodes_and_foreign_ones_stay() {
    let mut scene = Scene::new().await;
    let one = scene.has_pods("one", "10.244.0.0/24").await;
    let two = scene.has_pods("two", "10.244.1.0/24").await;
    // Outside the Pod ranges to a machine, and inside to something else; inside to a machine that is no Node's, which upstream left.
    scene
        .does("route", json!({ "destination": "192.168.0.0/16", "hop": one }))
        .await;
    scene
        .does(
            "route",
            json!({ "destination": "10.244.9.0/24", "hop": "ngw-1", "hop_type": "NatGateway" }),
        )
        .await;
    scene
        .does("route", json!({ "destination": "10.244.8.0/24", "hop": "i-gone" }))
        .await;
    scene.run(&[CONTROLLERS]).await;
    let table = "vtb-1";
    let others = [
        ("192.168.0.0/16", one.as_str(), table),
        ("10.244.9.0/24", "ngw-1", table),
    ];
    let both = [
        ("10.244.0.0/24", one.as_str(), table),
        ("10.244.1.0/24", two.as_str(), table),
        others[0],
        others[1],
    ];
    scene.have_routes("both have routes", &both).await;
    scene.nodes().delete("two", &DeleteParams::default()).await.unwrap();
    scene
        .have_routes("that of the deleted Node is gone", &[both[0], others[0], others[1]])
        .await;
    // Deleted by somebody else: it comes back.
    let entries = scene.does("resources", json!({ "kind": "routes" })).await;
    let (id, _) = entries
        .as_object()
        .unwrap()
        .iter()
        .find(|(_, entry)| entry["DestinationCidrBlock"] == "10.244.0.0/24")
        .unwrap();
    scene.does("delete", json!({ "kind": "routes", "id": id })).await;
    scene
        .have_routes("it is made again", &[both[0], others[0], others[1]])
        .await;
    scene.only_what_the_readme_lists().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_are_in_all_tables_that_are_configured() {
    let mut scene = Scene::new().await;
    scene.does("add_table", json!({})).await;
    scene.config = json!({ "routeTableIDs": "vtb-1,vtb-2" });
    let machine = scene.does("add_machine", json!({ "name": "one" })).await;
    let one = machine["id"].as_str().unwrap().to_owned();
    let node = NodeBuilder::new("one")
        .provider_id(&format!("cn-hangzhou.{one}"))
        .initialised();
    node.pod_cidr("10.244.0.0/24").create(&scene.client).await.unwrap();
    // It is there in one of them.
    scene
        .does("route", json!({ "destination": "10.244.0.0/24", "hop": one }))
        .await;
    scene.run(&[CONTROLLERS]).await;
    let both = [
        ("10.244.0.0/24", one.as_str(), "vtb-1"),
        ("10.244.0.0/24", one.as_str(), "vtb-2"),
    ];
    scene.have_routes("it is in both", &both).await;
    assert_eq!(
        scene.calls("vpc:DeleteRouteEntries").await,
        0,
        "the one that was there stayed"
    );
    scene.nodes().delete("one", &DeleteParams::default()).await.unwrap();
    scene.have_routes("it is in none", &[]).await;
}
