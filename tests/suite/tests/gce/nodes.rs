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

use crate::scene::{Scene, ZONE};

#[tokio::test(flavor = "multi_thread")]
async fn nodes_get_id_type_zone_region_and_addresses_of_machines() {
    let mut scene = Scene::new().await;
    let machine = json!({ "name": "node-1", "zone": "us-central1-b", "ipv6": "external" });
    let machine = scene.does("add_machine", machine).await;
    NodeBuilder::new("node-1").create(&scene.client).await.unwrap();
    scene.start(&["--controllers=cloud-node-controller"]).await;
    let node = scene.initialised("node-1").await;
    assert_eq!(provider_id(&node), Some("gce://demo/us-central1-b/node-1"));
    for (key, value) in [
        ("node.kubernetes.io/instance-type", "e2-standard-2"),
        ("topology.kubernetes.io/zone", "us-central1-b"),
        ("topology.kubernetes.io/region", "us-central1"),
    ] {
        assert_eq!(node.labels().get(key).map(String::as_str), Some(value), "{key}");
    }
    let interface = &machine["networkInterfaces"][0];
    let ip = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let expected = [
        format!("InternalIP {}", ip(&interface["networkIP"])),
        format!("ExternalIP {}", ip(&interface["accessConfigs"][0]["natIP"])),
        "InternalIP 2600:1900::1".to_owned(),
        // The kubelet told it.
        "Hostname node-1".to_owned(),
    ];
    assert_eq!(addresses(&node), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_machine_is_tainted_and_deleted_machines_node_goes() {
    let mut scene = Scene::new().await;
    for (number, name) in ["stopped", "deleted", "silent"].into_iter().enumerate() {
        scene.joins(name, ZONE, &format!("10.244.{number}.0/24")).await;
    }
    let controllers = "--controllers=cloud-node-controller,cloud-node-lifecycle-controller";
    scene.start(&[controllers]).await;
    for name in ["stopped", "deleted", "silent"] {
        scene.initialised(name).await;
    }
    scene
        .does("set_status", json!({ "name": "stopped", "status": "TERMINATED" }))
        .await;
    let path = format!("projects/demo/zones/{ZONE}/instances/deleted");
    scene.does("delete", json!({ "path": path })).await;
    for name in ["stopped", "deleted", "silent"] {
        scene.falls_silent(name).await;
    }
    scene
        .settled("one Node is gone and one tainted", || async {
            let tainted = scene.node("stopped").await.is_some_and(|node| is_shut_down(&node));
            match (tainted, scene.node("deleted").await) {
                (true, None) => Ok(()),
                (tainted, node) => Err(format!("{tainted}, {:?}", node.is_some())),
            }
        })
        .await;
    let silent = scene.node("silent").await.unwrap();
    assert!(!is_shut_down(&silent), "it runs, only its kubelet is silent");
}

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_machines_are_fifty_lists() {
    let cloud = StandIn::start("gce", &[]).await.unwrap();
    let names = cloud
        .call("add_machines", json!({ "prefix": "node", "count": 5_000 }))
        .await
        .unwrap();
    let names: Vec<String> = serde_json::from_value(names).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let hosting = Hosting::new(HostOptions::default());
    let port: u16 = cloud.url().rsplit_once(':').unwrap().1.parse().unwrap();
    let key = cloud.call("key", json!({})).await.unwrap();
    let file = folder.path().join("key.pem");
    std::fs::write(&file, key["private_key"].as_str().unwrap()).unwrap();
    let grants = json!({
        "http": [{ "scheme": "http", "host": "127.0.0.1", "port": port, "methods": ["GET", "POST"], "allowLoopback": true }],
        "secrets": [{ "name": "private-key", "file": file, "uses": ["sign"] }],
    });
    let config = json!({ "global": {
        "project-id": "demo", "local-zone": ZONE, "network-name": "default", "client-email": key["client_email"],
        "private-key-id": key["private_key_id"], "token-uri": format!("{}/token", cloud.url()),
        "api-endpoint": format!("{}/compute/v1", cloud.url()),
    }});
    let settings = ProviderSettings {
        config_text: config.to_string(),
        grants: serde_json::from_value(grants).unwrap(),
        ..settings()
    };
    let component = tokio::task::spawn_blocking(|| guests::provider("gce")).await.unwrap();
    let provider = hosting.load_file(&component, settings).await.unwrap();
    for page in names.chunks(1_000) {
        let nodes: Vec<NodeRef> = page
            .iter()
            .map(|name| {
                let even = name.rsplit('-').next().unwrap().parse::<u32>().unwrap() % 2 == 0;
                let zone = if even { "us-central1-a" } else { "us-central1-b" };
                NodeRef {
                    provider_id: Some(format!("gce://demo/{zone}/{name}")),
                    ..node(name)
                }
            })
            .collect();
        let answers = provider.lookup(&nodes).await.unwrap();
        for (answer, node) in answers.iter().zip(&nodes) {
            let Ok(Presence::Running(instance)) = answer else {
                panic!("{answer:?}")
            };
            assert_eq!(Some(&instance.provider_id), node.provider_id.as_ref());
        }
    }
    let calls = cloud.calls().await.unwrap();
    let count = |name: &str| calls.iter().filter(|call| call.name == name).count();
    assert_eq!(
        (
            count("instances.aggregatedList"),
            count("instances.get"),
            count("/token")
        ),
        (50, 0, 1)
    );
}
