//! Routes: made and deleted while the process dies.

use std::collections::BTreeSet;

use cloudwit_sim_cloud::{NewMachine, RouteSpec};
use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::gate::Point;
use cloudwit_test_support::scenes::deployment::CLUSTER_NAME;
use cloudwit_test_support::scenes::rig::Rig;
use http::Method;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};

const FLAGS: [&str; 2] = [
    "--controllers=node-route-controller",
    "--route-reconciliation-period=1s",
];

const BATCH: &str = "/v1/routes/batch";

async fn add_node(rig: &Rig, number: usize) -> String {
    let name = format!("node-{number}");
    let machine = rig.cloud.add_machines([NewMachine::named(&name)]).remove(0);
    let node = NodeBuilder::new(&name)
        .provider_id(&format!("sim://{}", machine.id))
        .pod_cidr(&format!("10.244.{number}.0/24"));
    node.initialised().create(&rig.client).await.unwrap();
    name
}

/// Nothing when each Node has one route and the condition that says so, and no other route of this cluster is left.
async fn wrong(rig: &Rig) -> Result<(), String> {
    let nodes = rig
        .nodes()
        .list(&ListParams::default())
        .await
        .map_err(|error| error.to_string())?;
    let wanted: BTreeSet<(String, String)> = nodes
        .iter()
        .map(|node| (node.name_any(), node.spec.clone().unwrap().pod_cidr.unwrap()))
        .collect();
    let own: Vec<RouteSpec> = rig.cloud.routes().into_iter().map(|route| route.spec).collect();
    let found: Vec<(String, String)> = own
        .into_iter()
        .filter(|route| route.cluster == CLUSTER_NAME)
        .map(|route| (route.node, route.destination))
        .collect();
    if found.len() != wanted.len() || found.iter().cloned().collect::<BTreeSet<_>>() != wanted {
        return Err(format!("routes {found:?} instead of {wanted:?}"));
    }
    for node in &nodes {
        let conditions = node
            .status
            .as_ref()
            .and_then(|status| status.conditions.as_ref())
            .unwrap();
        let condition = conditions.iter().find(|one| one.type_ == "NetworkUnavailable");
        if condition.and_then(|one| one.reason.as_deref()) != Some("RouteCreated") {
            return Err(format!("{}: {condition:?}", node.name_any()));
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_while_changing_routes_leaves_no_duplicate_or_extra() {
    let mut rig = Rig::new(&FLAGS).await.unwrap();
    let foreign = RouteSpec {
        cluster: "another".into(),
        destination: "10.244.1.0/24".into(),
        machine: rig.cloud.add_numbered_machines("foreign", 1).remove(0).id,
        node: "foreign".into(),
    };
    rig.cloud.add_route(foreign).unwrap();
    let condition = |point: fn(Method, String) -> Point, name: &str| {
        point(Method::PATCH, format!("/nodes/{name}/status")).with("NetworkUnavailable")
    };
    for step in 0..4 {
        let name = add_node(&rig, step).await;
        let stop = match step {
            0 => rig.to_cloud.stop_at(Point::before(Method::POST, BATCH)),
            1 => rig.to_cloud.stop_at(Point::after(Method::POST, BATCH)),
            2 => rig.to_api.stop_at(condition(Point::before, &name)),
            _ => rig.to_api.stop_at(condition(Point::after, &name)),
        };
        rig.start().unwrap();
        stop.reached().await;
        rig.kill().unwrap();
        assert_eq!(rig.cloud.routes_made(), [1, 3, 4, 5][step], "step {step}");
    }
    rig.start().unwrap();
    rig.settled("all routes are there", || wrong(&rig)).await;
    for (step, point) in [Point::before, Point::after].into_iter().enumerate() {
        rig.kill().unwrap();
        let stop = rig.to_cloud.stop_at(point(Method::POST, BATCH));
        rig.nodes()
            .delete(&format!("node-{step}"), &DeleteParams::default())
            .await
            .unwrap();
        rig.start().unwrap();
        stop.reached().await;
    }
    rig.kill().unwrap();
    rig.start().unwrap();
    rig.settled("only the routes of the Nodes that are left", || wrong(&rig))
        .await;
    assert_eq!(rig.cloud.routes_made(), 5, "four and the foreign one");
    assert_eq!(rig.cloud.routes().len(), 3, "the other cluster's is untouched");
}
