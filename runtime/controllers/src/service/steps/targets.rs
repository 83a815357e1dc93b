//! Gives a load balancer its new nodes.

use cloudwit_model::{CloudError, Failure};
use tracing::info;

use crate::kube::service::view::lenient_service_view;
use crate::queue::Outcome;
use crate::service::state::{Operation, Record};
use crate::service::steps::Reconcile;
use crate::service::steps::failure::call_failed;

pub(super) async fn update(this: &Reconcile<'_>) -> Option<Outcome> {
    let token = this.record(|record| record.start(Operation::UpdateTargets))?;
    let given = this.controller.targets_now();
    let view = lenient_service_view(this.service);
    let metrics = &this.context.metrics.service;
    metrics.target_updates.inc();
    let stopwatch = metrics.target_update();
    let result = match this.context.scope.may_ask_about(&view) {
        Ok(()) => {
            let call = this.context.cloud.update_targets(&view, &given.list, token.as_deref());
            call.await.map(|changes| this.accepted(changes))
        }
        Err(failure) => Err(failure.into()),
    };
    drop(stopwatch);
    match result {
        Err(CloudError::DryRun) => {
            this.record(|record| record.note_updated(given.set, Vec::new()));
            None
        }
        Ok(changes) => {
            if given.list.is_empty() {
                this.warn_of_no_nodes();
            } else {
                this.event("UpdatedLoadBalancer", "Updated load balancer with new hosts");
            }
            this.record(|record| record.note_updated(given.set, changes));
            None
        }
        Err(CloudError::Failure(Failure::ImplementedElsewhere(_))) => {
            this.record(|record| record.note_elsewhere(given.set));
            None
        }
        Err(CloudError::Failure(Failure::NotFound(message))) => {
            info!(service = %this.key, why = %message, "load balancer not found; recreating");
            this.record(Record::forget_ensured);
            None
        }
        Err(error) => Some(call_failed(this, Operation::UpdateTargets, &given, &error)),
    }
}
