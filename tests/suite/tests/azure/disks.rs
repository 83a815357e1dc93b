//! Managed disks: their life as the sidecars ask for it, on machines of all kinds, and csi-sanity.

use cloudwit_csi::proto::volume_content_source::{SnapshotSource, Type, VolumeSource};
use cloudwit_csi::proto::*;
use cloudwit_suite::common::csi_node_stub::NodeStub;
use cloudwit_suite::common::csi_process::made;
use cloudwit_suite::common::csi_requests::{GIB, capability, delete, grow, publish, unpublish, wanted_at};
use cloudwit_suite::common::csi_sanity::{FEWEST, controller_passes};
use cloudwit_suite::common::csi_served::Controller;
use cloudwit_suite::common::csi_stand_in::{StandInDriver, load};
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::azure::azure_files;
use serde_json::{Value, json};
use tonic::Code;

pub const ZONE_KEY: &str = "topology.disk.csi.azure.com/zone";
pub const ZONE: &str = "westeurope-1";
pub const COMPUTE: &str =
    "/subscriptions/00000000-aaaa-4bbb-8ccc-dddddddddddd/resourceGroups/demo/providers/Microsoft.Compute";

/// How calls of a change of a machine are counted.
pub const WRITES: &str = "PUT Microsoft.Compute/virtualMachines";

pub async fn driver() -> StandInDriver {
    let cloud = StandIn::start("azure", &[]).await.unwrap();
    let files = async |cloud: &StandIn, deployment: &_| azure_files(cloud, &json!({}), deployment).await.unwrap();
    StandInDriver::start("azure", cloud, files).await
}

/// A machine in [`ZONE`], which is also the name of its Node.
pub async fn machine(driver: &StandInDriver, name: &str) {
    driver.does("add_machine", json!({ "name": name })).await;
}

pub fn wanted(name: &str) -> CreateVolumeRequest {
    wanted_at(name, ZONE_KEY, ZONE)
}

pub fn disk_id(name: &str) -> String {
    format!("{COMPUTE}/disks/{name}")
}

pub fn parameters(all: &[(&str, &str)]) -> std::collections::HashMap<String, String> {
    all.iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

pub async fn created(client: &mut Controller, new: CreateVolumeRequest) -> Volume {
    client.create_volume(new).await.unwrap().into_inner().volume.unwrap()
}

/// The LUN under which a disk is attached to a Node.
async fn lun(client: &mut Controller, id: &str, node: &str) -> String {
    let published = client.controller_publish_volume(publish(id, node)).await.unwrap();
    published.into_inner().publish_context["LUN"].clone()
}

pub async fn disk(driver: &StandInDriver, id: &str) -> Value {
    driver.does("get", json!({ "path": id })).await
}

async fn count(driver: &StandInDriver, kind: &str) -> usize {
    let all = driver.does("resources", json!({ "kind": kind })).await;
    all.as_object().unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn azure_disk_is_created_attached_grown_and_deleted() {
    let driver = driver().await;
    machine(&driver, "one").await;
    machine(&driver, "two").await;
    driver.does("operations_take", json!({ "seconds": 0.3 })).await;
    let mut client = driver.client().await;
    let new = CreateVolumeRequest {
        parameters: parameters(&[
            ("csi.storage.k8s.io/pvc/name", "data"),
            ("csi.storage.k8s.io/pvc/namespace", "shop"),
            ("skuName", "Premium_LRS"),
            ("cachingMode", "None"),
            ("tags", "team=shop,of=${pvc.metadata.name}"),
        ]),
        ..wanted("pvc-1")
    };
    let volume = created(&mut client, new.clone()).await;
    let id = disk_id("pvc-1");
    assert_eq!(
        (volume.volume_id.as_str(), volume.capacity_bytes),
        (id.as_str(), 2 * GIB)
    );
    assert_eq!(volume.accessible_topology[0].segments[ZONE_KEY], ZONE);
    assert_eq!(created(&mut client, new.clone()).await, volume);
    let made = disk(&driver, &id).await;
    assert_eq!(
        made["tags"],
        json!({
            "k8s-azure-created-by": "kubernetes-azure-dd", "kubernetes.io-created-for-pvc-name": "data", "kubernetes.io-created-for-pvc-namespace": "shop",
            "team": "shop", "of": "data", "cloudwit-caching-mode": "None",
        })
    );
    assert_eq!(
        (&made["sku"]["name"], &made["properties"]["networkAccessPolicy"]),
        (&json!("Premium_LRS"), &json!("DenyAll"))
    );
    let other = CreateVolumeRequest {
        capacity_range: Some(CapacityRange {
            required_bytes: 9 * GIB,
            limit_bytes: 0,
        }),
        ..new
    };
    let refused = client.create_volume(other).await.unwrap_err();
    assert!(
        refused.code() == Code::AlreadyExists && refused.message().contains("9 GiB"),
        "{refused:?}"
    );

    for _ in 0..2 {
        assert_eq!(lun(&mut client, &id, "one").await, "0");
    }
    assert_eq!(driver.calls(WRITES).await, 1);
    let held = disk(&driver, &format!("{COMPUTE}/virtualMachines/one")).await;
    let data = &held["properties"]["storageProfile"]["dataDisks"][0];
    assert_eq!((&data["caching"], &data["lun"]), (&json!("None"), &json!(0)));
    let elsewhere = client.controller_publish_volume(publish(&id, "two")).await.unwrap_err();
    assert_eq!(elsewhere.code(), Code::FailedPrecondition, "{elsewhere:?}");
    let grown = client.controller_expand_volume(grow(&id, 4 * GIB + 1)).await;
    let grown = grown.unwrap().into_inner();
    assert_eq!((grown.capacity_bytes, grown.node_expansion_required), (5 * GIB, true));
    let attached = client.delete_volume(delete(&id)).await.unwrap_err();
    assert_eq!(attached.code(), Code::FailedPrecondition, "{attached:?}");
    for _ in 0..2 {
        client.controller_unpublish_volume(unpublish(&id, "one")).await.unwrap();
    }
    assert_eq!(lun(&mut client, &id, "two").await, "0");
    client.controller_unpublish_volume(unpublish(&id, "two")).await.unwrap();
    for _ in 0..2 {
        client.delete_volume(delete(&id)).await.unwrap();
    }
    assert_eq!((driver.calls(WRITES).await, count(&driver, "disks").await), (4, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn azure_disks_are_copied_by_snapshots_and_clones_and_listed() {
    let driver = driver().await;
    machine(&driver, "one").await;
    let mut client = driver.client().await;
    let id = made(&mut client, wanted("pvc-1")).await;
    lun(&mut client, &id, "one").await;
    driver.does("disks", json!({ "percent": 40 })).await;
    let new = CreateSnapshotRequest {
        name: "snapshot-1".into(),
        source_volume_id: id.clone(),
        ..Default::default()
    };
    let begun = client.create_snapshot(new.clone()).await.unwrap().into_inner();
    let snapshot = begun.snapshot.unwrap();
    assert_eq!(snapshot.snapshot_id, format!("{COMPUTE}/snapshots/snapshot-1"));
    assert_eq!((snapshot.size_bytes, snapshot.ready_to_use), (2 * GIB, false));
    let restored = CreateVolumeRequest {
        volume_content_source: Some(VolumeContentSource {
            r#type: Some(Type::Snapshot(SnapshotSource {
                snapshot_id: snapshot.snapshot_id.clone(),
            })),
        }),
        ..wanted("pvc-restored")
    };
    let early = client.create_volume(restored.clone()).await.unwrap_err();
    assert_eq!(early.code(), Code::FailedPrecondition, "{early:?}");
    let mut ready = disk(&driver, &snapshot.snapshot_id).await;
    ready["properties"]["completionPercent"] = json!(100);
    driver
        .does("put", json!({ "path": snapshot.snapshot_id, "resource": ready }))
        .await;
    let again = client
        .create_snapshot(new)
        .await
        .unwrap()
        .into_inner()
        .snapshot
        .unwrap();
    assert!(again.ready_to_use);
    let from_snapshot = created(&mut client, restored.clone()).await;
    assert_eq!(from_snapshot.content_source, restored.volume_content_source);
    let clone = CreateVolumeRequest {
        volume_content_source: Some(VolumeContentSource {
            r#type: Some(Type::Volume(VolumeSource { volume_id: id.clone() })),
        }),
        ..wanted("pvc-clone")
    };
    let clone = created(&mut client, clone).await;
    assert_eq!(clone.accessible_topology[0].segments[ZONE_KEY], ZONE);
    let source = &disk(&driver, &clone.volume_id).await["properties"]["creationData"];
    assert_eq!(source["sourceResourceId"], json!(id));

    // A disk that Kubernetes did not make is not in the list.
    let foreign = json!({ "location": "westeurope", "sku": { "name": "Standard_LRS" }, "properties": { "diskSizeGB": 4, "creationData": { "createOption": "Empty" } } });
    driver
        .does("put", json!({ "path": disk_id("foreign"), "resource": foreign }))
        .await;
    let mut listed = Vec::new();
    let mut page = ListVolumesRequest {
        max_entries: 2,
        ..Default::default()
    };
    loop {
        let answer = client.list_volumes(page.clone()).await.unwrap().into_inner();
        for entry in answer.entries {
            listed.push((
                entry.volume.unwrap().volume_id,
                entry.status.unwrap().published_node_ids,
            ));
        }
        if answer.next_token.is_empty() {
            break;
        }
        page.starting_token = answer.next_token;
    }
    let expected = [
        (id, vec!["one".to_owned()]),
        (clone.volume_id, Vec::new()),
        (from_snapshot.volume_id, Vec::new()),
    ];
    assert_eq!(listed, expected);
    let odd = ListVolumesRequest {
        starting_token: "odd".into(),
        ..page
    };
    assert_eq!(client.list_volumes(odd).await.unwrap_err().code(), Code::Aborted);
    let gone = DeleteSnapshotRequest {
        snapshot_id: snapshot.snapshot_id,
        ..Default::default()
    };
    for _ in 0..2 {
        client.delete_snapshot(gone.clone()).await.unwrap();
    }
    assert_eq!(count(&driver, "snapshots").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn disks_of_one_machine_are_one_write_for_each_kind_of_machine() {
    let driver = driver().await;
    machine(&driver, "alone").await;
    let flexible = driver
        .does("add_scale_set", json!({ "name": "flex", "flexible": true }))
        .await;
    let member = json!({ "name": "flex_7", "computer": "flex00007A", "scale_set": flexible });
    driver.does("add_machine", member).await;
    driver.does("add_scale_set", json!({ "name": "uni" })).await;
    let member = json!({ "scale_set": "uni", "number": 3, "computer": "uni000003", "zone": "1" });
    driver.does("add_uniform", member).await;
    let mut client = driver.client().await;
    for (kind, node) in ["alone", "flex00007a", "uni000003"].into_iter().enumerate() {
        let before = driver.calls("PUT Microsoft.Compute/virtualMachine").await;
        let mut ids = Vec::new();
        for number in 0..4 {
            ids.push(made(&mut client, wanted(&format!("pvc-{kind}-{number}"))).await);
        }
        driver.does("operations_take", json!({ "seconds": 0.3 })).await;
        let attach = ids.iter().map(|id| {
            let mut client = client.clone();
            async move { (id.clone(), lun(&mut client, id, node).await) }
        });
        let mut attached = futures::future::join_all(attach).await;
        attached.sort_by_key(|(_, lun)| lun.clone());
        let luns: Vec<&str> = attached.iter().map(|(_, lun)| lun.as_str()).collect();
        assert_eq!(luns, ["0", "1", "2", "3"], "{node}");
        let writes = driver.calls("PUT Microsoft.Compute/virtualMachine").await - before;
        assert!(writes < 4, "{writes} writes for {node}");
        let detach = attached.iter().map(|(id, _)| {
            let mut client = client.clone();
            async move { client.controller_unpublish_volume(unpublish(id, node)).await.map(drop) }
        });
        for outcome in futures::future::join_all(detach).await {
            outcome.unwrap();
        }
        let writes = driver.calls("PUT Microsoft.Compute/virtualMachine").await - before - writes;
        assert!(writes < 4, "{writes} writes for {node}");
        driver.does("operations_take", json!({ "seconds": 0 })).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn azure_disk_changes_with_its_attributes_class_and_is_shared() {
    let driver = driver().await;
    for name in ["one", "two", "three"] {
        machine(&driver, name).await;
    }
    let mut client = driver.client().await;
    let many = VolumeCapability {
        access_mode: Some(volume_capability::AccessMode {
            mode: volume_capability::access_mode::Mode::MultiNodeMultiWriter.into(),
        }),
        access_type: Some(volume_capability::AccessType::Block(
            volume_capability::BlockVolume::default(),
        )),
    };
    let shared = CreateVolumeRequest {
        volume_capabilities: vec![many.clone()],
        parameters: parameters(&[("skuName", "PremiumV2_LRS"), ("maxShares", "2")]),
        mutable_parameters: parameters(&[("DiskIOPSReadWrite", "4000")]),
        ..wanted("pvc-shared")
    };
    let id = made(&mut client, shared).await;
    for _ in 0..2 {
        let faster = ControllerModifyVolumeRequest {
            volume_id: id.clone(),
            mutable_parameters: parameters(&[("diskMBpsReadWrite", "200"), ("DiskIOPSReadWrite", "5000")]),
            ..Default::default()
        };
        client.controller_modify_volume(faster).await.unwrap();
    }
    assert_eq!(driver.calls("PATCH Microsoft.Compute/disks").await, 1);
    let properties = disk(&driver, &id).await["properties"].clone();
    assert_eq!(
        (&properties["diskIOPSReadWrite"], &properties["diskMBpsReadWrite"]),
        (&json!(5000), &json!(200))
    );
    let wrong = ControllerModifyVolumeRequest {
        volume_id: id.clone(),
        mutable_parameters: parameters(&[("cachingMode", "None")]),
        ..Default::default()
    };
    let refused = client.controller_modify_volume(wrong).await.unwrap_err();
    assert!(
        refused.code() == Code::InvalidArgument && refused.message().contains("cachingmode"),
        "{refused:?}"
    );
    let publish_shared = |node: &str| ControllerPublishVolumeRequest {
        volume_capability: Some(many.clone()),
        ..publish(&id, node)
    };
    for node in ["one", "two"] {
        client.controller_publish_volume(publish_shared(node)).await.unwrap();
    }
    let third = client
        .controller_publish_volume(publish_shared("three"))
        .await
        .unwrap_err();
    assert_eq!(third.code(), Code::FailedPrecondition, "{third:?}");
    client.controller_unpublish_volume(unpublish(&id, "one")).await.unwrap();
    client.controller_publish_volume(publish_shared("three")).await.unwrap();
    let odd = CreateVolumeRequest {
        volume_capabilities: vec![capability()],
        parameters: parameters(&[("skuNmae", "Premium_LRS")]),
        ..wanted("pvc-odd")
    };
    let refused = client.create_volume(odd).await.unwrap_err();
    assert!(
        refused.code() == Code::InvalidArgument && refused.message().contains("skunmae"),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_in_no_zone_have_disks_in_no_zone() {
    let driver = driver().await;
    let regional = json!({ "name": "regional", "zone": null, "fault_domain": 1 });
    driver.does("add_machine", regional).await;
    let mut client = driver.client().await;
    let volume = created(&mut client, wanted_at("pvc-1", ZONE_KEY, "")).await;
    assert_eq!(volume.accessible_topology[0].segments[ZONE_KEY], "");
    assert_eq!(disk(&driver, &volume.volume_id).await.get("zones"), None);
    assert_eq!(lun(&mut client, &volume.volume_id, "regional").await, "0");
    let copies = CreateVolumeRequest {
        parameters: parameters(&[("skuName", "Premium_ZRS")]),
        ..wanted("pvc-2")
    };
    let places = created(&mut client, copies).await.accessible_topology;
    assert_eq!(places.len(), 5, "{places:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn csi_sanity_finds_nothing_wrong_with_the_controller_on_azure() {
    let cloud = StandIn::start("azure", &[]).await.unwrap();
    cloud.call("add_machine", json!({ "name": "one" })).await.unwrap();
    let most = 2;
    cloud.call("disks", json!({ "most": most })).await.unwrap();
    let account = cloud.call("account", json!({})).await.unwrap();
    let config = json!({
        "useManagedIdentityExtension": true, "subscriptionId": account["subscription"], "resourceGroup": "demo", "location": "westeurope",
        "resourceManagerEndpoint": cloud.url(), "metadataEndpoint": cloud.url(),
    });
    let stub = NodeStub {
        id: "one".into(),
        topology: Topology {
            segments: [(ZONE_KEY.to_owned(), ZONE.to_owned())].into(),
        },
        most,
    };
    controller_passes(load("azure", &cloud, config.to_string()).await, stub, FEWEST).await;
}
