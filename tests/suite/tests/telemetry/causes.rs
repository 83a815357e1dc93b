//! What hurt users elsewhere: a failure that says "unreachable" and nothing else. Here the cause is in the log and on the object, with the
//! provider's own last words, and each replica says whether it works at all.

use crate::stage::{Ready, Stage};

/// The Event that says why a Node waits.
async fn reason(stage: &Stage, node: &str) -> String {
    let event = "InitializationFailed";
    stage
        .until("an Event says why", || async {
            !stage.events(node, event).await.is_empty()
        })
        .await;
    stage.events(node, event).await.remove(0)
}

#[tokio::test]
async fn wasmtime_4054_trap_names_panic_provider_and_version() {
    let stage = Ready::guest("panics").await.start(&[]);
    stage.joins("trigger").await;
    let why = reason(&stage, "trigger").await;
    let line = stage
        .log()
        .lines()
        .find(|line| line.contains("crashed"))
        .unwrap()
        .to_owned();
    for told in [&why, &line] {
        for part in [
            "no idea what to do with \"trigger\"",
            "it panicked or aborted",
            "panics 0.1.0",
        ] {
            assert!(told.contains(part), "{part} is missing in {told}");
        }
    }
    assert!(
        line.contains("provider_call{provider=\"sim\"") && line.contains("instances.lookup"),
        "{line}"
    );
}

#[tokio::test]
async fn componentize_go_53_last_guest_output_is_reported() {
    let stage = Ready::guest("exits").await.start(&[]);
    stage.joins("trigger").await;
    let why = reason(&stage, "trigger").await;
    assert!(why.contains("its last output: cannot go on"), "{why}");
    let line = stage
        .log()
        .lines()
        .find(|line| line.contains("crashed"))
        .unwrap()
        .to_owned();
    assert!(line.contains("cannot go on"), "{line}");
}

#[tokio::test]
async fn openstack_540_the_log_names_the_cause_and_the_node() {
    let stage = Ready::sim().await.start(&[]);
    stage.site.cloud.set_faults([cloudwit_sim_cloud::Fault::status(403)]);
    stage.joins("trigger").await;
    let why = reason(&stage, "trigger").await;
    assert!(why.contains("403"), "{why}");
    let line = |part: &str| {
        stage
            .log()
            .lines()
            .any(|line| line.contains(part) && line.contains("403") && line.contains("trigger"))
    };
    stage
        .until("the log says so too", || async { line("still not initialised") })
        .await;
}

#[tokio::test]
async fn vsphere_482_replica_shows_leadership_in_log_and_readyz() {
    let flags = ["--leader-elect=true", "--leader-elect-retry-period=500ms"];
    let first = Ready::sim().await.start(&flags);
    let leads = async || {
        first
            .page("/readyz?verbose")
            .await
            .contains("[+]leaderElection ok: this replica leads\n")
    };
    first.until("the first one leads", &leads).await;
    first
        .until("its log says so", || async { first.log().contains("became leader") })
        .await;
    let second = first.replica(&flags);
    let waits = "[+]leaderElection ok: another replica leads, or none yet\n";
    first
        .until("the second one waits", || async {
            second.page("/readyz?verbose").await.contains(waits) && second.log().contains("another replica leads")
        })
        .await;
    let identity = first
        .log()
        .split("identity=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned();
    assert!(
        second.log().contains(&format!("holder=\"{identity}\"")),
        "{}",
        second.log()
    );
    assert!(leads().await);
}
