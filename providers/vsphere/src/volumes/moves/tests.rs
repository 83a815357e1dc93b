//! Attachments and detachments against recorded answers.

use cloudwit_guest_sdk::testing::{FakeAnswer, recorded};

use super::*;
use crate::volumes::testing::{MACHINE, ONE, OTHER, answer, attach, call, sent, token, vcenter};

const THIRD: &str = "bb159fc8-770c-4670-9276-61802574479c";

fn detach(volume: &str, token: Option<&str>) -> Detachment {
    Detachment {
        volume: volume.into(),
        node_id: MACHINE.into(),
        token: token.map(str::to_owned),
    }
}

#[test]
fn what_the_machine_has_is_attached() {
    let host = vcenter(vec![]);
    let here = call(&host)
        .attach_volumes(&[attach(ONE, None)])
        .unwrap()
        .remove(0)
        .unwrap();
    let uuid = "6000c29677a6a52ed48731cb8d4eefb6";
    assert_eq!(here.context[1], Pair::new("diskUUID", uuid));
    assert_eq!(here.devices[0], Device::Wwn(format!("0x{uuid}")));
    assert_eq!(sent(&host, "<CnsAttachVolume ").len(), 0);
}

#[test]
fn volumes_of_a_machine_share_a_task() {
    let host = vcenter(vec![]);
    let answers = call(&host)
        .attach_volumes(&[attach(OTHER, None), attach(THIRD, None)])
        .unwrap();
    for answer in answers {
        assert_eq!(token(answer), "task-63 vc.test");
    }
    let specs = [OTHER, THIRD].map(|id| {
        format!("<attachSpecs><volumeId><id>{id}</id></volumeId><vm type=\"VirtualMachine\">vm-52</vm></attachSpecs>")
    });
    assert_eq!(sent(&host, &specs.concat()).len(), 1);
    let answers = call(&host)
        .detach_volumes(&[detach(ONE, None), detach(OTHER, None)])
        .unwrap();
    let [there, gone] = answers.try_into().unwrap();
    assert_eq!((token(there).as_str(), gone), ("task-63 vc.test", Ok(())));
    let spec = format!(
        "<detachSpecs><volumeId><id>{ONE}</id></volumeId><vm type=\"VirtualMachine\">vm-52</vm></detachSpecs></"
    );
    assert_eq!(sent(&host, &spec).len(), 1);
}

#[test]
fn each_volume_of_a_task_has_its_own_outcome() {
    let host = vcenter(vec![(
        "<obj type=\"Task\">task-74",
        answer!("cns_attached_one_in_use.xml"),
    )]);
    let task = Some("task-74 vc.test");
    // The first was in use: here it is, so it is attached.
    let answers = call(&host)
        .attach_volumes(&[attach(ONE, task), attach(OTHER, task), attach(THIRD, task)])
        .unwrap();
    let [here, done, missing] = answers.try_into().unwrap();
    assert!(here.is_ok(), "{here:?}");
    assert!(done.unwrap().context[1].value.starts_with("6000c29"));
    assert_eq!(missing.unwrap_err().kind, FailureKind::NotFound);
    let elsewhere = recorded(include_str!("../../../recorded/cns_devices.xml")).replace(ONE, THIRD);
    let host = vcenter(vec![
        ("<obj type=\"Task\">task-74", answer!("cns_attached_one_in_use.xml")),
        ("config.hardware.device", FakeAnswer::xml(200, &elsewhere)),
    ]);
    let refused = call(&host)
        .attach_volumes(&[attach(ONE, task)])
        .unwrap()
        .remove(0)
        .unwrap_err();
    assert_eq!(refused.kind, FailureKind::FailedPrecondition);
    assert!(refused.message.contains("attached elsewhere"), "{refused:?}");
}

#[test]
fn full_machine_is_exhausted() {
    let host = vcenter(vec![("<obj type=\"Task\">task-79", answer!("cns_machine_full.xml"))]);
    let full = call(&host)
        .attach_volumes(&[attach(THIRD, Some("task-79 vc.test"))])
        .unwrap();
    assert_eq!(full[0].as_ref().unwrap_err().kind, FailureKind::Exhausted);
    // The recorded machine has two.
    host.config("global:\n  server: vc.test\nvolumes: {maxVolumesPerNode: 3}\n");
    let answers = call(&host)
        .attach_volumes(&[attach(OTHER, None), attach(THIRD, None)])
        .unwrap();
    let [first, second] = answers.try_into().unwrap();
    assert_eq!(token(first), "task-63 vc.test");
    assert_eq!(second.unwrap_err().kind, FailureKind::Exhausted);
}

#[test]
fn task_that_failed_as_a_whole_is_followed_by_tasks_of_single_volumes() {
    let whole = recorded(include_str!("../../../recorded/cns_attached.xml"));
    let (before, _) = whole.split_once("<result ").unwrap();
    let (_, after) = whole.split_once("</result>").unwrap();
    let fault = "<error><fault xsi:type=\"InvalidArgument\"><invalidProperty>InputSpec</invalidProperty></fault><localizedMessage>A specified parameter was not correct: InputSpec</localizedMessage></error>";
    let failed = format!("{before}{fault}{after}").replace("<state>success<", "<state>error<");
    let host = vcenter(vec![("<obj type=\"Task\">task-73", FakeAnswer::xml(200, &failed))]);
    let refused = call(&host)
        .attach_volumes(&[attach(OTHER, Some("task-73 vc.test"))])
        .unwrap()
        .remove(0)
        .unwrap_err();
    assert_eq!(refused.kind, FailureKind::Invalid);
    call(&host)
        .attach_volumes(&[attach(OTHER, None), attach(THIRD, None)])
        .unwrap();
    assert_eq!(sent(&host, "<CnsAttachVolume ").len(), 2);
}

#[test]
fn what_cannot_be_attached_is_refused_without_a_task() {
    let host = vcenter(vec![]);
    let mut wrong = attach(OTHER, None);
    wrong.node_id = "node-1".into();
    let mut reading = attach(OTHER, None);
    reading.read_only = true;
    let answers = call(&host)
        .attach_volumes(&[wrong, reading, attach("[store] disk.vmdk", None)])
        .unwrap();
    let kinds: Vec<FailureKind> = answers.into_iter().map(|one| one.unwrap_err().kind).collect();
    assert_eq!(
        kinds,
        [FailureKind::NotFound, FailureKind::Invalid, FailureKind::NotFound]
    );
    assert_eq!(sent(&host, "<CnsAttachVolume ").len(), 0);
    // A machine that is gone has nothing.
    let mut gone = detach(ONE, None);
    gone.node_id = "node-1".into();
    assert_eq!(call(&host).detach_volumes(&[gone]).unwrap(), [Ok(())]);
}
