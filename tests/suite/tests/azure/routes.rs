//! Routes of a route table: made in one change, found again, deleted; a table that others change too.

use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::scene::Scene;

const CONTROLLERS: &str = "--controllers=cloud-node-controller,node-route-controller";
const TABLE: &str = "/subscriptions/00000000-aaaa-4bbb-8ccc-dddddddddddd/resourceGroups/demo/providers/Microsoft.Network/routeTables/table";
const PUT: &str = "PUT Microsoft.Network/routeTables";

impl Scene {
    async fn table(&self) -> Value {
        self.does("get", json!({ "path": TABLE })).await
    }

    async fn has_routes(&self, what: &str, wanted: &[(&str, &str, &str)]) {
        self.settled(what, || async {
            let table = self.table().await;
            let routes = table["properties"]["routes"].as_array().cloned().unwrap_or_default();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let mut found: Vec<_> = routes
                .iter()
                .map(|route| {
                    let properties = &route["properties"];
                    (
                        text(&route["name"]),
                        text(&properties["addressPrefix"]),
                        text(&properties["nextHopIpAddress"]),
                    )
                })
                .collect();
            found.sort();
            let same = found
                .iter()
                .map(|(name, to, via)| (name.as_str(), to.as_str(), via.as_str()));
            if same.eq(wanted.iter().copied()) {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn node_routes_live_with_their_nodes_and_foreign_ones_stay() {
    let mut scene = Scene::new().await;
    scene.config = json!({ "tags": "team=red" });
    scene.does("operations_take", json!({ "seconds": 1.0 })).await;
    for (number, name) in ["one", "two"].into_iter().enumerate() {
        scene.joins(name, &format!("10.244.{number}.0/24")).await;
    }
    scene.start(&[CONTROLLERS]).await;
    let (one, two) = (
        ("one", "10.244.0.0/24", "10.0.0.4"),
        ("two", "10.244.1.0/24", "10.0.0.5"),
    );
    scene.has_routes("both have routes", &[one, two]).await;
    let table = scene.table().await;
    assert_eq!(
        (&table["tags"]["team"], &table["location"]),
        (&json!("red"), &json!("westeurope"))
    );
    let mut changed = table.clone();
    let foreign = json!({ "name": "by-hand", "properties": { "addressPrefix": "192.168.0.0/16", "nextHopType": "VirtualAppliance", "nextHopIpAddress": "10.9.9.9" } });
    changed["properties"]["routes"].as_array_mut().unwrap().push(foreign);
    changed["tags"]["by"] = json!("hand");
    scene.does("put", json!({ "path": TABLE, "resource": changed })).await;
    let others = ("by-hand", "192.168.0.0/16", "10.9.9.9");
    scene.nodes().delete("two", &DeleteParams::default()).await.unwrap();
    scene
        .has_routes("that of the deleted Node is gone", &[others, one])
        .await;
    assert_eq!(scene.table().await["tags"], json!({ "team": "red", "by": "hand" }));
    let puts = scene.calls(PUT).await;
    assert!(
        (2..=4).contains(&puts),
        "{puts} changes: operations that take time are not begun again"
    );
    // Deleted by somebody else: the table and all its routes come back.
    scene.does("delete", json!({ "path": TABLE })).await;
    scene.has_routes("it is made again", &[one]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn change_by_another_writer_meanwhile_is_not_lost() {
    let mut scene = Scene::new().await;
    scene.joins("one", "10.244.0.0/24").await;
    let empty = json!({ "location": "westeurope", "properties": { "routes": [] } });
    scene.does("put", json!({ "path": TABLE, "resource": empty })).await;
    let refused = |code: &str| json!({ "error": { "code": code, "message": "changed" } });
    let faults = json!([
        { "method": "PUT", "path": "routeTables/table", "status": 412, "value": refused("PreconditionFailed") },
        { "method": "PUT", "path": "routeTables/table", "status": 409, "value": refused("AnotherOperationInProgress") },
    ]);
    scene.cloud.faults(faults).await.unwrap();
    scene.start(&[CONTROLLERS]).await;
    scene
        .has_routes("it is tried again", &[("one", "10.244.0.0/24", "10.0.0.4")])
        .await;
    assert_eq!(scene.calls(PUT).await, 3);
}
