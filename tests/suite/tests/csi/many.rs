//! Two hundred claims at once, in front of a cloud that takes 20 ms for each request, beside the same one after the other.

use std::time::{Duration, Instant};

use cloudwit_sim_cloud::{DiskSettings, Operation};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;

use crate::cluster::{Cluster, claim};
use crate::replica::turn;
use crate::running::{make, until_within};
use crate::sidecars::{DRIVER, NODE};

const CLAIMS: usize = 200;
const LATENCY: Duration = Duration::from_millis(20);

/// How long all of them may take one after the other on a busy machine.
const LONG: Duration = Duration::from_secs(300);

/// What the cloud is requested of disks.
const OPERATIONS: [Operation; 5] = [
    Operation::ListDisks,
    Operation::CreateDisk,
    Operation::DeleteDisk,
    Operation::MoveDisks,
    Operation::GetDiskLimits,
];

/// What one step cost.
#[derive(Debug, Clone, Copy)]
struct Cost {
    time: Duration,
    calls: u64,
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "builds all of Kubernetes and takes minutes: cargo xtask test --all"]
async fn many_claims_at_once_beside_one_after_the_other() {
    let _turn = turn().await;
    let at_once = costs(100).await;
    let in_turn = costs(1).await;
    println!(
        "{CLAIMS} claims, cloud latency {} ms, sidecars with 100 workers and with 1",
        LATENCY.as_millis()
    );
    println!(
        "{:<8} {:>10} {:>6} {:>14} {:>6}",
        "", "at once", "calls", "one by one", "calls"
    );
    for (step, (ours, theirs)) in ["bound", "attached", "detached", "deleted"]
        .iter()
        .zip(at_once.iter().zip(&in_turn))
    {
        println!(
            "{step:<8} {:>8.1} s {:>6} {:>12.1} s {:>6}",
            ours.time.as_secs_f64(),
            ours.calls,
            theirs.time.as_secs_f64(),
            theirs.calls
        );
        assert!(ours.time < theirs.time, "{step}: {ours:?} beside {theirs:?}");
        // The provisioner with many workers sends most deletions twice, the second one after the first is done.
        let most = if *step == "deleted" {
            2 * theirs.calls
        } else {
            theirs.calls
        };
        assert!(ours.calls <= most, "{step}: {ours:?} beside {theirs:?}");
    }
    for (step, ours, theirs) in [
        ("attached", at_once[1], in_turn[1]),
        ("detached", at_once[2], in_turn[2]),
    ] {
        assert!(
            ours.calls * 5 <= theirs.calls,
            "{step} in batches: {ours:?} beside {theirs:?}"
        );
    }
}

/// Of binding, attaching, detaching and deleting, with so many workers in each sidecar.
async fn costs(workers: u32) -> [Cost; 4] {
    let mut cluster = Cluster::start(workers).await;
    cluster.cloud.set_latency(LATENCY);
    cluster.cloud.set_disk_settings(DiskSettings {
        per_machine: 256,
        ..DiskSettings::default()
    });
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(cluster.client.clone(), "default");
    let volumes: Api<PersistentVolume> = Api::all(cluster.client.clone());
    let attachments: Api<VolumeAttachment> = Api::all(cluster.client.clone());
    let all = ListParams::default();

    let (started, before) = (Instant::now(), cluster.requests(&OPERATIONS));
    let cost = |cluster: &Cluster, started: Instant, before| Cost {
        time: started.elapsed(),
        calls: cluster.requests(&OPERATIONS) - before,
    };
    for number in 0..CLAIMS {
        make(&claims, claim(&format!("many-{number}"), 2, None)).await;
    }
    let names = until_within(LONG, &mut cluster.sidecars, "all are bound", || async {
        let claims = claims.list(&all).await.ok()?.items;
        let bound = |claim: &PersistentVolumeClaim| {
            claim
                .status
                .as_ref()?
                .phase
                .as_deref()
                .filter(|phase| *phase == "Bound")
                .map(drop)
        };
        let name = |claim: PersistentVolumeClaim| bound(&claim).and(claim.spec?.volume_name);
        let names: Vec<String> = claims.into_iter().filter_map(name).collect();
        (names.len() == CLAIMS).then_some(names)
    })
    .await;
    let bound = cost(&cluster, started, before);
    assert_eq!(cluster.cloud.disks_made(), 200);

    let (started, before) = (Instant::now(), cluster.requests(&OPERATIONS));
    for name in &names {
        let attachment = json!({
            "metadata": {"name": name},
            "spec": {"attacher": DRIVER, "nodeName": NODE, "source": {"persistentVolumeName": name}}
        });
        make(&attachments, attachment).await;
    }
    until_within(LONG, &mut cluster.sidecars, "all are attached", || async {
        let attachments = attachments.list(&all).await.ok()?.items;
        attachments
            .iter()
            .all(|one| one.status.as_ref().is_some_and(|status| status.attached))
            .then_some(())
    })
    .await;
    let attached = cost(&cluster, started, before);

    let (started, before) = (Instant::now(), cluster.requests(&OPERATIONS));
    attachments
        .delete_collection(&DeleteParams::default(), &all)
        .await
        .unwrap();
    until_within(LONG, &mut cluster.sidecars, "all are detached", || async {
        attachments.list(&all).await.ok()?.items.is_empty().then_some(())
    })
    .await;
    let detached = cost(&cluster, started, before);

    let (started, before) = (Instant::now(), cluster.requests(&OPERATIONS));
    claims.delete_collection(&DeleteParams::default(), &all).await.unwrap();
    until_within(LONG, &mut cluster.sidecars, "all are deleted", || async {
        volumes.list(&all).await.ok()?.items.is_empty().then_some(())
    })
    .await;
    let deleted = cost(&cluster, started, before);
    assert_eq!(cluster.cloud.disks(), []);
    cluster.clear().await;
    [bound, attached, detached, deleted]
}
