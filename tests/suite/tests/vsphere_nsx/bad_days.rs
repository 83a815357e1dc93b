//! Bad days: pools without addresses, quotas, lost answers, conflicts, sessions that end, credentials that are wrong, a crash.

use cloudwit_test_support::ServiceBuilder;
use cloudwit_test_support::scenes::rig::address;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::scene::{BALANCERS, Scene};

/// A refusal in NSX's words.
fn refused(status: u16, code: u32, text: &str) -> Value {
    let value = json!({ "httpStatus": "X", "error_code": code, "module_name": "policy", "error_message": text });
    json!({ "status": status, "value": value })
}

/// A fault with this answer.
fn fault(method: &str, path: &str, answer: Value) -> Value {
    let mut fault = json!({ "method": method, "path": path });
    for (name, value) in answer.as_object().unwrap() {
        fault[name] = value.clone();
    }
    fault
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_conflicts_quotas_and_a_crash_are_got_over() {
    let mut scene = Scene::with_nodes(BALANCERS).await;
    let busy = json!({ "status": 503, "value": "busy", "headers": { "Retry-After": "1" } });
    let faults = json!([
        // NSX does it, and the answer is lost.
        { "method": "PUT", "path": "ip-allocations", "obey": true, "status": 0 },
        { "method": "PUT", "path": "lb-pools", "obey": true, "status": 0 },
        { "method": "PUT", "path": "lb-virtual-servers", "obey": true, "status": 0 },
        fault("PUT", "lb-monitor-profiles", refused(412, 604, "modified by somebody else")),
        fault("PUT", "lb-services", busy),
        { "method": "GET", "path": "realized-entities", "status": 502 },
    ]);
    scene.nsx.faults(faults).await.unwrap();
    scene
        .does("quota", json!({ "kind": "lb-virtual-servers", "most": 0 }))
        .await;
    ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    scene
        .warned("web", "SyncLoadBalancerFailed", &["exceeds the maximum"])
        .await;
    scene.does("quota", json!({ "kind": "lb-virtual-servers" })).await;
    let ip = scene.address("web").await;
    for kind in [
        "lb-virtual-servers",
        "lb-pools",
        "lb-monitor-profiles",
        "ip-allocations",
        "lb-services",
    ] {
        assert_eq!(scene.has(kind).await.len(), 1, "nothing is made twice: {kind}");
    }

    // The process dies while virtual servers are being realized, and another one continues.
    scene.does("operations_take", json!({ "seconds": 2.0 })).await;
    let ports =
        json!([{ "name": "a", "port": 80, "protocol": "TCP" }, { "name": "b", "port": 443, "protocol": "TCP" }]);
    scene.patch("web", json!({ "spec": { "ports": ports } })).await;
    scene
        .comes("it is being changed", "lb-pools", |all| all.len() == 2)
        .await;
    scene.kill();
    scene.does("operations_take", json!({ "seconds": 0.1 })).await;
    scene.start(&[BALANCERS]).await;
    scene
        .comes("both are there", "lb-virtual-servers", |all| all.len() == 2)
        .await;

    // Deleted by somebody else: it comes back with the same address.
    let path = scene.has("lb-virtual-servers").await[0]["path"].clone();
    scene.does("delete", json!({ "path": path })).await;
    scene
        .patch(
            "web",
            json!({ "metadata": { "annotations": { "example.com/touched": "1" } } }),
        )
        .await;
    scene
        .comes("it is back", "lb-virtual-servers", |all| {
            all.len() == 2 && all.iter().all(|one| one["ip_address"] == ip.as_str())
        })
        .await;
    assert_eq!(scene.shown_address("web").await, Some(ip));
    // Somebody has added a field: it is kept when members change.
    let pool = scene.has("lb-pools").await[0]["path"].clone();
    let by_hand = json!({ "path": pool, "body": { "algorithm": "LEAST_CONNECTION" } });
    scene.does("put", by_hand).await;
    scene.joins("three").await;
    scene
        .comes("three Nodes, and what was set by hand", "lb-pools", |all| {
            let three = |one: &Value| one["members"].as_array().is_some_and(|members| members.len() == 3);
            all.iter().all(three) && all.iter().any(|one| one["algorithm"] == "LEAST_CONNECTION")
        })
        .await;
    let faults = json!([
        fault("DELETE", "lb-pools", refused(400, 500030, "it is being referenced by other objects")),
        { "method": "DELETE", "path": "lb-virtual-servers", "obey": true, "status": 0 },
    ]);
    scene.nsx.faults(faults).await.unwrap();
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pool_without_addresses_is_reported_and_retried() {
    let scene = Scene::with_nodes(BALANCERS).await;
    // The pool has four.
    for number in 0..5 {
        let service = ServiceBuilder::new(&format!("web-{number}"));
        service.create(&scene.client).await.unwrap();
    }
    scene
        .settled("four have an address", || async {
            let services = scene.services().list(&ListParams::default()).await.unwrap();
            match services.iter().filter(|service| address(service).is_some()).count() {
                4 => Ok(()),
                count => Err(format!("{count} have")),
            }
        })
        .await;
    let (mut other, mut without) = (String::new(), String::new());
    for name in (0..5).map(|number| format!("web-{number}")) {
        match scene.shown_address(&name).await {
            Some(_) => other = name,
            None => without = name,
        }
    }
    let told = ["public-pool", "no free address"];
    scene.warned(&without, "SyncLoadBalancerFailed", &told).await;
    let freed = scene.address(&other).await;
    scene.is_gone(&other).await;
    assert_eq!(scene.address(&without).await, freed);
    // One that a Service asks for is taken when it is free.
    scene.is_gone(&without).await;
    let asks = |ip: &str| {
        let ip = ip.to_owned();
        ServiceBuilder::new("asks").spec(move |spec| spec.load_balancer_ip = Some(ip))
    };
    asks(&freed).create(&scene.client).await.unwrap();
    assert_eq!(scene.address("asks").await, freed);
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_session_is_renewed_and_wrong_password_tried_once() {
    let mut scene = Scene::new().await;
    scene.password = Some("wrong-canary-password".into());
    scene.joins("one").await;
    ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    scene.start(&[BALANCERS]).await;
    scene.initialised("one").await;
    let told = ["logging in at the NSX manager", "credentials were incorrect"];
    scene.warned("web", "SyncLoadBalancerFailed", &told).await;
    scene
        .patch(
            "web",
            json!({ "metadata": { "annotations": { "example.com/touched": "1" } } }),
        )
        .await;
    scene.joins("two").await;
    scene.initialised("two").await;
    let failures = scene.does("failures", json!({})).await;
    assert!(
        failures.as_u64().is_some_and(|count| (1..=2).contains(&count)),
        "{failures}"
    );
    assert!(!scene.log().contains("wrong-canary-password"));
    scene.kill();
    scene.password = None;
    scene.nsx.forget_calls().await.unwrap();
    scene.start(&[BALANCERS]).await;
    scene.address("web").await;
    assert_eq!(scene.calls("POST /api/session/create").await, 1, "one for all calls");
    assert!(scene.does("end_sessions", json!({})).await.as_u64().unwrap() >= 1);
    let ports = json!([{ "name": "a", "port": 443, "protocol": "TCP" }]);
    scene.patch("web", json!({ "spec": { "ports": ports } })).await;
    scene
        .comes("it goes on in a new session", "lb-virtual-servers", |all| {
            all.len() == 1 && all[0]["ports"] == json!(["443"])
        })
        .await;
    assert_eq!(scene.calls("POST /api/session/create").await, 2);
    // The user's role does not allow it: it is said, and the session is not the reason.
    scene
        .does("deny", json!({ "rules": [["DELETE", "/lb-virtual-servers/"]] }))
        .await;
    let ports = json!([{ "name": "a", "port": 80, "protocol": "TCP" }]);
    scene.patch("web", json!({ "spec": { "ports": ports } })).await;
    scene.warned("web", "SyncLoadBalancerFailed", &["289", "auditor"]).await;
    scene.does("deny", json!({ "rules": [] })).await;
    scene.leaves_nothing("web").await;
}
