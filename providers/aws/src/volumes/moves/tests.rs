use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use crate::volumes::testing::{SmallDisk, SmallEbs, disk, from, instance, to, token, vol};

fn at(number: u32, machine: u32, state: &'static str) -> SmallDisk {
    let mut disk = disk(number);
    disk.attachments.push((instance(machine), "/dev/xvdaa".into(), state));
    disk
}

fn attach(cloud: &SmallEbs, wanted: &[NewAttachment]) -> Each<Attached> {
    cloud.aws().attach_volumes(wanted).unwrap()
}

fn detach(cloud: &SmallEbs, unwanted: &[Detachment]) -> Each<()> {
    cloud.aws().detach_volumes(unwanted).unwrap()
}

fn kind<T: std::fmt::Debug>(answer: &Result<T, Failure>) -> FailureKind {
    answer.as_ref().unwrap_err().kind.clone()
}

#[test]
fn volume_takes_first_free_device_and_reports_its_serial() {
    let cloud = SmallEbs::with(vec![disk(1), at(2, 1, "attached")]);
    let wanted = [to(&vol(1), &instance(1))];
    assert_eq!(token(attach(&cloud, &wanted).remove(0)), "begun");
    assert_eq!(cloud.sent("AttachVolume", "Device").as_deref(), Some("/dev/xvdab"));
    let attached = attach(&cloud, &wanted).remove(0).unwrap();
    assert_eq!(attached.context, [Pair::new("devicePath", "/dev/xvdab")]);
    assert_eq!(attached.devices, [Device::Serial(vol(1).replace("vol-", "vol"))]);
    assert_eq!(cloud.count("AttachVolume"), 1, "once is enough");
}

#[test]
fn batch_items_have_own_results_and_unique_device_names() {
    let mut other_zone = disk(4);
    other_zone.zone = "us-east-1b".into();
    let cloud = SmallEbs::with(vec![
        disk(1),
        disk(2),
        at(3, 2, "attached"),
        other_zone,
        at(5, 1, "attached"),
    ]);
    let gone = format!("i-{:017x}", 99);
    let results = attach(
        &cloud,
        &[
            to(&vol(1), &instance(1)),
            to(&vol(9), &instance(1)),
            to("no-volume", &instance(1)),
            to(&vol(3), &instance(1)),
            to(&vol(4), &instance(1)),
            to(&vol(2), &gone),
            to(&vol(2), "other"),
            to(&vol(2), &instance(1)),
            to(&vol(5), &instance(1)),
        ],
    );
    let failed = &results[1..7];
    let kinds: Vec<FailureKind> = failed.iter().map(kind).collect();
    use FailureKind::{FailedPrecondition, Invalid, NotFound};
    assert_eq!(
        kinds,
        [NotFound, NotFound, FailedPrecondition, Invalid, NotFound, NotFound]
    );
    assert!(
        failed[2].as_ref().unwrap_err().message.contains(&instance(2)),
        "{failed:?}"
    );
    assert!(results[8].is_ok());
    for (number, name) in [(1, "/dev/xvdab"), (2, "/dev/xvdac")] {
        let attachments = cloud.state.borrow().disks[number - 1].attachments.clone();
        assert_eq!(attachments[0].1, name);
    }
    // One that is missing costs a request of its own, not the batch.
    assert_eq!(
        (cloud.count("DescribeVolumes"), cloud.count("DescribeInstances")),
        (2, 2)
    );
}

#[test]
fn what_ec2_works_on_is_waited_for() {
    for (there, part) in [
        (at(1, 1, "attaching"), "attaches"),
        (at(1, 1, "detaching"), "still detaches"),
        (at(1, 1, "busy"), "still uses it"),
    ] {
        let cloud = SmallEbs::with(vec![there]);
        let waits = attach(&cloud, &[to(&vol(1), &instance(1))]).remove(0);
        let message = waits.as_ref().unwrap_err().message.clone();
        assert!(message.contains(part), "{message}");
        token(waits);
        assert_eq!(cloud.count("AttachVolume"), 0);
    }
    let cloud = SmallEbs::with(vec![SmallDisk {
        state: "creating",
        ..disk(1)
    }]);
    token(attach(&cloud, &[to(&vol(1), &instance(1))]).remove(0));
}

#[test]
fn full_machine_is_exhausted() {
    let cloud = SmallEbs::with(vec![disk(1)]);
    cloud.refuse("AttachVolume", "AttachmentLimitExceeded", "You have too many");
    let refused = attach(&cloud, &[to(&vol(1), &instance(1))]).remove(0);
    assert_eq!(kind(&refused), FailureKind::Exhausted);
}

#[test]
fn name_that_the_image_uses_is_passed_over() {
    let cloud = SmallEbs::with(vec![disk(1)]);
    for _ in 0..2 {
        cloud.refuse(
            "AttachVolume",
            "InvalidParameterValue",
            "Attachment point is already in use",
        );
    }
    token(attach(&cloud, &[to(&vol(1), &instance(1))]).remove(0));
    assert_eq!(cloud.sent("AttachVolume", "Device").as_deref(), Some("/dev/xvdac"));
    cloud.change(&vol(1), |disk| disk.attachments.clear());
    cloud.refuse("AttachVolume", "InvalidParameterValue", "another value is wrong");
    let refused = attach(&cloud, &[to(&vol(1), &instance(1))]).remove(0);
    assert_eq!(kind(&refused), FailureKind::Invalid);
}

#[test]
fn shared_volume_is_attached_to_a_second_machine() {
    let mut shared = at(1, 2, "attached");
    shared.shared = true;
    let cloud = SmallEbs::with(vec![shared]);
    token(attach(&cloud, &[to(&vol(1), &instance(1))]).remove(0));
    assert_eq!(cloud.state.borrow().disks[0].attachments.len(), 2);
}

#[test]
fn throttled_attachment_ends_the_batch_without_further_requests() {
    let cloud = SmallEbs::with((1..=4).map(disk).collect());
    cloud.refuse("AttachVolume", "RequestLimitExceeded", "slow down");
    let wanted: Vec<NewAttachment> = (1..=4).map(|number| to(&vol(number), &instance(1))).collect();
    let results = attach(&cloud, &wanted);
    assert!(
        results.iter().all(|result| kind(result) == FailureKind::RateLimited),
        "{results:?}"
    );
    assert_eq!(cloud.count("AttachVolume"), 1);
}

#[test]
fn volume_is_detached_once_and_waited_for() {
    let cloud = SmallEbs::with(vec![at(1, 1, "attached")]);
    cloud.begins("detaching");
    for _ in 0..3 {
        token(detach(&cloud, &[from(&vol(1), &instance(1))]).remove(0));
    }
    assert_eq!(cloud.count("DetachVolume"), 1);
    cloud.change(&vol(1), |disk| disk.attachments[0].2 = "busy");
    let busy = detach(&cloud, &[from(&vol(1), &instance(1))]).remove(0);
    assert!(busy.unwrap_err().message.contains("still uses it"));
    cloud.change(&vol(1), |disk| disk.attachments.clear());
    assert_eq!(detach(&cloud, &[from(&vol(1), &instance(1))]), [Ok(())]);
}

#[test]
fn what_is_not_there_is_detached_whatever_exists_of_it() {
    let cloud = SmallEbs::with(vec![disk(1), at(2, 2, "attached")]);
    let results = detach(
        &cloud,
        &[
            from(&vol(1), &instance(1)),
            from(&vol(2), &instance(1)),
            from(&vol(9), &instance(1)),
            from("no-volume", "no-machine"),
        ],
    );
    assert_eq!(results, [Ok(()), Ok(()), Ok(()), Ok(())]);
    assert_eq!(cloud.count("DetachVolume"), 0);
}

#[test]
fn instance_that_is_gone_or_refuses_is_looked_at_again() {
    for code in [
        "InvalidInstanceID.NotFound",
        "InvalidAttachment.NotFound",
        "IncorrectState",
    ] {
        let cloud = SmallEbs::with(vec![at(1, 9, "attached")]);
        cloud.refuse("DetachVolume", code, "gone");
        token(detach(&cloud, &[from(&vol(1), &instance(9))]).remove(0));
        cloud.change(&vol(1), |disk| disk.attachments.clear());
        assert_eq!(detach(&cloud, &[from(&vol(1), &instance(9))]), [Ok(())], "{code}");
    }
}

#[test]
fn handle_of_the_in_tree_plugin_is_attached_and_detached() {
    let cloud = SmallEbs::with(vec![disk(1)]);
    let handle = format!("aws://us-east-1a/{}", vol(1));
    token(attach(&cloud, &[to(&handle, &instance(1))]).remove(0));
    assert!(attach(&cloud, &[to(&handle, &instance(1))])[0].is_ok());
    token(detach(&cloud, &[from(&handle, &instance(1))]).remove(0));
    assert_eq!(detach(&cloud, &[from(&handle, &instance(1))]), [Ok(())]);
}

#[test]
fn failing_cloud_is_no_answer_about_any_of_them() {
    let cloud = SmallEbs::with(vec![at(1, 1, "attached")]);
    cloud.refuse("DescribeVolumes", "InternalError", "broken");
    let refused = cloud.aws().detach_volumes(&[from(&vol(1), &instance(1))]).unwrap_err();
    assert_eq!(refused.kind, FailureKind::Unavailable);
}
