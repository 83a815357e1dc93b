//! Every request that writes fails once, without effect (the cloud is down) and after its effect (the answer is lost): what the next call finds is
//! brought to the end, and deleting it leaves nothing. A process that is killed between two requests leaves the same behind.

use axum::http::StatusCode;
use cloudwit_model::{Failure, Service};
use cloudwit_test_support::gate::fault::Fault;

use crate::stand::{KINDS, Stand, annotate, port, service};

/// A Service that needs every kind of request.
fn demanding(name: &str, kind: &str) -> Service {
    let mut service = service(name, kind);
    service.ports.push(port(443, 30443));
    annotate(&mut service, "proxy-protocol", "*");
    annotate(&mut service, "cross-zone-load-balancing-enabled", "true");
    if kind == "nlb" {
        annotate(
            &mut service,
            "target-group-attributes",
            "proxy_protocol_v2.enabled=true",
        );
    }
    service
}

fn faults() -> [(&'static str, Fault); 2] {
    [
        ("before", Fault::status(StatusCode::SERVICE_UNAVAILABLE)),
        ("after", Fault::broken(0)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_classic_creation_is_completed_without_duplicates() {
    failing_creations("classic").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_network_creation_is_completed_without_duplicates() {
    failing_creations("nlb").await;
}

async fn failing_creations(kind: &str) {
    let stand = Stand::new(&format!("crash-{kind}")).await;
    let first = demanding(&format!("crash-{kind}"), kind);
    let (made, writes) = stand.writes(stand.ensure(&first)).await;
    made.unwrap();
    stand.delete(&first).await.unwrap();
    let mut actions = writes;
    actions.sort();
    actions.dedup();
    assert!(actions.len() >= 6, "{actions:?}");
    for (number, action) in actions.iter().enumerate() {
        for (when, fault) in faults() {
            let service = demanding(&format!("crash-{kind}-{number}-{when}"), kind);
            let fault = stand.fail(action, fault.times(1));
            let failed = stand.ensure(&service).await;
            assert!(
                matches!(failed, Err(Failure::Unavailable(_))),
                "{action} {when}: {failed:?}"
            );
            assert_eq!(fault.met(), 1);
            stand.gate.open();
            let ensured = stand.ensure(&service).await;
            assert!(ensured.is_ok(), "{action} {when}: {ensured:?}");
            let (_, writes) = stand.writes(stand.ensure(&service)).await;
            assert_eq!(writes, Vec::<String>::new(), "{action} {when}");
            stand.delete(&service).await.unwrap();
            stand.nothing_left(&[&service]).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_deletion_is_completed_by_next_call() {
    for kind in KINDS {
        let stand = Stand::new(&format!("undo-{kind}")).await;
        let first = demanding(&format!("undo-{kind}"), kind);
        stand.ensure(&first).await.unwrap();
        let (deleted, mut actions) = stand.writes(stand.delete(&first)).await;
        deleted.unwrap();
        actions.sort();
        actions.dedup();
        assert!(actions.len() >= 3, "{actions:?}");
        for (number, action) in actions.iter().enumerate() {
            for (when, fault) in faults() {
                let service = demanding(&format!("undo-{kind}-{number}-{when}"), kind);
                stand.ensure(&service).await.unwrap();
                stand.fail(action, fault.times(1));
                assert!(stand.delete(&service).await.is_err(), "{action} {when}");
                stand.gate.open();
                stand.delete(&service).await.unwrap();
                stand.nothing_left(&[&service]).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_begun_and_never_finished_is_deleted_too() {
    for (kind, last) in [
        ("classic", "CreateLoadBalancer"),
        ("nlb", "CreateListener"),
        ("nlb", "RegisterTargets"),
    ] {
        let stand = Stand::new(&format!("begun-{kind}-{}", last.to_lowercase())).await;
        let service = demanding(&format!("begun-{kind}-{last}"), kind);
        stand.fail(last, Fault::status(StatusCode::SERVICE_UNAVAILABLE));
        assert!(stand.ensure(&service).await.is_err());
        stand.gate.open();
        stand.delete(&service).await.unwrap();
        stand.nothing_left(&[&service]).await;
    }
}
