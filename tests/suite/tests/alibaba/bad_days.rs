//! Bad days: no denial and no failure deletes a Node, credentials are wrong or end, the cloud slows down or is full, somebody deletes what was made.

use cloudwit_test_support::objects::is_uninitialised;
use serde_json::{Value, json};

use crate::scene::{ALL, LIFECYCLE, NODES, Scene, key, members};

fn refusal(code: &str) -> Value {
    json!({ "Code": code, "Message": "said the cloud", "RequestId": "1", "HostId": "h" })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_denial_deletes_no_node() {
    let mut scene = Scene::new().await;
    scene.joins("kept").await;
    scene.run(&[LIFECYCLE]).await;
    scene.initialised("kept").await;
    scene.falls_silent("kept").await;
    let none = json!({ "RequestId": "1", "TotalCount": 0, "NextToken": "", "Instances": { "Instance": [] } });
    for (what, status, value) in [
        ("a proxy's page", 404, json!("<html>not found</html>")),
        ("no permission", 403, refusal("Forbidden.RAM")),
        ("a wrong key", 404, refusal("InvalidAccessKeyId.NotFound")),
        ("a wrong signature", 400, refusal("SignatureDoesNotMatch")),
        ("the cloud fails", 500, refusal("InternalError")),
        ("slower, please", 400, refusal("Throttling.User")),
        ("an account without machines", 200, none),
        ("a login page", 200, json!("<html>login</html>")),
        ("another service", 200, json!({ "Instances": { "Instance": [] } })),
        ("no answer", 0, json!(null)),
    ] {
        scene.cloud.forget_calls().await.unwrap();
        let fault = json!({ "path": "InstanceIds|MaxResults", "status": status, "value": value, "times": 4 });
        scene.cloud.faults(json!([fault])).await.unwrap();
        scene.called("ecs:DescribeInstances", 5).await;
        assert!(scene.node("kept").await.is_some(), "{what}");
        scene.cloud.heal().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_credentials_are_named_and_the_secret_is_not() {
    let mut scene = Scene::new().await;
    scene.joins("one").await;
    let account = scene.does("account", json!({})).await;
    let secret = account["secret"].as_str().unwrap();
    scene.config = json!({ "accessKeyID": "LTAInobody" });
    scene.run(&[NODES]).await;
    scene
        .settled("what to check is told", || async {
            match scene.log().contains("check accessKeyID") {
                true => Ok(()),
                false => Err("not yet".into()),
            }
        })
        .await;
    assert!(is_uninitialised(&scene.node("one").await.unwrap()) && !scene.log().contains(secret));
    scene.kill().unwrap();
    scene.config = json!({});
    scene.run(&[NODES]).await;
    scene.initialised("one").await;
    assert!(!scene.log().contains(secret));
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_of_the_role_are_renewed_when_they_end() {
    let mut scene = Scene::new().await;
    scene.joins("one").await;
    scene.config = json!({ "accessKeyID": null });
    scene.run(&[NODES]).await;
    scene.initialised("one").await;
    assert_eq!(
        scene.calls("metadata").await,
        3,
        "a session, the role's name, its credentials"
    );
    scene.does("expire", json!({})).await;
    scene.joins("two").await;
    scene.initialised("two").await;
    assert_eq!(scene.calls("metadata").await, 6);
    scene.only_what_the_readme_lists().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn throttling_quotas_and_foreign_deletion_are_overcome() {
    let mut scene = Scene::new().await;
    scene.joins("one").await;
    let two = scene.joins("two").await;
    scene.does("quota", json!({ "balancers": 0 })).await;
    let slow =
        json!({ "path": "DescribeLoadBalancers|LoadBalancerName", "status": 400, "value": refusal("Throttling.User") });
    scene.cloud.faults(json!([slow])).await.unwrap();
    scene.run(&[ALL]).await;
    scene.serves("web", None, &[]).await;
    scene
        .warned("web", "SyncLoadBalancerFailed", &["QuotaLimitExceeds"])
        .await;
    scene.does("quota", json!({})).await;
    // The cloud does it, and the answer is lost.
    let lost = json!([{ "path": "VServerGroupName=", "obey": true, "status": 0 }, { "path": "PersistenceTimeout|Scheduler=rr", "obey": true, "status": 0 }]);
    scene.cloud.faults(lost).await.unwrap();
    scene.annotate("web", &key("scheduler"), json!("rr")).await;
    let ip = scene.address("web", "").await;
    let full = |all: &[Value]| all.len() == 1 && members(&all[0]) == 2;
    scene.comes("nothing is made twice", "groups", full).await;

    // A listener, then the whole load balancer is deleted by somebody else.
    let listener = scene.does("resources", json!({ "kind": "listeners" })).await;
    assert_eq!(listener.as_object().unwrap().len(), 1);
    let balancer = scene.has("balancers").await[0]["LoadBalancerId"].clone();
    scene
        .does("delete", json!({ "kind": "balancers", "id": balancer }))
        .await;
    scene.annotate("web", &key("scheduler"), json!("wrr")).await;
    let again = scene.address("web", &ip).await;
    assert_ne!(again, ip);
    let running = |all: &[Value]| all.len() == 1 && all[0]["Status"] == "running" && all[0]["Scheduler"] == "wrr";
    scene.comes("its listener is back", "listeners", running).await;

    // A machine is gone before its Node is: nothing is spoilt for the others.
    scene.does("delete", json!({ "kind": "machines", "id": two })).await;
    scene.joins("three").await;
    scene.comes("the new one is behind it", "groups", full).await;
    scene.leaves_nothing("web").await;
}
