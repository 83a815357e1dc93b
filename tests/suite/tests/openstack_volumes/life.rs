//! A volume from its creation to its end, as the sidecars ask for it, and what Cinder has of it.

use cloudwit_csi::proto::volume_capability::access_mode::Mode;
use cloudwit_csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume};
use cloudwit_csi::proto::volume_content_source::{SnapshotSource, Type, VolumeSource};
use cloudwit_csi::proto::*;
use cloudwit_suite::common::csi_process;
use cloudwit_test_support::clouds::openstack::Service;
use cloudwit_test_support::clouds::openstack::servers::ZONE;
use futures::future::join_all;
use serde_json::json;
use tonic::Code;

use crate::driver::{Cinder, ZONE_KEY, wanted};
use crate::sidecar_requests::{GIB, delete, grow, publish, unpublish};

fn snapshot_of(volume: &str) -> CreateSnapshotRequest {
    CreateSnapshotRequest {
        name: "snapshot-1".into(),
        source_volume_id: volume.into(),
        parameters: [("force-create".to_owned(), "true".to_owned())].into(),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn volume_is_created_attached_grown_copied_and_deleted() {
    let cinder = Cinder::start().await;
    let mut client = cinder.client().await;
    let claim = [
        ("csi.storage.k8s.io/pvc/name", "data"),
        ("csi.storage.k8s.io/pvc/namespace", "shop"),
        ("appendVolumeMetadata", "{\"team\": \"web\"}"),
    ];
    let new = CreateVolumeRequest {
        parameters: claim.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        ..wanted("pvc-1")
    };
    let made = client
        .create_volume(new.clone())
        .await
        .unwrap()
        .into_inner()
        .volume
        .unwrap();
    assert_eq!(made.capacity_bytes, 2 * GIB);
    assert_eq!(made.accessible_topology[0].segments[ZONE_KEY], ZONE);
    let id = made.volume_id.clone();
    let again = client
        .create_volume(new.clone())
        .await
        .unwrap()
        .into_inner()
        .volume
        .unwrap();
    assert_eq!(again, made);
    let volumes = cinder.project.volumes().await.unwrap();
    let [volume] = volumes.as_slice() else {
        panic!("{volumes:?}")
    };
    for (key, value) in [
        ("cinder.csi.openstack.org/cluster", "kubernetes"),
        ("csi.storage.k8s.io/pvc/name", "data"),
        ("csi.storage.k8s.io/pvc/namespace", "shop"),
        ("team", "web"),
    ] {
        assert_eq!(volume["metadata"][key], value, "{volume}");
    }
    let other = CreateVolumeRequest {
        capacity_range: Some(CapacityRange {
            required_bytes: 9 * GIB,
            limit_bytes: 0,
        }),
        ..new
    };
    let refused = client.create_volume(other).await.unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists, "{refused:?}");

    for _ in 0..2 {
        let published = client
            .controller_publish_volume(publish(&id, cinder.server(0)))
            .await
            .unwrap();
        let context = published.into_inner().publish_context;
        assert_eq!(context["DevicePath"], "/dev/vdb");
        assert_eq!(context["device.csi.cloudwit.dev/serial"], id);
    }
    assert_eq!(cinder.count(Service::Compute, "POST", "os-volume_attachments").await, 1);
    let elsewhere = client
        .controller_publish_volume(publish(&id, cinder.server(1)))
        .await
        .unwrap_err();
    assert_eq!(elsewhere.code(), Code::FailedPrecondition);
    assert!(elsewhere.message().contains(cinder.server(0)), "{elsewhere:?}");

    let grown = client
        .controller_expand_volume(grow(&id, 4 * GIB + 1))
        .await
        .unwrap()
        .into_inner();
    assert_eq!((grown.capacity_bytes, grown.node_expansion_required), (5 * GIB, true));
    assert_eq!(cinder.project.volumes().await.unwrap()[0]["size"], 5);

    let careful = CreateSnapshotRequest {
        parameters: Default::default(),
        ..snapshot_of(&id)
    };
    let attached = client.create_snapshot(careful).await.unwrap_err();
    assert_eq!(attached.code(), Code::FailedPrecondition, "{attached:?}");
    assert!(attached.message().contains("force-create"), "{attached:?}");
    let snapshot = client
        .create_snapshot(snapshot_of(&id))
        .await
        .unwrap()
        .into_inner()
        .snapshot
        .unwrap();
    assert_eq!((snapshot.size_bytes, snapshot.ready_to_use), (5 * GIB, true));
    let again = client
        .create_snapshot(snapshot_of(&id))
        .await
        .unwrap()
        .into_inner()
        .snapshot
        .unwrap();
    assert_eq!(again.snapshot_id, snapshot.snapshot_id);
    let sources = [
        Type::Snapshot(SnapshotSource {
            snapshot_id: snapshot.snapshot_id.clone(),
        }),
        Type::Volume(VolumeSource { volume_id: id.clone() }),
    ];
    let mut copies = Vec::new();
    for (number, source) in sources.into_iter().enumerate() {
        let source = VolumeContentSource { r#type: Some(source) };
        let copy = CreateVolumeRequest {
            volume_content_source: Some(source.clone()),
            ..wanted(&format!("pvc-copy-{number}"))
        };
        let copy = client.create_volume(copy).await.unwrap().into_inner().volume.unwrap();
        assert_eq!((copy.capacity_bytes, copy.content_source), (5 * GIB, Some(source)));
        copies.push(copy.volume_id);
    }

    let mut listed = Vec::new();
    let mut token = String::new();
    loop {
        let page = ListVolumesRequest {
            max_entries: 1,
            starting_token: token,
        };
        let page = client.list_volumes(page).await.unwrap().into_inner();
        assert!(page.entries.len() <= 1);
        listed.extend(page.entries.into_iter().map(|entry| {
            (
                entry.volume.unwrap().volume_id,
                entry.status.unwrap().published_node_ids,
            )
        }));
        token = page.next_token;
        if token.is_empty() {
            break;
        }
    }
    listed.sort();
    let mut expected: Vec<_> = copies.iter().map(|id| (id.clone(), Vec::new())).collect();
    expected.push((id.clone(), vec![cinder.server(0).to_owned()]));
    expected.sort();
    assert_eq!(listed, expected);

    let attached = client.delete_volume(delete(&id)).await.unwrap_err();
    assert_eq!(attached.code(), Code::FailedPrecondition, "{attached:?}");
    client
        .controller_unpublish_volume(unpublish(&id, cinder.server(0)))
        .await
        .unwrap();
    let has_snapshot = client.delete_volume(delete(&id)).await.unwrap_err();
    assert_eq!(has_snapshot.code(), Code::FailedPrecondition, "{has_snapshot:?}");
    for _ in 0..2 {
        client
            .controller_unpublish_volume(unpublish(&id, cinder.server(0)))
            .await
            .unwrap();
        let gone = DeleteSnapshotRequest {
            snapshot_id: snapshot.snapshot_id.clone(),
            ..Default::default()
        };
        client.delete_snapshot(gone).await.unwrap();
        for id in copies.iter().chain([&id]) {
            client.delete_volume(delete(id)).await.unwrap();
        }
    }
    assert_eq!(cinder.project.volumes().await.unwrap().len(), 0);
    assert_eq!(cinder.project.snapshots().await.unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn attachments_at_once_share_what_is_listed() {
    const MANY: usize = 6;
    let cinder = Cinder::start().await;
    let client = cinder.client().await;
    let create = (0..MANY).map(|number| {
        let (cinder, mut client) = (&cinder, client.clone());
        async move { cinder.made(&mut client, &format!("pvc-{number}")).await }
    });
    let ids = join_all(create).await;
    let before = cinder.count(Service::BlockStorage, "GET", "/volumes").await;
    let attach = ids.iter().map(|id| {
        let (request, mut client) = (publish(id, cinder.server(0)), client.clone());
        async move { client.controller_publish_volume(request).await.unwrap().into_inner() }
    });
    let published = join_all(attach).await;
    let mut devices: Vec<String> = published
        .into_iter()
        .map(|one| one.publish_context["DevicePath"].clone())
        .collect();
    devices.sort();
    devices.dedup();
    assert_eq!(devices.len(), MANY, "{devices:?}");
    let lists = cinder
        .count(Service::BlockStorage, "GET", "/volumes/detail?limit=1000")
        .await;
    let reads = cinder.count(Service::BlockStorage, "GET", "/volumes").await - before;
    println!("{MANY} attachments: {reads} reads, {lists} of them lists");
    assert_eq!(
        cinder.count(Service::Compute, "POST", "os-volume_attachments").await,
        MANY
    );
    assert!(lists >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn volume_for_several_servers_needs_a_type_for_it() {
    let cinder = Cinder::start().await;
    let mut client = cinder.client().await;
    let capability = VolumeCapability {
        access_mode: Some(AccessMode {
            mode: Mode::MultiNodeMultiWriter.into(),
        }),
        access_type: Some(AccessType::Block(BlockVolume {})),
    };
    let new = |kind: &str| CreateVolumeRequest {
        volume_capabilities: vec![capability.clone()],
        parameters: [("type".to_owned(), kind.to_owned())].into(),
        ..wanted("pvc-shared")
    };
    let plain = client.create_volume(new("__DEFAULT__")).await.unwrap_err();
    assert_eq!(plain.code(), Code::InvalidArgument);
    assert!(plain.message().contains("multiattach"), "{plain:?}");
    cinder.project.cloud.shared_volume_type("shared").await.unwrap();
    let made = client
        .create_volume(new("shared"))
        .await
        .unwrap()
        .into_inner()
        .volume
        .unwrap();
    for number in 0..2 {
        let request = ControllerPublishVolumeRequest {
            volume_capability: Some(capability.clone()),
            ..publish(&made.volume_id, cinder.server(number))
        };
        client.controller_publish_volume(request).await.unwrap();
    }
    let volumes = cinder.project.volumes().await.unwrap();
    assert_eq!(volumes[0]["attachments"].as_array().unwrap().len(), 2, "{volumes:?}");
    for number in 0..2 {
        client
            .controller_unpublish_volume(unpublish(&made.volume_id, cinder.server(number)))
            .await
            .unwrap();
    }
    client.delete_volume(delete(&made.volume_id)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn type_of_an_attached_volume_changes_where_its_backend_can() {
    let cinder = Cinder::start().await;
    let mut client = cinder.client().await;
    let cloud = cinder.project.cloud;
    for (name, specs) in [
        ("slow", json!({})),
        ("fast", json!({})),
        ("far", json!({ "volume_backend_name": "disks-elsewhere" })),
    ] {
        cloud.volume_type(name, specs).await.unwrap();
    }
    let kind = |name: &str| [("type".to_owned(), name.to_owned())].into();
    let new = CreateVolumeRequest {
        mutable_parameters: kind("slow"),
        ..wanted("pvc-1")
    };
    let id = csi_process::made(&mut client, new).await;
    client
        .controller_publish_volume(publish(&id, cinder.server(0)))
        .await
        .unwrap();
    let change = |name: &str| ControllerModifyVolumeRequest {
        volume_id: id.clone(),
        mutable_parameters: kind(name),
        ..Default::default()
    };
    let shown = async || cinder.project.volumes().await.unwrap().remove(0)["volume_type"].clone();
    assert_eq!(shown().await, "slow");
    // Nova's are among them.
    let actions = async || cinder.count(Service::BlockStorage, "POST", "/action").await;
    let before = actions().await;
    for _ in 0..2 {
        client.controller_modify_volume(change("fast")).await.unwrap();
        assert_eq!(shown().await, "fast");
    }
    assert_eq!(actions().await, before + 1);
    let elsewhere = client.controller_modify_volume(change("far")).await.unwrap_err();
    assert_eq!(elsewhere.code(), Code::Aborted, "{elsewhere:?}");
    assert!(elsewhere.message().contains("did not change"), "{elsewhere:?}");
    let missing = client.controller_modify_volume(change("nothing")).await.unwrap_err();
    assert_eq!(missing.code(), Code::InvalidArgument, "{missing:?}");
    assert_eq!(shown().await, "fast");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_parameter_of_a_class_is_named_and_makes_nothing() {
    let cinder = Cinder::start().await;
    let mut client = cinder.client().await;
    for (key, value) in [
        ("tpye", "ssd"),
        ("type", "nothing"),
        ("availability", "nothing"),
        ("appendVolumeMetadata", "team=web"),
    ] {
        let odd = CreateVolumeRequest {
            parameters: [(key.to_owned(), value.to_owned())].into(),
            ..wanted("pvc-odd")
        };
        let refused = client.create_volume(odd).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
        let named = refused.message().contains(key) || refused.message().contains(value);
        assert!(named, "{refused:?}");
    }
    assert_eq!(cinder.project.volumes().await.unwrap().len(), 0);
}
