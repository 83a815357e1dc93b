//! Days that every cloud has: machines stop and go, answers are wrong, credentials are refused or end.

use cloudwit_test_support::objects::{is_shut_down, is_uninitialised};
use serde_json::{Value, json};

use crate::scene::{LIFECYCLE, NODES, Scene};

/// So many calls take several seconds: Nodes are looked at twice in a second, and their addresses once.
const ENOUGH: usize = 12;

/// What differs from cloud to cloud.
pub struct Days {
    /// Name of the cloud.
    pub cloud: &'static str,
    /// A part of the name of each call by which machines are found.
    pub call: &'static str,
    /// Which calls are for one machine, as a regular expression; none where there is but a list.
    pub single: Option<&'static str>,
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

    /// No failure and no odd answer deletes a Node, however long it lasts; the cloud's own word does.
    pub async fn what_is_no_denial_deletes_no_node(&self) {
        let page = json!("<html>not found</html>");
        let mut scene = self.scene().await;
        let id = scene.joins("kept").await;
        // What the cloud shows beside it: an empty cloud denies nothing.
        scene.joins("other").await;
        scene.start(&[LIFECYCLE]).await;
        scene.initialised("kept").await;
        scene.initialised("other").await;
        scene.falls_silent("kept").await;
        for (what, status, value) in [
            ("a proxy's page", 404, page.clone()),
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
            let fault = json!({ "method": "GET", "status": status, "value": value, "headers": headers, "times": -1 });
            self.keeps(&scene, what, fault).await;
        }
        if let Some(single) = self.single {
            // The cloud shows other machines meanwhile.
            let fault = json!({ "method": "GET", "path": single, "status": 404, "value": page, "times": -1 });
            self.keeps(&scene, "a proxy's page for one machine", fault).await;
        }
        scene.does("delete", json!({ "id": id })).await;
        scene
            .settled("the Node whose machine is gone goes", || async {
                match scene.node("kept").await {
                    None => Ok(()),
                    Some(_) => Err("it is there".to_owned()),
                }
            })
            .await;
        assert!(scene.node("other").await.is_some());
    }

    /// A Node stays through a fault for longer than two denials need, which are a second apart.
    async fn keeps(&self, scene: &Scene, what: &str, fault: Value) {
        scene.cloud.faults(json!([fault])).await.unwrap();
        scene.is_asked(what, self.call, ENOUGH).await;
        assert!(scene.node("kept").await.is_some(), "{what}");
        scene.cloud.heal().await.unwrap();
    }

    /// What is wrong is in the log, and no secret is.
    pub async fn wrong_credentials_are_named(&self) {
        let mut scene = self.scene().await;
        scene.joins("one").await;
        let account = scene.does("account", json!({})).await;
        let secret = account["password"].as_str().unwrap();
        scene.config += self.wrong;
        scene.start(&[NODES]).await;
        scene.logs(self.refused).await;
        assert!(is_uninitialised(&scene.node("one").await.unwrap()));
        // Each process has a log of its own.
        assert!(!scene.log().contains(secret));
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
