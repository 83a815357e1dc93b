//! PersistentVolumes of the in-tree plugin (`kubernetes.io/aws-ebs`): labelled by the webhook of the real process, and attached through Kubernetes' own sidecar,
//! which gives them the name and the handle of the driver.

use cloudwit_model::volume::{NODE_ANNOTATION, NodeAnnotation};
use cloudwit_test_support::eventually;
use cloudwit_test_support::programs::{guests, port};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, VolumeAttachment};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::registration::{client_config, create, flags, pair, register, terms, volume};
use crate::running::{Running, make, until};
use crate::scene::Scene;
use cloudwit_suite::common::csi_process::SOON;

const DRIVER: &str = "ebs.csi.aws.com";
const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";

/// A volume that the in-tree plugin made, with its tag, in the zone of the machines.
async fn old_volume(scene: &Scene) -> String {
    let tags = json!([{ "ResourceType": "volume", "Tags": [
        { "Key": format!("kubernetes.io/cluster/{}", scene.cluster.name), "Value": "owned" } ] }]);
    let old = json!({ "Size": 1, "AvailabilityZone": "us-east-1a", "VolumeType": "gp2", "TagSpecifications": tags });
    let made = scene.ask("create_volume", old).await;
    made["VolumeId"].as_str().unwrap().to_owned()
}

fn in_tree(id: &str) -> Value {
    json!({ "awsElasticBlockStore": { "volumeID": id, "fsType": "ext4" } })
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_labels_a_volume_by_its_disk_and_refuses_one_without() {
    let mut scene = Scene::new("labels").await;
    let folder = tempfile::tempdir().unwrap();
    let (port, authority) = (port::reserve().unwrap(), pair(folder.path()));
    let flags = flags(folder.path(), port);
    scene.start(&flags.each_ref().map(String::as_str));
    let component = tokio::task::spawn_blocking(|| guests::provider("aws")).await.unwrap();
    register(&scene.client, "aws", &component, client_config(port, &authority)).await;
    let disk = old_volume(&scene).await;
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let missing = "vol-0123456789abcdef0";
    eventually(SOON, "the webhook is asked", || async {
        match create(&scene.client, &dry, volume("probe", in_tree(missing))).await {
            Err(refused) if refused.contains(&format!("there is no volume {missing}")) => Ok(()),
            other => Err(format!("{other:?}\n{}", scene.log())),
        }
    })
    .await;
    for id in [disk.clone(), format!("aws://us-east-1b/{disk}")] {
        let labelled = create(&scene.client, &dry, volume("old", in_tree(&id))).await.unwrap();
        assert_eq!(
            (labelled.labels()[ZONE].as_str(), labelled.labels()[REGION].as_str()),
            ("us-east-1a", "us-east-1"),
            "{id}: where the disk is, whatever its id says"
        );
        let places = json!([
            { "key": REGION, "operator": "In", "values": ["us-east-1"] },
            { "key": ZONE, "operator": "In", "values": ["us-east-1a"] },
        ]);
        assert_eq!(terms(&labelled), json!([{ "matchExpressions": places }]));
    }
    let refused = create(&scene.client, &dry, volume("odd", in_tree("aws://x/i-1")))
        .await
        .unwrap_err();
    assert!(
        refused.starts_with("403: ") && refused.contains("aws://x/i-1"),
        "{refused}"
    );
    let configurations: Api<k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration> =
        Api::all(scene.client.clone());
    configurations
        .delete("cloudwit", &DeleteParams::default())
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn volume_of_the_in_tree_plugin_is_adopted_through_migration() {
    let programs = tokio::task::spawn_blocking(xtask::kubernetes::sidecars::programs)
        .await
        .unwrap()
        .unwrap();
    let mut scene = Scene::new("adopted").await;
    let folder = tempfile::tempdir().unwrap();
    let sockets = format!("--csi-socket-dir={}", folder.path().display());
    let machine = scene.joins("10.244.1.0/24").await;
    scene.start(&["--controllers=cloud-node-controller", &sockets]);
    let socket = folder.path().join(format!("{DRIVER}.sock"));
    let disk = old_volume(&scene).await;

    // What the plugin on the machine would do, which the Node tells it.
    let nodes: Api<Node> = scene.nodes();
    let told = eventually(SOON, "the Node says what its plugin has to know", || async {
        let node = nodes
            .get(&machine.private_dns)
            .await
            .map_err(|error| error.to_string())?;
        let told = node.annotations().get(NODE_ANNOTATION).cloned();
        told.ok_or_else(|| format!("{:?}\n{}", node.metadata, scene.log()))
    })
    .await;
    let NodeAnnotation {
        driver,
        node_id,
        topology,
        max_volumes,
    } = NodeAnnotation::parse(&told).unwrap();
    assert_eq!(
        (driver.as_str(), node_id.as_str(), max_volumes),
        (DRIVER, machine.id.as_str(), Some(26))
    );
    assert_eq!(topology["topology.ebs.csi.aws.com/zone"], machine.zone);
    assert_eq!(topology[ZONE], machine.zone);
    let keys: Vec<&String> = topology.keys().collect();
    let of_node = json!({ "metadata": { "name": machine.private_dns }, "spec": { "drivers": [
        { "name": driver, "nodeID": node_id, "topologyKeys": keys, "allocatable": { "count": max_volumes } } ] } });
    make::<CSINode>(&Api::all(scene.client.clone()), of_node).await;
    let of_driver = json!({ "metadata": { "name": DRIVER }, "spec": { "attachRequired": true } });
    make::<CSIDriver>(&Api::all(scene.client.clone()), of_driver).await;

    let old = volume("old", in_tree(&format!("aws://us-east-1a/{disk}")));
    create(&scene.client, &PostParams::default(), old).await.unwrap();
    let kubeconfig = scene.kubeconfig().to_owned();
    let mut sidecars = Running::start(&["attacher"], &programs, folder.path(), &socket, &kubeconfig);
    let attachments: Api<VolumeAttachment> = Api::all(scene.client.clone());
    let wanted = json!({ "metadata": { "name": "old" }, "spec": {
        "attacher": DRIVER, "nodeName": machine.private_dns, "source": { "persistentVolumeName": "old" } } });
    make(&attachments, wanted).await;
    let context = until(&mut sidecars, "the attachment", || async {
        let status = attachments.get("old").await.ok()?.status?;
        status.attached.then_some(status.attachment_metadata?)
    })
    .await;
    assert_eq!(context["devicePath"], "/dev/xvdaa");
    let one = json!({ "VolumeIds": [disk] });
    let seen = scene.ask("describe_volumes", one.clone()).await;
    assert_eq!(seen["Volumes"][0]["Attachments"][0]["InstanceId"], machine.id.as_str());

    attachments.delete("old", &DeleteParams::default()).await.unwrap();
    until(&mut sidecars, "the attachment is gone", || async {
        attachments.get_opt("old").await.ok()?.is_none().then_some(())
    })
    .await;
    let seen = scene.ask("describe_volumes", one).await;
    assert_eq!(seen["Volumes"][0]["State"], "available");
    // The pool of API servers empties Nodes and Services alone.
    let now = DeleteParams::default();
    Api::<CSINode>::all(scene.client.clone())
        .delete(&machine.private_dns, &now)
        .await
        .unwrap();
    Api::<CSIDriver>::all(scene.client.clone())
        .delete(DRIVER, &now)
        .await
        .unwrap();
    let volumes: Api<k8s_openapi::api::core::v1::PersistentVolume> = Api::all(scene.client.clone());
    crate::running::merge(&volumes, "old", None, json!({ "metadata": { "finalizers": null } })).await;
    volumes.delete("old", &now).await.unwrap();
}
