//! The loop with a cloud in memory and a clock that the tests move. Rows of upstream's `controllers/service/controller_test.go`
//! that are about order, time and repetition.

use cloudwit_model::{AnnotationChange, Failure, RemainingWork};
use http::StatusCode;
use serde_json::json;
use tokio::time::sleep;

use super::stage::{Stage, balancer, service};
use crate::service::*;

fn other() -> Failure {
    Failure::Other("no luck".into())
}

#[track_caller]
fn assert_paces(pauses: &[f64], expected: &[f64]) {
    assert_eq!(pauses.len(), expected.len(), "{pauses:?}");
    for (pause, expected) in pauses.iter().zip(expected) {
        assert!(
            (*expected..expected * 1.11 + 0.01).contains(pause),
            "{pauses:?} are not {expected:?}, up to a tenth more"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn ensure_backoff_doubles_from_5_to_300_seconds() {
    let stage = Stage::new(vec![balancer("web")], 1, 1, true);
    *lock(&stage.cloud.always) = Some(("ensure", other()));
    for count in [1, 3, 6, 8, 9] {
        stage
            .until("it was tried again", |stage| stage.count("ensure") >= count)
            .await;
    }
    assert_paces(
        &stage.cloud.pauses("ensure"),
        &[5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0],
    );
    let message = "Error syncing load balancer: failed to ensure load balancer: no luck";
    assert_eq!(stage.event("SyncLoadBalancerFailed").as_deref(), Some(message));
}

/// Upstream makes three tries in twenty seconds.
#[tokio::test(start_paused = true)]
async fn a_conflict_that_stays_is_four_tries_in_twenty_seconds() {
    for operation in ["ensure", "delete"] {
        let mut web = balancer("web");
        if operation == "delete" {
            web.metadata.deletion_timestamp = serde_json::from_value(json!("2020-01-01T00:00:00Z")).unwrap();
        }
        let stage = Stage::new(vec![web], 1, 1, true);
        *lock(&stage.cloud.always) = Some((operation, Failure::Conflict("it is being changed".into())));
        sleep(Duration::from_secs(20)).await;
        assert_eq!(
            stage.count(operation),
            4,
            "{operation}: {:?}",
            stage.cloud.pauses(operation)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn continuing_balancer_is_published_and_ensured_at_the_end() {
    let stage = Stage::new(vec![balancer("web")], 1, 1, true);
    let remaining = |token: &str, message: &str| RemainingWork {
        after: Duration::from_secs(42),
        token: token.into(),
        message: message.into(),
    };
    lock(&stage.cloud.remaining).extend([remaining("1", "targets are added"), remaining("2", "targets are added")]);
    let address = |stage: &Stage| {
        let services = lock(&stage.api.services);
        crate::kube::service::ingress(&services["web"])
            .first()
            .and_then(|point| point.ip.clone())
    };
    stage
        .until("it has its address", |stage| address(stage).is_some())
        .await;
    assert_eq!(stage.count("ensure"), 1);
    assert_eq!(stage.event("EnsuredLoadBalancer"), None);
    stage
        .until("it is ensured", |stage| stage.event("EnsuredLoadBalancer").is_some())
        .await;
    let tokens = lock(&stage.cloud.ensure_tokens).clone();
    assert_eq!(tokens, [None, Some("1".into()), Some("2".into())]);
    assert_eq!(
        stage
            .cloud
            .pauses("ensure")
            .iter()
            .map(|pause| pause.round())
            .collect::<Vec<_>>(),
        [42.0, 42.0]
    );
    assert_eq!(*lock(&stage.api.patches), 1, "the same address is written once");
    assert_eq!(stage.event("SyncLoadBalancerFailed"), None);
    let waiting = lock(&stage.api.events)
        .iter()
        .filter(|(_, message)| message == "Waiting: targets are added")
        .count();
    assert_eq!(waiting, 1, "told once");
}

/// Writing an annotation that the provider gave is no change that drops its token.
#[tokio::test(start_paused = true)]
async fn annotation_of_continuing_balancer_keeps_its_token() {
    let stage = Stage::new(vec![balancer("web")], 1, 1, true);
    *lock(&stage.cloud.annotations) = vec![AnnotationChange {
        key: "example.com/id".into(),
        value: Some("lb-1".into()),
    }];
    lock(&stage.cloud.remaining).push_back(RemainingWork {
        after: Duration::from_secs(5),
        token: "1".into(),
        message: "targets are added".into(),
    });
    stage
        .until("it is ensured", |stage| stage.event("EnsuredLoadBalancer").is_some())
        .await;
    assert_eq!(*lock(&stage.cloud.ensure_tokens), [None, Some("1".into())]);
}

#[tokio::test(start_paused = true)]
async fn pending_returns_after_its_delay_and_success_does_not() {
    let stage = Stage::new(vec![balancer("web")], 1, 1, true);
    let pending = || Failure::Pending {
        after: Duration::from_secs(42),
        token: "t".into(),
        message: "building".into(),
    };
    lock(&stage.cloud.failures).extend([("ensure", pending()), ("ensure", pending())]);
    stage
        .until("it is ready", |stage| stage.event("EnsuredLoadBalancer").is_some())
        .await;
    assert_eq!(
        stage
            .cloud
            .pauses("ensure")
            .iter()
            .map(|pause| pause.round())
            .collect::<Vec<_>>(),
        [42.0, 42.0]
    );
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(stage.count("ensure"), 3, "success needs no further call");
}

#[tokio::test(start_paused = true)]
async fn what_was_denied_is_tried_at_once_with_a_new_token() {
    let stage = Stage::new(vec![balancer("web")], 1, 1, true);
    *lock(&stage.cloud.always) = Some(("ensure", Failure::Denied("the token is not valid".into())));
    stage
        .until("it was denied twice", |stage| stage.count("ensure") == 2)
        .await;
    *lock(&stage.cloud.always) = None;
    *lock(&stage.cloud.digest) = "with the new token";
    let swapped = tokio::time::Instant::now();
    stage.until("it succeeds", |stage| stage.count("ensure") == 3).await;
    assert!(swapped.elapsed() < Duration::from_secs(2), "{:?}", swapped.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_failing_delete_is_tried_again_every_30_seconds_at_least() {
    for failure in [other(), Failure::Denied("no rights".into())] {
        let mut dying = balancer("web");
        dying.metadata.deletion_timestamp = serde_json::from_value(json!("2020-01-01T00:00:00Z")).unwrap();
        let stage = Stage::new(vec![dying], 1, 1, true);
        *lock(&stage.cloud.always) = Some(("delete", failure.clone()));
        stage
            .until("it was tried again", |stage| stage.count("delete") == 6)
            .await;
        let pauses = stage.cloud.pauses("delete");
        match failure {
            Failure::Denied(_) => assert_paces(&pauses, &[30.0; 5]),
            _ => assert_paces(&pauses, &[5.0, 10.0, 20.0, 30.0, 30.0]),
        }
        let message = stage.event("SyncLoadBalancerFailed").unwrap();
        assert!(
            message.starts_with("Error syncing load balancer: failed to delete load balancer: "),
            "{message}"
        );
        *lock(&stage.cloud.always) = None;
        stage.until_finalizer_is_off("web").await;
    }
}

/// Weak spot S12: upstream tells of a deletion although nothing was there.
#[tokio::test(start_paused = true)]
async fn deletion_event_needs_a_balancer_but_call_is_always_made() {
    for (exists, events) in [(false, None), (true, Some("Deleted load balancer"))] {
        let mut dying = balancer("web");
        dying.metadata.deletion_timestamp = serde_json::from_value(json!("2020-01-01T00:00:00Z")).unwrap();
        let stage = Stage::new(Vec::new(), 1, 1, true);
        *lock(&stage.cloud.shown) = Some(exists.then(cloudwit_model::Balancer::default));
        stage.set_services(vec![dying]);
        stage.until_finalizer_is_off("web").await;
        sleep(Duration::from_secs(1)).await;
        assert_eq!((stage.count("get"), stage.count("delete")), (1, 1));
        assert_eq!(stage.event("DeletedLoadBalancer").as_deref(), events);
        assert_eq!(stage.event("DeletingLoadBalancer").is_some(), exists);
    }
}

#[tokio::test(start_paused = true)]
async fn vanished_service_is_deleted_until_success_then_dropped() {
    let stage = Stage::new(vec![balancer("web")], 1, 1, true);
    stage
        .until("it is ready", |stage| stage.event("EnsuredLoadBalancer").is_some())
        .await;
    lock(&stage.cloud.failures).push_back(("delete", other()));
    stage.set_services(Vec::new());
    stage.until("it is forgotten", |stage| !stage.has_record("web")).await;
    assert_eq!(stage.count("delete"), 2);
    assert_eq!(
        stage.event("DeleteLoadBalancerFailed").as_deref(),
        Some("Error deleting load balancer: no luck")
    );
    stage.controller.queue.add("default/unknown");
    stage.controller.queue.add("what/is/this");
    sleep(Duration::from_secs(600)).await;
    assert_eq!(stage.count("delete"), 2, "keys of unknown Services need nothing");
}

#[tokio::test(start_paused = true)]
async fn not_found_on_delete_counts_only_if_nothing_exists() {
    let stage = Stage::new(vec![balancer("web")], 1, 1, true);
    stage
        .until("it is ready", |stage| stage.event("EnsuredLoadBalancer").is_some())
        .await;
    *lock(&stage.cloud.always) = Some(("delete", Failure::NotFound("no such subnet".into())));
    stage.set_services(Vec::new());
    stage
        .until("it was tried again", |stage| stage.count("delete") == 3)
        .await;
    assert_eq!(stage.count("get"), 3, "the load balancer exists, so it is not done");
    assert!(stage.has_record("web"));
}

#[tokio::test(start_paused = true)]
async fn unwritable_status_is_reported_and_written_without_ensure() {
    for status in [
        StatusCode::CONFLICT,
        StatusCode::INTERNAL_SERVER_ERROR,
        StatusCode::UNPROCESSABLE_ENTITY,
    ] {
        let stage = Stage::new(vec![balancer("web")], 1, 1, true);
        lock(&stage.api.refusals).push_back(status);
        stage
            .until("the address is written", |stage| {
                lock(&stage.api.services)["web"].status.is_some()
            })
            .await;
        assert_eq!((stage.count("ensure"), *lock(&stage.api.patches)), (1, 2), "{status}");
        let message = stage.event("SyncLoadBalancerFailed").unwrap();
        assert!(
            message.starts_with("Error syncing load balancer: failed to update load balancer status: "),
            "{message}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn service_not_found_on_status_write_is_no_failure() {
    let stage = Stage::new(vec![balancer("web")], 1, 1, true);
    lock(&stage.api.refusals).push_back(StatusCode::NOT_FOUND);
    stage
        .until("the write was tried", |stage| *lock(&stage.api.patches) == 1)
        .await;
    sleep(Duration::from_secs(600)).await;
    assert_eq!((stage.count("ensure"), *lock(&stage.api.patches)), (1, 1));
    assert_eq!(stage.event("SyncLoadBalancerFailed"), None);
}

#[tokio::test(start_paused = true)]
async fn finalizer_is_written_before_first_call_or_no_call() {
    let mut bare = balancer("web");
    bare.metadata.finalizers = None;
    let stage = Stage::new(vec![bare], 1, 1, true);
    lock(&stage.api.refusals).push_back(StatusCode::FORBIDDEN);
    stage
        .until("the Event tells", |stage| {
            stage.event("SyncLoadBalancerFailed").is_some()
        })
        .await;
    assert_eq!(stage.count("ensure"), 0);
    let message = stage.event("SyncLoadBalancerFailed").unwrap();
    assert!(
        message.starts_with("Error syncing load balancer: failed to add load balancer cleanup finalizer: "),
        "{message}"
    );
    stage
        .until("it is ready", |stage| stage.event("EnsuredLoadBalancer").is_some())
        .await;
}

#[tokio::test(start_paused = true)]
async fn success_without_an_address_is_a_failure() {
    let stage = Stage::new(vec![balancer("web")], 1, 1, true);
    lock(&stage.cloud.ingress).clear();
    stage
        .until("the Event tells", |stage| {
            stage.event("SyncLoadBalancerFailed").is_some()
        })
        .await;
    assert_eq!(*lock(&stage.api.patches), 0, "an address that is there is not cleared");
}

#[tokio::test(start_paused = true)]
async fn process_without_leadership_makes_no_call() {
    let stage = Stage::new(vec![balancer("web")], 1, 1, false);
    sleep(Duration::from_secs(600)).await;
    assert_eq!(*lock(&stage.cloud.calls), []);
    assert_eq!(*lock(&stage.api.patches), 0);
}

#[tokio::test(start_paused = true)]
async fn node_change_costs_one_call_per_balancer_and_none_elsewhere() {
    for (kinds, workers, expected) in [
        (&[][..], 1, 0),
        (&["ClusterIP", "NodePort"], 1, 0),
        (&["LoadBalancer"], 1, 1),
        (&["LoadBalancer", "LoadBalancer", "LoadBalancer"], 1, 3),
        (&["ClusterIP", "LoadBalancer", "NodePort", "LoadBalancer"], 1, 2),
        (&["LoadBalancer", "LoadBalancer", "LoadBalancer", "LoadBalancer"], 2, 4),
    ] {
        let services = kinds
            .iter()
            .enumerate()
            .map(|(index, kind)| service(&format!("s{index}"), kind))
            .collect();
        let stage = Stage::new(services, 1, workers, true);
        stage
            .until("all are ready", |stage| stage.count("ensure") == expected)
            .await;
        stage.set_nodes(3);
        sleep(Duration::from_secs(10)).await;
        let updates = stage.cloud.calls("update");
        assert_eq!(updates.len(), expected, "{kinds:?}");
        assert!(updates.iter().all(|call| call.targets == 3), "each call gets all nodes");
        stage.set_nodes(3);
        sleep(Duration::from_secs(10)).await;
        assert_eq!(stage.count("update"), expected, "the same nodes again cost nothing");
        assert_eq!(stage.count("ensure"), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_that_come_one_after_the_other_share_a_call() {
    let stage = Stage::new((0..4).map(|index| balancer(&format!("s{index}"))).collect(), 1, 1, true);
    stage.until("all are ready", |stage| stage.count("ensure") == 4).await;
    for count in 2..10 {
        stage.set_nodes(count);
        sleep(Duration::from_millis(50)).await;
    }
    sleep(Duration::from_secs(10)).await;
    let given: Vec<usize> = stage.cloud.calls("update").iter().map(|call| call.targets).collect();
    assert_eq!(
        given,
        [2, 2, 2, 2, 9, 9, 9, 9],
        "the first node at once, all others together"
    );
    stage.set_nodes(0);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(stage.count("update"), 12);
    let message = "There are no available nodes for LoadBalancer";
    assert_eq!(stage.event("UnAvailableLoadBalancer").as_deref(), Some(message));
}

/// Weak spot S6: upstream forgets the pause while it deletes and while it changes nodes.
#[tokio::test(start_paused = true)]
async fn cloud_requested_pause_holds_to_the_second_in_all_calls() {
    let (after, message) = (Duration::from_secs(42), "later".to_owned());
    let limited = Failure::RateLimited {
        after: Some(after),
        message: message.clone().into(),
    };
    let token = "t".to_owned();
    for failure in [limited, Failure::Pending { after, token, message }] {
        let stage = Stage::new(vec![balancer("web")], 1, 1, true);
        for operation in ["ensure", "update", "delete"] {
            lock(&stage.cloud.failures).push_back((operation, failure.clone()));
        }
        stage.until("it is ready", |stage| stage.count("ensure") == 2).await;
        stage.set_nodes(2);
        stage
            .until("it has its nodes", |stage| stage.count("update") == 2)
            .await;
        stage.set_services(Vec::new());
        stage.until("it is gone", |stage| stage.count("delete") == 2).await;
        for operation in ["ensure", "update", "delete"] {
            assert_eq!(stage.cloud.pauses(operation), [42.0], "{operation}: {failure}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn failed_node_update_keeps_its_backoff_on_more_nodes() {
    let stage = Stage::new(vec![balancer("web")], 1, 1, true);
    stage.until("it is ready", |stage| stage.count("ensure") == 1).await;
    lock(&stage.cloud.failures).push_back(("update", other()));
    stage.set_nodes(2);
    stage
        .until("the update has failed", |stage| stage.count("update") == 1)
        .await;
    stage.set_nodes(3);
    stage
        .until("it is tried again", |stage| stage.count("update") == 2)
        .await;
    assert_paces(&stage.cloud.pauses("update"), &[5.0]);
    assert_eq!(stage.cloud.calls("update")[1].targets, 3, "with the nodes of then");
    let message = stage.event("UpdateLoadBalancerFailed").unwrap();
    let expected = "Error updating load balancer with new hosts [n0 n1] [node names limited, total number of nodes: 2], error: no luck";
    assert_eq!(message, expected);
}

/// While an update of A is under way a third node appears and B is ensured with it: B must not get the older nodes afterwards.
#[tokio::test(start_paused = true)]
async fn a_slow_update_does_not_push_old_nodes_to_others() {
    let (a, mut b) = (balancer("a"), balancer("b"));
    let stage = Stage::new(vec![a.clone(), b.clone()], 1, 1, true);
    stage.until("both are ready", |stage| stage.count("ensure") == 2).await;
    stage.cloud.held.send_replace(Some(("update", "a")));
    stage.set_nodes(2);
    stage
        .until("the update of A has begun", |stage| {
            stage.cloud.calls("update").iter().any(|call| call.service == "a")
        })
        .await;
    stage.set_nodes(3);
    b.metadata.annotations = Some([("size".into(), "big".into())].into());
    b.metadata.resource_version = Some("50".into());
    stage.set_services(vec![a, b]);
    sleep(Duration::from_secs(5)).await;
    stage.cloud.held.send_replace(None);
    sleep(Duration::from_secs(60)).await;
    let about = |name: &str| -> Vec<(&str, usize)> {
        let calls = lock(&stage.cloud.calls);
        calls
            .iter()
            .filter(|call| call.service == name)
            .map(|call| (call.operation, call.targets))
            .collect()
    };
    let b = about("b");
    assert_eq!(b.last().unwrap().1, 3, "{b:?}");
    assert!(
        b.is_sorted_by_key(|(_, targets)| *targets),
        "never fewer nodes than before: {b:?}"
    );
    assert_eq!(about("a").last(), Some(&("update", 3)));
}

#[test]
fn a_delete_is_never_put_off_for_long() {
    let half_a_minute = Retry::After(Duration::from_secs(30));
    for (retry, failures, expected) in [
        (Retry::Backoff, 0, Retry::Backoff),
        (Retry::Backoff, 2, Retry::Backoff),
        (Retry::Backoff, 3, half_a_minute),
        (Retry::Slowly, 0, half_a_minute),
        (Retry::Soon, 2, Retry::Soon),
        (Retry::Soon, 9, Retry::After(CLEANUP_PAUSE)),
        (
            Retry::After(Duration::from_secs(600)),
            9,
            Retry::After(Duration::from_secs(600)),
        ),
    ] {
        assert_eq!(cleanup_pace(retry, failures, None), expected);
    }
}
