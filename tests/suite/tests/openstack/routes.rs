//! Routes of Nodes on a router of Neutron, with the address pairs of their ports.

use std::collections::BTreeSet;

use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::clouds::openstack::Service;
use cloudwit_test_support::gate::Point;
use http::{Method, StatusCode};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::scene::Scene;

/// Destination and next hop of each route.
async fn routes(scene: &Scene) -> BTreeSet<(String, String)> {
    let path = format!("/v2.0/routers/{}", scene.router);
    let router = scene.project.cloud.get(Service::Network, &path).await.unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let routes = router["router"]["routes"].as_array().unwrap();
    routes
        .iter()
        .map(|route| (text(&route["destination"]), text(&route["nexthop"])))
        .collect()
}

async fn pairs(scene: &Scene, port: &str) -> Vec<String> {
    let path = format!("/v2.0/ports/{port}");
    let port = scene.project.cloud.get(Service::Network, &path).await.unwrap();
    let pairs = port["port"]["allowed_address_pairs"].as_array().unwrap();
    pairs
        .iter()
        .map(|pair| pair["ip_address"].as_str().unwrap().to_owned())
        .collect()
}

async fn has(scene: &Scene, wanted: &[(&str, &str)]) -> Result<(), String> {
    let found = routes(scene).await;
    let wanted = wanted
        .iter()
        .map(|(to, via)| ((*to).to_owned(), (*via).to_owned()))
        .collect();
    if found == wanted {
        Ok(())
    } else {
        Err(format!("{found:?}"))
    }
}

async fn put_routes(scene: &Scene, hops: &[(&str, &str)]) {
    let routes: Vec<Value> = hops
        .iter()
        .map(|(to, via)| json!({ "destination": to, "nexthop": via }))
        .collect();
    let path = format!("/v2.0/routers/{}", scene.router);
    let body = json!({ "router": { "routes": routes } });
    scene.project.cloud.put(Service::Network, &path, body).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn node_routes_and_pairs_live_with_nodes_foreign_ones_stay() {
    let mut scene = Scene::new().await;
    // One leads nowhere in the cluster's range, the other is none of ours.
    put_routes(
        &scene,
        &[("10.244.99.0/24", "10.1.77.77"), ("192.168.50.0/24", "10.1.77.78")],
    )
    .await;
    let one = scene.joins("one", "10.244.1.0/24").await;
    let two = scene.joins("two", "10.244.2.0/24").await;
    scene.start_with_password(&[]);
    let foreign = ("192.168.50.0/24", "10.1.77.78");
    let hops = [
        ("10.244.1.0/24", one.address.as_str()),
        ("10.244.2.0/24", two.address.as_str()),
        foreign,
    ];
    scene
        .settled("both have routes, the black hole is gone", || has(&scene, &hops))
        .await;
    scene
        .settled("their ports let the Pods' traffic through", || async {
            let found = (pairs(&scene, &one.port).await, pairs(&scene, &two.port).await);
            if found == (vec!["10.244.1.0/24".into()], vec!["10.244.2.0/24".into()]) {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        })
        .await;
    scene
        .settled("the Node says so", || async {
            let node = scene.node("one").await.unwrap();
            let conditions = node.status.unwrap().conditions.unwrap();
            let created = conditions
                .iter()
                .any(|one| one.type_ == "NetworkUnavailable" && one.reason.as_deref() == Some("RouteCreated"));
            if created {
                Ok(())
            } else {
                Err(format!("{conditions:?}"))
            }
        })
        .await;
    scene.nodes().delete("two", &DeleteParams::default()).await.unwrap();
    scene
        .settled("the other's route is gone", || async {
            has(&scene, &[("10.244.1.0/24", &one.address), foreign]).await
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn upstream_routes_stay_and_lost_pair_is_restored() {
    let mut scene = Scene::new().await;
    let one = scene.project.server(&scene.network, "one").await.unwrap();
    let two = scene.project.server(&scene.network, "two").await.unwrap();
    for (server, range) in [(&one, "10.244.1.0/24"), (&two, "10.244.2.0/24")] {
        let node = NodeBuilder::new(&server.name)
            .initialised()
            .provider_id(&server.provider_id());
        node.pod_cidr(range)
            .node_ip(&server.address)
            .create(&scene.client)
            .await
            .unwrap();
    }
    let hops = [("10.244.1.0/24", &*one.address), ("10.244.2.0/24", &*two.address)];
    put_routes(&scene, &hops).await;
    let pair = json!({ "port": { "allowed_address_pairs": [{ "ip_address": "10.244.1.0/24" }] } });
    let path = format!("/v2.0/ports/{}", one.port);
    scene.project.cloud.put(Service::Network, &path, pair).await.unwrap();
    scene.start_with_password(&[]);
    scene
        .settled("the second port lets traffic through", || async {
            let found = pairs(&scene, &two.port).await;
            if found == ["10.244.2.0/24"] {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        })
        .await;
    assert_eq!(has(&scene, &hops).await, Ok(()));
    let calls = scene.project.calls(Service::Network).await.unwrap();
    let changes: Vec<_> = calls.iter().filter(|call| call.method != "GET").collect();
    assert_eq!(changes.len(), 1, "one port was changed and nothing else: {changes:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_neutron_without_extraroute_atomic_gets_the_whole_list() {
    let mut scene = Scene::new().await;
    put_routes(&scene, &[("192.168.50.0/24", "10.1.77.78")]).await;
    let gate = scene.gate(Service::Network);
    // What an older Neutron lists; the real one's changes of single routes are then nobody's business.
    let known = ["allowed-address-pairs", "revision-if-match"].map(|alias| json!({ "alias": alias }));
    let answer = cloudwit_test_support::gate::fault::Fault::status(StatusCode::OK);
    let answer = answer.body("application/json", json!({ "extensions": known }).to_string());
    gate.fail(Point::before(Method::GET, "/v2.0/extensions"), answer);
    let one = scene.joins("one", "10.244.1.0/24").await;
    let two = scene.joins("two", "10.244.2.0/24").await;
    scene.start_with_password(&[]);
    let foreign = ("192.168.50.0/24", "10.1.77.78");
    let hops = [
        ("10.244.1.0/24", one.address.as_str()),
        ("10.244.2.0/24", two.address.as_str()),
        foreign,
    ];
    scene.settled("both have routes", || has(&scene, &hops)).await;
    assert_eq!(
        scene
            .gate(Service::Network)
            .count(&Point::before(Method::PUT, "extraroutes")),
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_is_taken_back_while_its_port_cannot_be_changed() {
    let mut scene = Scene::new().await;
    let one = scene.joins("one", "10.244.1.0/24").await;
    let ports = Point::before(Method::PUT, "/v2.0/ports/");
    scene
        .gate(Service::Network)
        .refuse(ports.clone(), StatusCode::SERVICE_UNAVAILABLE);
    scene.start_with_password(&[]);
    let undone = Point::before(Method::PUT, "/remove_extraroutes");
    scene
        .settled("the route was taken back", || async {
            let count = scene.gate(Service::Network).count(&undone);
            if count > 0 { Ok(()) } else { Err("not yet".into()) }
        })
        .await;
    scene.gate(Service::Network).open();
    scene
        .settled("route and pair are there in the end", || async {
            has(&scene, &[("10.244.1.0/24", &one.address)]).await?;
            let found = pairs(&scene, &one.port).await;
            if found == ["10.244.1.0/24"] {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        })
        .await;
}
