//! Attaching and detaching, by the recorded answers of Cinder and Nova.

use cloudwit_guest_sdk::testing::FakeAnswer;

use super::*;
use crate::recorded::{Stage, answer};
use crate::volumes::testing::*;

const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

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
