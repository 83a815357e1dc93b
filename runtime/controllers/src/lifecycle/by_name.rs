//! Periodic look-up by name of Nodes that never got a provider id. Part of `lifecycle`.
//!
//! When such a Node may be deleted is decided in [`lifecycle::brake_by_name`](crate::lifecycle::brake_by_name).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use cloudwit_model::{EventKind, Evidence, Failure, Presence, ProviderIdentity};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;
use tracing::{Instrument as _, debug, warn};

use crate::ambient;
use crate::kube::node::Node;
use crate::lifecycle::brake::Proof;
use crate::lifecycle::brake_by_name::NameVerdict;
use crate::lifecycle::deletion::AbsentNode;
use crate::lifecycle::plan::may_go_by_name;
use crate::lifecycle::{Lifecycle, age};
use crate::options::{Controller, NodeDeletion};
use crate::queue::span;

impl Lifecycle {
    /// Looks for the machines of Nodes that never got a provider id, when it is time, and deletes the Nodes whose grace is over. `nodes` are
    /// the provider's, `own` is how many of them have an id of it, `several` whether there are other providers.
    pub(crate) async fn check_by_name(
        &mut self,
        nodes: &[Arc<Node>],
        own: usize,
        provider: &ProviderIdentity,
        several: bool,
    ) {
        let options = &self.context.options.lifecycle;
        let Some(interval) = self
            .by_name
            .interval()
            .filter(|_| options.node_deletion == NodeDeletion::Delete)
        else {
            return;
        };
        let grace = options.registration_grace;
        let old = |node: &Node| age(node).is_some_and(|age| age >= grace);
        let mut asked: Vec<Arc<Node>> = nodes
            .iter()
            .filter(|node| may_go_by_name(node, provider, several) && old(node))
            .cloned()
            .collect();
        let uids: HashSet<&str> = asked.iter().filter_map(|node| node.metadata.uid.as_deref()).collect();
        self.by_name.keep_only(&uids);
        let now = Instant::now();
        if asked.is_empty() || now < self.next_by_name || now < self.next_lookup {
            return;
        }
        self.next_by_name = now + interval;
        asked.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        let span = span::on_many(Controller::CloudNodeLifecycle, asked.len());
        let total = own + asked.len();
        let work = async {
            let (gone, complete) = self.look_up_by_name(&asked, provider).await;
            if complete {
                self.deleter(provider).delete_all_by_name(gone, total).await;
            }
            complete
        };
        let complete = work.instrument(span.clone()).await;
        span::ended(&span, complete);
    }

    /// The Nodes whose grace is over, and whether there was an answer about all. What is missing deletes nothing.
    async fn look_up_by_name(&mut self, nodes: &[Arc<Node>], provider: &ProviderIdentity) -> (Vec<AbsentNode>, bool) {
        let mut gone = Vec::new();
        for page in nodes.chunks(self.context.cloud.lookup_limit().max(1)) {
            let Some(answers) = self.look_up_page(page, provider).await else {
                return (Vec::new(), false);
            };
            for (node, answer) in answers.answered {
                if let Some(proof) = self.judge_by_name(&node, answer) {
                    gone.push(AbsentNode {
                        node,
                        proof,
                        evidence: Evidence::ByName,
                    });
                }
            }
            for (node, _) in answers.faults {
                self.by_name.restart(node.metadata.uid.as_deref().unwrap_or_default());
            }
            if let Some((_, error)) = answers.failed {
                // The Nodes are those of the controller of first contact, which says on them what fails.
                self.lookup_failed(&[], &error, provider);
                return (Vec::new(), false);
            }
        }
        (gone, true)
    }

    fn judge_by_name(&mut self, node: &Node, answer: Result<Presence, Failure>) -> Option<Proof> {
        let (name, uid) = (node.metadata.name.as_deref()?, node.metadata.uid.as_deref()?);
        match answer {
            Ok(Presence::Absent(_)) => {}
            Ok(Presence::Running(machine) | Presence::Stopped(machine)) => {
                self.context.machines.see(uid, &machine.provider_id);
                self.by_name.restart(uid);
                return None;
            }
            Err(failure) => {
                debug!(node = name, %failure, "failed to look up machine by name; grace period restarted");
                self.by_name.restart(uid);
                return None;
            }
        }
        if self.context.machines.may_be_several(uid) {
            self.by_name.restart(uid);
            return None;
        }
        match self.by_name.absent(uid, age(node)?, Instant::now()) {
            NameVerdict::Certain(proof) => Some(proof),
            NameVerdict::First(after) => {
                warn!(node = name, "machine not found by name; Node has no provider id");
                let message = format!(
                    "No machine found by the name of this Node, which has no provider id; if every check confirms this, the Node \
                     will be deleted in {} s ({} at the earliest)",
                    after.as_secs(),
                    later(after),
                );
                self.recorder.node(node, EventKind::Warning, "MachineNotFound", message);
                None
            }
            NameVerdict::Young | NameVerdict::Again => None,
        }
    }
}

/// The time of day this much later, to the second.
fn later(by: Duration) -> String {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    let at = ambient::now().checked_add(by).unwrap_or(Timestamp::MAX);
    format!("{at:.0}")
}
