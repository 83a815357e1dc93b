use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::serde_json::json;
use cloudwit_guest_sdk::volumes::*;

use crate::volumes::GIB;
use crate::volumes::testing::{SmallPd, disk_path, kind, token, wanted};

const ID: &str = "projects/p/global/snapshots/snap-1";

fn of(volume: &str) -> NewSnapshot {
    NewSnapshot {
        name: "snap-1".into(),
        volume: volume.into(),
        parameters: vec![Pair::new("storage-locations", "EU"), Pair::new("labels", "team=shop")],
        tags: vec![Pair::new("kubernetes.io/created-for/volumesnapshot/name", "s")],
    }
}

#[test]
fn snapshot_is_answered_once_its_content_is_fixed() {
    let cloud = SmallPd::new();
    let disk = cloud.disk("d");
    cloud.state.borrow_mut().is_slow = true;
    let begun = token(cloud.call().create_snapshot(&of(&disk), None));
    assert_eq!(token(cloud.call().create_snapshot(&of(&disk), Some(&begun))), begun);
    cloud.finish();
    let made = cloud.call().create_snapshot(&of(&disk), Some(&begun)).unwrap();
    assert_eq!((made.id.as_str(), made.size, made.ready), (ID, 2 * GIB, false));
    assert_eq!((made.volume.as_str(), made.created), (disk.as_str(), 1_767_348_245_000));
    cloud.state.borrow_mut().resources.get_mut(ID).unwrap()["status"] = json!("READY");
    assert!(cloud.call().create_snapshot(&of(&disk), None).unwrap().ready);
    assert_eq!(cloud.changes(), [format!("POST {disk}/createSnapshot")]);
    let stored = cloud.state.borrow().resources[ID].clone();
    assert_eq!(
        (&stored["storageLocations"], &stored["labels"]),
        (&json!(["eu"]), &json!({ "team": "shop" }))
    );

    let restored = NewVolume {
        source: Some(VolumeSource::Snapshot(ID.into())),
        ..wanted("pvc-2")
    };
    let restored = cloud.call().create_volume(&restored, None).unwrap();
    assert_eq!(restored.source, Some(VolumeSource::Snapshot(ID.into())));
}

#[test]
fn snapshot_of_another_disk_already_exists_and_of_none_is_not_found() {
    let cloud = SmallPd::new();
    let (one, other) = (cloud.disk("d"), cloud.disk("e"));
    token(cloud.call().create_snapshot(&of(&one), None));
    assert_eq!(
        kind(cloud.call().create_snapshot(&of(&other), None)),
        FailureKind::AlreadyExists
    );
    for missing in [&disk_path("gone"), "no disk"] {
        let new = NewSnapshot {
            name: "snap-2".into(),
            ..of(missing)
        };
        assert_eq!(
            kind(cloud.call().create_snapshot(&new, None)),
            FailureKind::NotFound,
            "{missing}"
        );
    }
    let image = NewSnapshot {
        parameters: vec![Pair::new("snapshot-type", "images")],
        ..of(&one)
    };
    assert_eq!(kind(cloud.call().create_snapshot(&image, None)), FailureKind::Invalid);
}

#[test]
fn snapshots_are_found_listed_and_deleted() {
    let cloud = SmallPd::new();
    let disk = cloud.disk("d");
    token(cloud.call().create_snapshot(&of(&disk), None));
    let ids = [
        ID.to_owned(),
        "no snapshot".into(),
        "projects/p/global/snapshots/gone".into(),
    ];
    let found = cloud.call().get_snapshots(&ids).unwrap();
    let found: Vec<bool> = found.into_iter().map(|one| one.unwrap().is_some()).collect();
    assert_eq!(found, [true, false, false]);
    let listed = cloud.call().list_snapshots(Some(&disk), None, 10).unwrap();
    assert_eq!((listed.snapshots.len(), listed.next), (1, None));
    let of_none = cloud.call().list_snapshots(Some("no disk"), None, 10).unwrap();
    assert!(of_none.snapshots.is_empty());
    cloud.state.borrow_mut().is_slow = true;
    let begun = token(cloud.call().delete_snapshot(ID, None));
    cloud.finish();
    for id in [ID, "no snapshot"] {
        assert_eq!(cloud.call().delete_snapshot(id, Some(&begun)), Ok(()), "{id}");
    }
    assert_eq!(cloud.call().get_snapshots(&ids[..1]), Ok(vec![Ok(None)]));
}
