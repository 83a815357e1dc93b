//! Bad days: no denial and no failure deletes a Node, credentials are wrong, the cloud slows down.

use cloudwit_test_support::objects::is_uninitialised;
use serde_json::{Value, json};

use crate::scene::{LIFECYCLE, NODES, Scene};

fn error(code: u16, text: &str) -> Value {
    json!({ "listvirtualmachinesresponse": { "uuidList": [], "errorcode": code, "cserrorcode": 4250, "errortext": text } })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_denial_deletes_no_node() {
    let mut scene = Scene::new().await;
    scene.joins("kept").await;
    scene.start(&[LIFECYCLE]).await;
    scene.initialised("kept").await;
    scene.falls_silent("kept").await;
    let project = "Invalid parameter projectid value=p due to incorrect long value format, or entity does not exist";
    for (what, status, value) in [
        ("a proxy's page", 404, json!("<html>not found</html>")),
        ("a project that is gone", 431, error(431, project)),
        ("no permission", 531, error(531, "Account is not allowed")),
        (
            "a wrong signature",
            401,
            error(401, "unable to verify user credentials"),
        ),
        ("the cloud fails", 530, error(530, "Internal error")),
        (
            "a project without machines",
            200,
            json!({ "listvirtualmachinesresponse": {} }),
        ),
        ("a login page", 200, json!("<html>login</html>")),
        ("no answer", 0, json!(null)),
    ] {
        scene.cloud.forget_calls().await.unwrap();
        let fault = json!({ "body": "command=listVirtualMachines", "status": status, "value": value, "times": 2 });
        scene.cloud.faults(json!([fault])).await.unwrap();
        scene
            .settled(what, || async {
                match scene.calls("listVirtualMachines").await {
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
async fn wrong_credentials_are_named_and_the_secret_key_is_not() {
    let mut scene = Scene::new().await;
    scene.joins("one").await;
    let account = scene.does("account", json!({})).await;
    let secret = account["secret"].as_str().unwrap();
    scene.config = "api-key = nobody".into();
    scene.start(&[NODES]).await;
    scene
        .settled("what to check is told", || async {
            match scene.log().contains("check api-key, the secret secret-key") {
                true => Ok(()),
                false => Err("not yet".into()),
            }
        })
        .await;
    let node = scene.node("one").await.unwrap();
    assert!(is_uninitialised(&node));
    assert!(!scene.log().contains(secret));
    scene.kill().unwrap();
    scene.config = String::new();
    scene.start(&[NODES]).await;
    scene.initialised("one").await;
    assert!(!scene.log().contains(secret));
}

#[tokio::test(flavor = "multi_thread")]
async fn cloud_requesting_a_pause_gets_no_call_during_it() {
    let mut scene = Scene::new().await;
    scene.joins("one").await;
    let text = "The given user has reached his/her account api limit, please retry after 3000 ms.";
    let fault = json!({ "body": "command=listVirtualMachines", "status": 429, "value": error(429, text) });
    scene.cloud.faults(json!([fault])).await.unwrap();
    let before = std::time::Instant::now();
    scene.start(&[NODES]).await;
    scene.initialised("one").await;
    assert!(before.elapsed().as_secs() >= 3, "{:?}", before.elapsed());
}
