//! Load balancers among several providers: where they are noted, how they move, and that a provider that hangs holds up its own alone.

use std::collections::BTreeMap;

use cloudwit_model::Failure;
use http::StatusCode;
use tokio::time::sleep;

use super::stage::{Stage, balancer};
use crate::assign::{BALANCER_PROVIDER, PROVIDER};
use crate::service::*;

fn annotated(name: &str, annotations: &[(&str, &str)]) -> Service {
    let mut service = balancer(name);
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    service.metadata.annotations = Some(annotations.iter().map(own).collect::<BTreeMap<_, _>>());
    service
}

/// Of provider `old`, and since then of `new`.
fn moving() -> Service {
    annotated("web", &[(BALANCER_PROVIDER, "old"), (PROVIDER, "new")])
}

fn several(services: Vec<Service>) -> Stage {
    Stage::several(services, false, &["old", "new"])
}

fn noted(stage: &Stage) -> Option<String> {
    let services = lock(&stage.api.services);
    services["web"]
        .metadata
        .annotations
        .as_ref()?
        .get(BALANCER_PROVIDER)
        .cloned()
}

/// The calls that change something, in their order.
fn changes(stage: &Stage) -> Vec<&'static str> {
    let calls = lock(&stage.cloud.calls);
    calls
        .iter()
        .map(|call| call.operation)
        .filter(|call| *call != "get")
        .collect()
}

#[tokio::test(start_paused = true)]
async fn provider_is_noted_before_first_creating_call() {
    let stage = several(vec![balancer("web")]);
    lock(&stage.api.refusals).push_back(StatusCode::INTERNAL_SERVER_ERROR);
    stage
        .until("the note was refused", |stage| lock(&stage.api.refusals).is_empty())
        .await;
    assert_eq!(changes(&stage), [""; 0]);
    stage.until("it is made", |stage| stage.count("ensure") == 1).await;
    assert_eq!(noted(&stage).as_deref(), Some("old"));
    assert_eq!(changes(&stage), ["ensure"]);
}

#[tokio::test(start_paused = true)]
async fn balancer_moves_by_delete_then_note_then_create() {
    let stage = several(vec![moving()]);
    stage.until("it is made", |stage| stage.count("ensure") == 1).await;
    assert_eq!(noted(&stage).as_deref(), Some("new"));
    sleep(Duration::from_secs(60)).await;
    assert_eq!(changes(&stage), ["delete", "ensure"]);
    assert!(
        !stage.has_record("web"),
        "the provider that had it knows nothing of it any more"
    );
    let told = stage.event("DeletingLoadBalancer").unwrap();
    assert!(told.contains("from provider old to new"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn failing_old_cloud_keeps_note_and_blocks_new_creation() {
    let stage = several(vec![moving()]);
    *lock(&stage.cloud.always) = Some(("delete", Failure::Unavailable("down".into())));
    stage
        .until("it was tried again", |stage| stage.count("delete") == 3)
        .await;
    assert_eq!(stage.count("ensure"), 0);
    assert_eq!(noted(&stage).as_deref(), Some("old"));
    let pauses = stage.cloud.pauses("delete");
    assert!(pauses[0] >= 5.0 && pauses[1] > pauses[0], "{pauses:?}");
    *lock(&stage.cloud.always) = None;
    stage.until("it is made", |stage| stage.count("ensure") == 1).await;
    assert_eq!(noted(&stage).as_deref(), Some("new"));
    assert_eq!(changes(&stage), ["delete", "delete", "delete", "delete", "ensure"]);
}

#[tokio::test(start_paused = true)]
async fn dry_run_reports_a_move_and_changes_neither_note_nor_cloud() {
    let stage = Stage::several(vec![moving()], true, &["old", "new"]);
    stage
        .until("the clouds were read", |stage| stage.count("get") >= 1)
        .await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(changes(&stage), [""; 0]);
    assert_eq!(*lock(&stage.api.patches), 0);
    assert_eq!(noted(&stage).as_deref(), Some("old"));
    let said = stage.controller.context.apply.dry_run_log();
    let note = "Service default/web patch note the load balancer's provider";
    assert!(said.has_logged(note));
}

#[tokio::test(start_paused = true)]
async fn unconfigured_provider_is_reported_without_any_call() {
    let stage = several(vec![annotated("web", &[(PROVIDER, "wast")])]);
    stage
        .until("it is told", |stage| stage.event("SyncLoadBalancerFailed").is_some())
        .await;
    let told = stage.event("SyncLoadBalancerFailed").unwrap();
    assert!(told.contains("there is no provider \"wast\""), "{told}");
    assert_eq!(lock(&stage.cloud.calls).len(), 0);
    assert_eq!(noted(&stage), None);
}

#[tokio::test(start_paused = true)]
async fn hung_provider_delays_only_its_own_services() {
    let of = |name: &str, provider: &str| annotated(name, &[(BALANCER_PROVIDER, provider), (PROVIDER, provider)]);
    // Each has one worker.
    let stage = several(Vec::new());
    stage.cloud.held.send_replace(Some(("ensure", "stuck")));
    stage.set_services(vec![of("stuck", "old")]);
    stage.until("it hangs", |stage| stage.count("ensure") == 1).await;
    let services = ["stuck", "next"].map(|name| of(name, "old"));
    let others = ["a", "b", "c"].map(|name| of(name, "new"));
    stage.set_services(services.into_iter().chain(others).collect());
    let ensured = |stage: &Stage| -> Vec<String> {
        let calls = stage.cloud.calls("ensure");
        calls.into_iter().map(|call| call.service).collect()
    };
    stage
        .until("the others are made", |stage| ensured(stage).len() == 4)
        .await;
    sleep(Duration::from_secs(60)).await;
    let mut made = ensured(&stage);
    made.sort();
    assert_eq!(made, ["a", "b", "c", "stuck"]);
    stage.cloud.held.send_replace(None);
    stage
        .until("the rest is made", |stage| stage.count("ensure") == 5)
        .await;
}
