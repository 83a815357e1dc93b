//! Mesos and DC/OS: what a Node gets, what the in-tree provider left behind, leading masters and unreachable agents.

use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::objects::{addresses, provider_id};
use kube::ResourceExt;
use serde_json::json;

use crate::common_days::Days;
use crate::scene::{LIFECYCLE, NODES, Scene};

fn days() -> Days {
    Days {
        cloud: "mesos",
        call: "GET /master/slaves",
        single: None,
        empty: json!({ "slaves": [], "recovered_slaves": [] }),
        refused: "ERR_INVALID_CREDENTIALS",
        wrong: "uid = nobody\n",
        login: "POST /acs/api/v1/auth/login",
        config: "",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mesos_machines_stop_and_go() {
    days().machines_stop_and_go().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mesos_what_is_no_denial_deletes_no_node() {
    days().what_is_no_denial_deletes_no_node().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dcos_wrong_credentials_are_named() {
    let config = "auth = dcos-password\n";
    Days { config, ..days() }.wrong_credentials_are_named().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dcos_token_that_ended_is_replaced_by_a_signature() {
    days().a_token_that_ended_is_replaced().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mesos_node_gets_zone_and_address_from_the_leading_master() {
    let mut scene = Scene::new("mesos").await;
    let machine = json!({ "name": "Node-A", "zone": "z 1", "region": "r", "attributes": { "instance_type": "m5.large", "rack": 7.0 } });
    let made = scene.does("add_machine", machine).await;
    NodeBuilder::new("node-a").create(&scene.client).await.unwrap();
    scene.config = format!("auth = none\nuid =\nmesos-master = {}/follower\n", scene.cloud.url());
    scene.start(&[NODES]).await;
    let node = scene.initialised("node-a").await;
    let expected = format!("mesos://{}", made["id"].as_str().unwrap());
    assert_eq!(provider_id(&node), Some(expected.as_str()));
    for (key, value) in [
        ("node.kubernetes.io/instance-type", "m5.large"),
        ("topology.kubernetes.io/zone", "z-1"),
        ("topology.kubernetes.io/region", "r"),
    ] {
        assert_eq!(node.labels().get(key).map(String::as_str), Some(value), "{key}");
    }
    assert_eq!(addresses(&node), ["InternalIP 10.8.0.0", "Hostname Node-A"]);
    let calls = scene.cloud.calls().await.unwrap();
    assert!(calls.iter().any(|call| call.status == 307), "{calls:?}");
    assert_eq!(scene.calls("POST").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_of_the_in_tree_mesos_and_of_unreachable_agents_stay() {
    let mut scene = Scene::new("mesos").await;
    scene.config = format!("auth = basic\nuid =\nmesos-master = {}/basic\n", scene.cloud.url());
    let left = scene.left_behind("left", "mesos://").await;
    scene.joins("other").await;
    let unreachable = scene.joins("unreachable").await;
    let recovered = scene.joins("recovered").await;
    scene.start(&[LIFECYCLE]).await;
    for name in ["other", "unreachable", "recovered"] {
        scene.initialised(name).await;
    }
    scene.does("delete", json!({ "id": left, "kind": "gone" })).await;
    scene
        .does("delete", json!({ "id": unreachable, "kind": "unreachable" }))
        .await;
    scene
        .does("recover", json!({ "id": recovered, "recovered": true }))
        .await;
    for name in ["left", "unreachable", "recovered"] {
        scene.falls_silent(name).await;
    }
    scene
        .is_asked("the registry is asked", "GET /registrar(1)/registry", 4)
        .await;
    scene.does("lead", json!({ "leads": false })).await;
    scene.is_asked("no master leads", "GET /master/slaves", 3).await;
    for name in ["unreachable", "recovered", "left"] {
        assert!(scene.node(name).await.is_some(), "{name}");
    }
    assert_eq!(provider_id(&scene.node("left").await.unwrap()), Some("mesos://"));
}
