//! Bad days of CNS: full machines and datastores, what others do behind the driver's back, answers that never come.

use std::time::Duration;

use cloudwit_csi::proto::*;
use cloudwit_test_support::clouds::vcsim::VolumeOptions;
use cloudwit_test_support::gate::fault::Fault;
use tonic::Code;

use crate::driver::{Cns, point, wanted};
use crate::sidecar_requests::{GIB, delete, grow, overdue, publish, unpublish, within};

#[tokio::test(flavor = "multi_thread")]
async fn full_machine_has_another_one_chosen() {
    let few = VolumeOptions {
        disks: 2,
        ..VolumeOptions::default()
    };
    // What CNS says, and what the configuration does.
    for (options, volumes) in [(few, ""), (VolumeOptions::default(), ", maxVolumesPerNode: 2")] {
        let cns = Cns::start(options, volumes).await;
        let mut client = cns.client().await;
        for number in 0..2 {
            let id = cns.made(&mut client, &format!("pvc-{number}")).await;
            client
                .controller_publish_volume(publish(&id, cns.machine(0)))
                .await
                .unwrap();
        }
        let id = cns.made(&mut client, "pvc-third").await;
        let full = client
            .controller_publish_volume(publish(&id, cns.machine(0)))
            .await
            .unwrap_err();
        assert_eq!(full.code(), Code::ResourceExhausted, "{full:?}");
        client
            .controller_publish_volume(publish(&id, cns.machine(1)))
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn full_datastore_is_told_and_leaves_nothing() {
    let cns = Cns::start(VolumeOptions::default(), "").await;
    let mut client = cns.client().await;
    let huge = CreateVolumeRequest {
        capacity_range: Some(CapacityRange {
            required_bytes: 60 << 40,
            limit_bytes: 0,
        }),
        ..wanted("pvc-huge")
    };
    let full = client.create_volume(huge).await.unwrap_err();
    assert!(
        matches!(full.code(), Code::ResourceExhausted | Code::Aborted),
        "{full:?}"
    );
    assert!(full.message().contains("enough space"), "{full:?}");
    assert!(cns.volumes().await.is_empty());
    // A zone without a datastore: nothing is begun, so another one may be chosen at once.
    let nowhere = crate::sidecar_requests::wanted_at("pvc-nowhere", crate::driver::ZONE_KEY, "c");
    let nowhere = client.create_volume(nowhere).await.unwrap_err();
    assert_eq!(nowhere.code(), Code::ResourceExhausted, "{nowhere:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn volume_and_machine_that_others_deleted_are_gone() {
    let cns = Cns::start(VolumeOptions::default(), "").await;
    let mut client = cns.client().await;
    let id = cns.made(&mut client, "pvc-1").await;
    cns.vcsim.govc(&["volume.rm", &id]).await.unwrap();
    let gone = client
        .controller_publish_volume(publish(&id, cns.machine(0)))
        .await
        .unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    let gone = client.controller_expand_volume(grow(&id, 4 * GIB)).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    client
        .controller_unpublish_volume(unpublish(&id, cns.machine(0)))
        .await
        .unwrap();
    client.delete_volume(delete(&id)).await.unwrap();
    assert_eq!(cns.calls("CnsDeleteVolume"), 0, "there was nothing to delete");

    let id = cns.made(&mut client, "pvc-2").await;
    let missing = client
        .controller_publish_volume(publish(&id, "42000000-0000-4000-8000-000000000000"))
        .await;
    assert_eq!(missing.unwrap_err().code(), Code::NotFound);
    cns.vcsim.destroy(&cns.machines[3].path).await.unwrap();
    client
        .controller_unpublish_volume(unpublish(&id, cns.machine(3)))
        .await
        .unwrap();
    client
        .controller_publish_volume(publish(&id, cns.machine(0)))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_waited_for_and_begun_once() {
    let slow = VolumeOptions {
        task_delay: Duration::from_secs(6),
        ..VolumeOptions::default()
    };
    let cns = Cns::start(slow, "").await;
    let mut client = cns.client().await;
    let soon = Duration::from_secs(2);
    loop {
        let late = overdue(|| {
            let (new, mut client) = (within(soon, wanted("pvc-1")), client.clone());
            async move { client.create_volume(new).await }
        })
        .await;
        assert_eq!(late.code(), Code::DeadlineExceeded, "{late:?}");
        // On a busy machine the first RPC may be over before vCenter has been asked.
        if late.message().contains("creating the volume pvc-1") {
            break;
        }
    }
    let id = cns.made(&mut client, "pvc-1").await;
    let late = overdue(|| {
        let (new, mut client) = (within(soon, publish(&id, cns.machine(0))), client.clone());
        async move { client.controller_publish_volume(new).await }
    })
    .await;
    assert_eq!(late.code(), Code::DeadlineExceeded, "{late:?}");
    client
        .controller_publish_volume(publish(&id, cns.machine(0)))
        .await
        .unwrap();
    client.controller_expand_volume(grow(&id, 3 * GIB)).await.unwrap();
    client
        .controller_unpublish_volume(unpublish(&id, cns.machine(0)))
        .await
        .unwrap();
    client.delete_volume(delete(&id)).await.unwrap();
    for method in [
        "CnsCreateVolume",
        "CnsAttachVolume",
        "CnsExtendVolume",
        "CnsDetachVolume",
        "CnsDeleteVolume",
    ] {
        assert_eq!(cns.calls(method), 1, "{method}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_never_come_make_no_second_volume() {
    let cns = Cns::start(VolumeOptions::default(), "").await;
    let mut client = cns.client().await;
    for (number, fault) in [Fault::broken(10), Fault::cut(10)].into_iter().enumerate() {
        let name = format!("pvc-{number}");
        let lost = cns.gate.fail(point("CnsCreateVolume"), fault.times(1));
        let id = loop {
            // The sidecar repeats the request.
            match client.create_volume(wanted(&name)).await {
                Ok(answer) => break answer.into_inner().volume.unwrap().volume_id,
                Err(status) => assert!(
                    matches!(
                        status.code(),
                        Code::Unavailable | Code::Aborted | Code::DeadlineExceeded
                    ),
                    "{status:?}"
                ),
            }
        };
        assert_eq!(lost.met(), 1);
        cns.gate.open();
        assert_eq!(cns.volumes().await.len(), 1, "{name}");
        client.delete_volume(delete(&id)).await.unwrap();
    }
}
