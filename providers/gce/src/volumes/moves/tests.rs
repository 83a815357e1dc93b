use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::serde_json::json;
use cloudwit_guest_sdk::volumes::*;

use crate::volumes::testing::{SmallPd, disk_path, kind, machine_path, token};

fn attach(cloud: &SmallPd, volume: &str, machine: &str, token: Option<&str>) -> Result<Attached, Failure> {
    let one = NewAttachment {
        volume: volume.into(),
        node_id: machine_path(machine),
        read_only: false,
        volume_use: VolumeUse {
            block: false,
            fs_type: None,
            access: AccessMode::OneNode,
        },
        token: token.map(str::to_owned),
    };
    cloud.call().attach_volumes(&[one]).unwrap().remove(0)
}

fn detach(cloud: &SmallPd, volume: &str, machine: &str, token: Option<&str>) -> Result<(), Failure> {
    let one = Detachment {
        volume: volume.into(),
        node_id: machine_path(machine),
        token: token.map(str::to_owned),
    };
    cloud.call().detach_volumes(&[one]).unwrap().remove(0)
}

fn hints(attached: &Attached) -> Vec<String> {
    attached.devices.iter().map(|device| format!("{device:?}")).collect()
}

#[test]
fn disk_is_attached_once_and_its_operation_is_waited_for() {
    let cloud = SmallPd::new();
    let disk = cloud.disk("d");
    cloud.state.borrow_mut().is_slow = true;
    let begun = token(attach(&cloud, &disk, "one", None));
    assert_eq!(token(attach(&cloud, &disk, "one", Some(&begun))), begun);
    cloud.finish();
    let attached = attach(&cloud, &disk, "one", Some(&begun)).unwrap();
    assert!(hints(&attached)[1].contains("google-d"), "{attached:?}");
    assert_eq!(
        attach(&cloud, &disk, "one", None).map(|again| hints(&again)),
        Ok(hints(&attached))
    );
    assert_eq!(cloud.changes(), [format!("POST {}/attachDisk", machine_path("one"))]);
    let elsewhere = attach(&cloud, &disk, "two", None).unwrap_err();
    assert!(
        elsewhere.kind == FailureKind::FailedPrecondition && elsewhere.message.contains("instances/one"),
        "{elsewhere:?}"
    );
    let found = cloud.call().get_volumes(&[disk]).unwrap().remove(0).unwrap().unwrap();
    assert_eq!(found.attachments[0].node_id, machine_path("one"));
}

#[test]
fn disk_leaves_its_machine_under_the_name_of_its_device() {
    let cloud = SmallPd::new();
    let disk = cloud.disk("d");
    attach(&cloud, &disk, "one", None).unwrap();
    // Another one attached it, under a name of its own.
    cloud
        .state
        .borrow_mut()
        .resources
        .get_mut(&machine_path("one"))
        .unwrap()["disks"][0]["deviceName"] = json!("persistent-disk-1");
    assert!(hints(&attach(&cloud, &disk, "one", None).unwrap())[1].contains("google-persistent-disk-1"));
    cloud.state.borrow_mut().is_slow = true;
    let begun = token(detach(&cloud, &disk, "one", None));
    cloud.finish();
    assert_eq!(detach(&cloud, &disk, "one", Some(&begun)), Ok(()));
    attach(&cloud, &disk, "two", None).unwrap();
}

#[test]
fn detaching_what_is_not_there_is_success() {
    let cloud = SmallPd::new();
    let disk = cloud.disk("d");
    for (volume, machine) in [
        (disk.as_str(), "one"),
        (disk.as_str(), "gone"),
        (disk_path("gone").as_str(), "one"),
        ("no disk", "one"),
    ] {
        assert_eq!(detach(&cloud, volume, machine, None), Ok(()), "{volume} {machine}");
    }
    assert!(cloud.changes().is_empty());
    cloud.state.borrow_mut().refusals = vec![("GET projects/p/zones/us-central1-a/instances", 503, "backendError")];
    assert_eq!(kind(detach(&cloud, &disk, "one", None)), FailureKind::Unavailable);
}

#[test]
fn what_cannot_be_attached_is_named() {
    let cloud = SmallPd::new();
    let disk = cloud.disk("d");
    assert_eq!(
        kind(attach(&cloud, &disk_path("gone"), "one", None)),
        FailureKind::NotFound
    );
    assert_eq!(kind(attach(&cloud, &disk, "gone", None)), FailureKind::NotFound);
    let mut far = cloud.state.borrow().resources[&disk].clone();
    far["zone"] = json!("https://x/v1/projects/p/zones/us-central1-b");
    cloud.put("projects/p/zones/us-central1-b/disks/far", far);
    let wrong = attach(&cloud, "projects/p/zones/us-central1-b/disks/far", "one", None).unwrap_err();
    assert!(
        wrong.kind == FailureKind::Invalid && wrong.message.contains("us-central1-b"),
        "{wrong:?}"
    );
    cloud.state.borrow_mut().refusals = vec![("attachDisk", 403, "limitExceeded")];
    assert_eq!(kind(attach(&cloud, &disk, "one", None)), FailureKind::Exhausted);
    cloud.state.borrow_mut().refusals = vec![("attachDisk", 400, "resourceNotReady")];
    token(attach(&cloud, &disk, "one", None));
}

#[test]
fn failed_operation_is_reported_once_and_begun_anew() {
    let cloud = SmallPd::new();
    let disk = cloud.disk("d");
    cloud.state.borrow_mut().is_slow = true;
    let begun = token(attach(&cloud, &disk, "one", None));
    {
        let mut state = cloud.state.borrow_mut();
        state.is_slow = false;
        state.error = Some(("RESOURCE_NOT_READY", "not now"));
    }
    let failed = attach(&cloud, &disk, "one", Some(&begun)).unwrap_err();
    assert_eq!(
        failed.kind,
        FailureKind::Other,
        "the operation is not looked at for ever"
    );
    cloud.state.borrow_mut().error = None;
    attach(&cloud, &disk, "one", None).unwrap();
}
