//! Photon Controller: what a Node gets, what the in-tree provider left behind, tasks that take their time.

use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::objects::{addresses, provider_id};
use kube::ResourceExt;
use serde_json::json;

use crate::common_days::Days;
use crate::scene::{LIFECYCLE, NODES, Scene};

fn days() -> Days {
    Days {
        cloud: "photon",
        call: "/vms",
        single: Some("/vms/[0-9a-f]"),
        empty: json!({ "items": [] }),
        refused: "invalid_grant",
        wrong: "username = nobody@photon.local\n",
        login: "POST /openidconnect/token",
        config: "",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn photon_machines_stop_and_go() {
    days().machines_stop_and_go().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn photon_what_is_no_denial_deletes_no_node() {
    days().what_is_no_denial_deletes_no_node().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn photon_wrong_credentials_are_named() {
    days().wrong_credentials_are_named().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lightwave_token_that_ended_is_replaced() {
    days().a_token_that_ended_is_replaced().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn photon_node_is_named_by_address_and_task_takes_time() {
    let mut scene = Scene::new("photon").await;
    let made = scene
        .does("add_machine", json!({ "name": "vm-a", "flavor": "big (fast)" }))
        .await;
    scene.does("tasks_take", json!({ "seconds": 0.3 })).await;
    let ip = made["ip"].as_str().unwrap();
    NodeBuilder::new(ip).create(&scene.client).await.unwrap();
    scene.config = format!(
        "overrideIP = true\nlightwave =\nusername =\ntarget = {}/open\ntenant =\nproject = p-1\nvmID = 1-2\nauthentication = false\n",
        scene.cloud.url()
    );
    scene.start(&[NODES]).await;
    let node = scene.initialised(ip).await;
    let expected = format!("photon://{}", made["id"].as_str().unwrap());
    assert_eq!(provider_id(&node), Some(expected.as_str()));
    let instance_type = node.labels().get("node.kubernetes.io/instance-type");
    assert_eq!(instance_type.map(String::as_str), Some("big-fast"));
    assert_eq!(addresses(&node), [format!("InternalIP {ip}"), format!("Hostname {ip}")]);
    assert_eq!(scene.calls("POST").await, 0, "nobody is asked who he is");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_tree_photon_nodes_stay_and_listing_is_paged() {
    let mut scene = Scene::new("photon").await;
    scene
        .does("add_machines", json!({ "prefix": "other", "count": 120 }))
        .await;
    scene.left_behind("left", "photon://{}").await;
    let id = scene.joins("new").await;
    scene.start(&[LIFECYCLE]).await;
    let node = scene.initialised("new").await;
    assert_eq!(provider_id(&node), Some(format!("photon://{id}").as_str()));
    let left = scene.node("left").await.unwrap();
    assert!(provider_id(&left).is_some_and(|id| id.starts_with("photon://")));
    let calls = scene.cloud.calls().await.unwrap();
    let pages = calls.iter().filter(|call| call.name == "GET /projects/p-1/vms");
    assert!(pages.count() >= 3, "{calls:?}");
}
