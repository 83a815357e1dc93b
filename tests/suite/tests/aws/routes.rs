//! Routes in the VPC's table: made with the check of addresses off, replaced when dead, cleaned up, and nobody else's touched.

use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::scene::Scene;

/// Destination and target of each route in the cluster's table, without the VPC's own.
pub async fn table(scene: &Scene) -> Vec<(String, String)> {
    let answer = scene
        .ask(
            "describe_route_tables",
            json!({ "RouteTableIds": [scene.cluster.route_table] }),
        )
        .await;
    let routes = answer["RouteTables"][0]["Routes"].as_array().unwrap().clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let target = |route: &Value| text(&route["InstanceId"]) + &text(&route["GatewayId"]);
    let routes = routes
        .iter()
        .map(|route| (text(&route["DestinationCidrBlock"]), target(route)));
    let mut routes: Vec<(String, String)> = routes.filter(|(_, target)| target != "local").collect();
    routes.sort();
    routes
}

pub async fn has(scene: &Scene, destination: &str, target: &str) -> Result<(), String> {
    let table = table(scene).await;
    if table.contains(&(destination.to_owned(), target.to_owned())) {
        Ok(())
    } else {
        Err(format!("{table:?}"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_come_with_nodes_and_go_with_them_and_others_stay() {
    let mut scene = Scene::new("routed").await;
    // Somebody's own appliance, and a route of another kind, both within the Pod range.
    let appliance = scene.cluster.machines(scene.moto, 1, 1).await.unwrap().remove(0);
    let tag = json!([{ "Key": "kubernetes.io/cluster/routed" }]);
    scene
        .ask("delete_tags", json!({ "Resources": [appliance.id], "Tags": tag }))
        .await;
    let foreign = json!({
        "RouteTableId": scene.cluster.route_table, "DestinationCidrBlock": "10.244.200.0/24", "InstanceId": appliance.id,
    });
    scene.ask("create_route", foreign).await;
    let before = table(&scene).await;
    assert_eq!(before.len(), 2, "the gateway's and the appliance's: {before:?}");

    let one = scene.joins("10.244.1.0/24").await;
    let two = scene.joins("10.244.2.0/24").await;
    scene.start(&["--controllers=cloud-node-controller,node-route-controller"]);
    for (machine, range) in [(&one, "10.244.1.0/24"), (&two, "10.244.2.0/24")] {
        scene
            .settled("the route is there", || has(&scene, range, &machine.id))
            .await;
        let attribute = json!({ "InstanceId": machine.id, "Attribute": "sourceDestCheck" });
        let check = scene.ask("describe_instance_attribute", attribute).await;
        assert_eq!(check["SourceDestCheck"]["Value"], false);
    }
    scene
        .nodes()
        .delete(&two.private_dns, &DeleteParams::default())
        .await
        .unwrap();
    let mut expected = before.clone();
    expected.push(("10.244.1.0/24".into(), one.id.clone()));
    expected.sort();
    scene
        .settled("the route of the Node that is gone is gone", || async {
            let table = table(&scene).await;
            if table == expected {
                Ok(())
            } else {
                Err(format!("{table:?}"))
            }
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn route_deleted_outside_comes_back() {
    let mut scene = Scene::new("drifting").await;
    let one = scene.joins("10.244.1.0/24").await;
    scene.start(&["--controllers=cloud-node-controller,node-route-controller"]);
    scene
        .settled("the route is there", || has(&scene, "10.244.1.0/24", &one.id))
        .await;
    let gone = json!({ "RouteTableId": scene.cluster.route_table, "DestinationCidrBlock": "10.244.1.0/24" });
    scene.ask("delete_route", gone).await;
    scene
        .settled("it is there again", || has(&scene, "10.244.1.0/24", &one.id))
        .await;
    // The check was off already.
    assert_eq!(scene.count("ModifyInstanceAttribute").await, 1);
}
