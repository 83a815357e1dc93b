//! A dry run of the whole loop: it goes through every step and the cloud sees only reads.

use cloudwit_model::Failure;
use tokio::time::sleep;

use super::stage::{Stage, balancer, service};
use crate::service::state::BalancerState;
use crate::service::*;

const PERIOD: Duration = Duration::from_secs(300);

fn dry(services: Vec<Service>) -> Stage {
    Stage::dry(services, |options| options.drift_period = Some(PERIOD))
}

fn nothing_was_written(stage: &Stage) {
    for operation in ["ensure", "update", "delete"] {
        assert_eq!(stage.count(operation), 0, "{operation}");
    }
    assert_eq!(*lock(&stage.api.patches), 0);
    assert!(lock(&stage.api.events).is_empty());
}

#[tokio::test(start_paused = true)]
async fn existing_is_rechecked_and_nothing_written() {
    let stage = dry(vec![balancer("a"), balancer("b")]);
    stage.until("both were read", |stage| stage.count("get") >= 2).await;
    sleep(PERIOD * 5).await;
    let gets = stage.count("get");
    assert!((8..=16).contains(&gets), "looks for drift go on in a dry run: {gets}");
    nothing_was_written(&stage);
}

#[tokio::test(start_paused = true)]
async fn change_of_nodes_is_reported_for_what_exists() {
    let stage = dry(vec![balancer("a")]);
    stage.until("it was read", |stage| stage.count("get") == 1).await;
    stage.set_nodes(3);
    let has_all = |stage: &Stage| {
        stage.controller.records.change(
            "default/a",
            |record| matches!(record.state(), BalancerState::Ensured { last, .. } if last.targets.nodes.len() == 3),
        )
    };
    stage
        .until("its nodes are told", |stage| has_all(stage) == Some(true))
        .await;
    nothing_was_written(&stage);
}

#[tokio::test(start_paused = true)]
async fn missing_object_is_reported_once_until_it_changes() {
    let stage = dry(vec![balancer("a"), service("plain", "ClusterIP")]);
    *lock(&stage.cloud.shown) = Some(None);
    stage.until("it was read", |stage| stage.count("get") == 1).await;
    sleep(PERIOD * 5).await;
    assert_eq!(stage.count("get"), 1);
    nothing_was_written(&stage);
}

#[tokio::test(start_paused = true)]
async fn a_service_without_our_finalizer_is_gone_through_too() {
    let mut new = balancer("new");
    new.metadata.finalizers = None;
    let stage = dry(vec![new]);
    stage.until("the cloud was read", |stage| stage.count("get") == 1).await;
    nothing_was_written(&stage);
}

#[tokio::test(start_paused = true)]
async fn deletion_is_reported_up_to_the_last_write() {
    let mut dying = balancer("dying");
    dying.metadata.deletion_timestamp = serde_json::from_value(serde_json::json!("2026-01-01T00:00:00Z")).unwrap();
    let stage = dry(vec![dying]);
    stage.until("the cloud was read", |stage| stage.count("get") == 1).await;
    sleep(PERIOD).await;
    let said = stage.controller.context.apply.dry_run_log();
    assert!(said.is_news("balancer default/other", "delete"));
    assert!(
        !said.is_news("balancer default/dying", "delete"),
        "its deletion is told"
    );
    let released = "Service default/dying patch remove the load balancer finalizer";
    assert!(said.has_logged(released));
    nothing_was_written(&stage);
}

#[tokio::test(start_paused = true)]
async fn unreadable_cloud_is_retried_with_pauses() {
    let stage = dry(vec![balancer("a")]);
    *lock(&stage.cloud.always) = Some(("get", Failure::Unavailable("down".into())));
    stage
        .until("it was asked four times", |stage| stage.count("get") == 4)
        .await;
    let pauses = stage.cloud.pauses("get");
    assert!(pauses[0] >= 5.0 && pauses[1] >= 10.0 && pauses[2] >= 20.0, "{pauses:?}");
    nothing_was_written(&stage);
}
