//! What machines of Compute Engine are told and given: location, SSH keys, and the clusters of Kubernetes Engine, by the built component on the stand-in.

use cloudwit_test_support::files::gce::gce_files;
use cloudwit_test_support::programs::cloud_command::{CloudAnswer, cloud_command};
use cloudwit_test_support::scenes::deployment::CloudFiles;
use serde_json::{Value, json};

use crate::scene::Scene;

async fn scene() -> (Scene, CloudFiles) {
    let mut scene = Scene::new().await;
    let url = scene.cloud.url();
    scene.config = format!("metadata-endpoint = {url}\n");
    let files = gce_files(&scene.cloud, &scene.config, &scene.deployment).await.unwrap();
    (scene, files)
}

async fn ask(scene: &Scene, files: &CloudFiles, words: &[&str], flags: &[&str]) -> CloudAnswer {
    let files = (files, scene.deployment.folder());
    cloud_command("gce", words, flags, files).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn machine_is_located_as_its_node_is_initialised() {
    let (scene, mut files) = scene().await;
    scene
        .does("add_machine", json!({"name": "node-1", "zone": "us-central1-b"}))
        .await;
    scene
        .does("be", json!({"name": "node-1", "zone": "us-central1-b"}))
        .await;
    // A machine has no key.
    files.settings = files.settings.split("  secrets:").next().unwrap().to_owned();
    let flags = ask(&scene, &files, &["location"], &["--hostname=node-1.c.demo.internal"])
        .await
        .success();
    assert_eq!(
        flags,
        "--hostname-override=node-1 --provider-id=gce://demo/us-central1-b/node-1 \
         --node-labels=topology.kubernetes.io/region=us-central1,topology.kubernetes.io/zone=us-central1-b\n"
    );
    let text = ask(&scene, &files, &["location"], &["-o=json"]).await.success();
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["instanceType"], "e2-standard-2");
    assert_eq!(json["addresses"][0]["type"], "InternalIP");
}

#[tokio::test(flavor = "multi_thread")]
async fn key_goes_into_the_projects_metadata_once() {
    let (scene, files) = scene().await;
    scene.does("operations_take", json!({"seconds": 1})).await;
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINxr/5LiAWoKRwMj0M43bnoPH+IPKu2qTpvUalMHBKTt";
    let file = scene.deployment.write("id.pub", key).unwrap();
    let file = format!("--keyfile={}", file.display());
    for expected in ["was given", "already"] {
        let said = ask(&scene, &files, &["ssh-key", "add"], &["--user=core", &file])
            .await
            .success();
        assert!(said.contains(expected), "{said}");
    }
    let metadata = scene.does("metadata", json!({})).await;
    assert_eq!(
        metadata["items"],
        json!([{"key": "ssh-keys", "value": format!("core:{key} core")}])
    );
    assert_eq!(scene.calls("projects.setCommonInstanceMetadata").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_of_kubernetes_engine_are_listed() {
    let (scene, files) = scene().await;
    for (name, location, endpoint) in [("prod", "us-central1", "203.0.113.7"), ("new", "us-central1-a", "")] {
        let cluster = json!({"name": name, "location": location, "endpoint": endpoint});
        scene.does("add_cluster", cluster).await;
    }
    let table = ask(&scene, &files, &["clusters"], &[]).await.success();
    assert_eq!(table, "NAME  CONTROL PLANE\nprod  203.0.113.7:443\nnew   -\n");
}
