use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;
use serde_json::json;

use crate::volumes::testing::{SmallPhoton, attach, detach, kind, token};

#[test]
fn disk_is_attached_by_its_task_and_named_by_its_world_wide_name() {
    let cloud = SmallPhoton::new();
    cloud.disk("6000-c29a", "DETACHED", &[]);
    cloud.state.borrow_mut().tasks = "QUEUED";
    let task = token(attach(&cloud, &["6000-c29a"], None).remove(0));
    assert_eq!(task, "t-attach-disk");
    assert_eq!(token(attach(&cloud, &["6000-c29a"], Some(&task)).remove(0)), task);
    {
        let mut state = cloud.state.borrow_mut();
        state.tasks = "COMPLETED";
        (state.disks[0]["vms"], state.disks[0]["state"]) = (json!(["vm-1"]), json!("ATTACHED"));
    }
    let from = cloud.host.requests().len();
    let attached = attach(&cloud, &["6000-c29a"], Some(&task)).remove(0).unwrap();
    assert!(matches!(attached.devices.as_slice(), [Device::Wwn(wwn)] if wwn == "0x6000c29a"));
    assert_eq!(cloud.sent(from), ["GET /tasks/t-attach-disk", "GET /disks/6000-c29a"]);
}

#[test]
fn locked_machine_is_asked_again() {
    let cloud = SmallPhoton::new();
    cloud.disk("1", "DETACHED", &[]);
    cloud.disk("2", "ATTACHED", &["vm-1"]);
    cloud.state.borrow_mut().refusals = vec![("POST /vms", 400, "ConcurrentTask"), ("DELETE", 400, "ConcurrentTask")];
    assert_eq!(token(attach(&cloud, &["1"], None).remove(0)), "");
    assert_eq!(token(detach(&cloud, "2", None)), "");
    assert_eq!(token(cloud.call().delete_volume("1", None)), "");
    // Another state of the machine does not pass by itself.
    cloud.state.borrow_mut().refusals = vec![("POST /vms", 400, "StateError")];
    assert_eq!(
        kind(attach(&cloud, &["1"], None).remove(0)),
        FailureKind::FailedPrecondition
    );
}

#[test]
fn disks_that_cannot_be_attached_fail_alone() {
    let cloud = SmallPhoton::new();
    cloud.disk("1", "DETACHED", &[]);
    cloud.disk("2", "ATTACHED", &["vm-2"]);
    cloud.disk("3", "ERROR", &[]);
    cloud.disk("4", "CREATING", &[]);
    let answers = attach(&cloud, &["1", "2", "3", "4", "5", "no id"], None);
    let kinds: Vec<Option<FailureKind>> = answers
        .into_iter()
        .map(|one| one.err().map(|failure| failure.kind))
        .collect();
    let expected = [
        None,
        Some(FailureKind::FailedPrecondition),
        Some(FailureKind::FailedPrecondition),
        Some(FailureKind::Pending(String::new())),
        Some(FailureKind::NotFound),
        Some(FailureKind::NotFound),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(cloud.sent(0).iter().filter(|line| line.starts_with("POST")).count(), 1);
    // The machine is gone.
    cloud.state.borrow_mut().refusals = vec![("POST /vms", 404, "VmNotFound")];
    cloud.state.borrow_mut().disks[0]["vms"] = json!([]);
    cloud.state.borrow_mut().disks[0]["state"] = json!("DETACHED");
    assert_eq!(kind(attach(&cloud, &["1"], None).remove(0)), FailureKind::NotFound);
}

#[test]
fn detaching_what_is_not_there_is_success() {
    let cloud = SmallPhoton::new();
    cloud.disk("1", "ATTACHED", &["vm-2"]);
    cloud.disk("2", "ATTACHED", &["vm-1"]);
    for volume in ["1", "9", "no id"] {
        assert_eq!(detach(&cloud, volume, None), Ok(()), "{volume}");
    }
    assert!(cloud.sent(0).iter().all(|line| line.starts_with("GET")));
    cloud.state.borrow_mut().tasks = "STARTED";
    let task = token(detach(&cloud, "2", None));
    cloud.state.borrow_mut().tasks = "ERROR";
    let failed = detach(&cloud, "2", Some(&task)).unwrap_err();
    assert_eq!(failed.kind, FailureKind::Other, "the task is not looked at for ever");
    cloud.state.borrow_mut().tasks = "COMPLETED";
    assert_eq!(detach(&cloud, "2", None), Ok(()));
    assert_eq!(cloud.state.borrow().disks[1]["state"], "DETACHED");
}
