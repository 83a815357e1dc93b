//! Disks of the cloud as a provider sees them, over real HTTP: the statuses that it decides by.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use cloudwit_sim_cloud::{AttachmentState, DiskSettings, SimCloud, SimCloudOptions};
use reqwest::{Client, Method};
use serde_json::{Value, json};

const GIB: u64 = 1 << 30;

struct Test {
    cloud: SimCloud,
    client: Client,
}

impl Test {
    async fn start() -> Self {
        // Fails when another test was faster, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let cloud = SimCloud::start(SimCloudOptions::default()).await.unwrap();
        cloud.add_numbered_machines("node", 4);
        let client = Client::new();
        Self { cloud, client }
    }

    async fn send(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let request = self.client.request(method, self.cloud.url() + path);
        let request = request.bearer_auth(self.cloud.token());
        let request = request
            .header("content-type", "application/json")
            .body(body.to_string());
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (
            status,
            serde_json::from_str(&response.text().await.unwrap()).unwrap_or_default(),
        )
    }

    async fn create(&self, name: &str, size: u64) -> u16 {
        let spec = json!({"name": name, "cluster": "test", "size": size, "zone": "sim-1a", "type": "standard"});
        self.send(Method::POST, "/v1/disks", spec).await.0
    }

    /// The status of attaching a disk to a machine.
    async fn attach(&self, disk: &str, machine: &str) -> u64 {
        let body = json!({"attach": [{"disk": disk, "machine": machine}]});
        let (_, answer) = self.send(Method::POST, "/v1/disks/batch", body).await;
        answer["created"][0]["status"].as_u64().unwrap()
    }
}

#[tokio::test]
async fn sizes_names_and_quota_have_statuses_of_their_own() {
    let test = Test::start().await;
    test.cloud.set_disk_settings(DiskSettings {
        zone_quota: 4 * GIB,
        ..DiskSettings::default()
    });
    for (name, size, status) in [
        ("a", 3 * GIB, 201),
        ("a", GIB, 409),
        ("b", GIB + 1, 416),
        ("b", 0, 416),
        ("b", 2 * GIB, 507),
        ("b", GIB, 201),
    ] {
        assert_eq!(test.create(name, size).await, status, "{name} {size}");
    }
    let change = async |size: u64| {
        test.send(Method::PUT, "/v1/disks/disk-2", json!({ "size": size }))
            .await
            .0
    };
    assert_eq!(
        (change(GIB / 2).await, change(2 * GIB).await, change(GIB).await),
        (416, 507, 200)
    );
}

#[tokio::test]
async fn disk_goes_to_one_machine_of_its_zone() {
    let test = Test::start().await;
    test.cloud.set_disk_settings(DiskSettings {
        per_machine: 1,
        ..DiskSettings::default()
    });
    for name in ["a", "b"] {
        assert_eq!(test.create(name, GIB).await, 201);
    }
    // Machines 1 and 4 are in the zone of the disks.
    assert_eq!(test.attach("disk-1", "vm-2").await, 422);
    assert_eq!(test.attach("disk-1", "vm-9").await, 404);
    assert_eq!(test.attach("disk-9", "vm-1").await, 404);
    assert_eq!(test.attach("disk-1", "vm-1").await, 200);
    assert_eq!(test.attach("disk-1", "vm-1").await, 200);
    assert_eq!(test.attach("disk-1", "vm-4").await, 412);
    assert_eq!(test.attach("disk-2", "vm-1").await, 507);
    assert_eq!(test.send(Method::DELETE, "/v1/disks/disk-1", Value::Null).await.0, 412);
    test.cloud.delete_machines(["vm-1"]);
    assert_eq!(test.send(Method::DELETE, "/v1/disks/disk-1", Value::Null).await.0, 204);
}

#[tokio::test]
async fn attaching_and_detaching_take_their_time() {
    let test = Test::start().await;
    assert_eq!(test.create("a", GIB).await, 201);
    test.cloud.set_disk_settings(DiskSettings {
        attach_time: Duration::from_secs(3600),
        ..DiskSettings::default()
    });
    let state = || test.cloud.disks()[0].attachments.first().map(|one| one.state);
    assert_eq!(test.attach("disk-1", "vm-1").await, 202);
    assert_eq!(state(), Some(AttachmentState::Attaching));
    let body = json!({"detach": [{"disk": "disk-1", "machine": "vm-1"}]});
    let (_, answer) = test.send(Method::POST, "/v1/disks/batch", body).await;
    assert_eq!(answer["deleted"][0]["status"], 202);
    assert_eq!(state(), Some(AttachmentState::Detaching));
    assert_eq!(test.attach("disk-1", "vm-1").await, 412);
}
