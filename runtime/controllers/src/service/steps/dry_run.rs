//! Continues a dry run after an `ensure` that was only logged: reads what the cloud has.
//!
//! A load balancer that exists is taken for ensured, so that everything after it is gone through too: its status, changes of nodes,
//! looks for drift. One that does not exist stays as it is until the Service changes.

use tracing::info;

use crate::kube::service::view::{ingress_status, lenient_service_view};
use crate::queue::Outcome;
use crate::service::state::Operation;
use crate::service::steps::Reconcile;
use crate::service::steps::failure::call_failed;
use crate::service::targets::cache::Targets;

/// Notes what the cloud has for a Service whose load balancer would be ensured with these nodes.
pub(super) async fn pretend_ensured(this: &Reconcile<'_>, given: &Targets) -> Option<Outcome> {
    let key = this.key;
    let news = |what| {
        this.context
            .apply
            .dry_run_log()
            .is_news(&format!("in the cloud {key}"), what)
    };
    let view = lenient_service_view(this.service);
    match this.context.cloud.get_balancer(&view).await {
        Ok(Some(balancer)) => {
            if news("exists") {
                info!(service = %key, "dry run: the cloud has this load balancer already; it would be brought to this state");
            }
            this.record(|record| {
                record.note_ensured(given.set, ingress_status(&balancer.ingress), Vec::new());
            });
            None
        }
        Ok(None) => {
            if news("missing") {
                info!(service = %key, "dry run: the cloud has no such load balancer; it would be created");
            }
            Some(Outcome::Done)
        }
        Err(error) => Some(call_failed(this, Operation::Ensure, given, &error)),
    }
}
