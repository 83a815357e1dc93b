//! A volume from its creation to its end, as the sidecars ask for it, and what moto has of it.

use cloudwit_csi::proto::volume_content_source::{SnapshotSource, Type};
use cloudwit_csi::proto::*;
use futures::future::join_all;
use serde_json::Value;
use tonic::Code;

use crate::driver::{Ebs, ZONE, wanted};
use crate::sidecar_requests::{GIB, delete, grow, publish, unpublish};

fn snapshot_of(volume: &str) -> CreateSnapshotRequest {
    CreateSnapshotRequest {
        name: "snapshot-1".into(),
        source_volume_id: volume.into(),
        ..Default::default()
    }
}

fn tag<'v>(volume: &'v Value, key: &str) -> Option<&'v str> {
    let tags = volume["Tags"].as_array()?;
    tags.iter().find(|tag| tag["Key"] == key)?["Value"].as_str()
}

#[tokio::test(flavor = "multi_thread")]
async fn volume_is_created_attached_grown_copied_and_deleted() {
    let ebs = Ebs::start("life").await;
    let mut client = ebs.client().await;
    let claim = [
        ("csi.storage.k8s.io/pvc/name", "data"),
        ("csi.storage.k8s.io/pvc/namespace", "shop"),
        ("tagSpecification_1", "owner={{ .PVCNamespace }}"),
        ("type", "gp3"),
        ("throughput", "150"),
        ("encrypted", "true"),
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
    assert_eq!(
        made.accessible_topology[0].segments["topology.kubernetes.io/zone"],
        ZONE
    );
    let id = made.volume_id.clone();
    let again = client
        .create_volume(new.clone())
        .await
        .unwrap()
        .into_inner()
        .volume
        .unwrap();
    assert_eq!(again, made);
    let volumes = ebs.volumes().await;
    let [volume] = volumes.as_slice() else {
        panic!("{volumes:?}")
    };
    assert_eq!(
        (volume["Throughput"].as_i64(), volume["Encrypted"].as_bool()),
        (Some(150), Some(true))
    );
    for (key, value) in [
        ("CSIVolumeName", "pvc-1"),
        ("kubernetes.io/cluster/life", "owned"),
        ("kubernetes.io/created-for/pvc/name", "data"),
        ("owner", "shop"),
    ] {
        assert_eq!(tag(volume, key), Some(value), "{volume}");
    }
    let other = CreateVolumeRequest {
        capacity_range: Some(CapacityRange {
            required_bytes: 9 * GIB,
            limit_bytes: 0,
        }),
        ..new
    };
    let refused = client.create_volume(other).await.unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists);
    assert!(
        refused.message().contains("2 GiB") && refused.message().contains("9 GiB"),
        "{refused:?}"
    );

    let published = client
        .controller_publish_volume(publish(&id, ebs.machine(0)))
        .await
        .unwrap();
    let context = published.into_inner().publish_context;
    assert_eq!(context["devicePath"], "/dev/xvdaa");
    assert_eq!(context["device.csi.cloudwit.dev/serial"], id.replace('-', ""));
    let elsewhere = client
        .controller_publish_volume(publish(&id, ebs.machine(1)))
        .await
        .unwrap_err();
    assert_eq!(elsewhere.code(), Code::FailedPrecondition);
    assert!(elsewhere.message().contains(ebs.machine(0)), "{elsewhere:?}");

    let grow = grow(&id, 4 * GIB + 1);
    let grown = client.controller_expand_volume(grow).await.unwrap().into_inner();
    assert_eq!((grown.capacity_bytes, grown.node_expansion_required), (5 * GIB, true));
    let modify = |iops: &str| ControllerModifyVolumeRequest {
        volume_id: id.clone(),
        mutable_parameters: [("iops".to_owned(), iops.to_owned())].into(),
        ..Default::default()
    };
    // At most 500 for each GiB, as upstream's driver has it: 2,500 would be too few for the type.
    client.controller_modify_volume(modify("3000")).await.unwrap();
    let few = client.controller_modify_volume(modify("10")).await.unwrap_err();
    assert!(
        few.code() == Code::OutOfRange && few.message().contains("iops"),
        "{few:?}"
    );
    assert_eq!(ebs.volumes().await[0]["Size"], 5);

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
    let source = VolumeContentSource {
        r#type: Some(Type::Snapshot(SnapshotSource {
            snapshot_id: snapshot.snapshot_id.clone(),
        })),
    };
    let restored = CreateVolumeRequest {
        volume_content_source: Some(source.clone()),
        ..wanted("pvc-restored")
    };
    let restored = client
        .create_volume(restored)
        .await
        .unwrap()
        .into_inner()
        .volume
        .unwrap();
    assert_eq!(
        (restored.capacity_bytes, restored.content_source),
        (5 * GIB, Some(source))
    );

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
    let expected = [
        (id.clone(), vec![ebs.machine(0).to_owned()]),
        (restored.volume_id.clone(), Vec::new()),
    ];
    assert_eq!(listed, expected);

    let attached = client.delete_volume(delete(&id)).await.unwrap_err();
    assert_eq!(attached.code(), Code::FailedPrecondition, "{attached:?}");
    for _ in 0..2 {
        client
            .controller_unpublish_volume(unpublish(&id, ebs.machine(0)))
            .await
            .unwrap();
        client.delete_volume(delete(&restored.volume_id)).await.unwrap();
        let gone = DeleteSnapshotRequest {
            snapshot_id: snapshot.snapshot_id.clone(),
            ..Default::default()
        };
        client.delete_snapshot(gone).await.unwrap();
    }
    client.delete_volume(delete(&id)).await.unwrap();
    assert_eq!(ebs.volumes().await, [] as [Value; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn attachments_at_once_share_what_is_described() {
    const MANY: usize = 12;
    /// What one alone needs: a look at the volume, and twice volume and instance, to attach it and to see that it is.
    const ALONE: usize = 5;
    let ebs = Ebs::start("many").await;
    let client = ebs.client().await;
    let create = (0..MANY).map(|number| {
        let (ebs, mut client) = (&ebs, client.clone());
        async move { ebs.made(&mut client, &format!("pvc-{number}")).await }
    });
    let ids = join_all(create).await;
    let before = (ebs.count("DescribeVolumes").await, ebs.count("DescribeInstances").await);
    let attach = ids.iter().map(|id| {
        let (request, mut client) = (publish(id, ebs.machine(0)), client.clone());
        async move { client.controller_publish_volume(request).await.unwrap().into_inner() }
    });
    let published = join_all(attach).await;
    let mut devices: Vec<String> = published
        .into_iter()
        .map(|one| one.publish_context["devicePath"].clone())
        .collect();
    devices.sort();
    devices.dedup();
    assert_eq!(devices.len(), MANY, "{devices:?}");
    let volumes = ebs.count("DescribeVolumes").await - before.0;
    let instances = ebs.count("DescribeInstances").await - before.1;
    println!("{MANY} attachments: {volumes} requests for volumes, {instances} for instances");
    assert_eq!(ebs.count("AttachVolume").await, MANY);
    // All in one are as many as one alone; on a busy machine they come in several parts.
    assert!(volumes + instances <= MANY * ALONE / 2, "{volumes} and {instances}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_parameter_of_a_class_is_named_and_makes_nothing() {
    let ebs = Ebs::start("wrong").await;
    let mut client = ebs.client().await;
    for (key, value) in [
        ("tpye", "gp3"),
        ("type", "gp9"),
        ("iops", "much"),
        ("encrypted", "perhaps"),
    ] {
        let odd = CreateVolumeRequest {
            parameters: [(key.to_owned(), value.to_owned())].into(),
            ..wanted("pvc-odd")
        };
        let refused = client.create_volume(odd).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains(key), "{refused:?}");
    }
    assert_eq!(ebs.count("CreateVolume").await, 0);
}
