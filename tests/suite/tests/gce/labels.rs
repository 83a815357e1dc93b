//! Labels of disks that PersistentVolumes name themselves, asked of the built component on the stand-in.

use std::path::Path;
use std::process::Command;

use cloudwit_test_support::files::gce::gce_files;
use cloudwit_test_support::programs;
use cloudwit_test_support::programs::guests;
use serde_json::{Value, json};

use crate::scene::Scene;

/// The answer of `volume-labels.get` about these disks.
async fn labels(folder: &Path, ids: &[&str]) -> Value {
    let mut call = Command::new(programs::cloudwit());
    call.args(["provider", "call"])
        .arg(guests::provider("gce"))
        .args(["volume-labels.get", "--source=gcePersistentDisk", "-o=json"])
        .arg(format!("--cloud-config={}", folder.join("call-config").display()))
        .arg(format!("--settings={}", folder.join("call-settings.yaml").display()))
        .args(ids.iter().map(|id| format!("--id={id}")));
    let output = tokio::task::spawn_blocking(move || call.output().unwrap())
        .await
        .unwrap();
    let (text, wrong) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{wrong}"));
    report["calls"][0]["answer"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn disks_have_zone_labels_and_missing_ones_have_none() {
    let scene = Scene::new().await;
    let files = gce_files(&scene.cloud, &scene.config, &scene.deployment).await.unwrap();
    scene.deployment.write("call-config", &files.config).unwrap();
    scene.deployment.write("call-settings.yaml", &files.settings).unwrap();
    let zones = ["us-central1-a", "us-central1-b"]
        .map(|zone| format!("https://www.googleapis.com/compute/v1/projects/demo/zones/{zone}"));
    for (path, fields) in [
        (
            "projects/demo/zones/us-central1-a/disks/data",
            json!({"zone": zones[0]}),
        ),
        (
            "projects/demo/regions/us-central1/disks/both",
            json!({"region": "https://www.googleapis.com/compute/v1/projects/demo/regions/us-central1", "replicaZones": zones}),
        ),
    ] {
        scene.does("put", json!({"path": path, "fields": fields})).await;
    }
    let answers = labels(scene.deployment.folder(), &["data", "both", "gone"]).await;
    let answer =
        |zone: &str| json!({"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": "us-central1"});
    assert_eq!(answers[0], answer("us-central1-a"), "{answers}");
    assert_eq!(answers[1], answer("us-central1-a__us-central1-b"), "{answers}");
    assert!(answers[2].to_string().contains("there is no disk gone"), "{answers}");
}
