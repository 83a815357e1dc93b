//! Writes to one Service: its finalizer, its status, its annotations.

use kube::api::Patch;
use serde_json::Value;
use tracing::warn;

use crate::kube::cache::key_of;
use crate::kube::writer::{Part, Target, WriteError};
use crate::queue::Outcome;
use crate::service::patch;
use crate::service::state::Record;
use crate::service::steps::Reconcile;
use crate::service::steps::ensure::ensure;
use k8s_openapi::api::core::v1::Service;

pub(super) async fn add_finalizer(this: &Reconcile<'_>) -> Option<Outcome> {
    let body = patch::add_finalizer(this.service);
    match patch(this, body, "add the load balancer finalizer").await {
        Ok(true) => None,
        // A dry run: the finalizer will not come, and what would follow it is logged too.
        Ok(false) => ensure(this).await.or(Some(Outcome::Done)),
        Err(error) => Some(write_failed(
            this,
            "failed to add load balancer cleanup finalizer",
            &error,
        )),
    }
}

pub(super) async fn remove_finalizer(this: &Reconcile<'_>) -> Option<Outcome> {
    let left_behind = this.context.scope.identity().service_finalizers;
    let body = this.record(|record| patch::remove_finalizer(this.service, &left_behind, record.unwritten()))?;
    let result = patch(this, body, "remove the load balancer finalizer").await;
    written(this, "failed to remove load balancer cleanup finalizer", result)
}

pub(super) async fn patch_status(this: &Reconcile<'_>) -> Option<Outcome> {
    let body = this.record(|record| patch::write_answers(this.service, record.unwritten()))?;
    let result = patch(this, body, "write the load balancer's address").await;
    if matches!(result, Ok(false)) {
        // A dry run continues as if it were written.
        this.record(Record::note_written);
        return None;
    }
    written(this, "failed to update load balancer status", result)
}

fn written(this: &Reconcile<'_>, failure: &str, result: Result<bool, WriteError>) -> Option<Outcome> {
    match result {
        Ok(true) => {
            this.record(Record::note_written);
            None
        }
        Ok(false) => Some(Outcome::Done),
        // It vanished; the watch will say so.
        Err(WriteError::NotFound) => {
            this.record(Record::note_written);
            Some(Outcome::Done)
        }
        Err(error) => Some(write_failed(this, failure, &error)),
    }
}

/// Patches the `status` subresource and puts the answer into the cache. False in a dry run.
pub(super) async fn patch(this: &Reconcile<'_>, body: Value, purpose: &str) -> Result<bool, WriteError> {
    let target = Target {
        namespace: this.service.metadata.namespace.as_deref(),
        name: this.service.metadata.name.as_deref().unwrap_or_default(),
    };
    let body = Patch::Strategic(body);
    let apply = &this.context.apply;
    let result = apply.patch::<Service>(target, Part::Status, &body, purpose).await;
    let refusal = result.as_ref().err().map(ToString::to_string);
    this.record(|record| record.note_write(refusal));
    let written = result?;
    let done = written.is_some();
    written
        .into_iter()
        .for_each(|service| this.context.services.observe(service));
    Ok(done)
}

pub(super) fn write_failed(this: &Reconcile<'_>, what: &str, error: &WriteError) -> Outcome {
    if !matches!(error, WriteError::NotFound | WriteError::NotLeading) {
        warn!(service = %key_of(this.service), %error, "{what}");
        let message = format!("Error syncing load balancer: {what}: {error}");
        this.warning("SyncLoadBalancerFailed", message);
    }
    Outcome::Retry(error.retry())
}
