//! Fake API server for reviews.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::serving::access::reviews::Reviewer;

/// The state of it; clones share it.
#[derive(Clone, Default)]
pub struct FakeReviews(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    tokens: Vec<(String, Value)>,
    rules: Vec<(String, String, String)>,
    asked: Vec<Value>,
    down: bool,
}

impl FakeReviews {
    /// Knows this token as that of `user`.
    pub fn token(&self, token: &str, user: Value) {
        self.0.lock().unwrap().tokens.push((token.into(), user));
    }

    /// Forgets all tokens.
    pub fn revoke(&self) {
        self.0.lock().unwrap().tokens.clear();
    }

    /// Lets a user do this, and nothing else.
    pub fn allow(&self, user: &str, verb: &str, path: &str) {
        self.0
            .lock()
            .unwrap()
            .rules
            .push((user.into(), verb.into(), path.into()));
    }

    /// Answers nothing but 503 from now on, or no longer.
    pub fn down(&self, down: bool) {
        self.0.lock().unwrap().down = down;
    }

    /// The specs of all questions so far.
    pub fn asked(&self) -> Vec<Value> {
        self.0.lock().unwrap().asked.clone()
    }

    /// The way to it. An answer takes a tenth of a second.
    pub fn reviewer(&self) -> Reviewer {
        let fake = self.clone();
        let answers = tower::service_fn(move |request: Request<Body>| {
            let fake = fake.clone();
            async move {
                let is_token = request.uri().path().ends_with("/tokenreviews");
                let body = request.into_body().collect_bytes().await.unwrap();
                tokio::time::sleep(Duration::from_millis(100)).await;
                let (code, answer) = fake.answer(is_token, serde_json::from_slice(&body).unwrap());
                let body = Body::from(serde_json::to_vec(&answer).unwrap());
                Ok::<_, std::convert::Infallible>(Response::builder().status(code).body(body).unwrap())
            }
        });
        Reviewer::over(Client::new(answers, "default"))
    }

    fn answer(&self, is_token: bool, question: Value) -> (u16, Value) {
        let mut state = self.0.lock().unwrap();
        let spec = question["spec"].clone();
        state.asked.push(spec.clone());
        if state.down {
            let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "down", "reason": "", "code": 503 });
            return (503, status);
        }
        let status = if is_token {
            let known = state.tokens.iter().find(|(token, _)| spec["token"] == **token);
            match known {
                Some((_, user)) => json!({ "authenticated": true, "user": user }),
                None => json!({ "authenticated": false, "user": { "username": "nobody" }, "error": "unknown" }),
            }
        } else {
            let attributes = &spec["nonResourceAttributes"];
            let allowed = state.rules.iter().any(|(user, verb, path)| {
                spec["user"] == **user && attributes["verb"] == **verb && attributes["path"] == **path
            });
            json!({ "allowed": allowed, "denied": spec["user"] == "banned" })
        };
        let mut answer = question;
        answer["status"] = status;
        (201, answer)
    }
}
