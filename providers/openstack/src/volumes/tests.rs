//! The recorded answers of Cinder and Nova, and what is made of them.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::{FakeAnswer, recorded};
use cloudwit_guest_sdk::volumes::*;

use super::disk::{Disk, Status, is_id};
use super::moves::{Step, step};
use super::testing::*;
use super::{DRIVER, GIB, ZONE_KEY};
use crate::OpenStack;
use crate::recorded::{Stage, answer, json};

const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

fn disk() -> Disk {
    Disk::read(&recorded_volume()).unwrap()
}

fn kind<T: std::fmt::Debug>(refused: Result<T, Failure>) -> FailureKind {
    refused.unwrap_err().kind
}

fn token<T: std::fmt::Debug>(answered: Result<T, Failure>) -> String {
    match kind(answered) {
        FailureKind::Pending(token) => token,
        other => panic!("{other:?}"),
    }
}

fn is_pending<T: std::fmt::Debug>(answered: Result<T, Failure>) -> bool {
    matches!(kind(answered), FailureKind::Pending(_))
}

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
fn steps_follow_cinders_status() {
    let (server, other) = (server_id(), NOBODY);
    let with = |status: Status, shared| Disk {
        status,
        shared,
        ..disk()
    };
    let free = Disk {
        attachments: Vec::new(),
        ..with(Status::Free, false)
    };
    let device = disk().attachments[0].device.clone();
    assert_eq!(step(&disk(), &server), Ok(Step::Done(device.clone())));
    assert_eq!(
        step(&with(Status::Busy("extending".into()), false), &server),
        Ok(Step::Done(device))
    );
    assert_eq!(step(&free, other), Ok(Step::Attach));
    assert_eq!(step(&with(Status::Attached, true), other), Ok(Step::Attach));
    assert_eq!(kind(step(&disk(), other)), FailureKind::FailedPrecondition);
    for status in [
        Status::Failed,
        Status::Deleting,
        Status::Broken("error_extending".into()),
    ] {
        let odd = Disk { status, ..free.clone() };
        assert_eq!(kind(step(&odd, other)), FailureKind::FailedPrecondition, "{odd:?}");
    }
    let reserved = with(Status::Attaching, false);
    let reserved = Disk {
        attachments: Vec::new(),
        ..reserved
    };
    assert_eq!(step(&reserved, other), Ok(Step::Reserved));
    for status in [Status::Creating, Status::Busy("retyping".into())] {
        let busy = Disk { status, ..free.clone() };
        assert!(matches!(step(&busy, other), Ok(Step::Wait(_))), "{busy:?}");
    }
    assert!(matches!(
        step(&with(Status::Detaching, false), &server),
        Ok(Step::Wait(_))
    ));
    assert!(step(&with(Status::Detaching, false), other).is_err());
}

fn free() -> Stage {
    stage("").always("GET", "/volumes/", || answer(volumes_file!("volume_free")))
}

#[test]
fn attaching_is_asked_of_nova_and_done_when_cinder_shows_it() {
    let asked = [attachment(&volume_id(), &server_id())];
    let cloud = free().always("POST", "os-volume_attachments", || answer(volumes_file!("attached")));
    assert!(is_pending(cloud.provider().attach_volumes(&asked).unwrap().remove(0)));
    assert_eq!(cloud.sent("POST", "nova.test").len(), 1);
    let there = stage("").always("GET", "/volumes/", || answer(volumes_file!("volume")));
    let attached = there.provider().attach_volumes(&asked).unwrap().remove(0).unwrap();
    assert_eq!(attached.context, [Pair::new("DevicePath", "/dev/sdb")]);
    assert!(matches!(attached.devices.as_slice(), [Device::Serial(serial)] if *serial == volume_id()));
    assert_eq!(there.sent("POST", "nova.test").len(), 0);
}

/// The free volume, which Cinder holds for a server.
fn reserved() -> Stage {
    let file = volumes_file!("volume_free").replace("\"status\": \"available\"", "\"status\": \"reserved\"");
    assert_ne!(file, volumes_file!("volume_free"));
    stage("").always("GET", "cinder.test/v3/volumes/", move || answer(&file))
}

#[test]
fn reserved_volume_is_waited_for_while_nova_has_it_for_the_server() {
    let asked = |token: Option<String>| NewAttachment {
        token,
        ..attachment(&volume_id(), &server_id())
    };
    let coming = reserved().always("GET", "os-volume_attachments", || answer(volumes_file!("attached")));
    let look = |token| coming.provider().attach_volumes(&[asked(token)]).unwrap().remove(0);
    let seen = token(look(None));
    assert_eq!(token(look(Some(seen.clone()))), seen);
    assert_eq!(coming.sent("GET", "nova.test").len(), 1, "once a minute");
    coming.host.now(61);
    assert_ne!(token(look(Some(seen))), "");
    assert_eq!(coming.sent("GET", "nova.test").len(), 2);
    assert_eq!(coming.sent("POST", "nova.test").len(), 0);
    assert!(is_pending(
        coming.provider().detach_volumes(&[detachment()]).unwrap().remove(0)
    ));
}

#[test]
fn reserved_volume_that_does_not_come_is_refused_and_is_detached() {
    for file in [
        volumes_file!("detached_already"),
        volumes_file!("attached_to_no_server"),
    ] {
        let left = reserved().always("GET", "os-volume_attachments", move || answer(file));
        let asked = [attachment(&volume_id(), &server_id())];
        let refused = left.provider().attach_volumes(&asked).unwrap().remove(0).unwrap_err();
        assert_eq!(refused.kind, FailureKind::FailedPrecondition);
        assert!(refused.message.contains("--state available"), "{refused:?}");
        assert_eq!(left.provider().detach_volumes(&[detachment()]).unwrap(), [Ok(())]);
    }
    let proxy = reserved().always("GET", "os-volume_attachments", || {
        FakeAnswer::new(404, &[], "<html>no backend</html>")
    });
    let unsaid = proxy.provider().detach_volumes(&[detachment()]).unwrap().remove(0);
    assert_eq!(kind(unsaid), FailureKind::Unavailable);
}

#[test]
fn refusals_of_nova_have_their_kind() {
    let full = "{\"forbidden\": {\"code\": 403, \"message\": \"The maximum allowed number of disk devices (16) to attach to a single \
                instance has been exceeded.\"}}";
    let policy = "{\"forbidden\": {\"code\": 403, \"message\": \"Policy doesn't allow it to be performed.\"}}";
    let rows: [(FakeAnswer, FailureKind); 4] = [
        (
            answer(volumes_file!("attached_already")),
            FailureKind::FailedPrecondition,
        ),
        (answer(volumes_file!("attached_to_no_server")), FailureKind::NotFound),
        (FakeAnswer::new(403, &[], full), FailureKind::Exhausted),
        (FakeAnswer::new(403, &[], policy), FailureKind::Denied),
    ];
    for (refusal, expected) in rows {
        let cloud = free().always("POST", "os-volume_attachments", move || refusal.clone());
        let refused = cloud.provider().attach_volumes(&[attachment(&volume_id(), NOBODY)]);
        assert_eq!(kind(refused.unwrap().remove(0)), expected);
    }
}

fn detachment() -> Detachment {
    Detachment {
        volume: volume_id(),
        node_id: server_id(),
        token: None,
    }
}

#[test]
fn detaching_what_is_not_there_is_success() {
    let cloud = free();
    assert_eq!(cloud.provider().detach_volumes(&[detachment()]).unwrap(), [Ok(())]);
    let gone = stage("").always("GET", "/volumes/", || answer(volumes_file!("volume_not_found")));
    assert_eq!(gone.provider().detach_volumes(&[detachment()]).unwrap(), [Ok(())]);
    let unknown = stage("")
        .always("GET", "/volumes/", || answer(volumes_file!("volume")))
        .always("DELETE", "os-volume_attachments", || {
            answer(volumes_file!("detached_already"))
        });
    assert_eq!(unknown.provider().detach_volumes(&[detachment()]).unwrap(), [Ok(())]);
    let proxy = stage("")
        .always("GET", "/volumes/", || answer(volumes_file!("volume")))
        .always("DELETE", "os-volume_attachments", || {
            FakeAnswer::new(404, &[], "<html>no backend</html>")
        });
    let unsaid = proxy.provider().detach_volumes(&[detachment()]).unwrap().remove(0);
    assert_eq!(kind(unsaid), FailureKind::Unavailable);
    let there = stage("")
        .always("GET", "/volumes/", || answer(volumes_file!("volume")))
        .always("DELETE", "os-volume_attachments", || FakeAnswer::new(202, &[], ""));
    assert!(is_pending(
        there.provider().detach_volumes(&[detachment()]).unwrap().remove(0)
    ));
}

#[test]
fn little_time_leaves_the_rest_to_the_next_call() {
    let cloud = free();
    cloud.host.call_seconds(0);
    let answered = cloud
        .provider()
        .attach_volumes(&[attachment(&volume_id(), &server_id())]);
    assert!(is_pending(answered.unwrap().remove(0)));
    assert_eq!(cloud.sent("POST", "nova.test").len(), 0);
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
