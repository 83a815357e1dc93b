//! Continues a dry run after an `ensure` that was only logged: reads what the cloud has.
//!
//! A load balancer that exists is taken for ensured, so that everything after it is gone through too: its status, changes of nodes,
//! looks for drift. One that does not exist stays as it is until the Service changes.

use crate::kube::service::view::{ingress_status, lenient_service_view};
use crate::leadership::dry_run::EnsurePlan;
use crate::queue::Outcome;
use crate::service::state::Operation;
use crate::service::steps::Reconcile;
use crate::service::steps::failure::call_failed;
use crate::service::targets::cache::Targets;

/// Notes what the cloud has for a Service whose load balancer would be ensured with these nodes.
pub(super) async fn pretend_ensured(this: &Reconcile<'_>, given: &Targets) -> Option<Outcome> {
    let view = lenient_service_view(this.service);
    let tell = |plan| {
        let said = this.context.apply.dry_run_log();
        said.log_ensure(&view, &given.list, plan);
    };
    match this.context.cloud.get_balancer(&view).await {
        Ok(Some(balancer)) => {
            let is_behind = this.record(|record| {
                record.note_ensured(given.set, ingress_status(&balancer.ingress), Vec::new());
                record.unwritten().differs_from(this.service)
            })?;
            tell(if is_behind {
                EnsurePlan::Change
            } else {
                EnsurePlan::Nothing
            });
            None
        }
        Ok(None) => {
            tell(EnsurePlan::Create);
            Some(Outcome::Done)
        }
        Err(error) => Some(call_failed(this, Operation::Ensure, given, &error)),
    }
}
