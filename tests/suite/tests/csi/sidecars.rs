//! Kubernetes' sidecars between a real API server and the real process: a claim becomes a disk, is attached, grows, is detached and deleted, and the process
//! is killed meanwhile. What kube-controller-manager would do (bind, mark as released) the test does.

use cloudwit_model::volume::{NODE_ANNOTATION, NodeAnnotation};
use cloudwit_sim_cloud::SimCloud;
use cloudwit_test_support::{ApiServer, eventually};
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, StorageClass, VolumeAttachment};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::replica::{Replica, SOON, cloud, turn};
use crate::running::{Running, make, merge, until};

pub const DRIVER: &str = "sim.csi.cloudwit.dev";
pub const NODE: &str = "csi-node-0";
const ZONE: &str = "topology.sim.csi.cloudwit.dev/zone";
const CLAIM: &str = "data";

/// The driver, a class, and a Node.
pub async fn set_the_stage(client: &Client) {
    make::<CSIDriver>(
        &Api::all(client.clone()),
        json!({
            "metadata": {"name": DRIVER}, "spec": {"attachRequired": true}
        }),
    )
    .await;
    make::<StorageClass>(
        &Api::all(client.clone()),
        json!({
            "metadata": {"name": "sim"}, "provisioner": DRIVER, "allowVolumeExpansion": true,
            "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"
        }),
    )
    .await;
    make::<Node>(
        &Api::all(client.clone()),
        json!({
            "metadata": {"name": NODE, "labels": {ZONE: "sim-1a"}}, "spec": {"providerID": "sim://vm-1"}
        }),
    )
    .await;
}

/// What the Node's plugin and its kubelet do: they note what the node controller has told of the machine.
pub async fn register_plugin(client: &Client) {
    let nodes: Api<Node> = Api::all(client.clone());
    let told = eventually(SOON, "the Node says what its plugin has to know", || async {
        let node = nodes.get(NODE).await.map_err(|error| error.to_string())?;
        let told = node.annotations().get(NODE_ANNOTATION).cloned();
        told.ok_or_else(|| format!("{:?}", node.metadata))
    })
    .await;
    let NodeAnnotation {
        driver,
        node_id,
        topology,
        max_volumes,
    } = NodeAnnotation::parse(&told).unwrap();
    assert_eq!(
        (node_id.as_str(), topology.get(ZONE).map(String::as_str)),
        ("vm-1", Some("sim-1a"))
    );
    let topology_keys: Vec<&String> = topology.keys().collect();
    make::<CSINode>(
        &Api::all(client.clone()),
        json!({
            "metadata": {"name": NODE},
            "spec": {"drivers": [{
                "name": driver, "nodeID": node_id, "topologyKeys": topology_keys, "allocatable": {"count": max_volumes}
            }]}
        }),
    )
    .await;
}

pub async fn clear_the_stage(client: &Client) {
    let now = DeleteParams::default();
    Api::<CSIDriver>::all(client.clone())
        .delete(DRIVER, &now)
        .await
        .unwrap();
    Api::<StorageClass>::all(client.clone())
        .delete("sim", &now)
        .await
        .unwrap();
    Api::<CSINode>::all(client.clone()).delete(NODE, &now).await.unwrap();
    Api::<Node>::all(client.clone()).delete(NODE, &now).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn claim_becomes_a_disk_that_is_attached_grown_and_deleted() {
    let _turn = turn().await;
    let programs = tokio::task::spawn_blocking(xtask::kubernetes::sidecars::programs)
        .await
        .unwrap()
        .unwrap();
    let api = ApiServer::shared().await;
    let (client, kubeconfig) = (api.client(), api.kubeconfig());
    let (cloud, folder) = (cloud(1).await, tempfile::tempdir().unwrap());
    set_the_stage(&client).await;
    let replica = Replica::start("cloudwit", folder.path(), &cloud, &[]).await;
    replica.listens().await;
    register_plugin(&client).await;
    let socket = replica.socket.clone();
    let names = ["provisioner", "attacher", "resizer"];
    let mut sidecars = Running::start(&names, &programs, folder.path(), &socket, kubeconfig);

    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), "default");
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let attachments: Api<VolumeAttachment> = Api::all(client.clone());
    make(
        &claims,
        json!({
            "metadata": {"name": CLAIM, "annotations": {"volume.kubernetes.io/storage-provisioner": DRIVER}},
            "spec": {
                "storageClassName": "sim", "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "2Gi"}}
            }
        }),
    )
    .await;
    let uid = claims.get(CLAIM).await.unwrap().uid().unwrap();
    let name = format!("pvc-{uid}");
    let volume = until(&mut sidecars, "the volume", || async { volumes.get(&name).await.ok() }).await;
    let spec = volume.spec.unwrap();
    let disk = spec.csi.unwrap().volume_handle;
    assert_eq!(cloud.disks()[0].id, disk);
    let affinity = serde_json::to_string(&spec.node_affinity).unwrap();
    assert!(affinity.contains(ZONE) && affinity.contains("sim-1a"), "{affinity}");

    // kube-controller-manager binds.
    merge(&claims, CLAIM, None, json!({"spec": {"volumeName": name}})).await;
    let bound = json!({"status": {
        "phase": "Bound", "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"]
    }});
    merge(&claims, CLAIM, Some("status"), bound).await;
    merge(&volumes, &name, Some("status"), json!({"status": {"phase": "Bound"}})).await;

    // A Pod lands on the Node: the attach-detach controller says so.
    make(
        &attachments,
        json!({
            "metadata": {"name": "csi-attachment"},
            "spec": {"attacher": DRIVER, "nodeName": NODE, "source": {"persistentVolumeName": name}}
        }),
    )
    .await;
    until(&mut sidecars, "the attachment", || async {
        let status = attachments.get("csi-attachment").await.ok()?.status?;
        status.attached.then_some(())
    })
    .await;
    assert_eq!(attached(&cloud), ["vm-1"]);

    // Killed; the next one takes the socket over, and the sidecars find it.
    replica.process.kill().unwrap();
    let replica = Replica::start("cloudwit", folder.path(), &cloud, &[]).await;
    replica.listens().await;
    merge(
        &claims,
        CLAIM,
        None,
        json!({"spec": {"resources": {"requests": {"storage": "5Gi"}}}}),
    )
    .await;
    until(&mut sidecars, "the growth", || async {
        let capacity = volumes.get(&name).await.ok()?.spec?.capacity?;
        (capacity.get("storage")?.0 == "5Gi").then_some(())
    })
    .await;
    assert_eq!(cloud.disks()[0].spec.size, 5 << 30);
    assert_eq!(cloud.disks_made(), 1);
    growth_without_permission_is_refused(&client).await;

    attachments
        .delete("csi-attachment", &DeleteParams::default())
        .await
        .unwrap();
    until(&mut sidecars, "the attachment is gone", || async {
        attachments
            .get_opt("csi-attachment")
            .await
            .ok()?
            .is_none()
            .then_some(())
    })
    .await;
    assert_eq!(attached(&cloud), [""; 0]);

    // The claim goes, and kube-controller-manager releases the volume.
    merge(&claims, CLAIM, None, json!({"metadata": {"finalizers": null}})).await;
    claims.delete(CLAIM, &DeleteParams::default()).await.unwrap();
    merge(
        &volumes,
        &name,
        Some("status"),
        json!({"status": {"phase": "Released"}}),
    )
    .await;
    until(&mut sidecars, "the disk is gone", || async {
        cloud.disks().is_empty().then_some(())
    })
    .await;
    merge_finalizers_away(&volumes, &name).await;
    clear_the_stage(&client).await;
}

/// The API server refuses the growth of a bound claim whose class does not allow it, and one that is not bound yet, before anybody else sees it.
async fn growth_without_permission_is_refused(client: &Client) {
    const FIXED: &str = "csi-fixed";
    let classes: Api<StorageClass> = Api::all(client.clone());
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), "default");
    make(
        &classes,
        json!({"metadata": {"name": FIXED}, "provisioner": "nobody.example.com"}),
    )
    .await;
    make(
        &claims,
        json!({
            "metadata": {"name": FIXED},
            "spec": {
                "storageClassName": FIXED, "accessModes": ["ReadWriteOnce"], "volumeName": FIXED,
                "resources": {"requests": {"storage": "2Gi"}}
            }
        }),
    )
    .await;
    let refused = async || {
        let growth = Patch::Merge(json!({"spec": {"resources": {"requests": {"storage": "5Gi"}}}}));
        let refused = claims.patch(FIXED, &PatchParams::default(), &growth).await;
        match refused.unwrap_err() {
            kube::Error::Api(status) => (status.code, status.message),
            other => panic!("{other}"),
        }
    };
    let (code, message) = refused().await;
    assert!(
        code == 422 && message.contains("immutable after creation except resources.requests"),
        "{code} {message}"
    );
    let bound = json!({"status": {
        "phase": "Bound", "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"]
    }});
    merge(&claims, FIXED, Some("status"), bound).await;
    let (code, message) = refused().await;
    assert!(
        code == 403 && message.contains("storageclass that provisions the pvc must support resize"),
        "{code} {message}"
    );
    merge(&claims, FIXED, None, json!({"metadata": {"finalizers": null}})).await;
    claims.delete(FIXED, &DeleteParams::default()).await.unwrap();
    classes.delete(FIXED, &DeleteParams::default()).await.unwrap();
}

/// The protection controller of kube-controller-manager would do it.
async fn merge_finalizers_away(volumes: &Api<PersistentVolume>, name: &str) {
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    match volumes.patch(name, &PatchParams::default(), &patch).await {
        Err(kube::Error::Api(refused)) if refused.code == 404 => {}
        patched => drop(patched.unwrap()),
    }
}

pub fn attached(cloud: &SimCloud) -> Vec<String> {
    let disks = cloud.disks();
    disks
        .iter()
        .flat_map(|disk| disk.attachments.iter().map(|attachment| attachment.machine.clone()))
        .collect()
}
