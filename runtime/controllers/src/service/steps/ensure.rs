//! Brings a load balancer to the spec of its Service.

use cloudwit_model::{Balancer, CloudError, Failure, Target};
use k8s_openapi::api::core::v1::LoadBalancerIngress;
use tracing::info;

use crate::ambient;
use crate::kube::service::view::{ingress_status, service_view};
use crate::kube::service::{ingress, ingress_equal};
use crate::queue::Outcome;
use crate::service::state::Operation;
use crate::service::steps::Reconcile;
use crate::service::steps::dry_run::pretend_ensured;
use crate::service::steps::failure::call_failed;
use crate::service::steps::owner::settle_owner;
use crate::service::steps::write::patch_status;

pub(super) async fn ensure(this: &Reconcile<'_>) -> Option<Outcome> {
    if let Some(outcome) = settle_owner(this).await {
        return outcome;
    }
    let token = this.record(|record| record.start(Operation::Ensure))?;
    let given = this.controller.targets_now();
    if token.is_none() {
        this.event("EnsuringLoadBalancer", "Ensuring load balancer");
        if given.list.is_empty() {
            this.warn_of_no_nodes();
        }
    }
    match call(this, &given.list, token.as_deref()).await {
        Ok(Balancer {
            ingress,
            annotations,
            remaining: Some(work),
        }) => {
            log_ready(this, &ingress_status(&ingress), given.list.len());
            this.record(|record| record.note_usable(ingress_status(&ingress), annotations));
            let waits = call_failed(this, Operation::Ensure, &given, &Failure::from(work).into());
            let is_behind = this.record(|record| record.unwritten().differs_from(this.service))?;
            let written = if is_behind { patch_status(this).await } else { None };
            written.or(Some(waits))
        }
        Ok(balancer) => {
            log_ready(this, &ingress_status(&balancer.ingress), given.list.len());
            this.record(|record| {
                record.note_ensured(given.set, ingress_status(&balancer.ingress), balancer.annotations);
            });
            this.event("EnsuredLoadBalancer", "Ensured load balancer");
            None
        }
        Err(CloudError::Failure(Failure::ImplementedElsewhere(message))) => {
            info!(service = %this.key, why = %message, "load balancer managed by another controller");
            this.record(|record| record.note_elsewhere(given.set));
            None
        }
        Err(CloudError::DryRun) => pretend_ensured(this, &given).await,
        Err(error) => Some(call_failed(this, Operation::Ensure, &given, &error)),
    }
}

/// One line when the load balancer can be reached, and when its address changes.
fn log_ready(this: &Reconcile<'_>, points: &[LoadBalancerIngress], nodes: usize) {
    if ingress_equal(points, ingress(this.service)) {
        return;
    }
    let addresses: Vec<&str> = points
        .iter()
        .filter_map(|point| point.ip.as_deref().or(point.hostname.as_deref()))
        .collect();
    let created = this.service.metadata.creation_timestamp.as_ref();
    let age_seconds = created.map(|created| ambient::now().duration_since(created.0).as_secs_f64());
    info!(service = %this.key, addresses = addresses.join(" "), nodes, age_seconds, "load balancer ready");
}

/// The call alone, and whether its answer can be one.
pub(super) async fn call(
    this: &Reconcile<'_>,
    targets: &[Target],
    token: Option<&str>,
) -> Result<Balancer, CloudError> {
    let view = service_view(this.service).map_err(|what| Failure::Invalid(what.into()))?;
    this.context.scope.may_ask_about(&view)?;
    let mut balancer = this.context.cloud.ensure_balancer(&view, targets, token).await?;
    balancer.annotations = this.accepted(balancer.annotations);
    if balancer.ingress.is_empty() {
        let message = "the provider reports success but gives no address; it has to answer pending until there is one";
        return Err(Failure::Other(message.into()).into());
    }
    Ok(balancer)
}
