//! A claim's whole life with Kubernetes' own controllers and sidecars: bound, attached, grown, snapshot, restored, detached, deleted; and in each step the
//! leading process is killed while the cloud is at it, and the other replica takes over.

use std::time::Duration;

use cloudwit_sim_cloud::{AttachmentState, DiskSettings, DiskSource, Operation, SimCloud};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use crate::cluster::{Cluster, claim, pod, reported, snapshots};
use crate::replica::turn;
use crate::running::{make, merge, until};
use crate::sidecars::attached;

/// How long the cloud takes for what is begun.
const SLOW: Duration = Duration::from_secs(3);

/// The kinds of objects that a test looks at.
struct Objects {
    claims: Api<PersistentVolumeClaim>,
    volumes: Api<PersistentVolume>,
    attachments: Api<VolumeAttachment>,
    pods: Api<Pod>,
}

impl Objects {
    fn of(client: &Client) -> Self {
        Self {
            claims: Api::namespaced(client.clone(), "default"),
            volumes: Api::all(client.clone()),
            attachments: Api::all(client.clone()),
            pods: Api::namespaced(client.clone(), "default"),
        }
    }

    async fn bound(&self, name: &str) -> Option<()> {
        let status = self.claims.get(name).await.ok()?.status?;
        (status.phase.as_deref() == Some("Bound")).then_some(())
    }

    /// How many attachments there are, and how many of them are done.
    async fn attached(&self) -> Option<(usize, usize)> {
        let all = self.attachments.list(&ListParams::default()).await.ok()?.items;
        let done = all
            .iter()
            .filter(|one| one.status.as_ref().is_some_and(|status| status.attached));
        Some((all.len(), done.count()))
    }
}

/// The cloud takes its time from now on, once a request has come.
fn slow(cluster: &Cluster) {
    cluster.cloud.set_disk_settings(DiskSettings {
        build_time: SLOW,
        attach_time: SLOW,
        ..DiskSettings::default()
    });
}

/// Waits until the cloud is at it, and kills the leader.
async fn kill_once(cluster: &mut Cluster, what: &str, begun: impl Fn(&SimCloud) -> bool) {
    let cloud = &cluster.cloud;
    until(&mut cluster.sidecars, what, || async { begun(cloud).then_some(()) }).await;
    cluster.kill_the_leader().await;
}

/// The same for what the cloud does at once: the leader dies while the request is on its way, which the cloud then forgets.
async fn kill_before(cluster: &mut Cluster, operation: Operation) {
    kill_once(cluster, operation.as_str(), |cloud| {
        cloud.counters().requests(operation) > 0
    })
    .await;
    cluster.cloud.set_latency(Duration::ZERO);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "builds all of Kubernetes and takes a minute: cargo xtask test --all"]
async fn leader_killed_in_each_step_loses_no_disk_and_leaves_none() {
    let _turn = turn().await;
    let mut cluster = Cluster::start(10).await;
    let objects = Objects::of(&cluster.client);

    slow(&cluster);
    make(&objects.claims, claim("data", 2, None)).await;
    kill_once(&mut cluster, "a disk is being made", |cloud| cloud.disks_made() == 1).await;
    until(&mut cluster.sidecars, "the claim is bound", || objects.bound("data")).await;
    assert_eq!(cluster.cloud.disks_made(), 1);

    make(&objects.pods, pod("user", &["data"])).await;
    kill_once(&mut cluster, "it is being attached", |cloud| {
        attached(cloud) == ["vm-1"]
    })
    .await;
    until(&mut cluster.sidecars, "the attachment", || async {
        (objects.attached().await? == (1, 1)).then_some(())
    })
    .await;
    let client = cluster.client.clone();
    until(&mut cluster.sidecars, "the Node reports it", || async {
        (reported(&client).await == 1).then_some(())
    })
    .await;
    assert_eq!(attached(&cluster.cloud), ["vm-1"]);

    grow(&mut cluster, &objects).await;
    take_snapshot(&mut cluster).await;

    make(&objects.claims, claim("restored", 5, Some("of-data"))).await;
    kill_once(&mut cluster, "it is being restored", |cloud| cloud.disks_made() == 2).await;
    until(&mut cluster.sidecars, "the second claim is bound", || {
        objects.bound("restored")
    })
    .await;
    let disks = cluster.cloud.disks();
    assert!(
        matches!(disks[1].spec.source, Some(DiskSource::Snapshot(_))),
        "{disks:?}"
    );
    assert_eq!((disks.len(), cluster.cloud.disks_made()), (2, 2));

    delete_snapshot(&mut cluster).await;
    delete_all(&mut cluster, &objects).await;
    assert_eq!(cluster.cloud.disks_made(), 2);
    cluster.clear().await;
}

async fn grow(cluster: &mut Cluster, objects: &Objects) {
    cluster.cloud.reset_counters();
    cluster.cloud.set_latency(SLOW);
    let larger = json!({"spec": {"resources": {"requests": {"storage": "5Gi"}}}});
    merge(&objects.claims, "data", None, larger).await;
    kill_before(cluster, Operation::ChangeDisk).await;
    let name = objects
        .claims
        .get("data")
        .await
        .unwrap()
        .spec
        .unwrap()
        .volume_name
        .unwrap();
    until(&mut cluster.sidecars, "the growth", || async {
        let capacity = objects.volumes.get(&name).await.ok()?.spec?.capacity?;
        (capacity.get("storage")?.0 == "5Gi").then_some(())
    })
    .await;
    assert_eq!(cluster.cloud.disks()[0].spec.size, 5 << 30);
}

async fn take_snapshot(cluster: &mut Cluster) {
    let all = snapshots(&cluster.client, "VolumeSnapshot");
    let wanted = json!({
        "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "metadata": {"name": "of-data"},
        "spec": {"volumeSnapshotClassName": "sim", "source": {"persistentVolumeClaimName": "data"}}
    });
    let wanted = serde_json::from_value(wanted).unwrap();
    all.create(&PostParams::default(), &wanted).await.unwrap();
    kill_once(cluster, "a snapshot is being made", |cloud| {
        cloud.disk_snapshots().len() == 1
    })
    .await;
    until(&mut cluster.sidecars, "the snapshot is ready", || async {
        let snapshot = all.get("of-data").await.ok()?;
        (snapshot.data["status"]["readyToUse"] == true).then_some(())
    })
    .await;
    assert_eq!(cluster.cloud.disk_snapshots().len(), 1);
}

async fn delete_snapshot(cluster: &mut Cluster) {
    let all = snapshots(&cluster.client, "VolumeSnapshot");
    cluster.cloud.reset_counters();
    cluster.cloud.set_latency(SLOW);
    all.delete("of-data", &DeleteParams::default()).await.unwrap();
    kill_before(cluster, Operation::DeleteSnapshot).await;
    until(&mut cluster.sidecars, "the snapshot is gone", || async {
        all.get_opt("of-data").await.ok()?.is_none().then_some(())
    })
    .await;
    assert_eq!(cluster.cloud.disk_snapshots(), []);
}

async fn delete_all(cluster: &mut Cluster, objects: &Objects) {
    objects
        .pods
        .delete("user", &DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    kill_once(cluster, "it is being detached", |cloud| {
        let disks = cloud.disks();
        disks
            .iter()
            .flat_map(|disk| &disk.attachments)
            .any(|one| one.state == AttachmentState::Detaching)
    })
    .await;
    until(&mut cluster.sidecars, "no attachment is left", || async {
        (objects.attached().await? == (0, 0)).then_some(())
    })
    .await;
    assert_eq!(attached(&cluster.cloud), [""; 0]);

    cluster.cloud.reset_counters();
    cluster.cloud.set_latency(SLOW);
    for name in ["data", "restored"] {
        objects.claims.delete(name, &DeleteParams::default()).await.unwrap();
    }
    kill_before(cluster, Operation::DeleteDisk).await;
    until(&mut cluster.sidecars, "no volume is left", || async {
        let volumes = objects.volumes.list(&ListParams::default()).await.ok()?;
        volumes.items.is_empty().then_some(())
    })
    .await;
    assert_eq!(cluster.cloud.disks(), []);
}
