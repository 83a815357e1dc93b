//! Changes of one load balancer, over as many calls as the cloud's operations need.
//!
//! Changes that do not need each other are sent together; then the call ends with `pending`, and its token has the operations. The next call asks for
//! them, and plans anew from what the cloud shows.
//!
//! A Service that changes meanwhile has no token any more. Its operations are known from the state then: a static address whose release has begun still looks
//! as if it held the address of a rule.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::{Change, Steps};
use cloudwit_guest_sdk::serde_json::{self, Value};
use cloudwit_guest_sdk::state::Keep;
use serde::{Deserialize, Serialize};

use crate::api::Api;
use crate::operation::Operation;
use crate::resource;

/// What goes from call to call.
#[derive(Serialize, Deserialize)]
struct Token {
    steps: Steps,
    operations: Vec<String>,
}

/// Changes of one load balancer.
pub struct Work<'a> {
    api: &'a Api,
    context: Context,
    steps: Steps,
    running: Vec<String>,
}

/// Most operations that are remembered: each is some hundred bytes of a token.
const OPERATIONS: usize = 24;

/// Operations are not waited for longer by a call without their token.
const REMEMBERED: Keep = Keep::at_most(std::time::Duration::from_secs(600));

impl<'a> Work<'a> {
    /// Goes on where the call with this token ended, once its operations are done.
    ///
    /// # Errors
    /// `pending` while they are not; why one failed.
    pub fn continued(api: &'a Api, context: Context, id: &str, token: Option<&str>) -> Result<Self, Failure> {
        let former: Option<Token> = token.and_then(|token| serde_json::from_str(token).ok());
        let mut work = Self {
            api,
            context,
            steps: Steps::new(id),
            running: Vec::new(),
        };
        let Some(former) = former.filter(|former| former.steps.id() == id) else {
            work.wait_for_earlier()?;
            return Ok(work);
        };
        for operation in &former.operations {
            match Operation::look(api, operation) {
                Ok(running) => work.running.extend(running),
                // Somebody else was faster: what there is now is seen below.
                Err(failure) if matches!(failure.kind, FailureKind::NotFound | FailureKind::AlreadyExists) => {}
                Err(failure) => return Err(failure),
            }
        }
        work.steps = former.steps;
        work.settle()?;
        work.steps = Steps::continued(Some(&work.steps), id);
        work.forget();
        Ok(work)
    }

    /// Waits for the operations of an earlier call; what came of them is seen in the cloud.
    fn wait_for_earlier(&mut self) -> Result<(), Failure> {
        let earlier = self.context.state().get::<Vec<String>>(&self.key());
        for operation in earlier.map(|stored| stored.value).unwrap_or_default() {
            if let Ok(running) = Operation::look(self.api, &operation) {
                self.running.extend(running);
            }
        }
        self.settle()?;
        self.forget();
        Ok(())
    }

    fn key(&self) -> String {
        format!("balancers/{}/operations", self.steps.id())
    }

    fn remember(&self) {
        if !self.running.is_empty() {
            self.context.state().put(&self.key(), &self.running, REMEMBERED);
        }
    }

    fn forget(&self) {
        self.context.state().remove(&self.key());
    }

    /// Makes a change, unless it was made already: POST to what exists, DELETE of what does not.
    ///
    /// # Errors
    /// As [`Steps::make`].
    pub fn change(&mut self, method: &'static str, path: &str, body: Option<&Value>) -> Result<(), Failure> {
        let text = match body {
            Some(body) => format!("{method} {path} {body}"),
            None => format!("{method} {path}"),
        };
        self.change_as(&text, method, path, body)
    }

    /// Deletes what was seen. Where another one has taken its place since, that is another change.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn delete_seen(&mut self, path: &str, seen: &Value) -> Result<(), Failure> {
        let text = format!("DELETE {path} {}", resource::text(seen, "id"));
        self.change_as(&text, "DELETE", path, None)
    }

    fn change_as(&mut self, text: &str, method: &'static str, path: &str, body: Option<&Value>) -> Result<(), Failure> {
        if self.running.len() >= OPERATIONS {
            self.settle()?;
        }
        let done: &[&str] = match method {
            "DELETE" => &["notFound"],
            "POST" => &["alreadyExists", "memberAlreadyExists", "memberNotFound"],
            _ => &[],
        };
        let change = Change::new(text).done_by(done).busy_by(&["resourceNotReady"]);
        let made = self
            .steps
            .make(&self.context, &change, || self.api.change(method, path, body));
        match made {
            Ok(None) => {}
            Ok(Some(operation)) => self.running.extend(operation.running()?),
            Err(failure) => return Err(self.with_token(failure)),
        }
        Ok(())
    }

    /// Makes something: `collection` and a body with its name.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn create(&mut self, collection: &str, body: &Value) -> Result<(), Failure> {
        self.change("POST", collection, Some(body))
    }

    /// Deletes something that others may use too: if they do, it stays.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn delete_unused(&mut self, path: &str) -> Result<(), Failure> {
        match self.change("DELETE", path, None) {
            Err(failure) if failure.kind == FailureKind::FailedPrecondition => Ok(()),
            result => result,
        }
    }

    /// Whether an operation runs.
    pub fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// The end of the call while operations run.
    ///
    /// # Errors
    /// `pending`; `unavailable` after more than five minutes.
    pub fn settle(&self) -> Result<(), Failure> {
        if self.running.is_empty() {
            return Ok(());
        }
        Err(self.with_token(
            self.steps
                .pending(format!("load balancer {} is being changed", self.steps.id())),
        ))
    }

    /// What is handed back in the next call.
    pub fn token(&self) -> String {
        self.remember();
        let token = Token {
            steps: self.steps.clone(),
            operations: self.running.clone(),
        };
        serde_json::to_string(&token).unwrap_or_default()
    }

    /// The steps' `pending` has their token: the operations belong to it.
    fn with_token(&self, failure: Failure) -> Failure {
        self.remember();
        let FailureKind::Pending(steps) = &failure.kind else {
            return failure;
        };
        let token = Token {
            steps: Steps::read(steps).unwrap_or_else(|| self.steps.clone()),
            operations: self.running.clone(),
        };
        Failure {
            kind: FailureKind::Pending(serde_json::to_string(&token).unwrap_or_default()),
            ..failure
        }
    }
}
