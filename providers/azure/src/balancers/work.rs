//! The changes: one at a time, each on condition that the resource is as it was read. Where a change takes time, the call ends with `pending`.
//!
//! Load balancers and the security group belong to all Services, and the cloud takes one change of each at a time. Which one is in flight is kept in the state,
//! so that calls for other Services wait for it instead of being refused, and it is polled once for all.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::{Keep, Lock};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::json::{etag, id};
use crate::Azure;
use crate::arm::{Begun, NETWORK, Only, Operation};

/// Key of the operation of a resource of all Services.
const RUNNING: &str = "balancers/running";

/// An operation is not waited for longer by other Services.
const AT_MOST: Keep = Keep::at_most(Duration::from_secs(600));

/// How long a call waits for those of other Services.
const PATIENCE: Duration = Duration::from_secs(10);

/// What goes from call to call.
#[derive(Default, Serialize, Deserialize)]
struct Token {
    /// Of the operation; empty while something of others is waited for.
    link: String,
    group_done: bool,
    /// The addresses that the call answers when the operation is done, where nothing is left to do then.
    last: Option<Vec<String>>,
    /// For which Nodes that is.
    nodes: u64,
}

/// The operation that all wait for.
#[derive(Serialize, Deserialize)]
struct Running {
    link: String,
    /// When it is polled again, in seconds since 1970.
    next: u64,
}

/// A call that may make changes now, until it is dropped.
pub struct Turn {
    /// Whether the security group was changed in an earlier call, and is right.
    pub group_done: bool,
    /// The addresses, where the last change is made.
    pub last: Option<Vec<String>>,
    nodes: u64,
    _lock: Option<Lock>,
}

/// A change of a resource.
pub enum Change {
    Put {
        path: String,
        body: Value,
        /// None: it must not exist.
        etag: Option<String>,
    },
    Delete {
        path: String,
        etag: String,
    },
}

impl Change {
    /// Of a resource that was read.
    pub fn put(body: Value) -> Self {
        Self::Put {
            path: id(&body).into(),
            etag: Some(etag(&body).into()),
            body,
        }
    }
}

impl Azure {
    /// Begins a call for these Nodes, a number of theirs: the operation that it continues, then that of another Service, have ended.
    ///
    /// # Errors
    /// `pending` while one runs; why this call's own one failed.
    pub(super) fn begin(&self, token: Option<&str>, nodes: u64) -> Result<Turn, Failure> {
        let state = self.context.state();
        let lock = state.lock("balancers", PATIENCE);
        let own = token.and_then(|token| serde_json::from_str::<Token>(token).ok());
        let mut own = own.unwrap_or_default();
        own.last = own.last.filter(|_| own.nodes == nodes);
        let other = state.get::<Running>(RUNNING).map(|stored| stored.value);
        if !own.link.is_empty() {
            let looked = Operation::look(&self.arm, &own.link);
            let is_running = matches!(looked, Ok(Begun::Running(_)));
            if !is_running && other.as_ref().is_some_and(|other| other.link == own.link) {
                state.remove(RUNNING);
            }
            if let Begun::Running(operation) = looked? {
                let link = operation.link;
                return Err(pending(operation.after, &Token { link, ..own }));
            }
        }
        if own.last.is_some() {
            return Ok(Turn {
                group_done: own.group_done,
                last: own.last,
                nodes,
                _lock: lock,
            });
        }
        if let Some(other) = other.filter(|other| own.link != other.link) {
            let waits = Token {
                link: String::new(),
                ..own
            };
            let left = other.next.saturating_sub(self.context.now());
            if left > 0 {
                return Err(pending(Duration::from_secs(left), &waits));
            }
            match Operation::look(&self.arm, &other.link) {
                Ok(Begun::Running(operation)) => {
                    self.remember(&operation);
                    return Err(pending(operation.after, &waits));
                }
                // Its result is for the call that began it.
                Ok(Begun::Done) | Err(_) => state.remove(RUNNING),
            }
        }
        Ok(Turn {
            group_done: own.group_done,
            last: None,
            nodes,
            _lock: lock,
        })
    }

    fn remember(&self, operation: &Operation) {
        let running = Running {
            link: operation.link.clone(),
            next: self.context.now().saturating_add(operation.after.as_secs()),
        };
        self.context.state().put(RUNNING, &running, AT_MOST);
    }

    /// Makes a change. `last` are the addresses that the call answers after it, where it is the last one.
    ///
    /// # Errors
    /// `pending` while it runs; `conflict` where the resource was changed since; the cloud's error.
    pub(super) fn make(&self, change: Change, turn: &Turn, last: Option<Vec<String>>) -> Result<(), Failure> {
        let path = match &change {
            Change::Put { path, .. } | Change::Delete { path, .. } => path.clone(),
        };
        if self.context.is_dry_run() {
            return Err(Failure::other(format!("dry run: would change {path}")));
        }
        let begun = match &change {
            Change::Put { etag: Some(etag), .. } | Change::Delete { etag, .. } if etag.is_empty() => {
                return Err(Failure::other(format!("the cloud told no ETag of {path}")));
            }
            Change::Put { body, etag, .. } => {
                let only = etag.as_deref().map_or(Only::IfMissing, Only::IfUnchanged);
                self.arm.put(&path, NETWORK, body, only)?
            }
            Change::Delete { etag, .. } => self.arm.delete(&path, NETWORK, etag)?,
        };
        let Begun::Running(operation) = begun else {
            return Ok(());
        };
        if !path.contains("/publicIPAddresses/") {
            self.remember(&operation);
        }
        let token = Token {
            link: operation.link,
            group_done: turn.group_done || path.contains("/networkSecurityGroups/"),
            last,
            nodes: turn.nodes,
        };
        Err(pending(operation.after, &token))
    }
}

fn pending(after: Duration, token: &Token) -> Failure {
    let token = serde_json::to_string(token).unwrap_or_default();
    Failure::pending(after, token, "the cloud is changing the load balancer")
}
