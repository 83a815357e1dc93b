//! Bad days of Compute Engine for Nodes: wrong credentials, a token that ends, throttling, a proxy, a zone that is away. Nodes wait and are not lost.

use serde_json::{Value, json};

use crate::scene::{Scene, ZONE};

const BOTH: &str = "--controllers=cloud-node-controller,cloud-node-lifecycle-controller";

fn error(code: u16, reason: &str) -> Value {
    json!({ "error": { "code": code, "message": reason, "errors": [{ "reason": reason, "message": reason }] } })
}

/// What may happen to a request for machines.
fn faults() -> Vec<(&'static str, Value)> {
    vec![
        (
            "429",
            json!({ "status": 429, "headers": { "Retry-After": "1" }, "value": error(429, "rateLimitExceeded") }),
        ),
        (
            "403 that means throttled",
            json!({ "status": 403, "value": error(403, "rateLimitExceeded") }),
        ),
        ("503", json!({ "status": 503, "value": error(503, "backendError") })),
        (
            "403 that means forbidden",
            json!({ "status": 403, "value": error(403, "forbidden") }),
        ),
        (
            "404 of a proxy",
            json!({ "status": 404, "value": "<html>no such backend</html>" }),
        ),
        (
            "404 of the project",
            json!({ "status": 404, "value": error(404, "notFound") }),
        ),
        ("no answer", json!({ "status": 0 })),
        ("another JSON", json!({ "status": 200, "value": [] })),
        ("a login page", json!({ "status": 200, "value": "<html>login</html>" })),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn node_deletion_needs_an_answer_of_compute_engine_itself() {
    let mut scene = Scene::new().await;
    scene.joins("kept", ZONE, "10.244.1.0/24").await;
    scene.start(&[BOTH, "--node-status-update-frequency=1h"]).await;
    scene.initialised("kept").await;
    scene.falls_silent("kept").await;
    for (what, mut fault) in faults() {
        fault["path"] = "/instances".into();
        fault["times"] = 2.into();
        scene.cloud.forget_calls().await.unwrap();
        scene.cloud.faults(json!([fault])).await.unwrap();
        // Two that are refused and one that is answered: else the pauses grow from fault to fault.
        scene
            .settled(what, || async {
                match scene.calls("instances.get").await {
                    0..3 => Err("not yet".into()),
                    _ => Ok(()),
                }
            })
            .await;
        assert!(scene.node("kept").await.is_some(), "{what}");
        scene.cloud.heal().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_ends_in_the_middle_is_renewed_once() {
    let mut scene = Scene::new().await;
    scene.joins("one", ZONE, "10.244.1.0/24").await;
    scene.start(&["--controllers=cloud-node-controller"]).await;
    scene.initialised("one").await;
    let issued = scene.does("tokens_issued", json!({})).await.as_u64().unwrap();
    scene.does("revoke_tokens", json!({})).await;
    scene.joins("two", ZONE, "10.244.2.0/24").await;
    scene.initialised("two").await;
    assert_eq!(scene.does("tokens_issued", json!({})).await, issued + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_refused_is_named() {
    let mut scene = Scene::new().await;
    scene.joins("one", ZONE, "10.244.1.0/24").await;
    let refused = json!({ "error": "invalid_grant", "error_description": "Invalid JWT Signature." });
    let fault = json!({ "path": "^/token", "status": 400, "value": refused, "times": -1 });
    scene.cloud.faults(json!([fault])).await.unwrap();
    scene.start(&["--controllers=cloud-node-controller"]).await;
    scene
        .settled("what to check is told", || async {
            let log = scene.log();
            let told = [
                "invalid_grant",
                "check client-email, private-key-id and the secret private-key",
            ];
            if told.iter().all(|part| log.contains(part)) {
                Ok(())
            } else {
                Err("not yet".into())
            }
        })
        .await;
    let node = scene.node("one").await.unwrap();
    assert!(cloudwit_test_support::objects::is_uninitialised(&node));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zone_that_is_away_hides_no_machine() {
    let mut scene = Scene::new().await;
    scene.joins("one", ZONE, "10.244.1.0/24").await;
    scene
        .does("unreachable", json!({ "scopes": [format!("zones/{ZONE}")] }))
        .await;
    scene.start(&["--controllers=cloud-node-controller"]).await;
    scene
        .settled("it is looked for", || async {
            match scene.calls("instances.aggregatedList").await {
                0..2 => Err("not yet".into()),
                _ => Ok(()),
            }
        })
        .await;
    scene.does("unreachable", json!({ "scopes": [] })).await;
    scene.initialised("one").await;
}
