//! Pending and failed calls: noted in the record, logged, and shown in an Event.

use cloudwit_model::{CloudError, Failure, Retry, short_list};
use tracing::{info, warn};

use crate::queue::Outcome;
use crate::service::state::Operation;
use crate::service::steps::Reconcile;
use crate::service::targets::cache::Targets;

/// Records a call without result, writes the Event, and returns when to retry.
pub(super) fn call_failed(this: &Reconcile<'_>, operation: Operation, given: &Targets, error: &CloudError) -> Outcome {
    let retry = error.retry();
    if let CloudError::Failure(Failure::Pending { token, message, .. }) = error {
        let (token, text) = (token.clone(), message.clone());
        let news = this
            .record(|record| record.note_pending(token, text, given.set))
            .unwrap_or(false);
        if news {
            info!(service = %this.key, ?operation, why = message, "waiting for the cloud");
            this.event(waiting_reason(operation), &format!("Waiting: {message}"));
        }
        return Outcome::Retry(retry);
    }
    warn!(service = %this.key, ?operation, %error, "failed to sync load balancer");
    if operation == Operation::UpdateTargets {
        this.context.metrics.service.target_update_errors.inc();
    }
    let news = this.record(|record| record.fail(error)).unwrap_or(true);
    // A pause that the cloud set is reported once, not each time.
    if news || !matches!(retry, Retry::After(_)) {
        let current = this.context.services.get(this.key);
        let gone = current.is_none_or(|current| current.metadata.uid != this.service.metadata.uid);
        let (reason, message) = failure_event(operation, gone, given, error);
        this.warning(reason, message);
    }
    Outcome::Retry(retry)
}

fn waiting_reason(operation: Operation) -> &'static str {
    match operation {
        Operation::Ensure => "EnsuringLoadBalancer",
        Operation::UpdateTargets => "UpdatingLoadBalancer",
        Operation::Delete => "DeletingLoadBalancer",
    }
}

fn failure_event(operation: Operation, gone: bool, given: &Targets, error: &CloudError) -> (&'static str, String) {
    match operation {
        Operation::Ensure => (
            "SyncLoadBalancerFailed",
            format!("Error syncing load balancer: failed to ensure load balancer: {error}"),
        ),
        Operation::UpdateTargets => (
            "UpdateLoadBalancerFailed",
            format!(
                "Error updating load balancer with new hosts [{}] [node names limited, total number of nodes: {}], error: {error}",
                short_list(&given.list),
                given.list.len()
            ),
        ),
        Operation::Delete if gone => (
            "DeleteLoadBalancerFailed",
            format!("Error deleting load balancer: {error}"),
        ),
        Operation::Delete => (
            "SyncLoadBalancerFailed",
            format!("Error syncing load balancer: failed to delete load balancer: {error}"),
        ),
    }
}
