//! A volume from its creation to its end, as the sidecars ask for it, and what VMware's own client says of it.

use cloudwit_csi::proto::volume_content_source::{SnapshotSource, Type};
use cloudwit_csi::proto::*;
use cloudwit_test_support::clouds::vcsim::VolumeOptions;
use futures::future::join_all;
use serde_json::Value;
use tonic::Code;

use crate::driver::{CLUSTER, Cns, ZONE, ZONE_KEY, wanted, with_parameters};
use crate::sidecar_requests::{GIB, delete, grow, publish, unpublish};

const MIB: i64 = 1 << 20;

fn snapshot_of(volume: &str, name: &str) -> CreateSnapshotRequest {
    CreateSnapshotRequest {
        name: name.into(),
        source_volume_id: volume.into(),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn volume_is_created_attached_grown_copied_and_deleted() {
    let cns = Cns::start(VolumeOptions::default(), "").await;
    let mut client = cns.client().await;
    let claim = [
        ("csi.storage.k8s.io/pvc/name", "data"),
        ("csi.storage.k8s.io/pvc/namespace", "shop"),
        ("csi.storage.k8s.io/fstype", "xfs"),
    ];
    let new = with_parameters("pvc-1", &claim);
    let created = client.create_volume(new.clone()).await.unwrap().into_inner();
    let made = created.volume.unwrap();
    assert_eq!(made.capacity_bytes, 2 * GIB);
    assert_eq!(made.volume_context["type"], "vSphere CNS Block Volume");
    // The datastore is on the hosts of both zones.
    let places: Vec<&str> = made
        .accessible_topology
        .iter()
        .map(|place| place.segments[ZONE_KEY].as_str())
        .collect();
    assert_eq!(places, [ZONE, "b"]);
    let region = &made.accessible_topology[0].segments["topology.csi.vmware.com/k8s-region"];
    assert_eq!(region, "north");
    let again = client.create_volume(new.clone()).await.unwrap().into_inner();
    assert_eq!(again.volume.as_ref(), Some(&made));
    let id = made.volume_id.clone();
    let volumes = cns.volumes().await;
    let [volume] = volumes.as_slice() else {
        panic!("{volumes:?}")
    };
    let cluster = &volume["Metadata"]["ContainerCluster"];
    for (has, wanted) in [
        (&volume["VolumeId"]["Id"], id.as_str()),
        (&volume["Name"], "pvc-1"),
        (&volume["VolumeType"], "BLOCK"),
        (&cluster["ClusterId"], CLUSTER),
        (&cluster["ClusterType"], "KUBERNETES"),
        (&cluster["ClusterFlavor"], "VANILLA"),
        (&cluster["VSphereUser"], "ccm"),
    ] {
        assert_eq!(has, wanted, "{volume}");
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
        refused.message().contains("2048 MiB") && refused.message().contains("9216 MiB"),
        "{refused:?}"
    );
    assert_eq!(cns.calls("CnsCreateVolume"), 1);

    let published = client.controller_publish_volume(publish(&id, cns.machine(0))).await;
    let context = published.unwrap().into_inner().publish_context;
    let uuid = &context["diskUUID"];
    assert_eq!(context["type"], "vSphere CNS Block Volume");
    assert_eq!(context["device.csi.cloudwit.dev/wwn"], format!("0x{uuid}"));
    // The device as vCenter has it: what SCSI page 83 has.
    let reference = format!("VirtualMachine:{}", cns.machines[0].reference);
    let device = ["object.collect", "-json", &reference, "config.hardware.device"];
    let devices = cns.vcsim.govc(&device).await.unwrap();
    let devices: Value = serde_json::from_str(&devices).unwrap();
    let devices = devices[0]["val"]["_value"]
        .as_array()
        .or(devices[0]["val"].as_array())
        .unwrap()
        .clone();
    let disk = devices
        .iter()
        .find(|device| device["vDiskId"]["id"] == id.as_str())
        .unwrap();
    let written = disk["backing"]["uuid"].as_str().unwrap();
    assert_eq!(&written.replace('-', "").to_lowercase(), uuid);
    let same = client.controller_publish_volume(publish(&id, cns.machine(0))).await;
    assert_eq!(same.unwrap().into_inner().publish_context, context);
    assert_eq!(cns.calls("CnsAttachVolume"), 1);
    let elsewhere = client.controller_publish_volume(publish(&id, cns.machine(1))).await;
    let elsewhere = elsewhere.unwrap_err();
    assert_eq!(elsewhere.code(), Code::FailedPrecondition);
    assert!(elsewhere.message().contains(cns.machine(0)), "{elsewhere:?}");
    let attached = client.delete_volume(delete(&id)).await.unwrap_err();
    assert_eq!(attached.code(), Code::FailedPrecondition, "{attached:?}");

    let grown = client.controller_expand_volume(grow(&id, 4 * GIB + 1)).await;
    let grown = grown.unwrap().into_inner();
    assert_eq!(
        (grown.capacity_bytes, grown.node_expansion_required),
        (4 * GIB + MIB, true)
    );
    assert_eq!(
        cns.volumes().await[0]["BackingObjectDetails"]["CapacityInMb"],
        4 * 1024 + 1
    );

    let new = snapshot_of(&id, "snapshot-1");
    let snapshot = client.create_snapshot(new.clone()).await.unwrap().into_inner().snapshot;
    let snapshot = snapshot.unwrap();
    assert!(snapshot.snapshot_id.starts_with(&format!("{id}+")), "{snapshot:?}");
    assert_eq!((snapshot.size_bytes, snapshot.ready_to_use), (4 * GIB + MIB, true));
    let again = client
        .create_snapshot(new)
        .await
        .unwrap()
        .into_inner()
        .snapshot
        .unwrap();
    assert_eq!(again, snapshot);
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
        (4 * GIB + MIB, Some(source))
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
            let nodes = entry.status.unwrap().published_node_ids;
            (entry.volume.unwrap().volume_id, nodes)
        }));
        token = page.next_token;
        if token.is_empty() {
            break;
        }
    }
    let mut expected = vec![
        (id.clone(), vec![cns.machine(0).to_owned()]),
        (restored.volume_id.clone(), Vec::new()),
    ];
    expected.sort();
    assert_eq!(listed, expected);

    let gone = DeleteSnapshotRequest {
        snapshot_id: snapshot.snapshot_id.clone(),
        ..Default::default()
    };
    for _ in 0..2 {
        client.delete_snapshot(gone.clone()).await.unwrap();
        client
            .controller_unpublish_volume(unpublish(&id, cns.machine(0)))
            .await
            .unwrap();
        client.delete_volume(delete(&restored.volume_id)).await.unwrap();
    }
    assert_eq!(cns.calls("CnsDetachVolume"), 1);
    client
        .controller_publish_volume(publish(&id, cns.machine(2)))
        .await
        .unwrap();
    client
        .controller_unpublish_volume(unpublish(&id, cns.machine(2)))
        .await
        .unwrap();
    for _ in 0..2 {
        client.delete_volume(delete(&id)).await.unwrap();
    }
    assert_eq!(cns.volumes().await, [] as [Value; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn attachments_at_once_share_a_task_of_their_machine() {
    const MANY: usize = 12;
    let cns = Cns::start(VolumeOptions::default(), "").await;
    let client = cns.client().await;
    let create = (0..MANY).map(|number| {
        let (cns, mut client) = (&cns, client.clone());
        async move { cns.made(&mut client, &format!("pvc-{number}")).await }
    });
    let ids = join_all(create).await;
    let attach = ids.iter().enumerate().map(|(number, id)| {
        let (request, mut client) = (publish(id, cns.machine(number % 2)), client.clone());
        async move { client.controller_publish_volume(request).await.unwrap().into_inner() }
    });
    let published = join_all(attach).await;
    let uuids = published.into_iter().map(|one| one.publish_context["diskUUID"].clone());
    let uuids: std::collections::BTreeSet<String> = uuids.collect();
    assert_eq!(uuids.len(), MANY, "{uuids:?}");
    let attached = cns.calls("CnsAttachVolume");
    assert!(
        attached <= MANY / 2,
        "{attached} tasks for {MANY} volumes of two machines"
    );
    let detach = ids.iter().enumerate().map(|(number, id)| {
        let (request, mut client) = (unpublish(id, cns.machine(number % 2)), client.clone());
        async move { client.controller_unpublish_volume(request).await.unwrap() }
    });
    join_all(detach).await;
    let detached = cns.calls("CnsDetachVolume");
    println!("{MANY} volumes on two machines: {attached} tasks attached them, {detached} detached them");
    assert!(detached <= MANY / 2, "{detached}");
}

#[tokio::test(flavor = "multi_thread")]
async fn class_names_datastore_and_policy() {
    let options = VolumeOptions {
        datastores: 2,
        ..VolumeOptions::default()
    };
    let cns = Cns::start(options, "").await;
    let mut client = cns.client().await;
    let stores = cns
        .vcsim
        .govc(&["object.collect", "-s", "/DC0/datastore/LocalDS_1", "summary.url"])
        .await;
    let url = stores.unwrap().trim().to_owned();
    let named = [
        ("by-url", [("datastoreurl", url.as_str()), ("fstype", "xfs")]),
        (
            "by-name",
            [
                ("datastoreurl", "LocalDS_1"),
                ("storagepolicyname", "vSAN Default Storage Policy"),
            ],
        ),
    ];
    for (name, parameters) in &named {
        client.create_volume(with_parameters(name, parameters)).await.unwrap();
        client.create_volume(with_parameters(name, parameters)).await.unwrap();
    }
    let volumes = cns.volumes().await;
    assert_eq!(volumes.len(), 2, "{volumes:?}");
    assert!(
        volumes.iter().all(|volume| volume["DatastoreUrl"] == url.as_str()),
        "{volumes:?}"
    );
    let policy = |name: &str| {
        let volume = volumes.iter().find(|volume| volume["Name"] == name).unwrap();
        volume["StoragePolicyId"].as_str().unwrap_or_default().to_owned()
    };
    // Its id by VMware's own client.
    let policies = cns
        .vcsim
        .govc(&["storage.policy.ls", "-i", "vSAN Default Storage Policy"])
        .await;
    assert_eq!(
        (policy("by-name").as_str(), policy("by-url").as_str()),
        (policies.unwrap().trim(), "")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_parameter_of_a_class_is_named_and_makes_nothing() {
    let cns = Cns::start(VolumeOptions::default(), "").await;
    let mut client = cns.client().await;
    for (key, value) in [
        ("tpye", "thin"),
        ("datastoreurl", "ds:///vmfs/volumes/nowhere/"),
        ("storagepolicyname", "No Such Policy"),
    ] {
        let refused = client.create_volume(with_parameters("pvc-odd", &[(key, value)])).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
        assert!(refused.message().contains(key), "{refused:?}");
    }
    assert_eq!(cns.calls("CnsCreateVolume"), 0);
}
