//! Deletes a load balancer.

use cloudwit_model::{AnnotationChange, CloudError, Failure, Service};

use crate::assign::BALANCER_PROVIDER;
use crate::kube::service::view::lenient_service_view;
use crate::queue::Outcome;
use crate::service::state::Operation;
use crate::service::steps::Reconcile;
use crate::service::steps::failure::call_failed;
use crate::service::targets::cache::Targets;

/// Deletes the load balancer of the Service in the record.
pub(super) async fn delete(this: &Reconcile<'_>) -> Option<Outcome> {
    let failed = |error| Some(call_failed(this, Operation::Delete, &Targets::default(), &error));
    let view = lenient_service_view(this.service);
    if let Err(failure) = this.context.scope.may_ask_about(&view) {
        this.record(|record| record.start(Operation::Delete))?;
        return failed(failure.into());
    }
    let mut exists = this.record(|record| record.has_balancer())?;
    if !exists {
        // Only for correct Events (weak spot S12). It is deleted in any case: there may be parts of it.
        exists = !matches!(this.context.cloud.get_balancer(&view).await, Ok(None));
    }
    let token = this.record(|record| record.start(Operation::Delete))?;
    if token.is_none() && exists {
        this.event("DeletingLoadBalancer", "Deleting load balancer");
    }
    let mut changes = match call(this, &view, token.as_deref()).await {
        Ok(changes) => this.accepted(changes),
        Err(CloudError::Failure(Failure::ImplementedElsewhere(_))) => {
            exists = false;
            Vec::new()
        }
        Err(CloudError::DryRun) => Vec::new(),
        Err(error) => return failed(error),
    };
    if this.context.scope.are_several() {
        // The note goes with the load balancer.
        changes.push(AnnotationChange {
            key: BALANCER_PROVIDER.to_owned(),
            value: None,
        });
    }
    this.record(|record| record.note_deleted(changes));
    if exists {
        this.event("DeletedLoadBalancer", "Deleted load balancer");
    }
    None
}

/// The call. What is not found may be the load balancer, and then all is well, or something else.
async fn call(this: &Reconcile<'_>, view: &Service, token: Option<&str>) -> Result<Vec<AnnotationChange>, CloudError> {
    let cloud = &this.context.cloud;
    match cloud.delete_balancer(view, token).await {
        Err(CloudError::Failure(not_found @ Failure::NotFound(_))) => match cloud.get_balancer(view).await? {
            None => Ok(Vec::new()),
            Some(_) => Err(not_found.into()),
        },
        other => other,
    }
}
