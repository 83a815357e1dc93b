//! What the tagging controller reports about itself.

use std::sync::{Arc, Mutex};

use tokio::time::Instant;

use crate::kube::node::Node;
use crate::kube::node::view::provider_id_text;
use crate::options::Controller;
use crate::queue::Queue;
use crate::report::cause::Cause;
use crate::report::explain::{next_try, span, times};
use crate::report::snapshot::{Object, Progress, Report, Snapshot, Unfinished};
use crate::report::waiting::FailedAttempts;
use crate::scope::Scope;
use crate::sync::lock;
use crate::tagging::Skipped;
use crate::tagging::changes::node_of;
use crate::tagging::plan::{label, needs_tags};

/// Reads the controller's queue, and which machines wait for an answer.
pub(super) struct TaggingReport {
    pub(super) scope: Scope,
    pub(super) queue: Queue,
    pub(super) digest: Arc<str>,
    pub(super) waiting: Arc<Mutex<FailedAttempts>>,
    pub(super) skipped: Skipped,
}

impl Report for TaggingReport {
    fn controller(&self) -> Controller {
        Controller::Tagging
    }

    fn provider(&self) -> String {
        self.scope.identity().name
    }

    fn snapshot(&self) -> Snapshot {
        let queue = self.queue.snapshot();
        Snapshot {
            progress: Progress::from(&queue),
            queues: vec![queue],
            longest_step: None,
        }
    }

    fn unfinished(&self) -> Vec<Unfinished> {
        let (waiting, now) = (lock(&self.waiting), Instant::now());
        let unfinished = |key: &str| {
            let failing = waiting.about(key, now);
            let queued = self.queue.state(key).map(|queued| queued.unfinished);
            let since = failing.as_ref().map(|failing| failing.waited);
            let cause = failing.map(|failing| failing.cause).filter(Cause::is_failure);
            Unfinished {
                object: Object::Node(node_of(key).to_owned()),
                since: since.into_iter().chain(queued).max(),
                failed: cause.is_some(),
                cause,
            }
        };
        self.queue.keys().iter().map(|key| unfinished(key)).collect()
    }

    fn explain_node(&self, node: &Node) -> Option<String> {
        if !self.scope.owns_node()(node) {
            return None;
        }
        let provider = self.scope.identity();
        let name = node.metadata.name.as_deref()?;
        if provider_id_text(node).is_none() {
            return Some("has no provider id yet; its machine is tagged when it has one.".to_owned());
        }
        if !needs_tags(node, label(&provider), &self.digest) {
            return Some("has the tags of --tags on its machine.".to_owned());
        }
        if let Some(why) = lock(&self.skipped).get(name) {
            return Some(format!("has no tags on its machine, and none are tried now: {why}."));
        }
        let next = next_try(self.queue.state(name));
        let failing = lock(&self.waiting).about(name, Instant::now());
        Some(match failing {
            Some(failing) => {
                let (waited, tries) = (span(failing.waited), times(failing.attempts));
                let (provider, reason) = (&provider.name, &failing.cause.reason);
                format!(
                    "waits for its machine to be tagged since {waited}{tries}. Last answer of provider {provider}: {reason}. {next}"
                )
            }
            None => format!("waits for its machine to be tagged. {next}"),
        })
    }
}
