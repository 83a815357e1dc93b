//! Creation and deletion against recorded answers.

use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost};

use super::*;
use crate::volumes::testing::{ONE, answer, call, sent, token, vcenter, wanted};

/// The token of the task that creates it, after the check of earlier tasks.
fn begun(host: &FakeHost, new: &NewVolume) -> String {
    let first = token(call(host).create_volume(new, None));
    if first.is_empty() {
        token(call(host).create_volume(new, None))
    } else {
        first
    }
}

#[test]
fn new_volume_is_requested_as_the_api_has_it() {
    let host = vcenter(vec![]);
    let mut new = wanted("pvc-<1>");
    new.parameters = vec![Pair::new("storagePolicyName", "VM Encryption Policy")];
    assert_eq!(begun(&host, &new), "task-63 vc.test");
    let requests = sent(&host, "<CnsCreateVolume ");
    let [request] = requests.as_slice() else {
        panic!("{requests:?}")
    };
    let cluster = "<clusterType>KUBERNETES</clusterType><clusterId>shop-7</clusterId><vSphereUser>ccm</vSphereUser><clusterFlavor>VANILLA</clusterFlavor>";
    let expected = format!(
        "<CnsCreateVolume xmlns=\"urn:vsan\"><_this type=\"CnsVolumeManager\">cns-volume-manager</_this><createSpecs><name>pvc-&lt;1&gt;</name>\
         <volumeType>BLOCK</volumeType><datastores type=\"Datastore\">datastore-49</datastores><metadata><containerCluster>{cluster}</containerCluster>\
         <containerClusterArray>{cluster}</containerClusterArray></metadata><backingObjectDetails xsi:type=\"CnsBlockBackingDetails\">\
         <capacityInMb>2048</capacityInMb></backingObjectDetails><profile xsi:type=\"VirtualMachineDefinedProfileSpec\">\
         <profileId>4d5f673c-536f-11e6-beb8-9e71128cae77</profileId></profile></createSpecs></CnsCreateVolume>"
    );
    assert!(request.contains(&expected), "{request}");
    // The session of vim25 for the service of policies, and the version that the server names for CNS.
    let header = "<Header><vcSessionCookie>s1</vcSessionCookie></Header>";
    assert_eq!(sent(&host, header).len(), 3);
    let action = |part: &str| {
        let requests = host.requests().into_iter();
        let mut fitting = requests.filter(|request| request.text().contains(part));
        fitting
            .next()
            .and_then(|request| request.header("soapaction").map(str::to_owned))
    };
    assert_eq!(action("<CnsCreateVolume ").as_deref(), Some("urn:vsan/6.5"));
    assert_eq!(action("<PbmQueryProfile ").as_deref(), Some("urn:pbm/2.0"));
}

#[test]
fn made_volume_is_found_by_its_name() {
    let host = vcenter(vec![
        ("task-63", answer!("cns_created.xml")),
        ("<names>pvc-1</names>", answer!("cns_volume.xml")),
    ]);
    let made = call(&host)
        .create_volume(&wanted("pvc-1"), Some("task-63 vc.test"))
        .unwrap();
    assert_eq!((made.id.as_str(), made.size), (ONE, 2 << 30));
    assert_eq!(made.context, [Pair::new("type", "vSphere CNS Block Volume")]);
    assert_eq!(sent(&host, "<CnsCreateVolume "), [] as [String; 0]);
    let names = "<names>pvc-1</names><containerClusterIds>shop-7</containerClusterIds><cursor><offset>0</offset><limit>10</limit></cursor>";
    assert_eq!(sent(&host, names).len(), 1);
    let mut larger = wanted("pvc-1");
    larger.size.at_least = 9 << 30;
    let refused = call(&host).create_volume(&larger, None).unwrap_err();
    assert_eq!(refused.kind, FailureKind::AlreadyExists);
    assert!(
        refused.message.contains("2048 MiB") && refused.message.contains("9216 MiB"),
        "{refused:?}"
    );
}

#[test]
fn missing_space_is_exhausted() {
    let host = vcenter(vec![("task-72", answer!("cns_no_space.xml"))]);
    let full = call(&host)
        .create_volume(&wanted("huge"), Some("task-72 vc.test"))
        .unwrap_err();
    assert_eq!(full.kind, FailureKind::Exhausted);
    assert_eq!(full.code.as_deref(), Some("NoDiskSpace"));
}

#[test]
fn running_task_and_token_of_nothing() {
    let running = include_str!("../../../recorded/cns_created.xml").replace("<state>success<", "<state>running<");
    let running = FakeAnswer::xml(200, cloudwit_guest_sdk::testing::recorded(&running));
    let host = vcenter(vec![("<obj type=\"Task\">task-63", running)]);
    let again = call(&host).create_volume(&wanted("pvc-1"), Some("task-63 vc.test"));
    assert_eq!(token(again), "task-63 vc.test");
    // Another vCenter's, which is not configured any more: begun again.
    let host = vcenter(vec![]);
    assert_eq!(begun(&host, &wanted("pvc-0")), "task-63 vc.test");
    let anew = call(&host).create_volume(&wanted("pvc-1"), Some("task-1 elsewhere"));
    assert_eq!(
        (token(anew).as_str(), sent(&host, "<CnsCreateVolume ").len()),
        ("task-63 vc.test", 2)
    );
}

#[test]
fn creation_without_an_answer_is_not_sent_again_and_looked_for_first() {
    let host = vcenter(vec![("<CnsCreateVolume ", FakeAnswer::breaks())]);
    assert_eq!(token(call(&host).create_volume(&wanted("pvc-1"), None)), "");
    let lost = call(&host).create_volume(&wanted("pvc-1"), None).unwrap_err();
    assert_eq!(lost.kind, FailureKind::Unavailable);
    assert_eq!(
        (sent(&host, "<CnsCreateVolume ").len(), sent(&host, "recentTask").len()),
        (1, 1)
    );
    assert_eq!(token(call(&host).create_volume(&wanted("pvc-1"), None)), "");
    assert_eq!(sent(&host, "recentTask").len(), 2, "tasks are looked at again");
    // Another call that has its answer needs no further check.
    let host = vcenter(vec![]);
    for _ in 0..2 {
        token(call(&host).create_volume(&wanted("pvc-1"), None));
    }
    assert_eq!(sent(&host, "recentTask").len(), 1);
}

#[test]
fn volume_in_use_is_not_deleted() {
    let host = vcenter(vec![
        ("task-83", answer!("cns_delete_in_use.xml")),
        ("<CnsQueryVolume ", answer!("cns_volume.xml")),
    ]);
    // By what machines have.
    let refused = call(&host).delete_volume(ONE, None).unwrap_err();
    assert_eq!(refused.kind, FailureKind::FailedPrecondition);
    assert!(
        refused.message.contains("265104de-1472-547c-b873-6dc7883fb6cb"),
        "{refused:?}"
    );
    assert_eq!(sent(&host, "<CnsDeleteVolume ").len(), 0);
    // By the answer of CNS.
    let refused = call(&host).delete_volume(ONE, Some("task-83 vc.test")).unwrap_err();
    assert_eq!(refused.kind, FailureKind::FailedPrecondition);
}

#[test]
fn what_is_not_there_is_deleted() {
    let host = vcenter(vec![]);
    for id in [ONE, "file:1", "[store] kubevols/disk.vmdk", ""] {
        assert_eq!(call(&host).delete_volume(id, None), Ok(()), "{id}");
    }
    assert_eq!(sent(&host, "<CnsDeleteVolume ").len(), 0);
}

#[test]
fn volume_of_a_snapshot_lies_beside_it_and_is_as_large() {
    let id = format!("{ONE}+0c1b2c3d-0000-4000-8000-00000000000b");
    let snapshots = include_str!("../../../recorded/cns_snapshots.xml");
    let snapshot = cloudwit_guest_sdk::testing::recorded(snapshots);
    let (before, rest) = snapshot.split_once("<snapshotId><id>").unwrap();
    let (_, after) = rest.split_once('<').unwrap();
    let snapshot = format!("{before}<snapshotId><id>0c1b2c3d-0000-4000-8000-00000000000b<{after}");
    let snapshot = snapshot.replace("task-81", "task-63");
    let host = vcenter(vec![
        ("<volumeIds>", answer!("cns_volume.xml")),
        ("<obj type=\"Task\">task-63", FakeAnswer::xml(200, &snapshot)),
    ]);
    let mut new = wanted("pvc-copy");
    new.source = Some(VolumeSource::Snapshot(id));
    assert_eq!(begun(&host, &new), "task-63 vc.test");
    let source = format!(
        "<volumeSource xsi:type=\"CnsSnapshotVolumeSource\"><volumeId><id>{ONE}</id></volumeId>\
         <snapshotId><id>0c1b2c3d-0000-4000-8000-00000000000b</id></snapshotId></volumeSource></createSpecs>"
    );
    assert_eq!(sent(&host, &source).len(), 1);
    new.size.at_least = 3 << 30;
    let larger = call(&host).create_volume(&new, None).unwrap_err();
    assert_eq!(larger.kind, FailureKind::OutOfRange);
}
