//! Look-ups of the machines of Nodes that are not Ready, and their consequences.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use cloudwit_model::{CloudError, EventKind, Evidence, Failure, NodeRef, Presence, ProviderIdentity, Retry};
use futures::StreamExt;
use tokio::time::Instant;
use tracing::{Span, debug, warn};

use crate::kube::cache::Key;
use crate::kube::node::Node;
use crate::kube::node::view::{node_ref, provider_id};
use crate::lifecycle::brake::{Absent, Proof, Verdict};
use crate::lifecycle::deletion::AbsentNode;
use crate::lifecycle::plan::{After, Mark, after, is_announced};
use crate::lifecycle::{Lifecycle, age};
use crate::metrics::{Purpose, upstream_failure, upstream_result};
use crate::options::NodeDeletion;
use crate::report::cause::Cause;
use crate::sync::lock;

/// While look-ups fail the pause doubles from the monitor period to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What follows from an answer.
enum Fate {
    Mark(Mark),
    Gone(Proof),
}

/// What came of the look-ups of some Nodes.
#[derive(Default)]
pub(super) struct PageAnswers {
    /// Nodes that were answered about.
    pub answered: Vec<(Arc<Node>, Result<Presence, Failure>)>,
    /// Nodes on which alone the provider faults: a failure of that Node.
    pub faults: Vec<(Arc<Node>, CloudError)>,
    /// Nodes about which there was no answer for another reason, and the last reason.
    pub failed: Option<(Vec<Arc<Node>>, CloudError)>,
}

impl Lifecycle {
    /// Looks up the Nodes unless it is too early, and removes those that are gone; false when the cloud did not answer.
    pub(super) async fn look_up_and_remove(
        &mut self,
        asked: &[Arc<Node>],
        total: usize,
        provider: &ProviderIdentity,
    ) -> bool {
        if Instant::now() < self.next_lookup {
            return true;
        }
        let Some(gone) = self.look_up(asked, provider).await else {
            return false;
        };
        self.remove(gone, total, provider).await;
        true
    }

    /// Looks up the Nodes, marks those that are stopped, and answers those that are gone for certain.
    /// None when the cloud did not answer about all: an incomplete picture deletes nothing.
    pub(super) async fn look_up(
        &mut self,
        nodes: &[Arc<Node>],
        provider: &ProviderIdentity,
    ) -> Option<Vec<AbsentNode>> {
        let (mut gone, mut marks, mut complete) = (Vec::new(), Vec::new(), true);
        for page in nodes.chunks(self.context.cloud.lookup_limit().max(1)) {
            let Some(answers) = self.look_up_page(page, provider).await else {
                complete = false;
                break;
            };
            for (node, answer) in answers.answered {
                match self.judge(&node, answer, provider) {
                    Some(Fate::Mark(mark)) => marks.push((node, mark)),
                    Some(Fate::Gone(proof)) => gone.push(AbsentNode {
                        node,
                        proof,
                        evidence: Evidence::ById,
                    }),
                    None => {}
                }
            }
            for (node, error) in answers.faults {
                let metrics = &self.context.metrics;
                metrics.lifecycle_call("instance_exists", upstream_result(&error));
                self.report_unanswered(&node, &(&error).into(), provider);
            }
            if let Some((unanswered, error)) = answers.failed {
                self.lookup_failed(&unanswered, &error, provider);
                complete = false;
                break;
            }
        }
        self.mark(marks).await;
        complete.then_some(gone)
    }

    /// Looks up some Nodes. None when the provider was swapped meanwhile: which of the two has answered is unknown.
    pub(super) async fn look_up_page(
        &mut self,
        page: &[Arc<Node>],
        provider: &ProviderIdentity,
    ) -> Option<PageAnswers> {
        let refs: Vec<NodeRef> = page.iter().map(|node| node_ref(node)).collect();
        let lookups = self.context.lookups.clone();
        let mut parts = pin!(lookups.about(Purpose::Lifecycle, refs, Span::current()));
        let mut found = PageAnswers::default();
        while let Some(part) = parts.next().await {
            self.heartbeat();
            let one_fault = part.is_one_fault();
            let nodes = part.at.iter().map(|at| page[*at].clone());
            match part.answer {
                Ok(answers) => {
                    self.cloud_answered();
                    found.answered.extend(nodes.zip(answers));
                }
                Err(error) if one_fault => found.faults.extend(nodes.map(|node| (node, error.clone()))),
                Err(error) => {
                    let before = found.failed.map_or_else(Vec::new, |(nodes, _)| nodes);
                    found.failed = Some((before.into_iter().chain(nodes).collect(), error));
                }
            }
        }
        (!self.was_swapped(provider)).then_some(found)
    }

    /// Whether the provider is another one than this, which the pass began with. An answer that came meanwhile confirms nothing that the one
    /// before has said: all of that is dropped.
    pub(crate) fn was_swapped(&mut self, provider: &ProviderIdentity) -> bool {
        let digest = self.context.cloud.identity().digest;
        self.guard.set_digest(&digest);
        self.by_name.set_digest(&digest);
        digest != provider.digest
    }

    pub(crate) fn cloud_answered(&mut self) {
        self.failures = 0;
        lock(&self.known).failed = None;
    }

    /// No answer resets nothing and deletes nothing. When only an operator can help, the Nodes get an Event.
    pub(crate) fn lookup_failed(&mut self, nodes: &[Arc<Node>], error: &CloudError, provider: &ProviderIdentity) {
        self.by_name.restart_all();
        let count = nodes.len();
        match error.is_pending() {
            true => debug!(nodes = count, %error, "the cloud has not answered about Nodes that are not Ready yet"),
            false => warn!(nodes = count, %error, "failed to look up Nodes that are not Ready; Nodes unchanged"),
        }
        if error.retry() == Retry::Slowly {
            let cause = Cause::from(error);
            nodes
                .iter()
                .for_each(|node| self.report_unanswered(node, &cause, provider));
        }
        for _ in nodes {
            self.context
                .metrics
                .lifecycle_call("instance_exists", upstream_result(error));
        }
        self.failures = self.failures.saturating_add(1);
        let options = &self.context.options;
        let period = options.lifecycle.monitor_period;
        let longest = LONGEST_PAUSE.min(options.max_retry_pause.unwrap_or(LONGEST_PAUSE));
        let pause = match error.retry() {
            Retry::After(pause) => pause,
            _ => period
                .saturating_mul(2u32.saturating_pow(self.failures.min(10)))
                .min(longest.max(period)),
        };
        self.next_lookup = Instant::now() + pause;
        lock(&self.known).failed = Some((self.next_lookup, error.into()));
    }

    fn judge(&mut self, node: &Node, answer: Result<Presence, Failure>, provider: &ProviderIdentity) -> Option<Fate> {
        let metrics = &self.context.metrics;
        let (name, uid) = (node.metadata.name.as_deref()?, node.metadata.uid.as_deref()?);
        let presence = match answer {
            Ok(presence) => presence,
            Err(failure) => {
                metrics.lifecycle_call("instance_exists", upstream_failure(&failure));
                match failure {
                    Failure::Pending { .. } => {
                        debug!(node = name, %failure, "the cloud has not answered about this Node yet")
                    }
                    _ => warn!(node = name, %failure, "failed to look up machine of Node; Node unchanged"),
                }
                self.report_unanswered(node, &(&failure).into(), provider);
                return None;
            }
        };
        lock(&self.known).unanswered.done(name);
        match after(node, &presence, provider) {
            After::Running | After::Stopped => {
                metrics.lifecycle_call("instance_exists", "success");
                metrics.lifecycle_call("instance_shutdown", "success");
                self.guard.alive(uid);
                let stopped = matches!(presence, Presence::Stopped(_));
                Some(Fate::Mark(if stopped { Mark::Shutdown } else { Mark::NotAbsent }))
            }
            After::Unclear => {
                metrics.lifecycle_call("instance_exists", "instance_not_found");
                self.guard.alive(uid);
                debug!(node = name, "machine not found, but not by its id; Node unchanged");
                None
            }
            After::Gone => {
                metrics.lifecycle_call("instance_exists", "instance_not_found");
                self.judge_absent(node, uid)
            }
        }
    }

    /// Whatever the failure is called, it is no evidence. The Node's Event has to say why it is not cleaned up.
    fn report_unanswered(&self, node: &Node, cause: &Cause, provider: &ProviderIdentity) {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let due = lock(&self.known)
            .unanswered
            .failed(&Key::from(name), cause, Instant::now());
        if due {
            let (provider, reason) = (&provider.name, &cause.reason);
            let message = format!(
                "Cloud provider {provider:?} failed to look up the machine of this Node, so the Node is kept: {reason}"
            );
            self.recorder
                .node(node, EventKind::Warning, "MachineLookupFailed", message);
        }
    }

    fn judge_absent(&mut self, node: &Node, uid: &str) -> Option<Fate> {
        let id = provider_id(node)?;
        let age = age(node)?;
        let absent = Absent {
            uid,
            provider_id: id.as_str(),
            age,
            announced: is_announced(node),
        };
        match self.guard.absent(absent, Instant::now()) {
            Verdict::Certain(proof) => Some(Fate::Gone(proof)),
            Verdict::First(after) => {
                let follows = self.what_follows(after);
                let message = format!("Machine {id} of this Node not found in the cloud; {follows}");
                warn!(node = node.metadata.name, provider_id = %id, "machine not found");
                self.recorder.node(node, EventKind::Warning, "MachineNotFound", message);
                None
            }
            Verdict::Young | Verdict::Again => None,
        }
    }

    fn what_follows(&self, after: Duration) -> String {
        let then = match self.context.options.lifecycle.node_deletion {
            NodeDeletion::Off => return "deletion is switched off".into(),
            NodeDeletion::Taint => "tainted",
            NodeDeletion::Delete => "deleted",
        };
        format!(
            "the Node will be {then} if this is confirmed after {} s",
            after.as_secs()
        )
    }

    /// Deletes, or taints, the Nodes that are gone, as far as the brake lets them.
    async fn remove(&mut self, gone: Vec<AbsentNode>, total: usize, provider: &ProviderIdentity) {
        match self.context.options.lifecycle.node_deletion {
            NodeDeletion::Off => {}
            // Tainting keeps Pods away and can be taken back, so the brake does not hold it.
            NodeDeletion::Taint => {
                self.mark(gone.into_iter().map(|gone| (gone.node, Mark::Absent)).collect())
                    .await
            }
            NodeDeletion::Delete => {
                self.deleter(provider).delete_all(gone, total).await;
            }
        }
    }
}
