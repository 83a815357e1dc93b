//! Two replicas of the real process: only the one that leads listens, and a killed one loses no disk and leaves none.

use std::time::Duration;

use cloudwit_csi::proto::{DeleteVolumeRequest, ListVolumesRequest};
use cloudwit_sim_cloud::DiskSettings;
use cloudwit_test_support::eventually;

use crate::replica::{Replica, SOON, cloud, turn};
use crate::requests::wanted;
use crate::sidecar_requests::{overdue, publish, within};

/// An election that looks often, and in which a leader keeps its lead when a busy machine stops it for ten seconds.
pub const QUICK: [&str; 4] = [
    "--leader-elect=true",
    "--leader-elect-lease-duration=20s",
    "--leader-elect-renew-deadline=15s",
    "--leader-elect-retry-period=500ms",
];

#[tokio::test(flavor = "multi_thread")]
async fn leader_alone_listens_and_its_death_loses_nothing() {
    let _turn = turn().await;
    let cloud = cloud(1).await;
    let folder = tempfile::tempdir().unwrap();
    let first = Replica::start("first", folder.path(), &cloud, &QUICK).await;
    first.listens().await;
    let second = Replica::start("second", folder.path(), &cloud, &QUICK).await;
    // A disk that takes its time: the first dies while it is being made.
    cloud.set_disk_settings(DiskSettings {
        build_time: Duration::from_secs(3600),
        ..DiskSettings::default()
    });
    let client = first.client().await;
    let begun = overdue(|| {
        let (mut client, request) = (client.clone(), within(Duration::from_secs(2), wanted("pvc-1")));
        async move { client.create_volume(request).await }
    })
    .await;
    assert_eq!(begun.code(), tonic::Code::DeadlineExceeded, "{begun:?}");
    eventually(SOON, "the disk is being made", || async { cloud.disks_made() == 1 }).await;
    assert!(!second.socket.exists(), "the second does not lead");
    first.process.kill().unwrap();

    second.listens().await;
    cloud.finish_disks();
    let mut client = second.client().await;
    let made = client
        .create_volume(within(SOON, wanted("pvc-1")))
        .await
        .unwrap()
        .into_inner();
    let id = made.volume.unwrap().volume_id;
    assert_eq!(cloud.disks_made(), 1, "the disk of the first was found");
    client
        .controller_publish_volume(within(SOON, publish(&id, "vm-1")))
        .await
        .unwrap();

    // Stopped in good order: the socket goes at once.
    second.process.signal("TERM").unwrap();
    let socket = second.socket.clone();
    eventually(SOON, "the socket goes", || {
        let socket = socket.clone();
        async move { !socket.exists() }
    })
    .await;
    let third = Replica::start("third", folder.path(), &cloud, &QUICK).await;
    third.listens().await;
    let mut client = third.client().await;
    let listed = client
        .list_volumes(ListVolumesRequest::default())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(listed.entries[0].status.as_ref().unwrap().published_node_ids, ["vm-1"]);
    let attached = client
        .delete_volume(DeleteVolumeRequest {
            volume_id: id,
            ..Default::default()
        })
        .await;
    assert_eq!(
        attached.unwrap_err().code(),
        tonic::Code::FailedPrecondition,
        "it is in use"
    );
}
