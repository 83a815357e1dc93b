//! Routes of the VPC: made, found again, deleted; operations that take time; a shared VPC.

use cloudwit_test_support::NodeBuilder;
use kube::api::DeleteParams;
use serde_json::json;

use crate::scene::{Scene, ZONE};

const CONTROLLERS: &str = "--controllers=cloud-node-controller,node-route-controller";

impl Scene {
    async fn routes(&self) -> Vec<(String, String)> {
        let mut routes: Vec<_> = self
            .has("routes")
            .await
            .values()
            .map(|route| {
                let hop = route["nextHopInstance"].as_str().unwrap();
                let text = route["destRange"].as_str().unwrap();
                (text.to_owned(), hop.rsplit('/').next().unwrap().to_owned())
            })
            .collect();
        routes.sort();
        routes
    }

    async fn have_routes(&self, what: &str, wanted: &[(&str, &str)]) {
        let wanted: Vec<_> = wanted
            .iter()
            .map(|(to, via)| ((*to).to_owned(), (*via).to_owned()))
            .collect();
        self.settled(what, || async {
            let routes = self.routes().await;
            if routes == wanted {
                Ok(())
            } else {
                Err(format!("{routes:?}"))
            }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn node_routes_live_with_their_nodes_and_foreign_ones_stay() {
    let mut scene = Scene::new().await;
    scene.does("operations_take", json!({ "seconds": 1.0 })).await;
    for (number, name) in ["one", "two"].into_iter().enumerate() {
        scene.joins(name, ZONE, &format!("10.244.{number}.0/24")).await;
    }
    scene.does("add_machine", json!({ "name": "router" })).await;
    let foreign = json!({
        "destRange": "192.168.0.0/16", "priority": 1000, "network": "projects/demo/global/networks/default",
        "nextHopInstance": format!("projects/demo/zones/{ZONE}/instances/router"),
    });
    scene
        .does(
            "put",
            json!({ "path": "projects/demo/global/routes/by-hand", "fields": foreign }),
        )
        .await;
    scene.start(&[CONTROLLERS]).await;
    let others = ("192.168.0.0/16", "router");
    let both = [("10.244.0.0/24", "one"), ("10.244.1.0/24", "two"), others];
    scene.have_routes("both have routes", &both).await;
    let made = scene.has("routes").await;
    let (name, route) = made
        .iter()
        .find(|(_, route)| route["destRange"] == "10.244.0.0/24")
        .unwrap();
    assert!(
        name.contains("/sandbox-") && route["description"] == "k8s-node-route",
        "{name} {route}"
    );
    scene.nodes().delete("two", &DeleteParams::default()).await.unwrap();
    scene
        .have_routes("that of the deleted Node is gone", &[both[0], others])
        .await;
    assert_eq!(
        scene.calls("routes.insert").await,
        2,
        "operations that take time are not begun again"
    );
    assert_eq!(scene.calls("routes.delete").await, 1);
    // Deleted by somebody else: it comes back.
    scene.does("delete", json!({ "path": name })).await;
    scene.have_routes("it is made again", &[both[0], others]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_of_a_shared_vpc_are_in_its_own_project() {
    let mut scene = Scene::new().await;
    scene.config = "network-project-id = host\n".into();
    let machine = json!({ "name": "one", "zone": ZONE });
    scene.does("add_machine", machine).await;
    NodeBuilder::new("one")
        .pod_cidr("10.244.7.0/24")
        .create(&scene.client)
        .await
        .unwrap();
    scene.start(&[CONTROLLERS]).await;
    scene.have_routes("it has a route", &[("10.244.7.0/24", "one")]).await;
    let all = scene.does("resources", json!({ "collection": "routes" })).await;
    let path = all.as_object().unwrap().keys().next().unwrap().clone();
    assert!(path.starts_with("projects/host/global/routes/"), "{path}");
}
