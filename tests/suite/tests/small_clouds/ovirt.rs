//! oVirt: what a Node gets, what the in-tree provider left behind, and what oVirt's own SDK says to the stand-in.

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
        cloud: "ovirt",
        call: "GET /vms",
        single: Some("/vms/[0-9a-f]"),
        empty: json!({}),
        // What follows is a part of the secret `username`.
        refused: "Cannot authenticate user 'nobody",
        wrong: "username = nobody@internal\n",
        login: "POST /ovirt-engine/sso/oauth/token",
        config: "",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ovirt_machines_stop_and_go() {
    days().machines_stop_and_go().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ovirt_what_is_no_denial_deletes_no_node() {
    days().what_is_no_denial_deletes_no_node().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ovirt_wrong_credentials_are_named() {
    days().wrong_credentials_are_named().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ovirt_a_token_that_ended_is_replaced() {
    days().a_token_that_ended_is_replaced().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ovirt_single_sign_on_that_fails_is_requested_again() {
    let mut scene = Scene::new("ovirt").await;
    scene.joins("one").await;
    scene.does("sign_on", json!({ "works": false })).await;
    scene.start(&[NODES]).await;
    scene.is_asked("the log in is tried", days().login, 2).await;
    scene.logs("server_error").await;
    scene.does("sign_on", json!({ "works": true })).await;
    scene.initialised("one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ovirt_node_gets_type_zone_region_and_addresses() {
    let mut scene = Scene::new("ovirt").await;
    scene.config = "auth = basic\n[filters]\nvms = tag=k8s\n[zones]\nlabel-prefix = zone-\n".into();
    let ips = json!(["fe80::1", "127.0.0.1", "fd00::9", "10.7.7.7", "10.7.7.8"]);
    let machine = json!({
        "name": "m", "fqdn": "Node-A", "cores": 8, "memory": 5_u64 << 29, "ips": ips, "labels": ["fast", "zone-a 1"], "tags": ["k8s"],
    });
    let id = scene.does("add_machine", machine).await["id"].clone();
    // The same name, and not what the operator's search finds.
    scene
        .does("add_machine", json!({ "name": "other", "fqdn": "node-a" }))
        .await;
    NodeBuilder::new("node-a").create(&scene.client).await.unwrap();
    scene.start(&[NODES]).await;
    let node = scene.initialised("node-a").await;
    let expected = format!("ovirt:///{}", id.as_str().unwrap());
    assert_eq!(provider_id(&node), Some(expected.as_str()));
    for (key, value) in [
        ("node.kubernetes.io/instance-type", "ovirt-8c-3g"),
        ("topology.kubernetes.io/zone", "a-1"),
        ("topology.kubernetes.io/region", "North"),
    ] {
        assert_eq!(node.labels().get(key).map(String::as_str), Some(value), "{key}");
    }
    let expected = [
        "InternalIP 10.7.7.7",
        "InternalIP 10.7.7.8",
        "InternalIP fd00::9",
        "Hostname Node-A",
    ];
    assert_eq!(addresses(&node), expected);
    assert_eq!(scene.calls("POST").await, 0, "Basic needs no token");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_of_the_in_tree_ovirt_stay_and_many_are_listed_in_pages() {
    let mut scene = Scene::new("ovirt").await;
    scene
        .does("add_machines", json!({ "prefix": "other", "count": 250 }))
        .await;
    for number in 0..6 {
        scene.left_behind(&format!("left-{number}"), "ovirt:///{}").await;
    }
    let id = scene.joins("new").await;
    scene.start(&[LIFECYCLE, "--node-status-update-frequency=1s"]).await;
    let node = scene.initialised("new").await;
    assert_eq!(provider_id(&node), Some(format!("ovirt:///{id}").as_str()));
    scene.is_asked("their addresses are looked at", "GET /vms", 3).await;
    for number in 0..6 {
        let node = scene.node(&format!("left-{number}")).await.unwrap();
        assert!(provider_id(&node).is_some_and(|id| id.starts_with("ovirt:///")));
    }
    let calls = scene.cloud.calls().await.unwrap();
    assert!(calls.iter().any(|call| call.target.contains("page%203")), "{calls:?}");
    let single = calls.iter().filter(|call| call.name == "GET /vms/{id}");
    assert!(single.count() <= 3, "{calls:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ovirts_own_sdk_finds_an_engine_in_the_stand_in() {
    let cloud = StandIn::start("ovirt", &[]).await.unwrap();
    let seen = own_client(&cloud, "ovirt.judge").await.unwrap();
    let expected = json!({
        "pages": [50, 50, 21, 0], "different": 121, "machine": [true, "Judged.Example", "up", 4, 4], "ips": true, "labels": ["zone-a"],
        "unfollowed": true, "cluster": ["Racks", "North"], "down": ["down", null, 0], "renewed": 121, "missing": true,
        "search": ["Error", 400, "Operation Failed"], "follow": ["Error", 400, "Operation Failed"], "password": true,
    });
    assert_eq!(seen, expected);
    let calls = cloud.calls().await.unwrap();
    assert!(calls.iter().filter(|call| call.agent.starts_with("PythonSDK/")).count() > 10);
    assert!(
        calls.iter().all(|call| call.status != 599),
        "the stand-in made a mistake"
    );
}
