//! Persistent disks of Compute Engine: their life as the sidecars ask for it, full zones and machines, and csi-sanity.

use cloudwit_csi::proto::volume_content_source::{SnapshotSource, Type};
use cloudwit_csi::proto::*;
use cloudwit_suite::common::csi_node_stub::NodeStub;
use cloudwit_suite::common::csi_requests::{GIB, delete, publish, unpublish, wanted_at};
use cloudwit_suite::common::csi_sanity::{FEWEST, controller_passes};
use cloudwit_suite::common::csi_served::Controller;
use cloudwit_suite::common::csi_stand_in::{StandInDriver, load};
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::gce::gce_files;
use serde_json::{Map, Value, json};
use tonic::Code;

use crate::scene::ZONE;

const ZONE_KEY: &str = "topology.gke.io/zone";

async fn driver() -> StandInDriver {
    let cloud = StandIn::start("gce", &[]).await.unwrap();
    let files = async |cloud: &StandIn, deployment: &_| gce_files(cloud, "", deployment).await.unwrap();
    StandInDriver::start("gce", cloud, files).await
}

/// A machine in [`ZONE`], by its id for the driver.
async fn machine(driver: &StandInDriver, name: &str) -> String {
    driver.does("add_machine", json!({ "name": name })).await;
    format!("projects/demo/zones/{ZONE}/instances/{name}")
}

fn wanted(name: &str) -> CreateVolumeRequest {
    wanted_at(name, ZONE_KEY, ZONE)
}

fn parameters(all: &[(&str, &str)]) -> std::collections::HashMap<String, String> {
    all.iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

async fn created(client: &mut Controller, new: CreateVolumeRequest) -> Volume {
    client.create_volume(new).await.unwrap().into_inner().volume.unwrap()
}

async fn all(driver: &StandInDriver, collection: &str) -> Map<String, Value> {
    let found = driver.does("resources", json!({ "collection": collection })).await;
    found.as_object().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn gce_disk_is_created_attached_grown_copied_and_deleted() {
    let driver = driver().await;
    let (one, two) = (machine(&driver, "one").await, machine(&driver, "two").await);
    let mut client = driver.client().await;
    let new = CreateVolumeRequest {
        parameters: parameters(&[
            ("csi.storage.k8s.io/pvc/name", "data"),
            ("csi.storage.k8s.io/pvc/namespace", "shop"),
            ("type", "pd-balanced"),
            ("labels", "team=shop"),
        ]),
        ..wanted("pvc-1")
    };
    let volume = created(&mut client, new.clone()).await;
    let id = format!("projects/demo/zones/{ZONE}/disks/pvc-1");
    assert_eq!(
        (volume.volume_id.as_str(), volume.capacity_bytes),
        (id.as_str(), 2 * GIB)
    );
    assert_eq!(volume.accessible_topology[0].segments[ZONE_KEY], ZONE);
    assert_eq!(created(&mut client, new.clone()).await, volume);
    let disk = all(&driver, "disks").await[&id].clone();
    assert_eq!(
        disk["labels"],
        json!({ "team": "shop", "kubernetes_io_created_for_pvc_name": "data", "kubernetes_io_created_for_pvc_namespace": "shop" })
    );
    assert!(
        disk["description"].as_str().unwrap().contains("pd.csi.storage.gke.io"),
        "{disk}"
    );
    let other = CreateVolumeRequest {
        capacity_range: Some(CapacityRange {
            required_bytes: 9 * GIB,
            limit_bytes: 0,
        }),
        ..new
    };
    let refused = client.create_volume(other).await.unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists);
    assert!(refused.message().contains("9 GiB"), "{refused:?}");

    let published = client.controller_publish_volume(publish(&id, &one)).await.unwrap();
    let context = published.into_inner().publish_context;
    assert_eq!(context["device.csi.cloudwit.dev/by-id"], "google-pvc-1");
    client.controller_publish_volume(publish(&id, &one)).await.unwrap();
    assert_eq!(driver.calls("instances.attachDisk").await, 1);
    let elsewhere = client.controller_publish_volume(publish(&id, &two)).await.unwrap_err();
    assert_eq!(elsewhere.code(), Code::FailedPrecondition, "{elsewhere:?}");
    let grow = ControllerExpandVolumeRequest {
        volume_id: id.clone(),
        capacity_range: Some(CapacityRange {
            required_bytes: 4 * GIB + 1,
            limit_bytes: 0,
        }),
        ..Default::default()
    };
    let grown = client.controller_expand_volume(grow).await.unwrap().into_inner();
    assert_eq!((grown.capacity_bytes, grown.node_expansion_required), (5 * GIB, true));

    let new = CreateSnapshotRequest {
        name: "snapshot-1".into(),
        source_volume_id: id.clone(),
        ..Default::default()
    };
    let snapshot = client
        .create_snapshot(new.clone())
        .await
        .unwrap()
        .into_inner()
        .snapshot
        .unwrap();
    assert_eq!(snapshot.snapshot_id, "projects/demo/global/snapshots/snapshot-1");
    assert_eq!((snapshot.size_bytes, snapshot.ready_to_use), (5 * GIB, true));
    let again = client
        .create_snapshot(new)
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
    let restored = created(&mut client, restored).await;
    assert_eq!(
        (restored.capacity_bytes, restored.content_source),
        (5 * GIB, Some(source))
    );

    let listed = client
        .list_volumes(ListVolumesRequest::default())
        .await
        .unwrap()
        .into_inner()
        .entries;
    let listed = listed.into_iter().map(|entry| {
        (
            entry.volume.unwrap().volume_id,
            entry.status.unwrap().published_node_ids,
        )
    });
    let expected = [
        (id.clone(), vec![one.clone()]),
        (restored.volume_id.clone(), Vec::new()),
    ];
    assert_eq!(listed.collect::<Vec<_>>(), expected);

    let attached = client.delete_volume(delete(&id)).await.unwrap_err();
    assert_eq!(attached.code(), Code::FailedPrecondition, "{attached:?}");
    for _ in 0..2 {
        client.controller_unpublish_volume(unpublish(&id, &one)).await.unwrap();
    }
    client.controller_publish_volume(publish(&id, &two)).await.unwrap();
    client.controller_unpublish_volume(unpublish(&id, &two)).await.unwrap();
    for _ in 0..2 {
        client.delete_volume(delete(&id)).await.unwrap();
        client.delete_volume(delete(&restored.volume_id)).await.unwrap();
        let gone = DeleteSnapshotRequest {
            snapshot_id: snapshot.snapshot_id.clone(),
            ..Default::default()
        };
        client.delete_snapshot(gone).await.unwrap();
    }
    assert!(all(&driver, "disks").await.is_empty() && all(&driver, "snapshots").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn gce_disk_with_replicas_moves_between_its_zones() {
    let driver = driver().await;
    let here = machine(&driver, "here").await;
    driver
        .does("add_machine", json!({ "name": "there", "zone": "us-central1-b" }))
        .await;
    driver
        .does("add_machine", json!({ "name": "far", "zone": "us-central1-f" }))
        .await;
    let at = |zone: &str, name: &str| format!("projects/demo/zones/{zone}/instances/{name}");
    let mut client = driver.client().await;
    let place = |zone: &str| Topology {
        segments: [(ZONE_KEY.to_owned(), zone.to_owned())].into(),
    };
    let new = CreateVolumeRequest {
        parameters: parameters(&[("type", "pd-ssd"), ("replication-type", "regional-pd")]),
        capacity_range: Some(CapacityRange {
            required_bytes: 10 * GIB,
            limit_bytes: 0,
        }),
        accessibility_requirements: Some(TopologyRequirement {
            requisite: vec![place("us-central1-b"), place(ZONE)],
            preferred: vec![place(ZONE), place("us-central1-b")],
        }),
        ..wanted("pvc-both")
    };
    let volume = created(&mut client, new).await;
    let id = volume.volume_id;
    assert_eq!(id, "projects/demo/regions/us-central1/disks/pvc-both");
    assert_eq!(volume.accessible_topology, [place(ZONE), place("us-central1-b")]);
    for machine in [here, at("us-central1-b", "there")] {
        let published = client.controller_publish_volume(publish(&id, &machine)).await.unwrap();
        let context = published.into_inner().publish_context;
        assert_eq!(context["device.csi.cloudwit.dev/by-id"], "google-pvc-both_regional");
        client
            .controller_unpublish_volume(unpublish(&id, &machine))
            .await
            .unwrap();
    }
    let far = client
        .controller_publish_volume(publish(&id, &at("us-central1-f", "far")))
        .await
        .unwrap_err();
    assert_eq!(far.code(), Code::InvalidArgument, "{far:?}");
    client.delete_volume(delete(&id)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn full_zones_and_machines_of_gce_have_others_chosen() {
    let driver = driver().await;
    let (one, two) = (machine(&driver, "one").await, machine(&driver, "two").await);
    let mut client = driver.client().await;
    driver.does("full", json!({ "zones": [ZONE] })).await;
    // That a zone is full is known when the operation has ended. It is the first answer, and each attempt begins anew.
    for attempt in 1..=2 {
        let full = client.create_volume(wanted("pvc-1")).await.unwrap_err();
        assert_eq!(full.code(), Code::ResourceExhausted, "{full:?}");
        assert_eq!(driver.calls("disks.insert").await, attempt);
    }
    let mut anywhere = wanted("pvc-1");
    let places = anywhere.accessibility_requirements.as_mut().unwrap();
    places.requisite.push(Topology {
        segments: [(ZONE_KEY.to_owned(), "us-central1-c".to_owned())].into(),
    });
    let made = created(&mut client, anywhere).await;
    assert_eq!(made.volume_id, "projects/demo/zones/us-central1-c/disks/pvc-1");
    driver.does("full", json!({ "zones": [] })).await;

    driver.does("disks_most", json!({ "count": 1 })).await;
    let (first, second) = (
        created(&mut client, wanted("pvc-2")).await,
        created(&mut client, wanted("pvc-3")).await,
    );
    client
        .controller_publish_volume(publish(&first.volume_id, &one))
        .await
        .unwrap();
    let full = client
        .controller_publish_volume(publish(&second.volume_id, &one))
        .await
        .unwrap_err();
    assert_eq!(full.code(), Code::ResourceExhausted, "{full:?}");
    client
        .controller_publish_volume(publish(&second.volume_id, &two))
        .await
        .unwrap();

    let odd = CreateVolumeRequest {
        parameters: parameters(&[("tpye", "pd-ssd")]),
        ..wanted("pvc-odd")
    };
    let refused = client.create_volume(odd).await.unwrap_err();
    assert!(
        refused.code() == Code::InvalidArgument && refused.message().contains("tpye"),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn gce_lost_answers_make_no_second_disk_and_no_absence() {
    let driver = driver().await;
    let machine = machine(&driver, "one").await;
    let mut client = driver.client().await;
    for (number, obey) in [true, false].into_iter().enumerate() {
        let lost = json!([{ "method": "POST", "path": "/disks$", "status": 0, "obey": obey }]);
        driver.cloud.faults(lost).await.unwrap();
        let name = format!("pvc-{number}");
        let failed = client.create_volume(wanted(&name)).await.unwrap_err();
        assert!(matches!(failed.code(), Code::Unavailable | Code::Aborted), "{failed:?}");
        created(&mut client, wanted(&name)).await;
    }
    assert_eq!(all(&driver, "disks").await.len(), 2);
    let id = format!("projects/demo/zones/{ZONE}/disks/pvc-0");
    client.controller_publish_volume(publish(&id, &machine)).await.unwrap();
    for (status, value) in [
        (404, json!("<html>not found</html>")),
        (503, json!("")),
        (200, json!("<html>login</html>")),
    ] {
        let fault = json!([{ "path": "/disks/pvc-0", "status": status, "value": value, "times": -1 }]);
        driver.cloud.faults(fault).await.unwrap();
        let unsaid = client
            .controller_unpublish_volume(unpublish(&id, &machine))
            .await
            .unwrap_err();
        assert!(matches!(unsaid.code(), Code::Unavailable | Code::Aborted), "{unsaid:?}");
        driver.cloud.heal().await.unwrap();
    }
    assert_eq!(driver.calls("instances.detachDisk").await, 0);
    // The machine goes.
    driver.does("delete", json!({ "path": machine })).await;
    client
        .controller_unpublish_volume(unpublish(&id, &machine))
        .await
        .unwrap();
    let missing = client
        .controller_publish_volume(publish(&id, &machine))
        .await
        .unwrap_err();
    assert_eq!(missing.code(), Code::NotFound, "{missing:?}");
    client.delete_volume(delete(&id)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn disks_of_the_in_tree_gce_plugin_go_on_under_migrated_ids() {
    let driver = driver().await;
    let machine = machine(&driver, "one").await;
    let mut client = driver.client().await;
    created(&mut client, wanted("old")).await;
    for place in ["zones/UNSPECIFIED".to_owned(), format!("zones/{ZONE}")] {
        let id = format!("projects/UNSPECIFIED/{place}/disks/old");
        client.controller_publish_volume(publish(&id, &machine)).await.unwrap();
        client
            .controller_unpublish_volume(unpublish(&id, &machine))
            .await
            .unwrap();
    }
    client
        .delete_volume(delete("projects/UNSPECIFIED/zones/UNSPECIFIED/disks/old"))
        .await
        .unwrap();
    assert!(all(&driver, "disks").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn csi_sanity_finds_nothing_wrong_with_the_controller_on_gce() {
    let cloud = StandIn::start("gce", &[]).await.unwrap();
    cloud.call("add_machine", json!({ "name": "one" })).await.unwrap();
    cloud.call("operations_take", json!({ "seconds": 0 })).await.unwrap();
    let most = 2;
    cloud.call("disks_most", json!({ "count": most })).await.unwrap();
    let url = cloud.url();
    // Tokens come from the metadata server.
    let config = format!(
        "[global]\nproject-id = demo\nlocal-zone = {ZONE}\nnetwork-name = default\napi-endpoint = {url}/compute/v1/\n\
         metadata-endpoint = {url}\n"
    );
    let stub = NodeStub {
        id: format!("projects/demo/zones/{ZONE}/instances/one"),
        topology: Topology {
            segments: [(ZONE_KEY.to_owned(), ZONE.to_owned())].into(),
        },
        most,
    };
    controller_passes(load("gce", &cloud, config).await, stub, FEWEST).await;
}
