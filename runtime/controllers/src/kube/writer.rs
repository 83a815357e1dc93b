//! The only writer: every change of the cluster but Events goes through [`Apply`].
//!
//! It applies three rules for all loops: a write is dropped and counted unless this process leads, it is logged and counted in a dry run,
//! and the API server's refusals are classified ([`WriteError`]).
//!
//! Reads that must not be stale (before a destructive write, after a conflict) go through [`Apply::read`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cloudwit_model::Retry;
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::core::Status;
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;
use tracing::{debug, info};

use crate::kube::rights::with_advice;
use crate::kube::watched::Watched;
use crate::leadership::dry_run::DryRunLog;
use crate::leadership::{Leadership, NotLeading};
use crate::metrics::Metrics;

/// A request that takes longer is given up and tried again later; otherwise one lost connection would hold a worker
/// for ever.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// Why a write did not happen.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The object changed meanwhile, or another one has its name now: read it again and decide again.
    #[error("the object changed meanwhile: {0}")]
    Conflict(String),
    /// The object is gone.
    #[error("the object no longer exists")]
    NotFound,
    /// The API server refuses it as it stands (invalid, forbidden, too large). Trying again soon does not help.
    #[error("the API server refuses it: {0}")]
    Refused(String),
    /// Another replica leads now; nothing was written, or it is unknown whether it was.
    #[error("this process does not lead any more")]
    NotLeading,
    /// The API server was not reached or failed. Retried with backoff.
    #[error("the API server did not answer: {0}")]
    Unreachable(String),
}

impl WriteError {
    /// When to try again.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Conflict(_) => Retry::Soon,
            Self::NotFound | Self::NotLeading => Retry::Never,
            Self::Refused(_) | Self::Unreachable(_) => Retry::Backoff,
        }
    }

    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Conflict(_) => "conflict",
            Self::NotFound => "not_found",
            Self::Refused(_) => "refused",
            Self::NotLeading => "not_leading",
            Self::Unreachable(_) => "unreachable",
        }
    }
}

impl From<NotLeading> for WriteError {
    fn from(_: NotLeading) -> Self {
        Self::NotLeading
    }
}

impl From<kube::Error> for WriteError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => match status.code {
                404 => Self::NotFound,
                409 => Self::Conflict(status.message.clone()),
                422 if is_another_object(&status) => Self::Conflict(status.message.clone()),
                403 => Self::Refused(with_advice(&status.message)),
                400 | 405 | 413 | 422 => Self::Refused(status.message.clone()),
                _ => Self::Unreachable(status.message.clone()),
            },
            other => Self::Unreachable(other.to_string()),
        }
    }
}

/// Whether a patch named the uid of an object that was replaced by another of the same name.
fn is_another_object(status: &Status) -> bool {
    status
        .details
        .iter()
        .flat_map(|details| &details.causes)
        .any(|cause| cause.field == "metadata.uid")
}

/// Which part of an object a patch is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The object itself: metadata and spec.
    Object,
    /// The `status` subresource: status and, for Nodes and Services, metadata.
    Status,
}

/// An object's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    /// Namespace, for kinds that have one.
    pub namespace: Option<&'a str>,
    /// Name.
    pub name: &'a str,
}

impl<'a> Target<'a> {
    /// A Node.
    pub fn node(name: &'a str) -> Self {
        Self { namespace: None, name }
    }
}

impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(self.name),
        }
    }
}

/// What has to be still true for a delete to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unchanged {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
}

/// Writes to the cluster; clones share it.
#[derive(Clone)]
pub struct Apply {
    client: Client,
    metrics: Arc<Metrics>,
    leading: Leadership,
    dry_run: bool,
    said: Arc<DryRunLog>,
}

impl Apply {
    /// A writer that writes only while `leading` lasts, and in a dry run never.
    pub fn new(client: Client, metrics: Arc<Metrics>, leading: Leadership, dry_run: bool) -> Self {
        Self {
            client,
            metrics,
            leading,
            dry_run,
            said: Arc::default(),
        }
    }

    /// What the dry run has said.
    pub fn dry_run_log(&self) -> &Arc<DryRunLog> {
        &self.said
    }

    /// The same, unless this is no dry run.
    pub fn dry_run(&self) -> Option<Arc<DryRunLog>> {
        self.dry_run.then(|| self.said.clone())
    }

    /// Whether this process leads. To be checked before a call that changes the cloud; writes to the cluster are
    /// checked here.
    pub fn is_leading(&self) -> bool {
        self.leading.is_leading()
    }

    /// Reads the object from the API server itself, not from the cache. None when it does not exist.
    pub async fn read<K: Watched>(&self, target: Target<'_>) -> Result<Option<K>, WriteError> {
        let api = K::api(self.client.clone(), target.namespace);
        match within_limit(api.get(target.name)).await {
            Ok(object) => Ok(Some(object)),
            Err(WriteError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Patches an object and answers its new state; None in a dry run. `purpose` says in words what the patch does.
    ///
    /// A merge patch with `metadata.resourceVersion` in it fails with [`WriteError::Conflict`] if the object has
    /// another version.
    pub async fn patch<K: Watched>(
        &self,
        target: Target<'_>,
        part: Part,
        patch: &Patch<impl Serialize + fmt::Debug>,
        purpose: &str,
    ) -> Result<Option<K>, WriteError> {
        let resource = if part == Part::Status { K::STATUS } else { K::RESOURCE };
        if !self.may_write::<K>(target, resource, "patch", purpose, || body_of(patch))? {
            return Ok(None);
        }
        debug!(kind = K::KIND, name = %target, purpose, "patch");
        let api = K::api(self.client.clone(), target.namespace);
        let params = PatchParams::default();
        let result = match part {
            Part::Object => self.send(api.patch(target.name, &params, patch)).await,
            Part::Status => self.send(api.patch_status(target.name, &params, patch)).await,
        };
        self.count(resource, "patch", &result);
        result.map(Some)
    }

    /// Deletes an object if it is unchanged. `purpose` says in words why. Answers whether it was done (false in a dry
    /// run).
    pub async fn delete<K: Watched>(
        &self,
        target: Target<'_>,
        unchanged: &Unchanged,
        purpose: &str,
    ) -> Result<bool, WriteError> {
        if !self.may_write::<K>(target, K::RESOURCE, "delete", purpose, || Value::Null)? {
            return Ok(false);
        }
        info!(kind = K::KIND, name = %target, purpose, "delete");
        let api = K::api(self.client.clone(), target.namespace);
        let params = DeleteParams::default().preconditions(Preconditions {
            uid: Some(unchanged.uid.clone()),
            resource_version: Some(unchanged.resource_version.clone()),
        });
        let result = self
            .send(async { api.delete(target.name, &params).await.map(|_| ()) })
            .await;
        self.count(K::RESOURCE, "delete", &result);
        result.map(|()| true)
    }

    /// Sends a write, unless the term ends first.
    async fn send<T>(&self, request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, WriteError> {
        self.leading.write(within_limit(request)).await?
    }

    /// Whether to continue; false in a dry run, after saying what would have been done with which `body`.
    fn may_write<K: Watched>(
        &self,
        target: Target<'_>,
        resource: &'static str,
        verb: &'static str,
        purpose: &str,
        body: impl FnOnce() -> Value,
    ) -> Result<bool, WriteError> {
        if !self.leading.is_leading() {
            debug!(kind = K::KIND, name = %target, purpose, "write dropped: not leading");
            self.metrics.wrote(resource, verb, WriteError::NotLeading.label());
            return Err(WriteError::NotLeading);
        }
        if self.dry_run {
            let body = body();
            if self.said.is_news(
                &format!("{} {target} {verb} {purpose}", K::KIND),
                timeless(&body).to_string(),
            ) {
                info!(kind = K::KIND, name = %target, verb, purpose, %body, "dry run: this would be written");
            }
            self.metrics.wrote(resource, verb, "dry_run");
            return Ok(false);
        }
        Ok(true)
    }

    fn count<T>(&self, resource: &'static str, verb: &'static str, result: &Result<T, WriteError>) {
        self.metrics
            .wrote(resource, verb, result.as_ref().map_or_else(WriteError::label, |_| "ok"));
    }
}

fn body_of(patch: &Patch<impl Serialize + fmt::Debug>) -> Value {
    match patch {
        Patch::Merge(body) | Patch::Strategic(body) | Patch::Apply(body) => {
            serde_json::to_value(body).unwrap_or_default()
        }
        _ => Value::Null,
    }
}

/// The patch without what differs each time although the decision is the same.
fn timeless(body: &Value) -> Value {
    const MOMENTS: [&str; 3] = ["lastHeartbeatTime", "lastTransitionTime", "resourceVersion"];
    match body {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !MOMENTS.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), timeless(value)))
            .collect(),
        Value::Array(items) => items.iter().map(timeless).collect(),
        other => other.clone(),
    }
}

async fn within_limit<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, WriteError> {
    match tokio::time::timeout(REQUEST_LIMIT, request).await {
        Ok(result) => Ok(result?),
        Err(_) => Err(WriteError::Unreachable(format!(
            "no answer within {} s",
            REQUEST_LIMIT.as_secs()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_same_decision_at_another_time_is_no_news() {
        let patch = |version: u32, status: &str| {
            json!({ "metadata": { "uid": "u", "resourceVersion": version },
                    "status": { "conditions": [{ "status": status, "lastTransitionTime": version }] } })
        };
        assert_eq!(timeless(&patch(1, "True")), timeless(&patch(2, "True")));
        assert_ne!(timeless(&patch(1, "True")), timeless(&patch(1, "False")));
    }
}
