//! What a user of volumes makes in the cluster, and what an administrator makes before.

use serde_json::{Value, json};
use xtask::kubernetes::node_parts::IMAGE;

use super::DRIVER;

/// The name of the class of volumes, and of that of snapshots.
pub const CLASS: &str = "sim";

/// The first word of the line that a Pod's log has for each look at its volume; the second is the file system's size in KiB.
pub const LOOK: &str = "volume";

/// The classes, and the driver unless it is there already. Volumes are made where their Pod lands, and may grow.
pub fn prepare(with_driver: bool) -> Value {
    let driver = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": { "name": DRIVER },
        "spec": { "attachRequired": true, "podInfoOnMount": false, "fsGroupPolicy": "File" },
    });
    let mut items = vec![
        json!({
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": { "name": CLASS },
            "provisioner": DRIVER,
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowVolumeExpansion": true,
            // The kernel lets root of a namespace grow it while it is mounted; ext4 asks for CAP_SYS_RESOURCE of the whole machine.
            "parameters": { "csi.storage.k8s.io/fstype": "xfs" },
        }),
        json!({
            "apiVersion": "snapshot.storage.k8s.io/v1",
            "kind": "VolumeSnapshotClass",
            "metadata": { "name": CLASS },
            "driver": DRIVER,
            "deletionPolicy": "Delete",
        }),
    ];
    items.extend(with_driver.then_some(driver));
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}

/// A claim of so many GiB, empty or with the content of a snapshot.
pub fn claim(name: &str, gib: u8, snapshot: Option<&str>) -> Value {
    let source =
        snapshot.map(|name| json!({ "apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": name }));
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": { "name": name },
        "spec": {
            "storageClassName": CLASS,
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": format!("{gib}Gi") } },
            "dataSource": source,
        },
    })
}

/// A snapshot of what a claim has.
pub fn snapshot(name: &str, claim: &str) -> Value {
    json!({
        "apiVersion": "snapshot.storage.k8s.io/v1",
        "kind": "VolumeSnapshot",
        "metadata": { "name": name },
        "spec": { "volumeSnapshotClassName": CLASS, "source": { "persistentVolumeClaimName": claim } },
    })
}

/// A Pod that writes a line with its own name to the claim's volume, prints all lines, and looks at the volume each second.
pub fn keeper(name: &str, machine: &str, claim: &str) -> Value {
    let script = format!(
        r#"echo "written by {name} on {machine}" >> /data/lines && sync && cat /data/lines
while true; do
  echo "{LOOK} $(df -k /data | tail -n 1 | awk '{{print $2}}')"
  sleep 1
done"#
    );
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name },
        "spec": {
            "nodeSelector": { "kubernetes.io/hostname": machine },
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": false,
            "containers": [{
                "name": "keeper",
                "image": IMAGE,
                "imagePullPolicy": "Never",
                "command": ["sh", "-c", script],
                "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
            }],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": claim } }],
        },
    })
}
