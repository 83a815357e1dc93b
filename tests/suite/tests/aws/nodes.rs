//! Nodes: initialised, stopped, deleted; instances that are not listed yet.

use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::objects::{addresses, is_shut_down, provider_id};
use kube::ResourceExt;
use serde_json::json;

use crate::scene::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn nodes_get_id_labels_and_addresses_of_their_instances() {
    let mut scene = Scene::new("initialised").await;
    let machine = scene.joins("10.244.1.0/24").await;
    scene.start(&[]);
    let node = scene.initialised(&machine.private_dns).await;
    assert_eq!(provider_id(&node), Some(machine.provider_id().as_str()));
    let zones = scene.ask("describe_availability_zones", json!({})).await;
    let zones = zones["AvailabilityZones"].as_array().unwrap();
    let zone = zones
        .iter()
        .find(|zone| zone["ZoneName"] == machine.zone.as_str())
        .unwrap();
    for (key, value) in [
        ("node.kubernetes.io/instance-type", "t3.small"),
        ("topology.kubernetes.io/zone", machine.zone.as_str()),
        ("topology.kubernetes.io/region", "us-east-1"),
        ("topology.k8s.aws/zone-id", zone["ZoneId"].as_str().unwrap()),
    ] {
        assert_eq!(node.labels().get(key).map(String::as_str), Some(value), "{key}");
    }
    let found = scene
        .ask("describe_instances", json!({ "InstanceIds": [machine.id] }))
        .await;
    let found = &found["Reservations"][0]["Instances"][0];
    let mut expected = vec![format!("InternalIP {}", machine.private_ip)];
    expected.extend(found["PublicIpAddress"].as_str().map(|ip| format!("ExternalIP {ip}")));
    expected.push(format!("InternalDNS {}", machine.private_dns));
    expected.push(format!("Hostname {}", machine.private_dns));
    let public = found["PublicDnsName"].as_str().filter(|name| !name.is_empty());
    expected.extend(public.map(|name| format!("ExternalDNS {name}")));
    assert_eq!(addresses(&node), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_instance_is_tainted_and_the_nodes_of_ended_ones_go() {
    let mut scene = Scene::new("ended").await;
    let stopped = scene.joins("10.244.1.0/24").await;
    let terminated = scene.joins("10.244.2.0/24").await;
    let silent = scene.joins("10.244.3.0/24").await;
    // Its machine is so long gone that AWS does not know the id any more.
    let forgotten = NodeBuilder::new("forgotten").provider_id("aws:///us-east-1a/i-0123456789abcdef0");
    forgotten.initialised().create(&scene.client).await.unwrap();
    scene.start(&[]);
    let joined = [&stopped, &terminated, &silent].map(|machine| machine.private_dns.as_str());
    for name in joined {
        scene.initialised(name).await;
    }
    scene
        .ask("stop_instances", json!({ "InstanceIds": [stopped.id] }))
        .await;
    scene
        .ask("terminate_instances", json!({ "InstanceIds": [terminated.id] }))
        .await;
    for name in joined.into_iter().chain(["forgotten"]) {
        scene.falls_silent(name).await;
    }
    scene
        .settled(
            "the Nodes of ended instances are gone, that of the stopped one tainted",
            || async {
                let tainted = scene
                    .node(&stopped.private_dns)
                    .await
                    .is_some_and(|node| is_shut_down(&node));
                let gone = [scene.node(&terminated.private_dns).await, scene.node("forgotten").await];
                if tainted && gone.iter().all(Option::is_none) {
                    Ok(())
                } else {
                    Err(format!("{tainted}, {:?}", gone.map(|node| node.is_some())))
                }
            },
        )
        .await;
    let silent = scene.node(&silent.private_dns).await.unwrap();
    assert!(!is_shut_down(&silent), "it runs, only its kubelet is silent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_waits_for_an_instance_that_is_not_listed_yet() {
    let mut scene = Scene::new("late").await;
    scene.start(&["--controllers=cloud-node-controller,cloud-node-lifecycle-controller"]);
    // It is in another cluster still: its tag comes later, as it does where tags are set after the start.
    let machine = scene.cluster.machines(scene.moto, 0, 1).await.unwrap().remove(0);
    let tag = json!([{ "Key": format!("kubernetes.io/cluster/{}", scene.cluster.name) }]);
    scene
        .ask("delete_tags", json!({ "Resources": [machine.id], "Tags": tag }))
        .await;
    scene.registers(&machine, "10.244.1.0/24").await;
    scene
        .settled("the tag is asked for", || async {
            if scene
                .log()
                .contains("does not carry the tag kubernetes.io/cluster/late")
            {
                Ok(())
            } else {
                Err("not yet".into())
            }
        })
        .await;
    assert!(
        scene
            .node(&machine.private_dns)
            .await
            .is_some_and(|node| provider_id(&node).is_none())
    );
    let tag = json!([{ "Key": format!("kubernetes.io/cluster/{}", scene.cluster.name), "Value": "owned" }]);
    scene
        .ask("create_tags", json!({ "Resources": [machine.id], "Tags": tag }))
        .await;
    let node = scene.initialised(&machine.private_dns).await;
    assert_eq!(provider_id(&node), Some(machine.provider_id().as_str()));
}
