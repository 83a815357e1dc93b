//! The recorded answers of Cinder and Nova, and what is made of them.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::{FakeAnswer, recorded};
use cloudwit_guest_sdk::volumes::*;

use super::disk::{Status, is_id};
use super::testing::*;
use super::{DRIVER, GIB, ZONE_KEY};
use crate::OpenStack;
use crate::recorded::{Stage, answer, json};

const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

/// The volume of the recorded name is not there yet.
fn without_volume() -> Stage {
    stage("").always("GET", "/volumes/detail?name=", || answer(volumes_file!("volumes_none")))
}

#[test]
fn driver_is_upstreams() {
    let driver = OpenStack::volume_driver(None);
    assert_eq!((driver.name.as_str(), driver.usual), (DRIVER, GIB));
    assert_eq!(driver.topology_keys, [ZONE_KEY]);
    assert_eq!(OpenStack::label_sources(None), [InTreeSource::Cinder]);
}

#[test]
fn recorded_volume_is_read() {
    let disk = disk();
    assert_eq!(
        (disk.gib, disk.status.clone(), disk.zone.as_str()),
        (2, Status::Attached, "nova")
    );
    let volume = stage("").provider().volume(&disk);
    assert_eq!(volume.topology, [Topology::of(ZONE_KEY, "nova")]);
    assert_eq!(volume.attachments[0].node_id, server_id());
    let anywhere = stage("[BlockStorage]\nignore-volume-az = true\n")
        .provider()
        .volume(&disk);
    assert_eq!(anywhere.topology, []);
}

#[test]
fn only_uuids_are_asked_for() {
    let cloud = stage("");
    let ids = ["", "vol-1", "0000000000000000000000000000000000000", "a/../../b"].map(String::from);
    let found = cloud.provider().get_volumes(&ids).unwrap();
    assert!(found.iter().all(|one| matches!(one, Ok(None))), "{found:?}");
    assert_eq!(cloud.calls(), [] as [String; 0]);
    assert!(is_id(&volume_id()) && is_id(&volume_id().to_uppercase()));
}

#[test]
fn absence_is_cinders_word_alone() {
    let cloud = stage("")
        .always("GET", "/volumes/", || answer(volumes_file!("volume")))
        .always("GET", NOBODY, || answer(volumes_file!("volume_not_found")));
    let found = cloud.provider().get_volumes(&[volume_id(), NOBODY.into()]).unwrap();
    assert!(matches!(found.as_slice(), [Ok(Some(_)), Ok(None)]), "{found:?}");
    let proxy = stage("").always("GET", "/volumes/", || {
        FakeAnswer::new(404, &[], "<html>no backend</html>")
    });
    let unsaid = proxy.provider().get_volumes(&[volume_id()]).unwrap().remove(0);
    assert_eq!(kind(unsaid), FailureKind::Unavailable);
    assert!(proxy.provider().detach_volumes(&[detachment()]).unwrap()[0].is_err());
}

#[test]
fn many_volumes_are_taken_from_one_list() {
    let cloud = stage("")
        .always("GET", "/volumes/detail?limit=1000", || answer(volumes_file!("volumes")))
        .always("GET", "/volumes/0", || answer(volumes_file!("volume_not_found")));
    let mut ids: Vec<String> = json(volumes_file!("volumes"))["volumes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|volume| volume["id"].as_str().unwrap().to_owned())
        .collect();
    let known = ids.len();
    ids.extend((0..3).map(|number| format!("0000000{number}-0000-0000-0000-000000000000")));
    let found = cloud.provider().get_volumes(&ids).unwrap();
    let there = found.iter().filter(|one| matches!(one, Ok(Some(_)))).count();
    assert_eq!((there, cloud.calls().len()), (known, 1 + 3), "{:?}", cloud.calls());
}

#[test]
fn volume_is_created_once_and_found_by_name() {
    let cloud = without_volume().always("POST", "/volumes", || answer(volumes_file!("created")));
    let new = NewVolume {
        tags: vec![Pair::new("kubernetes.io/created-for/pvc/name", "data")],
        parameters: vec![Pair::new("type", "ssd")],
        ..wanted("pvc-1")
    };
    assert!(is_pending(cloud.provider().create_volume(&new, None)));
    let sent: serde_json::Value = serde_json::from_str(&cloud.sent("POST", "cinder.test")[0].text()).unwrap();
    let volume = &sent["volume"];
    assert_eq!(
        (volume["size"].as_i64(), volume["availability_zone"].as_str()),
        (Some(2), Some("nova"))
    );
    assert_eq!(
        (volume["name"].as_str(), volume["volume_type"].as_str()),
        (Some("pvc-1"), Some("ssd"))
    );
    assert_eq!(volume["metadata"]["csi.storage.k8s.io/pvc/name"], "data");

    let there = stage("").always("GET", "/volumes/detail?name=", || {
        answer(volumes_file!("volumes_named"))
    });
    let found = there.provider().create_volume(&wanted("pvc-1"), None).unwrap();
    assert_eq!((found.id, found.size), (volume_id(), 2 * GIB));
    let larger = NewVolume {
        size: SizeRange {
            at_least: 9 * GIB,
            at_most: None,
        },
        ..wanted("pvc-1")
    };
    let refused = there.provider().create_volume(&larger, None).unwrap_err();
    assert_eq!(refused.kind, FailureKind::AlreadyExists);
    assert!(
        refused.message.contains("2 GiB") && refused.message.contains("9"),
        "{refused:?}"
    );
}

#[test]
fn refusals_of_cinder_have_their_kind() {
    for (file, expected) in [
        (volumes_file!("quota"), FailureKind::Exhausted),
        (volumes_file!("type_not_found"), FailureKind::Invalid),
        (volumes_file!("zone_not_found"), FailureKind::Invalid),
    ] {
        // All of them: only for a quota it means anything.
        let answered = move || FakeAnswer::new(status_of(file), &[("retry-after", "0")], recorded(file));
        let cloud = without_volume().always("POST", "/volumes", answered);
        let refused = cloud.provider().create_volume(&wanted("pvc-9"), None).unwrap_err();
        assert_eq!(
            (refused.kind.clone(), refused.retry_after),
            (expected, None),
            "{refused:?}"
        );
    }
    let throttled = || {
        FakeAnswer::new(
            413,
            &[("retry-after", "7")],
            "{\"overLimit\": {\"message\": \"slow down\"}}",
        )
    };
    let cloud = without_volume().always("POST", "/volumes", throttled);
    let refused = cloud.provider().create_volume(&wanted("pvc-9"), None);
    assert_eq!(kind(refused), FailureKind::RateLimited);
}

#[test]
fn failed_creation_is_deleted_and_next_zone_is_tried() {
    let cloud = stage("")
        .always("GET", "/volumes/detail?name=", || {
            answer(volumes_file!("volumes_failed"))
        })
        .always("GET", "/messages", || answer(volumes_file!("messages")))
        .always("DELETE", "/volumes/", || FakeAnswer::new(202, &[], ""));
    let new = NewVolume {
        allowed: ["nova", "elsewhere"].map(|zone| Topology::of(ZONE_KEY, zone)).into(),
        ..wanted("pvc-failed")
    };
    let first = cloud.provider().create_volume(&new, None).unwrap_err();
    assert_eq!(first.kind, FailureKind::Pending("1".into()), "{first:?}");
    // That there is no room is final, so it is not answered while the last one is there.
    let full = token(cloud.provider().create_volume(&new, Some("1")));
    assert!(full.contains("weighted backend"), "{full}");
    assert_eq!(token(cloud.provider().create_volume(&new, Some(&full))), full);
    assert_eq!(cloud.sent("DELETE", "/volumes/").len(), 3);
    let gone = without_volume();
    let second = gone.provider().create_volume(&new, Some(&full)).unwrap_err();
    assert_eq!(second.kind, FailureKind::Exhausted);
    assert!(second.message.contains("weighted backend"), "{second:?}");
    assert_eq!(gone.sent("POST", "/volumes").len(), 0, "nothing is begun");
}

#[test]
fn volume_that_cannot_be_deleted_is_neither_used_nor_final() {
    let stuck = volumes_file!("volumes_failed").replace("\"status\": \"error\"", "\"status\": \"error_deleting\"");
    assert_ne!(stuck, volumes_file!("volumes_failed"));
    for token in [None, Some("full: no room")] {
        let recorded = stuck.clone();
        let cloud = stage("").always("GET", "/volumes/detail?name=", move || answer(&recorded));
        let refused = cloud
            .provider()
            .create_volume(&wanted("pvc-failed"), token)
            .unwrap_err();
        assert_eq!(refused.kind, FailureKind::Other, "{refused:?}");
        assert!(
            cloud.calls().iter().all(|call| call.starts_with("GET")),
            "{:?}",
            cloud.calls()
        );
    }
}

#[test]
fn attached_volume_is_not_deleted() {
    let cloud = stage("").always("GET", "/volumes/", || answer(volumes_file!("volume")));
    let refused = cloud.provider().delete_volume(&volume_id(), None).unwrap_err();
    assert_eq!(refused.kind, FailureKind::FailedPrecondition);
    assert!(refused.message.contains(&server_id()), "{refused:?}");
    let has_snapshots = free().always("DELETE", "/volumes/", || answer(volumes_file!("volume_in_use")));
    let refused = has_snapshots.provider().delete_volume(&volume_id(), None);
    assert_eq!(kind(refused), FailureKind::FailedPrecondition);
    assert_eq!(stage("").provider().delete_volume("other", None), Ok(()));
}

#[test]
fn volume_that_is_large_enough_does_not_grow() {
    let cloud = stage("")
        .always("GET", "/volumes/", || answer(volumes_file!("volume")))
        .always("POST", "/action", || FakeAnswer::new(202, &[], ""));
    let size = |at_least| SizeRange {
        at_least,
        at_most: None,
    };
    let grown = cloud
        .provider()
        .expand_volume(&volume_id(), size(2 * GIB), None)
        .unwrap();
    assert_eq!((grown.size, cloud.sent("POST", "/action").len()), (2 * GIB, 0));
    assert!(is_pending(cloud.provider().expand_volume(
        &volume_id(),
        size(2 * GIB + 1),
        None
    )));
    assert_eq!(
        cloud.sent("POST", "/action")[0].text(),
        "{\"os-extend\":{\"new_size\":3}}"
    );
    let narrow = SizeRange {
        at_least: 2 * GIB + 1,
        at_most: Some(2 * GIB + 2),
    };
    assert_eq!(
        kind(cloud.provider().expand_volume(&volume_id(), narrow, None)),
        FailureKind::OutOfRange
    );
}

#[test]
fn type_of_an_attributes_class_is_set_and_changes() {
    let faster = [Pair::new("type", "fast")];
    let cloud = without_volume().always("POST", "/volumes", || answer(volumes_file!("created")));
    let new = NewVolume {
        parameters: vec![Pair::new("type", "slow")],
        mutable_parameters: faster.to_vec(),
        ..wanted("pvc-1")
    };
    assert!(is_pending(cloud.provider().create_volume(&new, None)));
    assert!(
        cloud.sent("POST", "cinder.test")[0]
            .text()
            .contains("\"volume_type\":\"fast\"")
    );

    let cloud = stage("")
        .always("GET", "/volumes/", || answer(volumes_file!("volume")))
        .always("POST", "/action", || FakeAnswer::new(202, &[], ""));
    assert_eq!(cloud.provider().modify_volume(&volume_id(), &[], None), Ok(()));
    let same = [Pair::new("type", disk().kind)];
    assert_eq!(cloud.provider().modify_volume(&volume_id(), &same, None), Ok(()));
    assert_eq!(cloud.sent("POST", "/action").len(), 0);
    let asked = token(cloud.provider().modify_volume(&volume_id(), &faster, None));
    assert_eq!(
        cloud.sent("POST", "/action")[0].text(),
        "{\"os-retype\":{\"migration_policy\":\"never\",\"new_type\":\"fast\"}}"
    );
    // It is as it was, and not under way.
    let given_up = cloud.provider().modify_volume(&volume_id(), &faster, Some(&asked));
    assert_eq!(kind(given_up), FailureKind::FailedPrecondition);
    assert_eq!(cloud.sent("POST", "/action").len(), 1);
    let missing = stage("")
        .always("GET", "/volumes/", || answer(volumes_file!("volume")))
        .always("POST", "/action", || answer(volumes_file!("type_not_found")));
    let refused = missing.provider().modify_volume(&volume_id(), &faster, None);
    assert_eq!(kind(refused), FailureKind::Invalid);
    let wrong = [Pair::new("iops", "3000")];
    assert_eq!(
        kind(cloud.provider().modify_volume(&volume_id(), &wrong, None)),
        FailureKind::Invalid
    );
}

#[test]
fn snapshot_is_found_by_name_or_made() {
    let new = |volume: &str| NewSnapshot {
        name: "snapshot-1".into(),
        volume: volume.into(),
        parameters: vec![Pair::new("force-create", "true")],
        tags: Vec::new(),
    };
    let there = stage("").always("GET", "/snapshots/detail?name=", || answer(volumes_file!("snapshots")));
    let found = there.provider().create_snapshot(&new(&volume_id()), None).unwrap();
    assert!(
        found.ready && found.size == 2 * GIB && found.created > 1_700_000_000_000,
        "{found:?}"
    );
    assert_eq!(
        kind(there.provider().create_snapshot(&new(NOBODY), None)),
        FailureKind::AlreadyExists
    );
    let none = stage("")
        .always("GET", "/snapshots/detail?name=", || {
            FakeAnswer::new(200, &[], "{\"snapshots\": []}")
        })
        .always("POST", "/snapshots", || answer(volumes_file!("snapshot_created")));
    assert!(is_pending(none.provider().create_snapshot(&new(&volume_id()), None)));
    assert!(none.sent("POST", "/snapshots")[0].text().contains("\"force\":true"));
}

#[test]
fn pages_go_on_behind_the_last_volume() {
    let cloud = stage("")
        .always("GET", "/volumes/detail?metadata=", || {
            answer(volumes_file!("volumes_page"))
        })
        .always("GET", "marker=", || answer(volumes_file!("marker_not_found")));
    let page = cloud.provider().list_volumes(None, 1).unwrap();
    let next = page.next.unwrap();
    assert_eq!((page.volumes.len(), &page.volumes[0].id), (1, &next));
    assert_eq!(
        kind(cloud.provider().list_volumes(Some(&next), 1)),
        FailureKind::Aborted
    );
    assert_eq!(
        kind(cloud.provider().list_volumes(Some("other"), 1)),
        FailureKind::Aborted
    );
    cloud.host.cluster("another", &[]);
    assert_eq!(cloud.provider().list_volumes(None, 1).unwrap().volumes.len(), 0);
}

#[test]
fn labels_are_zone_and_region() {
    let cloud = stage("").always("GET", "/volumes/", || answer(volumes_file!("volume")));
    let asked = InTreeVolume {
        source: InTreeSource::Cinder,
        id: volume_id(),
        zone: None,
        extra: Vec::new(),
    };
    let labels = cloud.provider().volume_labels(&[asked]).unwrap().remove(0).unwrap();
    assert_eq!(labels, place_labels(&["nova"], Some("RegionOne")));
}
