//! Bad days of EBS: states that take their time, limits, answers that never come, and what others do behind the driver's back.

use std::time::Duration;

use cloudwit_csi::proto::*;
use cloudwit_test_support::gate::Point;
use cloudwit_test_support::gate::fault::Fault;
use http::{Method, StatusCode};
use serde_json::json;
use tonic::Code;

use crate::driver::{Ebs, wanted};
use crate::scene::refusal;
use crate::sidecar_requests::{GIB, delete, grow, overdue, publish, unpublish, within};

/// A list of volumes in which there is none.
const NOTHING: &str = "<DescribeVolumesResponse><volumeSet/></DescribeVolumesResponse>";

#[tokio::test(flavor = "multi_thread")]
async fn states_that_take_their_time_are_waited_for() {
    let ebs = Ebs::start("slow").await;
    let mut client = ebs.client().await;
    let status = |is: &'static str, instead: &str| Fault::edit(is, instead);
    let (available, creating) = ("<status>available</status>", "<status>creating</status>");
    ebs.fail("CreateVolume", status(available, creating));
    let looks = ebs.fail("DescribeVolumes", status(available, creating).times(2));
    let id = ebs.made(&mut client, "pvc-slow").await;
    assert_eq!(
        (looks.met(), ebs.volumes().await.len()),
        (2, 1),
        "once empty, once creating"
    );
    ebs.gate.open();

    ebs.fail(
        "DescribeVolumes",
        status("<status>attached</status>", "<status>attaching</status>"),
    );
    let late = overdue(|| {
        let request = within(Duration::from_secs(4), publish(&id, ebs.machine(0)));
        let mut client = client.clone();
        async move { client.controller_publish_volume(request).await }
    })
    .await;
    assert_eq!(late.code(), Code::DeadlineExceeded);
    assert!(late.message().starts_with("still waiting: "), "{late:?}");
    ebs.gate.open();
    client
        .controller_publish_volume(publish(&id, ebs.machine(0)))
        .await
        .unwrap();
    assert_eq!(ebs.count("AttachVolume").await, 1);

    let modifying = || status("<modificationState>completed", "<modificationState>modifying");
    ebs.fail("ModifyVolume", modifying());
    let looks = ebs.fail("DescribeVolumesModifications", modifying().times(2));
    let grown = client.controller_expand_volume(grow(&id, 3 * GIB)).await;
    let grown = grown.unwrap().into_inner();
    assert_eq!((grown.capacity_bytes, looks.met()), (3 * GIB, 2));
    assert_eq!(ebs.count("ModifyVolume").await, 1);
    ebs.gate.open();

    let pending = || status("<status>completed</status>", "<status>pending</status>");
    ebs.fail("CreateSnapshot", pending());
    ebs.fail("DescribeSnapshots", pending().times(1));
    let new = CreateSnapshotRequest {
        name: "snap-slow".into(),
        source_volume_id: id.clone(),
        ..Default::default()
    };
    let begun = client.create_snapshot(new.clone()).await.unwrap().into_inner();
    assert!(!begun.snapshot.unwrap().ready_to_use);
    let ready = client.create_snapshot(new).await.unwrap().into_inner();
    assert!(ready.snapshot.unwrap().ready_to_use);
    assert_eq!(ebs.count("CreateSnapshot").await, 1);
    ebs.gate.open();

    let there = format!(
        "<attachmentSet><item><instanceId>{}</instanceId><status>detaching</status></item></attachmentSet>",
        ebs.machine(0)
    );
    client
        .controller_unpublish_volume(unpublish(&id, ebs.machine(1)))
        .await
        .unwrap();
    assert_eq!(ebs.count("DetachVolume").await, 0, "it is not there");
    let looks = ebs.fail("DescribeVolumes", Fault::edit("<attachmentSet/>", there).times(2));
    client
        .controller_unpublish_volume(unpublish(&id, ebs.machine(0)))
        .await
        .unwrap();
    assert_eq!(ebs.count("DetachVolume").await, 1);
    assert!(looks.met() >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn full_machine_has_another_one_chosen() {
    let ebs = Ebs::start("full").await;
    let mut client = ebs.client().await;
    let run = json!({ "ImageId": "ami-12c6146b", "InstanceType": "d3.8xlarge", "MinCount": 1, "MaxCount": 1,
        "SubnetId": ebs.cluster.subnets[0].id });
    let run = ebs.moto.call("ec2", "run_instances", run).await.unwrap();
    let small = run["Instances"][0]["InstanceId"].as_str().unwrap();
    // Its type takes three, and one is its own.
    for number in 0..2 {
        let id = ebs.made(&mut client, &format!("pvc-{number}")).await;
        client.controller_publish_volume(publish(&id, small)).await.unwrap();
    }
    let id = ebs.made(&mut client, "pvc-third").await;
    let full = client.controller_publish_volume(publish(&id, small)).await.unwrap_err();
    assert_eq!(full.code(), Code::ResourceExhausted, "{full:?}");
    client
        .controller_publish_volume(publish(&id, ebs.machine(0)))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_never_come_make_no_second_volume() {
    let ebs = Ebs::start("lost").await;
    let mut client = ebs.client().await;
    for (number, fault) in [Fault::broken(10), Fault::cut(10), refusal(503, "RequestLimitExceeded")]
        .into_iter()
        .enumerate()
    {
        let name = format!("pvc-{number}");
        let fault = ebs.fail("CreateVolume", fault.times(1));
        let failed = client.create_volume(wanted(&name)).await.unwrap_err();
        assert!(matches!(failed.code(), Code::Unavailable | Code::Aborted), "{failed:?}");
        // Nor does a search that does not show it yet.
        let unseen = Fault::status(StatusCode::OK).body("text/xml", NOTHING).times(1);
        let by_name = Point::before(Method::POST, "/")
            .with("Action=DescribeVolumes&")
            .with("CSIVolumeName");
        let unseen = ebs.gate.fail(by_name, unseen);
        ebs.made(&mut client, &name).await;
        assert_eq!((fault.met(), unseen.met()), (1, 1));
    }
    assert_eq!(ebs.volumes().await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_creation_burns_its_token_and_uses_another() {
    let ebs = Ebs::start("burned").await;
    let mut client = ebs.client().await;
    let id = ebs.made(&mut client, "pvc-1").await;
    // As when EC2 takes a volume away whose key may not be used: moto remembers the token too.
    ebs.moto
        .call("ec2", "delete_volume", json!({ "VolumeId": id }))
        .await
        .unwrap();
    let other = ebs.made(&mut client, "pvc-1").await;
    assert_ne!(other, id);
    assert_eq!((ebs.volumes().await.len(), ebs.count("CreateVolume").await), (1, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_take_away_is_gone_and_nothing_waits_for_it() {
    let ebs = Ebs::start("taken").await;
    let mut client = ebs.client().await;
    let (one, two) = (
        ebs.made(&mut client, "pvc-1").await,
        ebs.made(&mut client, "pvc-2").await,
    );
    for (id, machine) in [(&one, 0), (&two, 1)] {
        client
            .controller_publish_volume(publish(id, ebs.machine(machine)))
            .await
            .unwrap();
    }
    // The machine ends with its volume attached.
    let ended = json!({ "InstanceIds": [ebs.machine(1)] });
    ebs.moto.call("ec2", "terminate_instances", ended).await.unwrap();
    client
        .controller_unpublish_volume(unpublish(&two, ebs.machine(1)))
        .await
        .unwrap();
    let no_machine = client
        .controller_publish_volume(publish(&two, ebs.machine(1)))
        .await
        .unwrap_err();
    assert_eq!(no_machine.code(), Code::NotFound, "{no_machine:?}");
    client
        .controller_publish_volume(publish(&two, ebs.machine(0)))
        .await
        .unwrap();
    // The disk goes.
    let (volume, instance) = (
        json!({ "VolumeId": one }),
        json!({ "VolumeId": one, "InstanceId": ebs.machine(0) }),
    );
    ebs.moto.call("ec2", "detach_volume", instance).await.unwrap();
    ebs.moto.call("ec2", "delete_volume", volume).await.unwrap();
    client
        .controller_unpublish_volume(unpublish(&one, ebs.machine(0)))
        .await
        .unwrap();
    let missing = client
        .controller_publish_volume(publish(&one, ebs.machine(0)))
        .await
        .unwrap_err();
    assert_eq!(missing.code(), Code::NotFound, "{missing:?}");
    client.delete_volume(delete(&one)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn answer_that_is_not_ec2s_word_is_no_absence() {
    let ebs = Ebs::start("silent").await;
    let mut client = ebs.client().await;
    let id = ebs.made(&mut client, "pvc-1").await;
    client
        .controller_publish_volume(publish(&id, ebs.machine(0)))
        .await
        .unwrap();
    for fault in [
        refusal(503, "Unavailable"),
        Fault::status(StatusCode::NOT_FOUND).body("text/html", "<html>no such backend</html>"),
        Fault::status(StatusCode::OK).body("text/xml", NOTHING),
        Fault::cut(400),
    ] {
        let fault = ebs.fail("DescribeVolumes", fault);
        let unsaid = client
            .controller_unpublish_volume(unpublish(&id, ebs.machine(0)))
            .await
            .unwrap_err();
        assert!(matches!(unsaid.code(), Code::Unavailable | Code::Aborted), "{unsaid:?}");
        assert!(fault.met() >= 1);
        ebs.gate.open();
    }
    assert_eq!(ebs.count("DetachVolume").await, 0);
}
