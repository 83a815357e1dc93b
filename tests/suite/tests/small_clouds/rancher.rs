//! Rancher 1.x: what a Node gets, what upstream's controller left behind, and what Rancher's own client says to the stand-in.

use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::small_clouds::own_client;
use cloudwit_test_support::objects::{addresses, provider_id};
use kube::ResourceExt;
use serde_json::json;

use crate::common_days::Days;
use crate::scene::{LIFECYCLE, NODES, Scene};

fn days() -> Days {
    Days {
        cloud: "rancher",
        call: "GET /hosts",
        single: Some("uuid="),
        empty: json!({ "type": "collection", "resourceType": "host", "data": [], "pagination": { "next": null, "partial": false } }),
        refused: "Unauthorized",
        wrong: "cattle-url = {}/other/v2-beta/projects/1a5\n",
        login: "none: every request has the keys",
        config: "",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rancher_machines_stop_and_go() {
    days().machines_stop_and_go().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rancher_what_is_no_denial_deletes_no_node() {
    days().what_is_no_denial_deletes_no_node().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rancher_wrong_credentials_are_named() {
    days().wrong_credentials_are_named().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_environment_without_hosts_deletes_no_node() {
    let mut scene = Scene::new("rancher").await;
    scene.left_behind("left", "rancher://{}").await;
    // That of another environment, which the key opens too.
    scene.config = "cattle-url = {}/v2-beta/projects/1a7\n".into();
    scene.start(&[LIFECYCLE]).await;
    scene.falls_silent("left").await;
    scene.is_asked("the empty environment is asked", "GET /hosts", 12).await;
    assert!(scene.node("left").await.is_some());
    scene.logs("no host at all is seen").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rancher_node_learns_zone_region_and_addresses() {
    let mut scene = Scene::new("rancher").await;
    let labels = json!({ "io.rancher.host.zone": "z 1", "io.rancher.host.region": "r" });
    let machine = json!({ "name": "Node-A.example.com", "labels": labels, "ips": ["10.7.7.7", "10.7.7.8"] });
    let made = scene.does("add_machine", machine).await;
    NodeBuilder::new("node-a").create(&scene.client).await.unwrap();
    scene.start(&[NODES]).await;
    let node = scene.initialised("node-a").await;
    let expected = format!("rancher://{}", made["id"].as_str().unwrap());
    assert_eq!(provider_id(&node), Some(expected.as_str()));
    for (key, value) in [
        ("node.kubernetes.io/instance-type", "rancher"),
        ("topology.kubernetes.io/zone", "z-1"),
        ("topology.kubernetes.io/region", "r"),
    ] {
        assert_eq!(node.labels().get(key).map(String::as_str), Some(value), "{key}");
    }
    let expected = [
        "ExternalIP 10.7.7.7",
        "InternalIP 10.7.7.7",
        "ExternalIP 10.7.7.8",
        "InternalIP 10.7.7.8",
        "Hostname Node-A.example.com",
    ];
    assert_eq!(addresses(&node), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_of_upstreams_rancher_stay_and_many_are_listed_in_pages() {
    let mut scene = Scene::new("rancher").await;
    scene
        .does("add_machines", json!({ "prefix": "other", "count": 600 }))
        .await;
    let left = scene.left_behind("left", "rancher://{}").await;
    let id = scene.joins("new").await;
    scene.start(&[LIFECYCLE]).await;
    let node = scene.initialised("new").await;
    assert_eq!(provider_id(&node), Some(format!("rancher://{id}").as_str()));
    let node = scene.node("left").await.unwrap();
    assert_eq!(provider_id(&node), Some(format!("rancher://{left}").as_str()));
    let calls = scene.cloud.calls().await.unwrap();
    assert!(
        calls.iter().any(|call| call.target.contains("marker=m500")),
        "{calls:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn ranchers_own_client_finds_rancher_in_the_stand_in() {
    let cloud = StandIn::start("rancher", &[]).await.unwrap();
    let seen = own_client(&cloud, "rancher.judge").await.unwrap();
    assert_eq!(seen["types"], 14);
    let hosts = json!({
        "pages": [50, 50, 21], "different": 121, "included": ["10.7.7.7", "10.7.7.8"], "linked": ["10.7.7.7", "10.7.7.8"], "zone": "z",
        "off": ["inactive", true, false], "left": 0, "removed": "removed", "missing": null,
    });
    assert_eq!(seen["hosts"], hosts);
    let refusals = json!({
        "rules": [422, "MissingRequired", "lbConfig"], "stack": [422, "InvalidState", "stackId"], "reserved": [422, "InvalidOption", null],
        "service": [422, "InvalidReference", "serviceId"], "port": [422, "MaxLimitExceeded", "sourcePort"], "name": [422, "InvalidCharacters", "name"],
        "field": [422, "InvalidOption", "nmae"], "kind": [422, "InvalidFormat", "lbConfig"], "state": [422, "InvalidOption", "state"],
    });
    let balancer = json!({
        "early": "registering", "off": ["inactive", null, "no"], "on": ["active", [["10.6.0.1", 80]]],
        "again": [422, "NotUnique", "serviceId and link name combination"], "changed": 30081, "behind": [["node-1"], ["lb-judged"]],
        "twice": [422, "NotUnique", "name"], "refusals": refusals, "unlinked": 0, "left": [0, 0, 1],
    });
    assert_eq!(seen["balancer"], balancer);
    let refused = json!({
        "secret": [401, "Unauthorized", null], "project": [404, "NotFound", null], "filter": "nmae is not searchable field", "empty": 0, "delete": false,
    });
    assert_eq!(seen["refused"], refused);
    let calls = cloud.calls().await.unwrap();
    assert!(
        calls.iter().filter(|call| call.agent == "cattle").count() > 40,
        "{calls:?}"
    );
    assert!(
        calls.iter().all(|call| call.status != 599),
        "the stand-in made a mistake"
    );
}
