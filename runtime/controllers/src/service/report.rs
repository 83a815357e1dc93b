//! What the service controller reports about itself.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;

use crate::options::Controller;
use crate::queue::Queue;
use crate::report::snapshot::{Progress, Report, Snapshot, Unfinished};
use crate::scope::Scope;
use crate::service::records::Records;

/// Reads the controller's queues and records.
pub(crate) struct ServiceReport {
    pub(crate) scope: Scope,
    pub(crate) queue: Queue,
    pub(crate) node_queue: Queue,
    pub(crate) records: Arc<Records>,
}

impl Report for ServiceReport {
    fn controller(&self) -> Controller {
        Controller::ServiceLb
    }

    fn provider(&self) -> String {
        self.scope.identity().name
    }

    fn snapshot(&self) -> Snapshot {
        let queue = self.queue.snapshot();
        Snapshot {
            progress: Progress::from(&queue),
            queues: vec![queue, self.node_queue.snapshot()],
            longest_step: None,
        }
    }

    fn unfinished(&self) -> Vec<Unfinished> {
        self.records.unfinished(&self.queue)
    }

    fn explain_service(&self, key: &str, service: Option<&Service>) -> Option<String> {
        if service.is_some_and(|service| !self.scope.owns_service()(service)) {
            return None;
        }
        self.records.explain(key, service, &self.queue)
    }
}
