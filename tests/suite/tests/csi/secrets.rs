//! Secrets of a StorageClass from the socket to the cloud, with the real process: another passphrase, none, one that is not granted; and in nothing that
//! anybody can read.

use std::collections::HashMap;
use std::time::Duration;

use cloudwit_csi::proto::*;
use cloudwit_sim_cloud::DiskSettings;
use cloudwit_test_support::eventually;
use tonic::{Code, Status};

use crate::explained::{explain, status};
use crate::replica::{Replica, SOON, cloud, turn};
use crate::requests::wanted;
use crate::scene::Controller;
use crate::sidecar_requests::{delete, overdue, publish, unpublish, within};

const PASSPHRASE: &str = "canary-of-the-disk-77ab";
const ANOTHER: &str = "canary-another-one-77ab";

/// What must be nowhere: the passphrases, and their beginning in Base64.
const NEVER: [&str; 2] = ["canary", "Y2FuYXJ5"];

/// The entry for `grants.secrets` that the test adds; PORT is the cloud's.
const GRANT: &str = "{name: volume/passphrase, hosts: [\"127.0.0.1:PORT\"], uses: [placeholder]}";

fn search(place: &str, text: &str) {
    for never in NEVER {
        assert!(!text.contains(never), "{never} is in {place}: {text}");
    }
}

/// What is refused, with its message searched.
fn refused<T: std::fmt::Debug>(answer: Result<T, Status>, code: Code, says: &str) {
    let status = answer.unwrap_err();
    assert_eq!(status.code(), code, "{status:?}");
    assert!(status.message().contains(says), "{status:?}");
    search("a message", status.message());
}

fn secrets(passphrase: &str) -> HashMap<String, String> {
    [("passphrase".to_owned(), passphrase.to_owned())].into()
}

fn encrypted(name: &str, secrets: HashMap<String, String>) -> CreateVolumeRequest {
    CreateVolumeRequest {
        parameters: [("encrypted".to_owned(), "true".to_owned())].into(),
        secrets,
        ..wanted(name)
    }
}

async fn made(client: &mut Controller, name: &str) -> String {
    let answer = client.create_volume(encrypted(name, secrets(PASSPHRASE))).await;
    answer.unwrap().into_inner().volume.unwrap().volume_id
}

/// A process with this entry in its grants.
async fn replica(name: &str, folder: &std::path::Path, cloud: &cloudwit_sim_cloud::SimCloud, grant: &str) -> Replica {
    let sockets = folder.join("csi");
    let line = format!("    - {}\n", grant.replace("PORT", &cloud.address().port().to_string()));
    let line = if grant.is_empty() { "" } else { &line };
    let replica = Replica::start_granted(name, folder, &sockets, cloud, line, &["-v=10"]).await;
    replica.listens().await;
    replica
}

#[tokio::test(flavor = "multi_thread")]
async fn passphrase_of_a_class_reaches_the_cloud_and_nothing_else() {
    let _turn = turn().await;
    let cloud = cloud(1).await;
    let folder = tempfile::tempdir().unwrap();
    let replica = replica("secretive", folder.path(), &cloud, GRANT).await;
    let mut client = replica.client().await;

    let id = made(&mut client, "pvc-encrypted").await;
    assert_eq!(made(&mut client, "pvc-encrypted").await, id);
    assert!(cloud.disks()[0].spec.encrypted);
    let attach = |secrets| ControllerPublishVolumeRequest {
        secrets,
        ..publish(&id, "vm-1")
    };
    let wrong = client.controller_publish_volume(attach(secrets(ANOTHER))).await;
    refused(wrong, Code::PermissionDenied, "has another passphrase");
    let none = client.controller_publish_volume(attach(HashMap::new())).await;
    refused(none, Code::PermissionDenied, "no value for the key \"passphrase\"");
    client
        .controller_publish_volume(attach(secrets(PASSPHRASE)))
        .await
        .unwrap();
    client
        .controller_unpublish_volume(unpublish(&id, "vm-1"))
        .await
        .unwrap();
    let gone = |secrets| DeleteVolumeRequest { secrets, ..delete(&id) };
    refused(
        client.delete_volume(gone(secrets(ANOTHER))).await,
        Code::PermissionDenied,
        "has another passphrase",
    );
    let long = secrets(&PASSPHRASE.repeat(200));
    refused(
        client.delete_volume(gone(long)).await,
        Code::InvalidArgument,
        "the secret \"passphrase\" has 4600 bytes, at most 4096 are allowed",
    );
    let many = (0..17)
        .map(|number| (format!("key-{number}"), PASSPHRASE.to_owned()))
        .collect();
    refused(
        client.delete_volume(gone(many)).await,
        Code::InvalidArgument,
        "17 secrets, at most 16 are allowed",
    );

    // While an operation that has one is under way, and another has failed, everything that can be read is read.
    cloud.set_disk_settings(DiskSettings {
        build_time: Duration::from_secs(3600),
        ..DiskSettings::default()
    });
    let slow = encrypted("pvc-slow", secrets(PASSPHRASE));
    for wanted in [slow.clone(), encrypted("pvc-slow", secrets(ANOTHER))] {
        let late = overdue(|| {
            let (mut client, request) = (client.clone(), within(Duration::from_secs(1), wanted.clone()));
            async move { client.create_volume(request).await }
        })
        .await;
        refused::<()>(Err(late), Code::DeadlineExceeded, "still waiting");
    }
    for page in ["/", "/status.json", "/metrics", "/configz", "/healthz?verbose"] {
        let read = reqwest::get(format!("{}{page}", replica.url)).await.unwrap();
        search(page, &read.text().await.unwrap());
    }
    let facts = status(&replica).await.to_string();
    assert!(
        facts.contains("create volume pvc-slow") && facts.contains("another passphrase"),
        "{facts}"
    );
    let (_, said) = explain(&replica, &["pv", "pvc-encrypted"]).await;
    search("explain", &said);
    cloud.set_disk_settings(DiskSettings::default());
    cloud.finish_disks();
    assert!(client.create_volume(within(SOON, slow)).await.is_ok());

    client.delete_volume(gone(secrets(PASSPHRASE))).await.unwrap();
    let log = std::fs::read_to_string(replica.process.log()).unwrap();
    assert!(log.contains("another passphrase"), "{log}");
    search("the log", &log);
}

#[tokio::test(flavor = "multi_thread")]
async fn line_of_the_refusal_is_the_grant_that_was_missing() {
    let _turn = turn().await;
    let cloud = cloud(1).await;
    let folder = tempfile::tempdir().unwrap();
    let replica = replica("ungranted", folder.path(), &cloud, "").await;
    let mut client = replica.client().await;
    let new = || encrypted("pvc-ungranted", secrets(PASSPHRASE));
    let line = format!("- {}", GRANT.replace("PORT", &cloud.address().port().to_string()));
    let says = format!("secret \"volume/passphrase\" is not granted; to allow it, add to grants.secrets: {line}");
    refused(client.create_volume(new()).await, Code::PermissionDenied, &says);
    assert_eq!(cloud.disks_made(), 0);
    // The file of the settings is followed.
    let settings = folder.path().join("ungranted/settings.yaml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, format!("{text}    {line}\n")).unwrap();
    eventually(SOON, "the line is in force", || {
        let (mut client, request) = (client.clone(), new());
        async move { client.create_volume(request).await }
    })
    .await;
    let log = std::fs::read_to_string(replica.process.log()).unwrap();
    search("the log", &log);
}
