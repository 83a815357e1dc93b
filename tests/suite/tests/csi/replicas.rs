//! Two replicas of the real process: only the one that leads listens, and a killed one loses no disk and leaves none.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cloudwit_csi::proto::{DeleteVolumeRequest, ListVolumesRequest};
use cloudwit_sim_cloud::{DiskSettings, SimCloud, SimCloudOptions};
use cloudwit_test_support::child::Child;
use cloudwit_test_support::deployment::{Deployment, TOKEN};
use cloudwit_test_support::{ApiServer, eventually, guests, programs};

use crate::requests::{publish, wanted, within};
use crate::scene::{Controller, dial};

/// How long anything may take on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// A process, and where it is to listen.
struct Replica {
    process: Child,
    socket: PathBuf,
}

impl Replica {
    async fn listens(&self) {
        let socket = self.socket.clone();
        eventually(SOON, "the replica listens", || {
            let socket = socket.clone();
            async move { tokio::net::UnixStream::connect(socket).await }
        })
        .await;
    }

    async fn client(&self) -> Controller {
        Controller::new(dial(self.socket.clone()).await)
    }
}

async fn start(name: &str, folder: &Path, cloud: &SimCloud) -> Replica {
    let built = tokio::task::spawn_blocking(|| (programs::cloudwit(), guests::provider("sim"))).await;
    let (program, provider) = built.unwrap();
    let folder = folder.join(name);
    let deployment = Deployment::new(&folder, program.parent().unwrap(), &provider).unwrap();
    let sockets = format!("--csi-socket-dir={}", folder.join("csi").display());
    let flags = [
        "--leader-elect=true",
        "--leader-elect-lease-duration=6s",
        "--leader-elect-renew-deadline=4s",
        "--leader-elect-retry-period=500ms",
        &sockets,
    ];
    let api = ApiServer::shared().await;
    let (process, _) = deployment
        .start_cloudwit(api.kubeconfig(), &cloud.url(), &flags)
        .unwrap();
    let socket = folder.join("csi/sim.csi.cloudwit.dev.sock");
    Replica { process, socket }
}

#[tokio::test(flavor = "multi_thread")]
async fn leader_alone_listens_and_its_death_loses_nothing() {
    let options = SimCloudOptions {
        token: TOKEN.into(),
        ..SimCloudOptions::default()
    };
    let cloud = SimCloud::start(options).await.unwrap();
    cloud.add_numbered_machines("node", 1);
    let folder = tempfile::tempdir().unwrap();
    let first = start("first", folder.path(), &cloud).await;
    first.listens().await;
    let second = start("second", folder.path(), &cloud).await;
    // A disk that takes its time: the first dies while it is being made.
    cloud.set_disk_settings(DiskSettings {
        build_time: Duration::from_secs(5),
        ..DiskSettings::default()
    });
    let mut client = first.client().await;
    let begun = client
        .create_volume(within(Duration::from_secs(2), wanted("pvc-1")))
        .await;
    assert!(begun.is_err(), "{begun:?}");
    assert!(!second.socket.exists(), "the second does not lead");
    assert_eq!(cloud.disks_made(), 1);
    first.process.kill().unwrap();

    second.listens().await;
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
    let third = start("third", folder.path(), &cloud).await;
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
    assert!(attached.is_err(), "it is in use");
}
