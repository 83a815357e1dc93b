//! Days that every cloud has: machines stop and go, answers are wrong, credentials are refused or end.

use cloudwit_test_support::objects::{is_shut_down, is_uninitialised};
use serde_json::{Value, json};

use crate::scene::{LIFECYCLE, NODES, Scene};

/// What differs from cloud to cloud.
pub struct Days {
    /// Name of the cloud.
    pub cloud: &'static str,
    /// A part of the name of each call by which machines are found.
    pub call: &'static str,
    /// The empty list.
    pub empty: Value,
    /// What the log says when credentials are wrong.
    pub refused: &'static str,
    /// Lines of the cloud config with wrong credentials.
    pub wrong: &'static str,
    /// A part of the name of the call for a token.
    pub login: &'static str,
    /// Lines of the cloud config for all of these days.
    pub config: &'static str,
}

impl Days {
    async fn scene(&self) -> Scene {
        let mut scene = Scene::new(self.cloud).await;
        scene.config = self.config.into();
        scene
    }

    /// A stopped machine's Node is tainted, a deleted one's goes, a silent one's stays.
    pub async fn machines_stop_and_go(&self) {
        let mut scene = self.scene().await;
        let mut ids = Vec::new();
        for name in ["stopped", "gone", "silent"] {
            ids.push(scene.joins(name).await);
        }
        scene.start(&[LIFECYCLE]).await;
        for name in ["stopped", "gone", "silent"] {
            scene.initialised(name).await;
        }
        scene.does("power", json!({ "id": ids[0], "on": false })).await;
        scene.does("delete", json!({ "id": ids[1] })).await;
        for name in ["stopped", "gone", "silent"] {
            scene.falls_silent(name).await;
        }
        scene
            .settled("one Node is gone and one is tainted", || async {
                let tainted = scene.node("stopped").await.is_some_and(|node| is_shut_down(&node));
                let gone = scene.node("gone").await.is_none();
                match tainted && gone {
                    true => Ok(()),
                    false => Err(format!("tainted {tainted}, gone {gone}")),
                }
            })
            .await;
        let silent = scene.node("silent").await.unwrap();
        assert!(!is_shut_down(&silent), "it runs, only its kubelet is silent");
        scene.wrote_nothing(self.login).await;
    }

    /// No failure and no odd answer deletes a Node.
    pub async fn what_is_no_denial_deletes_no_node(&self) {
        let mut scene = self.scene().await;
        scene.joins("kept").await;
        scene.start(&[LIFECYCLE]).await;
        scene.initialised("kept").await;
        scene.falls_silent("kept").await;
        for (what, status, value) in [
            ("a proxy's page", 404, json!("<html>not found</html>")),
            ("an empty list", 200, self.empty.clone()),
            ("no permission", 403, json!("no")),
            ("the cloud fails", 500, json!("oops")),
            ("a login page", 200, json!("<html>login</html>")),
            ("something else", 200, json!([{ "id": 7 }])),
            ("throttled", 429, json!("later")),
            ("no answer", 0, json!(null)),
        ] {
            // All that is asked, and whatever is asked after it.
            let headers = json!({ "Retry-After": "1" });
            let fault = json!({ "method": "GET", "status": status, "value": value, "headers": headers, "times": 4 });
            scene.cloud.faults(json!([fault])).await.unwrap();
            scene.is_asked(what, self.call, 3).await;
            assert!(scene.node("kept").await.is_some(), "{what}");
            scene.cloud.heal().await.unwrap();
        }
        assert!(scene.node("kept").await.is_some());
    }

    /// What is wrong is in the log, and no secret is.
    pub async fn wrong_credentials_are_named(&self) {
        let mut scene = self.scene().await;
        scene.joins("one").await;
        let account = scene.does("account", json!({})).await;
        let secret = account["password"].as_str().unwrap();
        scene.config += self.wrong;
        scene.start(&[NODES]).await;
        scene
            .settled("what is wrong is in the log", || async {
                match scene.log().contains(self.refused) {
                    true => Ok(()),
                    false => Err(scene.log()),
                }
            })
            .await;
        assert!(is_uninitialised(&scene.node("one").await.unwrap()));
        scene.kill().unwrap();
        scene.config = self.config.into();
        scene.start(&[NODES]).await;
        scene.initialised("one").await;
        assert!(!scene.log().contains(secret));
    }

    /// A token that the cloud no longer takes is replaced by another, once.
    pub async fn a_token_that_ended_is_replaced(&self) {
        let mut scene = self.scene().await;
        scene.joins("one").await;
        scene.start(&[NODES]).await;
        scene.initialised("one").await;
        scene.does("expire", json!({})).await;
        scene.joins("two").await;
        scene.initialised("two").await;
        // The first is of the start.
        assert_eq!(scene.calls(self.login).await, 2);
    }
}
