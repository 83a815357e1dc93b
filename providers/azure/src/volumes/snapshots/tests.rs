use cloudwit_guest_sdk::volumes::*;
use serde_json::json;

use super::*;
use crate::volumes::testing::{SmallCompute, disk_id, kind, token, wanted};

const ID: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/snapshots/snap-1";

fn of(volume: &str) -> NewSnapshot {
    NewSnapshot {
        name: "snap-1".into(),
        volume: volume.into(),
        parameters: vec![Pair::new("tags", "team=shop")],
        tags: vec![Pair::new("kubernetes.io/created-for/volumesnapshot/name", "s")],
    }
}

#[test]
fn snapshot_is_made_once_and_disks_are_made_of_it() {
    let cloud = SmallCompute::new();
    let disk = cloud.disk("d");
    cloud.state.borrow_mut().is_slow = true;
    let begun = token(cloud.call().create_snapshot(&of(&disk), None));
    assert_eq!(token(cloud.call().create_snapshot(&of(&disk), Some(&begun))), begun);
    cloud.finish();
    let made = cloud.call().create_snapshot(&of(&disk), Some(&begun)).unwrap();
    assert_eq!((made.id.as_str(), made.size, made.ready), (ID, 2 * GIB, true));
    assert_eq!((made.volume.as_str(), made.created), (disk.as_str(), 1_767_323_045_000));
    assert_eq!(cloud.changes(), [format!("PUT {ID}")]);
    let stored = cloud.get(ID);
    assert_eq!(stored["tags"]["source_volume_id"], disk);
    assert_eq!(stored["tags"]["kubernetes.io-created-for-snapshot-name"], "s");
    assert_eq!(stored["properties"]["incremental"], true);
    let restored = NewVolume {
        source: Some(VolumeSource::Snapshot(ID.into())),
        ..wanted("pvc-2")
    };
    let restored = cloud.call().create_volume(&restored, None).unwrap();
    assert_eq!(restored.source, Some(VolumeSource::Snapshot(ID.into())));
    cloud.call().create_volume(&wanted("pvc-3"), None).unwrap();

    cloud.edit(ID, "/properties/diskSizeGB", json!(3));
    let mut copying = cloud.get(ID);
    copying["properties"]["completionPercent"] = json!(40.5);
    cloud.put(ID, copying);
    assert!(!cloud.call().create_snapshot(&of(&disk), None).unwrap().ready);
    let early = NewVolume {
        source: Some(VolumeSource::Snapshot(ID.into())),
        ..wanted("pvc-4")
    };
    assert_eq!(
        kind(cloud.call().create_volume(&early, None)),
        FailureKind::FailedPrecondition
    );
}

#[test]
fn snapshot_of_another_disk_already_exists_and_of_none_is_not_found() {
    let cloud = SmallCompute::new();
    let (one, other) = (cloud.disk("d"), cloud.disk("e"));
    cloud.call().create_snapshot(&of(&one), None).unwrap();
    assert_eq!(
        kind(cloud.call().create_snapshot(&of(&other), None)),
        FailureKind::AlreadyExists
    );
    let fresh = |volume: &str| NewSnapshot {
        name: "snap-2".into(),
        ..of(volume)
    };
    for missing in ["no id", &disk_id("gone")] {
        assert_eq!(
            kind(cloud.call().create_snapshot(&fresh(missing), None)),
            FailureKind::NotFound
        );
    }
    // The disk may go, its snapshot stays.
    cloud.call().delete_volume(&one, None).unwrap();
    assert_eq!(
        cloud.call().create_snapshot(&of(&one), None).map(|found| found.id),
        Ok(ID.into())
    );
}

#[test]
fn failed_snapshot_is_deleted_and_reported() {
    let cloud = SmallCompute::new();
    let disk = cloud.disk("d");
    cloud.call().create_snapshot(&of(&disk), None).unwrap();
    cloud.edit(ID, "/properties/provisioningState", json!("Failed"));
    assert_eq!(kind(cloud.call().create_snapshot(&of(&disk), None)), FailureKind::Other);
    cloud.call().create_snapshot(&of(&disk), None).unwrap();
    assert_eq!(
        cloud.changes(),
        [format!("PUT {ID}"), format!("DELETE {ID}"), format!("PUT {ID}")]
    );
}

#[test]
fn wrong_parameter_is_named() {
    let cloud = SmallCompute::new();
    let disk = cloud.disk("d");
    for (key, value) in [
        ("tgas", "a=b"),
        ("tags", "a"),
        ("incremental", "yes"),
        ("location", "northeurope"),
        ("resourceGroup", "a/b"),
        ("networkAccessPolicy", "AllowPrivate"),
        ("dataAccessAuthMode", "Password"),
    ] {
        let new = NewSnapshot {
            parameters: vec![Pair::new(key, value)],
            ..of(&disk)
        };
        let refused = cloud.call().create_snapshot(&new, None).unwrap_err();
        let named = refused.message.to_ascii_lowercase().contains(&key.to_ascii_lowercase());
        assert!(refused.kind == FailureKind::Invalid && named, "{refused:?}");
    }
    assert!(cloud.changes().is_empty());
}

#[test]
fn snapshots_are_listed_in_pages_and_deleted_twice() {
    let cloud = SmallCompute::new();
    let (one, other) = (cloud.disk("d"), cloud.disk("e"));
    for (name, disk) in [("snap-1", &one), ("snap-2", &other), ("snap-3", &one)] {
        let new = NewSnapshot {
            name: name.into(),
            ..of(disk)
        };
        cloud.call().create_snapshot(&new, None).unwrap();
    }
    let page = cloud.call().list_snapshots(None, None, 2).unwrap();
    assert_eq!(page.snapshots.len(), 2);
    let rest = cloud.call().list_snapshots(None, page.next.as_deref(), 2).unwrap();
    assert_eq!((rest.snapshots.len(), rest.next), (1, None));
    let of_one = cloud.call().list_snapshots(Some(&one), None, 9).unwrap();
    assert_eq!(of_one.snapshots.len(), 2);
    assert_eq!(
        kind(cloud.call().list_snapshots(None, Some("odd"), 2)),
        FailureKind::Aborted
    );
    assert_eq!(cloud.call().list_volumes(None, 9).unwrap().volumes.len(), 2);
    for _ in 0..2 {
        assert_eq!(cloud.call().delete_snapshot(ID, None), Ok(()));
    }
    let found = cloud
        .call()
        .get_snapshots(&[ID.into(), "no id".into(), ID.replace('1', "3")])
        .unwrap();
    assert!(
        matches!(found.as_slice(), [Ok(None), Ok(None), Ok(Some(_))]),
        "{found:?}"
    );
}
