//! Nodes and routes that upstream's controller left behind are taken over without a write.

use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::objects::{addresses, provider_id};
use k8s_openapi::api::core::v1::{Node, NodeAddress, NodeCondition};
use kube::ResourceExt;
use kube::api::PostParams;
use serde_json::json;

use crate::scene::Scene;

/// A Node as upstream's controllers have left it.
fn left_behind(machine: &cloudwit_test_support::clouds::moto::AwsMachine, id: &str, zone_id: &str) -> Node {
    let mut node = NodeBuilder::new(&machine.private_dns)
        .initialised()
        .provider_id(id)
        .pod_cidr("10.244.7.0/24")
        .label("node.kubernetes.io/instance-type", &machine.kind)
        .label("beta.kubernetes.io/instance-type", &machine.kind)
        .label("topology.kubernetes.io/zone", &machine.zone)
        .label("failure-domain.beta.kubernetes.io/zone", &machine.zone)
        .label("topology.kubernetes.io/region", "us-east-1")
        .label("failure-domain.beta.kubernetes.io/region", "us-east-1")
        .label("topology.k8s.aws/zone-id", zone_id)
        .build();
    let status = node.status.as_mut().unwrap();
    let address = |kind: &str, value: &str| NodeAddress {
        type_: kind.into(),
        address: value.into(),
    };
    status.addresses = Some(vec![
        address("InternalIP", &machine.private_ip),
        address("InternalDNS", &machine.private_dns),
        address("Hostname", &machine.private_dns),
    ]);
    status.conditions.get_or_insert_default().push(NodeCondition {
        type_: "NetworkUnavailable".into(),
        status: "False".into(),
        reason: Some("RouteCreated".into()),
        message: Some("RouteController created a route".into()),
        ..NodeCondition::default()
    });
    node
}

#[tokio::test(flavor = "multi_thread")]
async fn what_upstream_left_behind_is_taken_over_without_a_write() {
    let mut scene = Scene::new("adopted").await;
    let machine = scene.cluster.machines(scene.moto, 0, 1).await.unwrap().remove(0);
    let zones = scene.ask("describe_availability_zones", json!({})).await;
    let zones = zones["AvailabilityZones"].as_array().unwrap();
    let zone = zones
        .iter()
        .find(|zone| zone["ZoneName"] == machine.zone.as_str())
        .unwrap();
    let unchecked = json!({ "InstanceId": machine.id, "SourceDestCheck": { "Value": false } });
    scene.ask("modify_instance_attribute", unchecked).await;
    let route = json!({
        "RouteTableId": scene.cluster.route_table, "DestinationCidrBlock": "10.244.7.0/24", "InstanceId": machine.id,
    });
    scene.ask("create_route", route).await;
    let node = left_behind(&machine, &machine.provider_id(), zone["ZoneId"].as_str().unwrap());
    let before = scene.nodes().create(&PostParams::default(), &node).await.unwrap();
    scene.start(&[]);
    scene
        .settled("Nodes and routes were looked at several times", || async {
            let (nodes, tables) = (
                scene.count("DescribeInstances").await,
                scene.count("DescribeRouteTables").await,
            );
            if nodes >= 3 && tables >= 3 {
                Ok(())
            } else {
                Err(format!("{nodes}, {tables}"))
            }
        })
        .await;
    let after = scene.node(&machine.private_dns).await.unwrap();
    assert_eq!(
        after.resource_version(),
        before.resource_version(),
        "{after:?}\n{}",
        scene.log()
    );
    let writes = scene
        .calls()
        .await
        .into_iter()
        .filter(|(action, _)| !action.starts_with("Describe"));
    assert_eq!(writes.collect::<Vec<_>>(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_id_of_an_older_form_stays_as_it_is() {
    let mut scene = Scene::new("older").await;
    let machines = scene.cluster.machines(scene.moto, 0, 2).await.unwrap();
    let ids = [format!("aws:////{}", machines[0].id), machines[1].id.clone()];
    for (number, (machine, id)) in machines.iter().zip(&ids).enumerate() {
        let node = NodeBuilder::new(&machine.private_dns)
            .provider_id(id)
            .pod_cidr(&format!("10.244.{number}.0/24"));
        node.create(&scene.client).await.unwrap();
    }
    scene.start(&[]);
    for (machine, id) in machines.iter().zip(&ids) {
        let node = scene.initialised(&machine.private_dns).await;
        assert_eq!(provider_id(&node), Some(id.as_str()));
        assert_eq!(addresses(&node)[0], format!("InternalIP {}", machine.private_ip));
    }
}
