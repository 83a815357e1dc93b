//! Changes of one load balancer, over as many calls as the cloud's operations need.
//!
//! Changes that do not need each other are sent together; then the call ends with `pending`, and its token has the operations. The next call polls
//! them, and plans again from what the cloud shows.
//!
//! What was read is in the state for the call that has the token, so nothing is read again but what was changed since.
//!
//! A Service that changes meanwhile has no token any more. Its operations are known from the state then: a static address whose release has begun still looks
//! as if it held the address of a rule.

use std::collections::BTreeMap;
use std::time::Duration;

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

/// What was read, by path, and since when: seconds since 1970.
#[derive(Serialize, Deserialize)]
struct Seen {
    since: u64,
    /// Which kind the forwarding rule was of when its deletion began.
    internal: Option<bool>,
    found: BTreeMap<String, Option<Value>>,
}

impl Seen {
    fn from(since: u64) -> Self {
        Self {
            since,
            internal: None,
            found: BTreeMap::new(),
        }
    }
}

/// Changes of one load balancer.
pub struct Work<'a> {
    api: &'a Api,
    context: Context,
    steps: Steps,
    running: Vec<String>,
    seen: Seen,
    /// Paths at which a change has begun in this call.
    begun: Vec<String>,
}

/// Most operations that are cached: each is some hundred bytes of a token.
const OPERATIONS: usize = 24;

/// Operations are not waited for longer by a call without their token.
const REMEMBERED: Keep = Keep::at_most(Duration::from_secs(600));

/// How long what was read counts.
const SEEN: Duration = Duration::from_secs(120);

impl<'a> Work<'a> {
    /// Continues where the call with this token ended, once its operations are done.
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
            seen: Seen::from(context.now()),
            begun: Vec::new(),
        };
        // For one call: after a failure everything is read.
        let seen = context.state().get::<Seen>(&work.key("seen"));
        context.state().remove(&work.key("seen"));
        let Some(former) = former.filter(|former| former.steps.id() == id) else {
            work.wait_for_earlier()?;
            return Ok(work);
        };
        let recent = |seen: &Seen| context.now() < seen.since.saturating_add(SEEN.as_secs());
        let mut seen = seen.map(|stored| stored.value).filter(recent);
        for operation in &former.operations {
            match Operation::look(api, operation) {
                Ok(running) => work.running.extend(running),
                // Another writer came first: the state is read again below.
                Err(failure) if matches!(failure.kind, FailureKind::NotFound | FailureKind::AlreadyExists) => {
                    seen = None
                }
                Err(failure) => return Err(failure),
            }
        }
        work.steps = former.steps;
        if let Some(seen) = seen {
            work.seen = seen;
        }
        work.settle()?;
        work.steps = Steps::continued(Some(&work.steps), id);
        work.forget();
        Ok(work)
    }

    /// Waits for the operations of an earlier call; what came of them is seen in the cloud.
    fn wait_for_earlier(&mut self) -> Result<(), Failure> {
        let earlier = self.context.state().get::<Vec<String>>(&self.key("operations"));
        for operation in earlier.map(|stored| stored.value).unwrap_or_default() {
            if let Ok(running) = Operation::look(self.api, &operation) {
                self.running.extend(running);
            }
        }
        self.settle()?;
        self.forget();
        Ok(())
    }

    fn key(&self, what: &str) -> String {
        format!("balancers/{}/{what}", self.steps.id())
    }

    fn remember(&self) {
        let state = self.context.state();
        if !self.running.is_empty() {
            state.put(&self.key("operations"), &self.running, REMEMBERED);
        }
        state.put(&self.key("seen"), &self.seen, Keep::at_most(SEEN));
    }

    fn forget(&self) {
        self.context.state().remove(&self.key("operations"));
    }

    /// What is at this path, as this call or the one before it has read it.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn find(&mut self, path: &str) -> Result<Option<Value>, Failure> {
        if let Some(found) = self.seen.found.get(path) {
            return Ok(found.clone());
        }
        let found = self.api.find(path)?;
        // While a change is in flight the observed state is not kept.
        if !self.begun.iter().any(|begun| begun == path) {
            self.seen.found.insert(path.into(), found.clone());
        }
        Ok(found)
    }

    /// Whether the forwarding rule is, or was when its deletion began, of an internal load balancer.
    pub fn internal(&self) -> Option<bool> {
        self.seen.internal
    }

    /// Deletes a load balancer of this kind; none where more may be left than such a one has.
    pub fn set_internal(&mut self, internal: Option<bool>) {
        self.seen.internal = internal;
    }

    /// Whether there may be something at this path. Parts of a load balancer whose rule was read are not looked up before they are deleted.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn may_have(&mut self, path: &str) -> Result<bool, Failure> {
        if self.seen.internal.is_some() && !self.seen.found.contains_key(path) {
            return Ok(true);
        }
        Ok(self.find(path)?.is_some())
    }

    /// Makes a change, unless it was made already: POST to what exists, DELETE of what does not. Returns whether it was made.
    ///
    /// # Errors
    /// As [`Steps::make`].
    pub fn change(&mut self, method: &'static str, path: &str, body: Option<&Value>) -> Result<bool, Failure> {
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
    pub fn delete_seen(&mut self, path: &str, seen: &Value) -> Result<bool, Failure> {
        let text = format!("DELETE {path} {}", resource::text(seen, "id"));
        self.change_as(&text, "DELETE", path, None)
    }

    fn change_as(
        &mut self,
        text: &str,
        method: &'static str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<bool, Failure> {
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
        let begun = match made {
            Ok(begun) => begun,
            Err(failure) => {
                if failure.kind != FailureKind::FailedPrecondition {
                    self.seen = Seen::from(self.context.now());
                }
                return Err(self.with_token(failure));
            }
        };
        let changed = subject(method, path, body);
        self.seen.found.remove(&changed);
        let made = begun.is_some();
        if method == "DELETE" {
            self.seen.found.insert(changed.clone(), None);
        } else if made && is_as_sent(method, path) {
            self.seen.found.insert(changed.clone(), body.cloned());
        }
        if let Some(running) = begun.map(|operation| operation.running()).transpose()?.flatten() {
            self.begun.push(changed);
            self.running.push(running);
        }
        Ok(made)
    }

    /// Makes something: `collection` and a body with its name.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn create(&mut self, collection: &str, body: &Value) -> Result<bool, Failure> {
        self.change("POST", collection, Some(body))
    }

    /// Deletes something that others may use too: if they do, it stays, and the answer is none. Else whether it was there.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn delete_unused(&mut self, path: &str) -> Result<Option<bool>, Failure> {
        match self.change("DELETE", path, None) {
            Err(failure) if failure.kind == FailureKind::FailedPrecondition => Ok(None),
            result => result.map(Some),
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

/// The path of what a request changes.
fn subject(method: &str, path: &str, body: Option<&Value>) -> String {
    let made = body.map_or("", |body| resource::text(body, "name"));
    match (method, made) {
        // A verb, such as `addInstance`.
        ("POST", "") => path.rsplit_once('/').map_or(path, |(subject, _)| subject).into(),
        ("POST", name) => format!("{path}/{name}"),
        _ => path.into(),
    }
}

/// Whether what is made is what was sent: to a rule or an address the cloud gives its IP address.
fn is_as_sent(method: &str, path: &str) -> bool {
    let collection = path.rsplit('/').next().unwrap_or_default();
    method == "POST"
        && matches!(
            collection,
            "firewalls" | "targetPools" | "httpHealthChecks" | "healthChecks"
        )
}
