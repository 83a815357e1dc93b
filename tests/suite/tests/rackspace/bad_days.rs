//! Bad days: refused credentials, a token that ends in the middle, a cloud that is down or throttles. No Node is lost.

use serde_json::json;

use crate::scene::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_the_clouds_own_denial_deletes_a_node() {
    let mut scene = Scene::new().await;
    scene.start(&["--node-status-update-frequency=1h"]).await;
    scene.joins("kept").await;
    scene.initialised("kept").await;
    scene.falls_silent("kept").await;
    let item_not_found = json!({ "error": { "code": 404, "message": "no such page" } });
    for (what, fault) in [
        ("down", json!({ "status": 503 })),
        (
            "a page of HTML",
            json!({ "status": 200, "value": "<html>maintenance</html>" }),
        ),
        (
            "a proxy's 404",
            json!({ "status": 404, "value": "<html>no backend</html>" }),
        ),
        ("another 404", json!({ "status": 404, "value": item_not_found })),
        (
            "no right",
            json!({ "status": 403, "value": { "forbidden": { "code": 403, "message": "no" } } }),
        ),
        ("throttled", json!({ "status": 413, "headers": { "Retry-After": "1" } })),
        ("cut off", json!({ "status": 0 })),
    ] {
        let mut fault = fault;
        fault["path"] = "/servers".into();
        fault["times"] = 2.into();
        let before = scene.count("GET servers/ID").await;
        scene.fault(fault).await;
        // Two that fail, and one that is answered again: else the pauses grow from fault to fault.
        scene
            .settled(what, || async {
                match scene.count("GET servers/ID").await - before {
                    3.. => Ok(()),
                    asked => Err(format!("asked {asked} times")),
                }
            })
            .await;
        assert!(scene.node("kept").await.is_some(), "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_ends_in_the_middle_is_renewed_without_a_word() {
    let mut scene = Scene::new().await;
    scene.start(&["--controllers=cloud-node-controller"]).await;
    scene.joins("first").await;
    scene.initialised("first").await;
    let logins = scene.count("POST /identity/v2.0/tokens").await;
    let refusal = json!({ "unauthorized": { "code": 401, "message": "No valid token provided" } });
    scene
        .fault(json!({ "path": "/servers", "status": 401, "value": refusal }))
        .await;
    scene.joins("second").await;
    scene.initialised("second").await;
    assert_eq!(scene.count("POST /identity/v2.0/tokens").await, logins + 1);
    assert_eq!(scene.warnings("second").await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_is_named_in_one_event_and_the_node_waits() {
    let mut scene = Scene::new().await;
    scene.joins("waits").await;
    let refusal = json!({ "unauthorized": { "code": 401, "message": "Unable to authenticate user" } });
    scene
        .fault(json!({ "path": "/identity/", "status": 401, "value": refusal, "times": 3 }))
        .await;
    scene.start(&["--controllers=cloud-node-controller"]).await;
    let told = scene
        .warned(
            "waits",
            "InitializationFailed",
            &["authenticating", "Unable to authenticate user"],
        )
        .await;
    assert!(!told.message.contains("0123456789abcdef"), "{told:?}");
    scene.initialised("waits").await;
}
