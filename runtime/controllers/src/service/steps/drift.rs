//! One drift check: what the cloud shows of a load balancer, compared with the Service's status.

use cloudwit_model::{CloudError, Failure, Retry};
use tokio::time::Instant;
use tracing::{debug, info};

use crate::kube::service::view::{ingress_status, lenient_service_view};
use crate::metrics::service::DriftResult;
use crate::queue::Outcome;
use crate::service::state::{Operation, Record};
use crate::service::steps::failure::call_failed;
use crate::service::steps::{Reconcile, ensure};

/// So many checks make one with `ensure`; with the default period it comes once an hour.
const FULL_CHECK_EVERY: u32 = 6;

/// A check that fails is no failure of the Service; the next one comes after the period.
pub(super) async fn check(this: &Reconcile<'_>) -> Option<Outcome> {
    let view = lenient_service_view(this.service);
    let shown = match this.context.scope.may_ask_about(&view) {
        Ok(()) => this.context.cloud.get_balancer(&view).await,
        Err(failure) => Err(failure.into()),
    };
    let shown = match shown {
        Ok(shown) => shown.map(|balancer| ingress_status(&balancer.ingress)),
        Err(error) => {
            check_failed(this, &error);
            return None;
        }
    };
    let gone = shown.is_none();
    let drifted = this.record(|record| record.note_shown(shown))?;
    let (result, message) = match (drifted, gone) {
        (false, _) => {
            debug!(service = %this.key, "load balancer unchanged");
            this.context.metrics.service.drift_checked(DriftResult::Matches);
            let full = this.record(|record| record.drift.is_full_check_due(FULL_CHECK_EVERY))?;
            return if full { check_fully(this).await } else { None };
        }
        (true, true) => (DriftResult::Missing, "Load balancer not found; recreating"),
        (true, false) => (
            DriftResult::Changed,
            "Load balancer address differs from the status; ensuring it again",
        ),
    };
    info!(service = %this.key, message);
    this.context.metrics.service.drift_checked(result);
    this.warning("LoadBalancerDrifted", message);
    this.record(Record::forget_ensured);
    None
}

/// Has the load balancer ensured although no difference is known: the provider compares what `get` cannot show. There is no Event
/// unless the cloud has to build again.
async fn check_fully(this: &Reconcile<'_>) -> Option<Outcome> {
    let given = this.controller.targets_now();
    match ensure::call(this, &given.list, None).await {
        Ok(balancer) => {
            this.record(|record| {
                record.note_ensured(given.set, ingress_status(&balancer.ingress), balancer.annotations);
            });
            None
        }
        Err(error @ CloudError::Failure(Failure::Pending { .. })) => {
            this.record(Record::forget_ensured);
            Some(call_failed(this, Operation::Ensure, &given, &error))
        }
        Err(CloudError::DryRun) => None,
        Err(error) => {
            check_failed(this, &error);
            None
        }
    }
}

fn check_failed(this: &Reconcile<'_>, error: &CloudError) {
    info!(service = %this.key, %error, "periodic drift check failed");
    this.context.metrics.service.drift_checked(DriftResult::Failed);
    this.record(|record| record.drift.check_failed(error.to_string()));
    if let Retry::After(pause) = error.retry() {
        this.controller.drift_pause.set(Instant::now() + pause);
    }
}
