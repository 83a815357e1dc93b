//! How a dry run goes on after an `ensure` that was only told: it asks the cloud what there is.
//!
//! A load balancer that exists is taken for ensured, so that everything after it is gone through too: its status, changes of nodes,
//! looks for drift. One that does not exist stays as it is until the Service changes.

use k8s_openapi::api::core::v1::Service;
use tracing::info;

use crate::kube::cache::Key;
use crate::kube::service::view::{ingress_status, lenient_service_view};
use crate::queue::Outcome;
use crate::service::ServiceLb;
use crate::service::state::Operation;
use crate::service::targets::cache::Targets;

impl ServiceLb {
    /// Notes what the cloud has for a Service whose load balancer would be ensured with these nodes.
    pub(crate) async fn pretend_ensured(&self, key: &Key, service: &Service, given: &Targets) -> Option<Outcome> {
        let news = |what| self.context.apply.said().is_news(&format!("in the cloud {key}"), what);
        match self.context.cloud.get_balancer(&lenient_service_view(service)).await {
            Ok(Some(balancer)) => {
                if news("exists") {
                    info!(service = %key, "dry run: the cloud has this load balancer already; it would be brought to this state");
                }
                self.record(key, |record| {
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
            Err(error) => Some(self.call_failed(key, service, Operation::Ensure, given, &error)),
        }
    }
}
