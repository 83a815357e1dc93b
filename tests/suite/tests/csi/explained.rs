//! What `cloudwit explain pv|pvc` and the status say about a volume, from its first second to its attachment, with a cloud that is slow and then refuses.

use std::process::Command;
use std::time::Duration;

use cloudwit_sim_cloud::{DiskSettings, Fault, Operation};
use cloudwit_test_support::{ApiServer, eventually, programs};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::replica::{Replica, SOON, cloud, turn};
use crate::requests::wanted;
use crate::running::merge;
use crate::sidecar_requests::{overdue, publish, within};

/// Exit code and both outputs of `cloudwit explain`.
pub async fn explain(replica: &Replica, arguments: &[&str]) -> (i32, String) {
    let kubeconfig = ApiServer::shared().await.kubeconfig().display().to_string();
    let mut command = Command::new(programs::cloudwit());
    command
        .arg("explain")
        .arg(format!("--admin-address={}", replica.url.trim_start_matches("http://")))
        .arg(format!("--kubeconfig={kubeconfig}"))
        .args(arguments);
    let output = tokio::task::spawn_blocking(move || command.output())
        .await
        .unwrap()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap(),
        text(&output.stdout) + &text(&output.stderr),
    )
}

async fn until_explained(replica: &Replica, arguments: &[&str], parts: &[&str]) -> String {
    eventually(SOON, "the explanation", || async {
        let (code, said) = explain(replica, arguments).await;
        match code == 0 && parts.iter().all(|part| said.contains(part)) {
            true => Ok(said),
            false => Err(format!("{parts:?} in {code}: {said}")),
        }
    })
    .await
}

pub async fn status(replica: &Replica) -> Value {
    let answer = reqwest::get(format!("{}/status.json", replica.url)).await.unwrap();
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

/// A claim of this name, without a class, so that nobody else makes its volume; its uid.
async fn claim(name: &str) -> String {
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(ApiServer::shared().await.client());
    let claim = json!({
        "metadata": { "name": name },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "disks", "resources": { "requests": { "storage": "2Gi" } },
        },
    });
    let claim = serde_json::from_value(claim).unwrap();
    let made = claims.create(&PostParams::default(), &claim).await.unwrap();
    made.metadata.uid.unwrap()
}

/// What the provisioner writes when the volume is there.
async fn provisioned(claim: &str, volume: &str, handle: &str) {
    let client = ApiServer::shared().await.client();
    let object = json!({
        "metadata": { "name": volume },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "2Gi" }, "storageClassName": "disks",
            "csi": { "driver": "sim.csi.cloudwit.dev", "volumeHandle": handle },
        },
    });
    let object = serde_json::from_value(object).unwrap();
    Api::<PersistentVolume>::all(client.clone())
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(client);
    let bound = Patch::Merge(json!({ "spec": { "volumeName": volume } }));
    claims.patch(claim, &PatchParams::default(), &bound).await.unwrap();
}

/// Takes both away, with the finalizers that nobody else takes off here: other tests look at all that there are.
async fn take_away(claim: &str, volume: &str) {
    let client = ApiServer::shared().await.client();
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(client.clone());
    let volumes: Api<PersistentVolume> = Api::all(client);
    let (bare, now) = (json!({ "metadata": { "finalizers": null } }), DeleteParams::default());
    merge(&claims, claim, None, bare.clone()).await;
    claims.delete(claim, &now).await.unwrap();
    merge(&volumes, volume, None, bare).await;
    volumes.delete(volume, &now).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn volume_says_what_it_waits_for_from_its_claim_to_its_machine() {
    let _turn = turn().await;
    let cloud = cloud(1).await;
    let folder = tempfile::tempdir().unwrap();
    let replica = Replica::start("explains", folder.path(), &cloud, &[]).await;
    replica.listens().await;
    let mut client = replica.client().await;
    let uid = claim("explained").await;
    let (volume, claim) = (format!("pvc-{uid}"), "default/explained");
    until_explained(
        &replica,
        &["pvc", claim],
        &[
            "has no volume yet; StorageClass disks says who makes it",
            "has no operation under way, and none has failed.",
        ],
    )
    .await;

    cloud.set_disk_settings(DiskSettings {
        build_time: Duration::from_secs(3600),
        ..DiskSettings::default()
    });
    let late = overdue(|| {
        let (mut client, request) = (client.clone(), within(Duration::from_secs(1), wanted(&volume)));
        async move { client.create_volume(request).await }
    })
    .await;
    assert_eq!(late.code(), tonic::Code::DeadlineExceeded, "{late:?}");
    let creates = format!("create volume {volume}");
    until_explained(
        &replica,
        &["pvc", claim],
        &[
            "waits for the cloud since ",
            &creates,
            "next call in ",
            "No request waits for it; the sidecar retries. [csi]",
        ],
    )
    .await;
    let facts = status(&replica).await;
    assert_eq!(facts["volumes"][0]["driver"], "sim.csi.cloudwit.dev", "{facts}");
    assert_eq!(
        facts["volumes"][0]["operations"]["shown"][0]["work"], creates,
        "{facts}"
    );
    cloud.finish_disks();
    let made = client.create_volume(within(SOON, wanted(&volume))).await.unwrap();
    let id = made.into_inner().volume.unwrap().volume_id;
    provisioned("explained", &volume, &id).await;

    cloud.set_faults([Fault::status(403).on(Operation::MoveDisks)]);
    for _ in 0..2 {
        let refused = client
            .controller_publish_volume(within(SOON, publish(&id, "vm-1")))
            .await;
        assert_eq!(refused.unwrap_err().code(), tonic::Code::PermissionDenied);
    }
    let attaches = format!("attach volume {id} to vm-1");
    let parts = ["had a failure ", attaches.as_str(), " (2 tries): denied: "];
    for arguments in [["pv", volume.as_str()], ["pvc", claim]] {
        until_explained(&replica, &arguments, &parts).await;
    }
    let facts = status(&replica).await;
    assert_eq!(facts["volumes"][0]["failed"]["shown"][0]["times"], 2, "{facts}");
    let causes = facts["causes"].as_array().unwrap();
    let denied = causes.iter().find(|cause| cause["kind"] == "denied");
    assert_eq!(denied.unwrap()["objects"]["shown"][0]["name"], attaches, "{facts}");

    cloud.set_faults([]);
    client
        .controller_publish_volume(within(SOON, publish(&id, "vm-1")))
        .await
        .unwrap();
    let said = until_explained(
        &replica,
        &["pv", &volume],
        &["has no operation under way, and none has failed. [csi]"],
    )
    .await;
    assert!(
        said.contains(&format!("is volume {id} of driver sim.csi.cloudwit.dev.")),
        "{said}"
    );
    let (code, said) = explain(&replica, &["pv", "nobody"]).await;
    assert_eq!((code, said.as_str()), (3, "There is no PersistentVolume nobody.\n"));
    take_away("explained", &volume).await;
}
