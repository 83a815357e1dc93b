//! Gives load balancers their new nodes: one call for all of them, and a result for each.

use cloudwit_model::{AnnotationChange, CloudError, Failure, Service, TargetUpdate};
use tracing::info;

use crate::kube::service::view::lenient_service_view;
use crate::queue::Outcome;
use crate::service::state::{Operation, Record};
use crate::service::steps::Reconcile;
use crate::service::steps::failure::call_failed;
use crate::service::targets::cache::Targets;

/// What a Service adds to the call.
struct ServiceUpdate {
    view: Service,
    token: Option<String>,
    allowed: Result<(), Failure>,
}

/// One outcome for each, in order; none means: done, plan again.
pub(super) async fn update(all: &[Reconcile<'_>]) -> Vec<Option<Outcome>> {
    let Some(Reconcile {
        controller, context, ..
    }) = all.first()
    else {
        return Vec::new();
    };
    // All are started before the nodes are read, so that no pass over changes that come after overlooks one.
    let asked: Vec<Option<ServiceUpdate>> = all.iter().map(start).collect();
    let given = controller.targets_now();
    let allowed = asked.iter().flatten().filter(|asked| asked.allowed.is_ok());
    let updates: Vec<TargetUpdate<'_>> = allowed
        .map(|asked| TargetUpdate {
            service: &asked.view,
            token: asked.token.as_deref(),
        })
        .collect();
    let stopwatches: Vec<_> = updates
        .iter()
        .map(|_| context.metrics.service.target_update())
        .collect();
    let answer = match updates.as_slice() {
        [] => Ok(Vec::new()),
        updates => context.cloud.update_targets_of(updates, &given.list).await,
    };
    drop(stopwatches);
    let mut results = answer.map(Vec::into_iter);
    let mut result_of = |asked: ServiceUpdate| {
        asked.allowed?;
        let missing = || Err(Failure::InvalidResponse("no result for the Service".to_owned()));
        match &mut results {
            Ok(results) => Ok(results.next().unwrap_or_else(missing)?),
            Err(error) => Err(error.clone()),
        }
    };
    all.iter()
        .zip(asked)
        .map(|(this, asked)| note(this, &given, result_of(asked?)))
        .collect()
}

/// None when the Service is not looked after any more.
fn start(this: &Reconcile<'_>) -> Option<ServiceUpdate> {
    let token = this.record(|record| record.start(Operation::UpdateTargets))?;
    let view = lenient_service_view(this.service);
    this.context.metrics.service.target_updates.inc();
    Some(ServiceUpdate {
        allowed: this.context.scope.may_ask_about(&view),
        token,
        view,
    })
}

fn note(this: &Reconcile<'_>, given: &Targets, result: Result<Vec<AnnotationChange>, CloudError>) -> Option<Outcome> {
    match result {
        Err(CloudError::DryRun) => {
            this.record(|record| record.note_updated(given.set, Vec::new()));
            None
        }
        Ok(changes) => {
            let changes = this.accepted(changes);
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
        Err(error) => Some(call_failed(this, Operation::UpdateTargets, given, &error)),
    }
}
