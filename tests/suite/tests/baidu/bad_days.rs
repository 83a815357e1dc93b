//! Bad days: no denial and no failure deletes a Node, credentials are wrong, the cloud slows down, answers get lost, things are half made or deleted by
//! others.

use cloudwit_test_support::ServiceBuilder;
use cloudwit_test_support::objects::is_uninitialised;
use serde_json::{Value, json};

use crate::scene::{ALL, LIFECYCLE, NODES, Scene, behind, key, listeners};

fn error(code: &str) -> Value {
    json!({ "requestId": "r", "code": code, "message": "words" })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_denial_deletes_no_node() {
    let mut scene = Scene::new().await;
    scene.joins("kept").await;
    scene.start(&[LIFECYCLE]).await;
    scene.initialised("kept").await;
    scene.falls_silent("kept").await;
    for (what, status, value) in [
        ("a proxy's page", 404, json!("<html>not found</html>")),
        ("an empty 404", 404, json!({})),
        ("no permission", 403, error("AccessDenied")),
        ("a wrong signature", 403, error("SignatureDoesNotMatch")),
        ("the cloud fails", 500, error("InternalError")),
        ("a machine without an id", 200, json!({ "instance": {} })),
        ("a login page", 200, json!("<html>login</html>")),
        ("no answer", 0, json!(null)),
    ] {
        scene.cloud.forget_calls().await.unwrap();
        let fault = json!({ "path": "/v2/instance", "status": status, "value": value, "times": 2 });
        scene.cloud.faults(json!([fault])).await.unwrap();
        scene.called("GetInstanceDetail", 3).await;
        assert!(scene.node("kept").await.is_some(), "{what}");
        scene.cloud.heal().await.unwrap();
    }
    // The account of another region: nothing has this id, and there are no machines at all.
    let nothing = json!({ "instances": [], "isTruncated": false });
    let faults = json!([
        { "path": "/v2/instance/i-", "status": 404, "value": error("NoSuchObject"), "times": 6 },
        { "path": "/v2/instance\\?", "status": 200, "value": nothing, "times": 6 },
    ]);
    scene.cloud.forget_calls().await.unwrap();
    scene.cloud.faults(faults).await.unwrap();
    scene.called("GetInstanceDetail", 5).await;
    assert!(scene.node("kept").await.is_some(), "an account without machines");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_credentials_are_named_and_the_secret_key_is_not() {
    let mut scene = Scene::new().await;
    scene.joins("one").await;
    let account = scene.does("account", json!({})).await;
    let secret = account["secret"].as_str().unwrap();
    scene.config = json!({ "AccessKeyID": "nobody" });
    scene.start(&[NODES]).await;
    scene
        .settled("what to check is told", || async {
            match scene.log().contains("check AccessKeyID, the secret secret-access-key") {
                true => Ok(()),
                false => Err("not yet".into()),
            }
        })
        .await;
    let node = scene.node("one").await.unwrap();
    assert!(is_uninitialised(&node));
    assert!(!scene.log().contains(secret));
    scene.kill().unwrap();
    scene.config = json!({});
    scene.start(&[NODES]).await;
    scene.initialised("one").await;
    assert!(!scene.log().contains(secret));
}

#[tokio::test(flavor = "multi_thread")]
async fn cloud_requesting_a_pause_gets_no_call_during_it() {
    let mut scene = Scene::new().await;
    scene.joins("one").await;
    let fault = json!({ "path": "/v2/instance", "status": 429, "value": error("RequestLimitExceeded"), "headers": { "Retry-After": "3" } });
    scene.cloud.faults(json!([fault])).await.unwrap();
    let before = std::time::Instant::now();
    scene.start(&[NODES]).await;
    scene.initialised("one").await;
    assert!(before.elapsed().as_secs() >= 3, "{:?}", before.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_lost_answers_and_a_crash_are_got_over() {
    let mut scene = Scene::with_nodes().await;
    scene.does("quota", json!({ "blb": 0 })).await;
    ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    scene
        .warned("web", "SyncLoadBalancerFailed", &["BlbQuotaExceeded"])
        .await;
    scene.does("quota", json!({ "eip": 0 })).await;
    let faults = json!([
        // The cloud does it, and the answer is lost.
        { "path": "/v1/blb$", "method": "POST", "obey": true, "status": 0 },
        { "path": "TCPlistener", "method": "POST", "obey": true, "status": 500, "value": error("InternalError") },
        { "path": "backendserver", "method": "POST", "status": 409, "value": error("LastOperationNotFinished") },
    ]);
    scene.cloud.faults(faults).await.unwrap();
    scene
        .warned("web", "SyncLoadBalancerFailed", &["EipQuotaExceeded"])
        .await;
    let fault = json!({ "path": "/v1/eip$", "method": "POST", "obey": true, "status": 0 });
    scene.cloud.faults(json!([fault])).await.unwrap();
    scene.does("quota", json!({})).await;
    let ip = scene.address("web", "").await;
    assert_eq!(
        (scene.has("blbs").await.len(), scene.has("eips").await.len()),
        (1, 1),
        "nothing is made twice"
    );

    // The process dies while the cloud is at work, and another one continues.
    scene.does("operations_take", json!({ "seconds": 2.0 })).await;
    let ports =
        json!([{ "name": "a", "port": 80, "protocol": "TCP" }, { "name": "b", "port": 443, "protocol": "TCP" }]);
    scene.cloud.forget_calls().await.unwrap();
    scene.patch("web", json!({ "spec": { "ports": ports } })).await;
    scene.called("CreateListener", 1).await;
    scene.kill().unwrap();
    scene.does("operations_take", json!({ "seconds": 0.1 })).await;
    scene.start(&[ALL]).await;
    let both = |all: &[Value]| all.len() == 1 && listeners(&all[0]).len() == 2 && behind(&all[0]) == 2;
    scene.comes("both have listeners", "blbs", both).await;

    // The cloud takes a change without effect: it is made again.
    scene.does("fail_silently", json!({ "changes": 1 })).await;
    scene
        .annotate("web", &key("load-balancer-scheduler"), json!("Hash"))
        .await;
    let hashed = |all: &[Value]| listeners(&all[0]).iter().all(|one| one[3] == "Hash");
    scene.comes("it is made again", "blbs", hashed).await;

    // Deleted by somebody else: it comes back.
    let blb = scene.has("blbs").await[0]["blbId"].clone();
    scene.does("delete", json!({ "kind": "blbs", "id": blb })).await;
    scene
        .annotate("web", &key("load-balancer-scheduler"), json!(null))
        .await;
    scene.comes("it is back", "blbs", both).await;
    scene
        .comes("with its address", "eips", |all| {
            all.len() == 1 && all[0]["status"] == "binded"
        })
        .await;
    assert_eq!(scene.shown_address("web").await, Some(ip), "it was free again");
    let fault = json!({ "path": "/v1/eip/", "method": "DELETE", "status": 409, "value": error("InvalidInstanceStatus"), "times": 2 });
    scene.cloud.faults(json!([fault])).await.unwrap();
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn services_that_cannot_be_had_say_why_and_leave_nothing() {
    let scene = Scene::with_nodes().await;
    let ranges =
        ServiceBuilder::new("ranges").spec(|spec| spec.load_balancer_source_ranges = Some(vec!["10.0.0.0/8".into()]));
    ranges.create(&scene.client).await.unwrap();
    scene
        .warned("ranges", "SyncLoadBalancerFailed", &["security group"])
        .await;
    let prepaid = ServiceBuilder::new("prepaid").annotation(&key("elastic-ip-payment-timing"), "Prepaid");
    prepaid.create(&scene.client).await.unwrap();
    scene
        .warned("prepaid", "SyncLoadBalancerFailed", &["reservation-length"])
        .await;
    let vip = ServiceBuilder::new("vip").annotation(&key("load-balancer-allocate-vip"), "true");
    vip.create(&scene.client).await.unwrap();
    scene
        .warned("vip", "UnsupportedAnnotation", &["allocate-vip", "no effect"])
        .await;
    scene.address("vip", "").await;
    assert_eq!(scene.has("blbs").await.len(), 1);
    for service in ["ranges", "prepaid"] {
        scene.is_gone(service).await;
    }
    scene.leaves_nothing("vip").await;
}
