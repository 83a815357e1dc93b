//! The changes: one at a time, each on condition that the resource is as it was read. Where a change takes time, the call ends with `pending`.
//!
//! Load balancers and the security group belong to all Services, and the cloud takes one change of each at a time. Which one goes on is kept in the state,
//! so that calls for other Services wait for it instead of being refused.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::{Keep, Lock};
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
    /// Begins a call: the operation that it continues, then that of another Service, have ended. Held until all changes of the call are made.
    ///
    /// # Errors
    /// `pending` while one goes on; why the own one failed.
    pub(super) fn begin(&self, token: Option<&str>) -> Result<Option<Lock>, Failure> {
        let state = self.context.state();
        let lock = state.lock("balancers", PATIENCE);
        let own = token.filter(|token| !token.is_empty());
        let other = state.get::<String>(RUNNING).map(|stored| stored.value);
        if let Some(own) = own {
            let looked = Operation::look(&self.arm, own);
            if other.as_deref() == Some(own) && !matches!(looked, Ok(Begun::Running(_))) {
                state.remove(RUNNING);
            }
            if let Begun::Running(operation) = looked? {
                return Err(pending(&operation));
            }
        }
        if let Some(other) = other.filter(|other| own != Some(other.as_str())) {
            match Operation::look(&self.arm, &other) {
                Ok(Begun::Running(operation)) => return Err(pending(&operation)),
                // Its result is for the call that began it.
                Ok(Begun::Done) | Err(_) => state.remove(RUNNING),
            }
        }
        Ok(lock)
    }

    /// Makes a change.
    ///
    /// # Errors
    /// `pending` while it goes on; `conflict` where the resource was changed since; what the cloud says.
    pub(super) fn make(&self, change: Change) -> Result<(), Failure> {
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
            self.context.state().put(RUNNING, &operation.link, AT_MOST);
        }
        Err(pending(&operation))
    }
}

fn pending(operation: &Operation) -> Failure {
    Failure::pending(
        operation.after,
        &operation.link,
        "the cloud is changing the load balancer",
    )
}
