//! Nodes: initialised, stopped, deleted; 5,000 of them in pages.

use cloudwit_host::{HostOptions, ProviderSettings};
use cloudwit_model::{Cloud, NodeRef, Presence};
use cloudwit_suite::hosting::{Hosting, node, settings};
use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::objects::{addresses, is_shut_down, provider_id};
use cloudwit_test_support::programs::guests;
use kube::ResourceExt;
use serde_json::json;

use crate::scene::{LIFECYCLE, NODES, Scene};

#[tokio::test(flavor = "multi_thread")]
async fn node_gets_type_zone_region_and_addresses() {
    let mut scene = Scene::new().await;
    let machine = json!({ "name": "in the console", "hostname": "Node-A", "zone": "cn-bj-d", "spec": "bcc.gr1.c1m4", "publicip": "198.51.100.7" });
    let machine = scene.does("add_machine", machine).await;
    // Another VPC has a machine with this address and name.
    let elsewhere = json!({ "name": "Node-A", "vpc": "vpc-other", "ip": machine["internalIp"] });
    scene.does("add_machine", elsewhere).await;
    let by_ip = scene.does("add_machine", json!({ "name": "y" })).await;
    let by_ip = by_ip["internalIp"].as_str().unwrap();
    for name in ["node-a", by_ip] {
        NodeBuilder::new(name).create(&scene.client).await.unwrap();
    }
    scene.start(&[NODES]).await;
    let node = scene.initialised("node-a").await;
    let expected = format!("cce://{}", machine["id"].as_str().unwrap());
    assert_eq!(provider_id(&node), Some(expected.as_str()));
    for (key, value) in [
        ("node.kubernetes.io/instance-type", "bcc.gr1.c1m4"),
        ("topology.kubernetes.io/zone", "cn-bj-d"),
        ("topology.kubernetes.io/region", "bj"),
    ] {
        assert_eq!(node.labels().get(key).map(String::as_str), Some(value), "{key}");
    }
    assert_eq!(
        addresses(&node),
        ["InternalIP 10.0.0.1", "Hostname 10.0.0.1", "ExternalIP 198.51.100.7"]
    );
    scene.initialised(by_ip).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_machine_is_tainted_and_nodes_of_released_ones_go() {
    let mut scene = Scene::new().await;
    let names = ["stopped", "released", "deleted", "silent"];
    let mut ids = Vec::new();
    for name in names {
        ids.push(scene.joins(name).await);
    }
    scene.start(&[LIFECYCLE]).await;
    for name in names {
        scene.initialised(name).await;
    }
    scene.does("power", json!({ "id": ids[0], "status": "Stopped" })).await;
    scene.does("delete", json!({ "kind": "machines", "id": ids[1] })).await;
    scene.does("power", json!({ "id": ids[2], "status": "Deleted" })).await;
    for name in names {
        scene.falls_silent(name).await;
    }
    scene
        .settled("two Nodes are gone and one is tainted", || async {
            let tainted = scene.node("stopped").await.is_some_and(|node| is_shut_down(&node));
            let gone = scene.node("released").await.is_none() && scene.node("deleted").await.is_none();
            match tainted && gone {
                true => Ok(()),
                false => Err(format!("tainted {tainted}, gone {gone}")),
            }
        })
        .await;
    let silent = scene.node("silent").await.unwrap();
    assert!(!is_shut_down(&silent), "it runs, only its kubelet is silent");
}

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_machines_are_listed_in_pages() {
    let cloud = StandIn::start("baidu", &[]).await.unwrap();
    let ids = cloud
        .call("add_machines", json!({ "prefix": "node", "count": 5_000 }))
        .await
        .unwrap();
    let ids: Vec<String> = serde_json::from_value(ids).unwrap();
    let account = cloud.call("account", json!({})).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret-access-key");
    std::fs::write(&secret, account["secret"].as_str().unwrap()).unwrap();
    let port: u16 = cloud.url().rsplit_once(':').unwrap().1.parse().unwrap();
    let grants = json!({
        "http": [{ "scheme": "http", "host": "127.0.0.1", "port": port, "methods": ["GET"], "allowLoopback": true }],
        "secrets": [{ "name": "secret-access-key", "file": secret, "uses": ["hmac"] }],
    });
    let config = json!({
        "AccessKeyID": account["key"], "Region": "bj", "ClusterId": "cce-1", "VpcId": account["vpc"], "BccEndpoint": cloud.url(),
    });
    let settings = ProviderSettings {
        config_text: config.to_string(),
        grants: serde_json::from_value(grants).unwrap(),
        ..settings()
    };
    let component = tokio::task::spawn_blocking(|| guests::provider("baidu"));
    let hosting = Hosting::new(HostOptions::default());
    let provider = hosting.load_file(&component.await.unwrap(), settings).await.unwrap();
    for some in ids.chunks(1_000) {
        let of = |id: &String| NodeRef {
            provider_id: Some(format!("cce://{id}")),
            ..node("some-node")
        };
        let nodes: Vec<NodeRef> = some.iter().map(of).collect();
        let answers = provider.lookup(&nodes).await.unwrap();
        for (answer, node) in answers.iter().zip(&nodes) {
            let Ok(Presence::Running(instance)) = answer else {
                panic!("{answer:?}")
            };
            assert_eq!(Some(&instance.provider_id), node.provider_id.as_ref());
        }
    }
    let calls = cloud.calls().await.unwrap();
    // Five pages for each thousand Nodes, and no machine by itself.
    assert!(calls.iter().all(|call| call.name == "ListInstances"), "{calls:?}");
    assert_eq!(calls.len(), 25);
}
