//! Nodes: initialised by address or name, stopped, deleted; thousands of them in pages.

use cloudwit_host::{HostOptions, ProviderSettings};
use cloudwit_model::{Cloud, NodeRef, Presence};
use cloudwit_suite::hosting::{Hosting, node, settings};
use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::files::alibaba::alibaba_files;
use cloudwit_test_support::objects::{addresses, is_shut_down, provider_id};
use cloudwit_test_support::programs::guests;
use kube::ResourceExt;
use serde_json::json;

use crate::scene::{LIFECYCLE, NODES, Scene};

#[tokio::test(flavor = "multi_thread")]
async fn node_gets_type_zone_region_and_addresses() {
    let mut scene = Scene::new().await;
    // RPC signatures, which private clouds want, here; ACS3 in all other tests.
    scene.config = json!({ "signature": "HMAC-SHA1" });
    let machine = json!({ "name": "a", "zone": "cn-hangzhou-k", "kind": "ecs.c7.xlarge", "eip": "47.96.1.1", "ipv6": "2408::7", "ip": "10.9.0.7" });
    let id = scene.does("add_machine", machine).await["id"]
        .as_str()
        .unwrap()
        .to_owned();
    // Named after its address, as the cloud's own clusters name Nodes, and by its machine's name.
    NodeBuilder::new("cn-hangzhou.10.9.0.7")
        .create(&scene.client)
        .await
        .unwrap();
    scene.joins("by-name").await;
    scene.run(&[NODES]).await;
    let node = scene.initialised("cn-hangzhou.10.9.0.7").await;
    assert_eq!(provider_id(&node), Some(format!("cn-hangzhou.{id}").as_str()));
    for (key, value) in [
        ("node.kubernetes.io/instance-type", "ecs.c7.xlarge"),
        ("topology.kubernetes.io/zone", "cn-hangzhou-k"),
        ("topology.kubernetes.io/region", "cn-hangzhou"),
    ] {
        assert_eq!(node.labels().get(key).map(String::as_str), Some(value), "{key}");
    }
    // The name is the kubelet's own.
    let expected = [
        "ExternalIP 47.96.1.1",
        "InternalIP 10.9.0.7",
        "InternalIP 2408::7",
        "Hostname cn-hangzhou.10.9.0.7",
    ];
    assert_eq!(addresses(&node), expected);
    scene.initialised("by-name").await;
    scene.only_what_the_readme_lists().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_machine_is_tainted_and_released_machines_node_goes() {
    let mut scene = Scene::new().await;
    let names = ["stopped", "released", "silent"];
    let mut ids = Vec::new();
    for name in names {
        ids.push(scene.joins(name).await);
    }
    scene.run(&[LIFECYCLE]).await;
    for name in names {
        scene.initialised(name).await;
    }
    scene.does("power", json!({ "id": ids[0], "state": "Stopped" })).await;
    scene.does("delete", json!({ "kind": "machines", "id": ids[1] })).await;
    for name in names {
        scene.falls_silent(name).await;
    }
    scene
        .settled("one Node is gone and one is tainted", || async {
            let tainted = scene.node("stopped").await.is_some_and(|node| is_shut_down(&node));
            let gone = scene.node("released").await.is_none();
            match tainted && gone {
                true => Ok(()),
                false => Err(format!("tainted {tainted}, gone {gone}")),
            }
        })
        .await;
    assert!(
        !is_shut_down(&scene.node("silent").await.unwrap()),
        "only its kubelet is silent"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_machines_are_fetched_by_hundreds() {
    let scene = Scene::new().await;
    let ids = scene
        .does("add_machines", json!({ "prefix": "node", "count": 5_000 }))
        .await;
    let ids: Vec<String> = serde_json::from_value(ids).unwrap();
    let files = alibaba_files(&scene.cloud, &json!({}), &scene.deployment)
        .await
        .unwrap();
    let hosting = Hosting::new(HostOptions::default());
    let settings = ProviderSettings {
        config_text: files.config,
        grants: serde_saphyr::from_str::<serde_json::Value>(&files.settings)
            .map(|settings| serde_json::from_value(settings["grants"].clone()).unwrap())
            .unwrap(),
        ..settings()
    };
    let component = tokio::task::spawn_blocking(|| guests::provider("alibaba"))
        .await
        .unwrap();
    let provider = hosting.load_file(&component, settings).await.unwrap();
    scene.cloud.forget_calls().await.unwrap();
    for some in ids.chunks(1_000) {
        let nodes: Vec<NodeRef> = some
            .iter()
            .map(|id| NodeRef {
                provider_id: Some(format!("cn-hangzhou.{id}")),
                ..node("some-node")
            })
            .collect();
        let seen = provider.lookup(&nodes).await.unwrap();
        assert!(seen.iter().all(|one| matches!(one, Ok(Presence::Running(_)))));
    }
    assert_eq!(scene.calls("ecs:DescribeInstances").await, 50);
}
