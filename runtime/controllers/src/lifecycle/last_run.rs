//! Results of the last run over Nodes that are not Ready, for the controller's report.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::kube::cache::Key;
use crate::kube::node::Node;
use crate::kube::node::view::provider_id;
use crate::lifecycle::brake::{Brake, SuspectedAbsence};
use crate::options::LifecycleOptions;
use crate::report::cause::Cause;
use crate::report::snapshot::{Candidate, Deletions, Object, Progress, Trouble, Unfinished};
use crate::report::waiting::FailedAttempts;

/// Results of the last pass, for reports.
#[derive(Default)]
pub struct LastRun {
    /// Nodes that seem to be gone, by uid, as of `at`.
    pub seen: HashMap<String, SuspectedAbsence>,
    /// The same for Nodes that are looked for by name.
    pub by_name: HashMap<String, SuspectedAbsence>,
    /// When the pass ended.
    pub at: Option<Instant>,
    /// When the cloud last answered completely.
    pub answered: Option<Instant>,
    /// The brake, while it is engaged.
    pub brake: Option<Brake>,
    /// Since when the brake has been engaged.
    pub braked: Option<Instant>,
    /// Nodes deleted within the window.
    pub deleted: usize,
    /// The last look-up's failure, until one succeeds, and when the next one is.
    pub failed: Option<(Instant, Cause)>,
    /// Nodes of which the cloud could not say whether their machine exists, although it answered about others.
    pub unanswered: FailedAttempts,
}

impl LastRun {
    /// How far it is, in numbers.
    pub fn progress(&self, now: Instant) -> Progress {
        let trouble = |(next, cause): &(Instant, Cause)| Trouble {
            what: "Failed to look up Nodes that are not Ready",
            cause: cause.clone(),
            next: next.saturating_duration_since(now),
        };
        Progress {
            later: self.seen.len() + self.unanswered.len(),
            oldest: self.seen.values().map(|seen| seen.since).max(),
            last_done: self.answered.map(|at| now - at),
            trouble: self.failed.as_ref().map(trouble),
            ..Progress::default()
        }
    }

    /// The Nodes whose presence is unknown.
    pub fn unanswered_nodes(&self, now: Instant) -> Vec<Unfinished> {
        let unfinished = |key: Key| {
            let waiting = self.unanswered.about(&key, now);
            let since = waiting.as_ref().map(|waiting| waiting.waited);
            let cause = waiting.map(|waiting| waiting.cause).filter(Cause::is_failure);
            Unfinished {
                since,
                failed: cause.is_some(),
                object: Object::Node(key.to_string()),
                cause,
            }
        };
        self.unanswered.keys().into_iter().map(unfinished).collect()
    }

    /// The Nodes that may be deleted, and what holds them; `nodes` are those of the provider.
    pub fn deletions(
        &self,
        provider: &str,
        nodes: &[Arc<Node>],
        options: &LifecycleOptions,
        now: Instant,
    ) -> Deletions {
        let elapsed = self.at.map_or(Duration::ZERO, |at| now - at);
        let candidate = |node: &Arc<Node>| {
            let seen = self.seen.get(node.metadata.uid.as_deref()?)?;
            Some(Candidate {
                node: node.metadata.name.clone()?,
                provider_id: provider_id(node).map(|id| id.to_string()).unwrap_or_default(),
                since: seen.since + elapsed,
                answers: seen.answers,
                held: seen.held && self.brake.is_some(),
            })
        };
        let mut candidates: Vec<Candidate> = nodes.iter().filter_map(candidate).collect();
        candidates.sort_by(|a, b| a.node.cmp(&b.node));
        Deletions {
            provider: provider.to_owned(),
            policy: options.node_deletion,
            deleted: self.deleted,
            window: options.window,
            allowed: options.share.of(nodes.len() + self.deleted),
            brake: self.brake.zip(self.braked.map(|at| now - at)),
            candidates,
        }
    }
}
