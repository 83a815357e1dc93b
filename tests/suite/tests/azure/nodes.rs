//! Nodes: initialised, stopped, deleted; 5,000 of them in pages.

use cloudwit_host::{HostOptions, ProviderSettings};
use cloudwit_model::{Cloud, NodeRef, Presence};
use cloudwit_suite::hosting::{Hosting, node, settings};
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::objects::{addresses, is_shut_down, provider_id};
use cloudwit_test_support::programs::guests;
use kube::ResourceExt;
use serde_json::json;

use crate::scene::{NODES, Scene};

const LIFECYCLE: &str = "--controllers=cloud-node-controller,cloud-node-lifecycle-controller";

#[tokio::test(flavor = "multi_thread")]
async fn machines_of_all_kinds_are_one_inventory() {
    let mut scene = Scene::new().await;
    scene
        .does("add_machine", json!({ "name": "alone", "ipv6": true, "public": true }))
        .await;
    let flexible = scene
        .does("add_scale_set", json!({ "name": "flex", "flexible": true }))
        .await;
    let machine =
        json!({ "name": "flex_7", "computer": "flex00007A", "scale_set": flexible, "zone": null, "fault_domain": 2 });
    scene.does("add_machine", machine).await;
    scene.does("add_scale_set", json!({ "name": "uni" })).await;
    let machine = json!({ "scale_set": "uni", "number": 3, "computer": "uni000003", "zone": "3", "public": true });
    scene.does("add_uniform", machine).await;
    for name in ["alone", "flex00007a", "uni000003"] {
        scene.registers(name, "10.244.1.0/24").await;
    }
    scene.start(&[NODES]).await;
    let group =
        "azure:///subscriptions/00000000-aaaa-4bbb-8ccc-dddddddddddd/resourceGroups/demo/providers/Microsoft.Compute";
    for (name, id, size, zone, expected) in [
        (
            "alone",
            "virtualMachines/alone",
            "Standard_D2s_v3",
            "westeurope-1",
            &[
                "InternalIP 10.0.0.4",
                "Hostname alone",
                "ExternalIP 20.0.0.4",
                "InternalIP fd00::4",
            ][..],
        ),
        (
            "flex00007a",
            "virtualMachines/flex_7",
            "Standard_D2s_v3",
            "2",
            &["InternalIP 10.0.0.5", "Hostname flex00007a"],
        ),
        (
            "uni000003",
            "virtualMachineScaleSets/uni/virtualMachines/3",
            "Standard_D4s_v3",
            "westeurope-3",
            &["InternalIP 10.0.0.6", "Hostname uni000003", "ExternalIP 20.0.0.6"],
        ),
    ] {
        let node = scene.initialised(name).await;
        assert_eq!(provider_id(&node), Some(format!("{group}/{id}").as_str()));
        for (key, value) in [
            ("node.kubernetes.io/instance-type", size),
            ("topology.kubernetes.io/zone", zone),
            ("topology.kubernetes.io/region", "westeurope"),
        ] {
            assert_eq!(node.labels().get(key).map(String::as_str), Some(value), "{name} {key}");
        }
        assert_eq!(addresses(&node), expected, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_machine_is_tainted_and_deleted_machines_node_goes() {
    let mut scene = Scene::new().await;
    let mut ids = Vec::new();
    for (number, name) in ["stopped", "deleted", "silent"].into_iter().enumerate() {
        ids.push(scene.joins(name, &format!("10.244.{number}.0/24")).await);
    }
    scene.start(&[LIFECYCLE]).await;
    for name in ["stopped", "deleted", "silent"] {
        scene.initialised(name).await;
    }
    scene
        .does("power", json!({ "id": ids[0], "state": "deallocated" }))
        .await;
    scene.does("delete", json!({ "path": ids[1] })).await;
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
async fn five_thousand_machines_are_listed_in_pages() {
    let cloud = StandIn::start("azure", &[]).await.unwrap();
    let ids = cloud
        .call("add_machines", json!({ "prefix": "node", "count": 5_000 }))
        .await
        .unwrap();
    let ids: Vec<String> = serde_json::from_value(ids).unwrap();
    let hosting = Hosting::new(HostOptions::default());
    let port: u16 = cloud.url().rsplit_once(':').unwrap().1.parse().unwrap();
    let account = cloud.call("account", json!({})).await.unwrap();
    let grants = json!({
        "http": [{ "scheme": "http", "host": "127.0.0.1", "port": port, "methods": ["GET", "POST", "PUT"], "allowLoopback": true }],
    });
    let config = json!({
        "useManagedIdentityExtension": true, "subscriptionId": account["subscription"], "resourceGroup": "demo", "location": "westeurope",
        "resourceManagerEndpoint": cloud.url(), "metadataEndpoint": cloud.url(),
    });
    let settings = ProviderSettings {
        config_text: config.to_string(),
        grants: serde_json::from_value(grants).unwrap(),
        ..settings()
    };
    let component = tokio::task::spawn_blocking(|| guests::provider("azure")).await.unwrap();
    let provider = hosting.load_file(&component, settings).await.unwrap();
    for page in ids.chunks(1_000) {
        let nodes: Vec<NodeRef> = page
            .iter()
            .map(|id| NodeRef {
                provider_id: Some(format!("azure://{}", id.replace("/DEMO/", "/demo/"))),
                ..node(id.rsplit('/').next().unwrap())
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
    // 25 pages of machines, of how they run, and of interfaces, for each thousand Nodes; no machine by itself.
    let lists = [
        count("GET Microsoft.Compute/virtualMachines.list"),
        count("GET Microsoft.Network/networkInterfaces.list"),
        count("GET Microsoft.Compute/virtualMachines"),
        count("GET token"),
    ];
    assert_eq!(lists, [250, 125, 0, 1], "{:?}", calls.first());
}
