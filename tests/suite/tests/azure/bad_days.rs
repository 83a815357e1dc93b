//! Bad days: no denial and no failure deletes a Node, tokens end, credentials are wrong, the cloud slows down.

use serde_json::json;

use crate::scene::{NODES, Scene};

const MACHINE: &str = "GET Microsoft.Compute/virtualMachines";
const LIFECYCLE: &str = "--controllers=cloud-node-controller,cloud-node-lifecycle-controller";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_denial_deletes_no_node() {
    let mut scene = Scene::new().await;
    scene.joins("kept", "10.244.1.0/24").await;
    scene.start(&[LIFECYCLE]).await;
    scene.initialised("kept").await;
    scene.falls_silent("kept").await;
    let arm = |code: &str| json!({ "error": { "code": code, "message": "so it says" } });
    for (what, status, value) in [
        ("a proxy's page", 404, json!("<html>not found</html>")),
        ("a subscription that is gone", 404, arm("SubscriptionNotFound")),
        ("no permission", 403, arm("AuthorizationFailed")),
        ("the cloud fails", 500, arm("InternalServerError")),
        ("the cloud is busy", 409, arm("AnotherOperationInProgress")),
        ("no answer", 0, json!(null)),
    ] {
        scene.cloud.forget_calls().await.unwrap();
        let fault = json!({ "path": "virtualMachines/kept", "status": status, "value": value, "times": 2 });
        scene.cloud.faults(json!([fault])).await.unwrap();
        scene
            .settled(what, || async {
                match scene.calls(MACHINE).await {
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
    scene.joins("one", "10.244.1.0/24").await;
    scene.start(&[NODES]).await;
    scene.initialised("one").await;
    let issued = scene.does("tokens_issued", json!({})).await.as_u64().unwrap();
    scene.does("revoke_tokens", json!({})).await;
    scene.joins("two", "10.244.2.0/24").await;
    scene.initialised("two").await;
    assert_eq!(scene.does("tokens_issued", json!({})).await, issued + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_signs_in_host_and_wrong_credentials_are_named() {
    let mut scene = Scene::new().await;
    scene.joins("one", "10.244.1.0/24").await;
    let account = scene.does("account", json!({})).await;
    scene.config = json!({ "aadClientCertThumbprint": "00".repeat(20) });
    scene.start(&[NODES]).await;
    scene
        .settled("what to check is told", || async {
            let log = scene.log();
            let told = ["AADSTS700027", "check tenantId, aadClientId"];
            if told.iter().all(|part| log.contains(part)) {
                Ok(())
            } else {
                Err("not yet".into())
            }
        })
        .await;
    let node = scene.node("one").await.unwrap();
    assert!(cloudwit_test_support::objects::is_uninitialised(&node));
    scene.kill().unwrap();
    scene.config = json!({ "aadClientCertThumbprint": account["thumbprint"] });
    scene.start(&[NODES]).await;
    scene.initialised("one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cloud_requesting_a_pause_gets_no_call_during_it() {
    let mut scene = Scene::new().await;
    scene.joins("one", "10.244.1.0/24").await;
    let value = json!({ "error": { "code": "OperationNotAllowed", "message": "The server rejected the request because too many requests." } });
    let fault = json!({ "path": "virtualMachines", "status": 429, "value": value, "headers": { "Retry-After": "3" } });
    scene.cloud.faults(json!([fault])).await.unwrap();
    let before = std::time::Instant::now();
    scene.start(&[NODES]).await;
    scene.initialised("one").await;
    assert!(before.elapsed().as_secs() >= 3, "{:?}", before.elapsed());
}
