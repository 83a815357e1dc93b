//! `--ssh-user` and `--ssh-keyfile` on a real API server: the key reaches the machines, whatever fails and whoever dies; never in a dry run.

use std::time::Duration;

use cloudwit_sim_cloud::{Fault, FaultKind, Operation};
use cloudwit_test_support::eventually;
use cloudwit_test_support::scenes::site::Site;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;

use crate::KEY;

const SOON: Duration = Duration::from_secs(300);

/// A cluster, and the flags for the key in its folder.
async fn site() -> (Site, Vec<String>) {
    let site = Site::new().await.unwrap();
    let file = site.folder.path().join("id");
    std::fs::write(site.folder.path().join("id.pub"), format!("{KEY} ann@example.com\n")).unwrap();
    let flags = vec![
        "--ssh-user=core".to_owned(),
        format!("--ssh-keyfile={}", file.display()),
    ];
    (site, flags)
}

async fn reasons(site: &Site) -> Vec<String> {
    let events = Api::<Event>::namespaced(site.client.clone(), "kube-system");
    let events = events.list(&ListParams::default()).await.unwrap();
    events.into_iter().filter_map(|event| event.reason).collect()
}

async fn has_key(site: &Site) {
    eventually(SOON, "the machines have the key", || async {
        let keys = site.cloud.ssh_keys();
        keys.len() == 1 && keys[0].user == "core" && keys[0].public_key == KEY
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn key_reaches_the_machines_although_the_cloud_fails_first() {
    let (site, flags) = site().await;
    site.cloud.set_faults([Fault {
        operation: Some(Operation::ListSshKeys),
        fault: FaultKind::Status {
            status: 500,
            retry_after: None,
        },
        rate: 1.0,
        next: Some(1),
    }]);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let (process, _) = site.start(&flags).unwrap();
    has_key(&site).await;
    eventually(SOON, "both Events are written", || async {
        let reasons = reasons(&site).await;
        ["SSHKeySyncFailed", "SSHKeySynced"]
            .iter()
            .all(|reason| reasons.iter().any(|one| one == reason))
    })
    .await;
    eventually(SOON, "the log says so", || async {
        let log = std::fs::read_to_string(process.log()).unwrap_or_default();
        if log.contains("SSH key was given to all machines") {
            Ok(())
        } else {
            Err(log)
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn next_leader_gives_the_key_again_and_a_standby_none() {
    let (site, flags) = site().await;
    let elect = [
        "--leader-elect=true",
        // The first one leads until it is killed, however slow the API server is.
        "--leader-elect-lease-duration=20s",
        "--leader-elect-renew-deadline=15s",
        "--leader-elect-retry-period=500ms",
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).chain(elect).collect();
    let (first, _) = site.start(&flags).unwrap();
    has_key(&site).await;
    let (second, _) = site.start(&flags).unwrap();
    let log = |child: &cloudwit_test_support::programs::child::Child| {
        std::fs::read_to_string(child.log()).unwrap_or_default()
    };
    eventually(SOON, "the second one has loaded its provider", || async {
        log(&second).contains("waiting to acquire lease")
    })
    .await;
    // Somebody takes the key away; the one that leads looks again in five minutes, the one that waits must not.
    site.cloud.remove_ssh_keys();
    first.kill().unwrap();
    has_key(&site).await;
    eventually(SOON, "it says so", || async {
        log(&second).contains("SSH key was given to all machines")
    })
    .await;
    let adds = site.cloud.counters().operations[&Operation::AddSshKey].requests;
    assert_eq!(adds, 2, "once by each leader");
}

#[tokio::test(flavor = "multi_thread")]
async fn dry_run_gives_no_key_and_says_so() {
    let (site, flags) = site().await;
    let flags: Vec<&str> = flags.iter().map(String::as_str).chain(["--dry-run"]).collect();
    let (process, _) = site.start(&flags).unwrap();
    eventually(SOON, "the plan is told", || async {
        let log = std::fs::read_to_string(process.log()).unwrap_or_default();
        log.contains("dry run: this SSH key would be given to all machines that do not have it")
    })
    .await;
    assert!(site.cloud.ssh_keys().is_empty());
    assert!(!site.cloud.counters().operations.contains_key(&Operation::AddSshKey));
}
