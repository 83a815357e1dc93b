//! Nodes: initialised, stopped, deleted, adopted; servers that are not listed yet, and thousands of them.

use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::clouds::openstack::Service;
use cloudwit_test_support::objects::{addresses, is_shut_down, provider_id};
use kube::ResourceExt;
use serde_json::json;

use crate::scene::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn nodes_get_id_type_zone_region_and_addresses_of_their_servers() {
    let mut scene = Scene::new().await;
    let more =
        json!({ "zone": "zone 1 (north)", "access_ipv4": "192.0.2.7", "metadata": { "hostname": "one.example.com" } });
    let server = scene.project.server_with(&scene.network, "node-1", more).await.unwrap();
    let floating = scene.project.floating_address(&server).await.unwrap();
    NodeBuilder::new("node-1").create(&scene.client).await.unwrap();
    scene.start_with_password(&[]);
    let node = scene.initialised("node-1").await;
    assert_eq!(provider_id(&node), Some(server.provider_id().as_str()));
    let labels = node.labels();
    for (key, value) in [
        ("node.kubernetes.io/instance-type", "m1.small"),
        ("topology.kubernetes.io/zone", "zone-1-north"),
        (
            "topology.kubernetes.io/region",
            &*format!("region-of-{}", scene.project.name),
        ),
    ] {
        assert_eq!(labels.get(key).map(String::as_str), Some(value), "{key}");
    }
    assert_eq!(
        addresses(&node),
        [
            format!("InternalIP {}", server.address),
            "ExternalIP 192.0.2.7".into(),
            "Hostname one.example.com".into(),
            format!("ExternalIP {floating}"),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_server_is_tainted_and_deleted_servers_node_goes() {
    let mut scene = Scene::new().await;
    let stopped = scene.joins("stopped", "10.244.1.0/24").await;
    let deleted = scene.joins("deleted", "10.244.2.0/24").await;
    scene.joins("silent", "10.244.3.0/24").await;
    scene.start_with_password(&[]);
    for name in ["stopped", "deleted", "silent"] {
        scene.initialised(name).await;
    }
    scene
        .project
        .change_server(&stopped, json!({ "status": "SHUTOFF" }))
        .await
        .unwrap();
    scene.project.delete_server(&deleted).await.unwrap();
    for name in ["stopped", "deleted", "silent"] {
        scene.falls_silent(name).await;
    }
    scene
        .settled(
            "the Node of the deleted server is gone, that of the stopped one tainted",
            || async {
                let (stopped, deleted) = (scene.node("stopped").await.unwrap(), scene.node("deleted").await);
                let tainted = is_shut_down(&stopped);
                if tainted && deleted.is_none() {
                    Ok(())
                } else {
                    Err(format!("{tainted}, {}", deleted.is_some()))
                }
            },
        )
        .await;
    let silent = scene.node("silent").await.unwrap();
    assert!(!is_shut_down(&silent), "it runs, only its kubelet is silent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_waits_for_a_server_that_is_not_listed_yet() {
    let mut scene = Scene::new().await;
    scene.start_with_password(&[]);
    NodeBuilder::new("late").create(&scene.client).await.unwrap();
    scene
        .settled("Nova was asked for it", || async {
            let calls = scene.project.calls(Service::Compute).await.unwrap();
            let asked = calls.iter().any(|call| call.target.contains("name=%5Elate%24"));
            if asked { Ok(()) } else { Err(format!("{calls:?}")) }
        })
        .await;
    assert!(
        scene
            .node("late")
            .await
            .is_some_and(|node| provider_id(&node).is_none())
    );
    let server = scene.project.server(&scene.network, "late").await.unwrap();
    let node = scene.initialised("late").await;
    assert_eq!(provider_id(&node), Some(server.provider_id().as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_upstream_left_behind_are_kept_as_they_are() {
    let mut scene = Scene::new().await;
    let server = scene.project.server(&scene.network, "old").await.unwrap();
    let regional = scene.project.server(&scene.network, "old-regional").await.unwrap();
    let region = format!("region-of-{}", scene.project.name);
    let regional_id = format!("openstack://{region}/{}", regional.id);
    let ids = [("old", server.provider_id()), ("old-regional", regional_id)];
    for (name, id) in &ids {
        NodeBuilder::new(name)
            .initialised()
            .provider_id(id)
            .label("topology.kubernetes.io/zone", "zone-of-old")
            .label("node.kubernetes.io/instance-type", "type-of-old")
            .create(&scene.client)
            .await
            .unwrap();
    }
    let before: Vec<Option<String>> = [scene.node("old").await, scene.node("old-regional").await]
        .map(|node| node.unwrap().uid())
        .into();
    scene.start_with_password(&[]);
    scene
        .settled("the addresses are those of the servers", || async {
            for (name, address) in [("old", &server.address), ("old-regional", &regional.address)] {
                let node = scene.node(name).await.unwrap();
                let found = addresses(&node);
                if !found.contains(&format!("InternalIP {address}")) {
                    return Err(format!("{name}: {found:?}"));
                }
            }
            Ok(())
        })
        .await;
    for ((name, id), uid) in ids.iter().zip(before) {
        let node = scene.node(name).await.unwrap();
        assert_eq!((provider_id(&node), node.uid()), (Some(id.as_str()), uid));
        assert_eq!(node.labels()["topology.kubernetes.io/zone"], "zone-of-old");
        assert_eq!(node.labels()["node.kubernetes.io/instance-type"], "type-of-old");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_among_thousands_of_servers_take_listing_pages() {
    let mut scene = Scene::new().await;
    let servers = scene.project.servers(&scene.network, "many", 5_100).await.unwrap();
    let names: Vec<&str> = servers.iter().step_by(700).map(|server| server.name.as_str()).collect();
    for name in &names {
        NodeBuilder::new(name).create(&scene.client).await.unwrap();
    }
    // On a busy machine Nova and Neutron may need minutes for eleven pages.
    scene.limits = "limits: {wallTime: 10m}\n";
    scene.start_with_password(&["--node-status-update-frequency=1h"]);
    for name in &names {
        scene.initialised(name).await;
    }
    let calls = scene.project.calls(Service::Compute).await.unwrap();
    let of = |part: &str| calls.iter().filter(|call| call.target.contains(part)).count();
    let listings = of("/servers/detail?limit=500") - of("marker=");
    assert_eq!(
        of("marker="),
        10 * listings,
        "5,100 servers are eleven pages: {calls:#?}"
    );
    assert!(listings <= 2, "{} Nodes took {listings} listings", names.len());
    // Once it is known that there are eleven pages, the eight Nodes are fewer.
    assert!(calls.len() < 11 * listings + 6 + names.len(), "{calls:#?}");
}
