//! A report for tests.

use k8s_openapi::api::core::v1::Service;

use crate::kube::node::Node;
use crate::options::Controller;
use crate::queue::Queue;
use crate::report::reconcile_clock::ReconcileClock;
use crate::report::snapshot::{Report, Snapshot, Unfinished};

/// Reports what it is told.
pub(crate) struct FakeReport {
    pub(crate) controller: Controller,
    pub(crate) queues: Vec<Queue>,
    pub(crate) clock: ReconcileClock,
    pub(crate) unfinished: Vec<Unfinished>,
    pub(crate) about_nodes: Option<String>,
    /// The key of a Service that is gone, and the text about it.
    pub(crate) about_gone: Option<(&'static str, String)>,
}

impl FakeReport {
    pub(crate) fn of(controller: Controller) -> Self {
        Self {
            controller,
            queues: Vec::new(),
            clock: ReconcileClock::default(),
            unfinished: Vec::new(),
            about_nodes: None,
            about_gone: None,
        }
    }
}

impl Report for FakeReport {
    fn controller(&self) -> Controller {
        self.controller
    }

    fn provider(&self) -> String {
        "sim".into()
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            queues: self.queues.iter().map(Queue::snapshot).collect(),
            longest_step: self.clock.longest_step(),
            ..Snapshot::default()
        }
    }

    fn unfinished(&self) -> Vec<Unfinished> {
        self.unfinished.clone()
    }

    fn explain_node(&self, _: &Node) -> Option<String> {
        self.about_nodes.clone()
    }

    fn explain_service(&self, key: &str, service: Option<&Service>) -> Option<String> {
        let (gone, text) = self.about_gone.as_ref()?;
        (service.is_none() && key == *gone).then(|| text.clone())
    }
}
