//! The changes: the only place that writes.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::{Change, Steps};
use serde_json::Value;

use crate::nsx::api::Nsx;
use crate::nsx::object::{is_right, merged, text};

/// Changes of one load balancer.
pub struct Work<'a> {
    pub nsx: &'a Nsx<'a>,
    steps: Steps,
    /// Whether something was changed in this call, or an earlier one of the same token.
    pub changed: bool,
}

impl<'a> Work<'a> {
    /// Continues where the call with this token ended.
    pub fn continued(nsx: &'a Nsx<'a>, name: &str, token: Option<&str>) -> Self {
        let former = token.and_then(Steps::read);
        Self {
            nsx,
            changed: former.is_some(),
            steps: Steps::continued(former.as_ref(), name),
        }
    }

    /// Makes an object, or brings the one that is seen in line; what it is then. Its other fields stay as they are.
    ///
    /// # Errors
    /// As [`Steps::make`]; `pending` where it was changed meanwhile.
    pub fn put(&mut self, path: &str, wanted: &Value, seen: Option<&Value>) -> Result<Value, Failure> {
        if let Some(seen) = seen.filter(|seen| is_right(wanted, seen)) {
            return Ok(seen.clone());
        }
        let body = seen.map_or_else(|| wanted.clone(), |seen| merged(seen, wanted));
        let made = self.make(&format!("PUT {path} {wanted}"), || self.nsx.put(path, &body))?;
        Ok(made.unwrap_or(body))
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// As [`Steps::make`].
    pub fn delete(&mut self, path: &str) -> Result<(), Failure> {
        self.make(&format!("DELETE {path}"), || self.nsx.delete(path)).map(drop)
    }

    /// Deletes what others may use too: if they do, it stays.
    ///
    /// # Errors
    /// As [`delete`](Self::delete).
    pub fn delete_unused(&mut self, path: &str) -> Result<(), Failure> {
        match self.delete(path) {
            Err(failure) if failure.kind == FailureKind::FailedPrecondition => Ok(()),
            done => done,
        }
    }

    /// The answer while NSX works on it.
    pub fn pending(&self, state: &str) -> Failure {
        self.steps.pending(state)
    }

    fn make<T>(&mut self, change: &str, send: impl FnOnce() -> Result<T, Failure>) -> Result<Option<T>, Failure> {
        let change = Change::new(change).busy_when(FailureKind::Conflict);
        let made = self.steps.make(&self.nsx.context, &change, send);
        self.changed |= made.is_ok();
        made
    }
}

/// The path of an object that is there.
pub fn path(object: &Value) -> &str {
    text(object, "path")
}
