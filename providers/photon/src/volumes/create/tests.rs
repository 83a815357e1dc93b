use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;
use serde_json::json;

use crate::volumes::GIB;
use crate::volumes::testing::{SmallPhoton, kind, token, wanted};

#[test]
fn disk_is_made_once_and_its_task_is_waited_for() {
    let cloud = SmallPhoton::new();
    let new = NewVolume {
        parameters: vec![Pair::new("Flavor", "standard"), Pair::new("fstype", "ext4")],
        tags: vec![Pair::new("pvc", "data")],
        ..wanted("pvc-1")
    };
    cloud.state.borrow_mut().tasks = "STARTED";
    let task = token(cloud.call().create_volume(&new, None));
    assert_eq!(task, "t-create");
    assert_eq!(token(cloud.call().create_volume(&new, Some(&task))), task);
    // The token is lost: the disk is there, and still being created.
    assert_eq!(token(cloud.call().create_volume(&new, None)), "");
    {
        let mut state = cloud.state.borrow_mut();
        state.tasks = "COMPLETED";
        state.disks[0]["state"] = json!("DETACHED");
    }
    let made = cloud.call().create_volume(&new, Some(&task)).unwrap();
    assert_eq!((made.id.as_str(), made.size), ("d-1", 2 * GIB));
    assert_eq!(cloud.call().create_volume(&new, None), Ok(made));
    let state = cloud.state.borrow();
    let [disk] = state.disks.as_slice() else {
        panic!("{:?}", state.disks)
    };
    assert_eq!(
        disk["tags"],
        json!(["cloudwit:volume=pvc-1", "cloudwit:cluster=blue", "pvc=data"])
    );
    assert_eq!(
        (&disk["kind"], &disk["capacityGb"]),
        (&json!("persistent-disk"), &json!(2))
    );
}

#[test]
fn volume_of_another_size_or_flavor_already_exists() {
    let cloud = SmallPhoton::new();
    cloud.disk("1", "DETACHED", &[]);
    let larger = NewVolume {
        size: SizeRange {
            at_least: 3 * GIB,
            at_most: None,
        },
        ..wanted("pvc-1")
    };
    assert_eq!(
        kind(cloud.call().create_volume(&larger, None)),
        FailureKind::AlreadyExists
    );
    let faster = NewVolume {
        parameters: vec![Pair::new("flavor", "fast")],
        ..wanted("pvc-1")
    };
    let refused = cloud.call().create_volume(&faster, None).unwrap_err();
    assert!(
        refused.message.contains("standard") && refused.message.contains("fast"),
        "{refused:?}"
    );
    // A disk of that name that no volume of this cluster has.
    cloud.state.borrow_mut().disks[0]["tags"] = json!(["cloudwit:volume=pvc-1", "cloudwit:cluster=green"]);
    assert_eq!(
        cloud.call().create_volume(&larger, None).map(|made| made.id),
        Ok("d-2".into())
    );
}

#[test]
fn names_that_the_cloud_does_not_take_are_digests() {
    let cloud = SmallPhoton::new();
    for name in ["1-begins-with-a-digit", "under_score", &"n".repeat(128)] {
        let made = cloud.call().create_volume(&wanted(name), None).unwrap();
        assert_eq!(cloud.call().create_volume(&wanted(name), None), Ok(made), "{name}");
    }
    let state = cloud.state.borrow();
    assert_eq!(state.disks.len(), 3);
    for disk in &state.disks {
        let name = disk["name"].as_str().unwrap();
        assert!(name.len() == 44 && name.starts_with("vol-"), "{name}");
    }
}

#[test]
fn class_without_a_flavor_takes_the_only_one() {
    let cloud = SmallPhoton::new();
    cloud.call().create_volume(&wanted("pvc-1"), None).unwrap();
    assert_eq!(cloud.state.borrow().disks[0]["flavor"], "standard");
    cloud.state.borrow_mut().flavors = vec!["fast", "large"];
    let refused = cloud.call().create_volume(&wanted("pvc-2"), None).unwrap_err();
    assert_eq!(refused.kind, FailureKind::Invalid);
    assert!(refused.message.contains("fast, large"), "{refused:?}");
    let unknown = NewVolume {
        parameters: vec![Pair::new("flavour", "fast")],
        ..wanted("pvc-2")
    };
    assert_eq!(kind(cloud.call().create_volume(&unknown, None)), FailureKind::Invalid);
    assert_eq!(cloud.state.borrow().disks.len(), 1);
}

#[test]
fn failed_creation_leaves_no_disk_and_says_why() {
    let cloud = SmallPhoton::new();
    cloud.state.borrow_mut().tasks = "STARTED";
    let task = token(cloud.call().create_volume(&wanted("pvc-1"), None));
    {
        let mut state = cloud.state.borrow_mut();
        state.tasks = "ERROR";
        state.errors = json!([{ "code": "NotEnoughDatastoreCapacity", "message": "full" }]);
        state.disks[0]["state"] = json!("ERROR");
    }
    // That there is no room is final, so it is not answered while the disk is there.
    let left = token(cloud.call().create_volume(&wanted("pvc-1"), Some(&task)));
    assert!(cloud.sent(0).contains(&"DELETE /disks/d-1".to_owned()));
    assert_eq!(
        token(cloud.call().create_volume(&wanted("pvc-1"), Some(&left))),
        left,
        "its deletion fails too"
    );
    cloud.state.borrow_mut().refusals = vec![("GET /projects/p-1/disks", 503, "Unavailable")];
    let unknown = cloud.call().create_volume(&wanted("pvc-1"), Some(&left)).unwrap_err();
    assert_eq!(unknown.kind, FailureKind::Unavailable, "{unknown:?}");
    cloud.state.borrow_mut().refusals.clear();
    // With a lost token the disk itself shows that it failed.
    let lost = cloud.call().create_volume(&wanted("pvc-1"), None).unwrap_err();
    assert_eq!(lost.kind, FailureKind::Other);
    cloud.state.borrow_mut().tasks = "COMPLETED";
    let failure = cloud.call().create_volume(&wanted("pvc-1"), Some(&left)).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Exhausted);
    assert!(
        failure.message.contains("NotEnoughDatastoreCapacity: full"),
        "{failure:?}"
    );
    assert!(cloud.state.borrow().disks.is_empty());
    cloud.call().create_volume(&wanted("pvc-1"), None).unwrap();
}

#[test]
fn quota_that_is_used_up_is_exhausted() {
    let cloud = SmallPhoton::new();
    cloud.state.borrow_mut().refusals = vec![("POST /projects/p-1/disks", 400, "QuotaError")];
    assert_eq!(
        kind(cloud.call().create_volume(&wanted("pvc-1"), None)),
        FailureKind::Exhausted
    );
    cloud.state.borrow_mut().refusals = vec![("POST /projects/p-1/disks", 404, "FlavorNotFound")];
    assert_eq!(
        kind(cloud.call().create_volume(&wanted("pvc-1"), None)),
        FailureKind::Invalid
    );
}

#[test]
fn attached_disk_is_not_deleted_and_a_missing_one_is_success() {
    let cloud = SmallPhoton::new();
    cloud.disk("1", "ATTACHED", &["vm-1"]);
    assert_eq!(
        kind(cloud.call().delete_volume("1", None)),
        FailureKind::FailedPrecondition
    );
    for missing in ["2", "no id/", ""] {
        assert_eq!(cloud.call().delete_volume(missing, None), Ok(()), "{missing}");
    }
    cloud.disk("3", "DETACHED", &[]);
    cloud.state.borrow_mut().tasks = "STARTED";
    let task = token(cloud.call().delete_volume("3", None));
    cloud.state.borrow_mut().tasks = "COMPLETED";
    assert_eq!(cloud.call().delete_volume("3", Some(&task)), Ok(()));
    assert_eq!(cloud.state.borrow().disks.len(), 1);
}
