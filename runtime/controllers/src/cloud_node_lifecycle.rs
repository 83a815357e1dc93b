//! Nodes that are not Ready: is their machine still there?
//!
//! ```text
//!   every monitor period: Ready again  -->  our taints off
//!                         not Ready    -->  one `Cloud::lookup` for all of them
//!                                             stopped --> shutdown taint (one write, and none while it is there)
//!                                             gone    --> `guard` --> read once more --> Event, delete, Event
//! ```
//!
//! Upstream deletes at the first "does not exist"; here it needs confirmation and passes a brake: see [`guard`](crate::guard). Upstream makes two
//! cloud calls per Node and period; here it is one call for up to `lookup_limit` Nodes, and fewer while the cloud fails.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use cloudwit_model::{CloudError, EventKind, Failure, NodeRef, Presence, ProviderIdentity, Retry};
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;
use tokio::time::{Instant, sleep};
use tracing::{debug, info, warn};

use crate::apply::{Target, Unchanged, WriteError};
use crate::cloud_node_lifecycle_plan::{
    After, Before, Mark, after, before, is_announced, is_own, may_still_go, plan_taints,
};
use crate::cluster::Context;
use crate::events::Recorder;
use crate::guard::{Absent, Admission, Guard, Proof, Rules, Verdict};
use crate::metrics::{Purpose, upstream_failure, upstream_result};
use crate::node_taints::write_taints;
use crate::node_view::{node_ref, provider_id};
use crate::options::{Controller, NodeDeletion};

/// While look-ups fail the pause doubles from the monitor period to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Prepares the loop. It has no queue: each pass looks at the cache.
pub fn prepare(context: Context) -> impl Future<Output = ()> + Send + 'static {
    let this = Lifecycle {
        recorder: context.events.recorder(Controller::CloudNodeLifecycle),
        guard: Guard::new(Rules::from(&context.options.lifecycle)),
        failures: 0,
        next_lookup: Instant::now(),
        context,
    };
    this.run()
}

struct Lifecycle {
    context: Context,
    recorder: Recorder,
    guard: Guard,
    /// Look-ups that failed in a row.
    failures: u32,
    next_lookup: Instant,
}

/// A Node that is gone for certain.
struct Gone {
    node: Arc<Node>,
    proof: Proof,
}

impl Gone {
    fn uid(&self) -> String {
        self.node.metadata.uid.clone().unwrap_or_default()
    }
}

impl Lifecycle {
    async fn run(mut self) {
        let context = self.context.clone();
        let _running = context.metrics.running(Controller::CloudNodeLifecycle);
        let passes = async {
            context.nodes.synced().await;
            loop {
                let start = Instant::now();
                self.pass().await;
                context
                    .metrics
                    .monitor_nodes_duration
                    .observe(start.elapsed().as_secs_f64());
                sleep(context.options.lifecycle.monitor_period).await;
            }
        };
        tokio::select! {
            () = context.shutdown.cancelled() => {}
            () = passes => {}
        }
    }

    async fn pass(&mut self) {
        let provider = self.context.cloud.identity();
        self.guard.answers_from(&provider.digest);
        let nodes = self.context.nodes.all();
        let (mut recovered, mut asked) = (Vec::new(), Vec::new());
        for node in &nodes {
            match before(node, &provider) {
                Before::Leave => {}
                Before::Recovered => recovered.push((node.clone(), Mark::None)),
                Before::Ask => asked.push(node.clone()),
            }
        }
        self.guard.keep_only(
            &asked
                .iter()
                .filter_map(|node| node.metadata.uid.as_deref())
                .collect::<HashSet<_>>(),
        );
        self.mark(recovered).await;
        if Instant::now() >= self.next_lookup {
            asked.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
            let gone = self.ask(&asked, &provider).await;
            let total = nodes.iter().filter(|node| is_own(node, &provider)).count();
            self.remove(gone, total, &provider).await;
        }
        self.context
            .metrics
            .deletion_candidates
            .set(self.guard.candidates() as i64);
    }

    /// Asks the cloud about the Nodes, marks those that are stopped, and answers those that are gone for certain.
    async fn ask(&mut self, nodes: &[Arc<Node>], provider: &ProviderIdentity) -> Vec<Gone> {
        let (mut gone, mut marks) = (Vec::new(), Vec::new());
        for page in nodes.chunks(self.context.cloud.lookup_limit().max(1)) {
            let refs: Vec<NodeRef> = page.iter().map(|node| node_ref(node)).collect();
            let answer = self.context.cloud.lookup(&refs).await;
            self.context
                .metrics
                .looked_up(Purpose::Lifecycle, refs.len(), answer.as_ref().map(|_| ()));
            let answers = match answer {
                Ok(answers) => answers,
                Err(error) => {
                    self.lookup_failed(page.len(), &error);
                    break;
                }
            };
            self.failures = 0;
            for (node, answer) in page.iter().zip(answers) {
                match self.judge(node, answer, provider) {
                    Some(Fate::Mark(mark)) => marks.push((node.clone(), mark)),
                    Some(Fate::Gone(proof)) => gone.push(Gone {
                        node: node.clone(),
                        proof,
                    }),
                    None => {}
                }
            }
        }
        self.mark(marks).await;
        gone
    }

    /// No answer resets nothing and deletes nothing.
    fn lookup_failed(&mut self, nodes: usize, error: &CloudError) {
        warn!(nodes, %error, "could not ask whether machines of Nodes that are not Ready exist; nothing changes for them");
        for _ in 0..nodes {
            self.context
                .metrics
                .lifecycle_call("instance_exists", upstream_result(error));
        }
        self.failures = self.failures.saturating_add(1);
        let period = self.context.options.lifecycle.monitor_period;
        let pause = match error.retry() {
            Retry::After(pause) => pause,
            _ => period
                .saturating_mul(2u32.saturating_pow(self.failures.min(10)))
                .min(LONGEST_PAUSE.max(period)),
        };
        self.next_lookup = Instant::now() + pause;
    }

    fn judge(&mut self, node: &Node, answer: Result<Presence, Failure>, provider: &ProviderIdentity) -> Option<Fate> {
        let metrics = &self.context.metrics;
        let (name, uid) = (node.metadata.name.as_deref()?, node.metadata.uid.as_deref()?);
        let presence = match answer {
            Ok(presence) => presence,
            Err(failure) => {
                metrics.lifecycle_call("instance_exists", upstream_failure(&failure));
                warn!(node = name, %failure, "could not learn whether its machine exists; nothing changes");
                return None;
            }
        };
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
                debug!(
                    node = name,
                    "its machine was not found, but not asked for by its id either; nothing changes"
                );
                None
            }
            After::Gone => {
                metrics.lifecycle_call("instance_exists", "instance_not_found");
                self.judge_absent(node, uid)
            }
        }
    }

    fn judge_absent(&mut self, node: &Node, uid: &str) -> Option<Fate> {
        let id = provider_id(node)?;
        let created = node.metadata.creation_timestamp.as_ref()?.0;
        let age = Duration::try_from(Timestamp::now().duration_since(created)).unwrap_or_default();
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
                let message = format!("The cloud says that the machine {id} of this Node does not exist; {follows}");
                warn!(node = node.metadata.name, provider_id = %id, "the cloud says that its machine does not exist");
                self.recorder.node(node, EventKind::Warning, "MachineNotFound", message);
                None
            }
            Verdict::Young | Verdict::Again => None,
        }
    }

    fn what_follows(&self, after: Duration) -> String {
        let then = match self.context.options.lifecycle.node_deletion {
            NodeDeletion::Off => return "deletion is switched off, so nothing will follow".into(),
            NodeDeletion::Taint => "tainted",
            NodeDeletion::Delete => "deleted",
        };
        format!(
            "the Node will be {then} if it says so again after {} s",
            after.as_secs()
        )
    }

    /// Deletes, or taints, the Nodes that are gone, as far as the brake lets them.
    async fn remove(&mut self, gone: Vec<Gone>, total: usize, provider: &ProviderIdentity) {
        match self.context.options.lifecycle.node_deletion {
            NodeDeletion::Off => {}
            // Tainting keeps Pods away and can be taken back, so the brake does not hold it.
            NodeDeletion::Taint => {
                self.mark(gone.into_iter().map(|gone| (gone.node, Mark::Absent)).collect())
                    .await
            }
            NodeDeletion::Delete => self.delete_admitted(gone, total, provider).await,
        }
    }

    async fn delete_admitted(&mut self, gone: Vec<Gone>, total: usize, provider: &ProviderIdentity) {
        let certain: Vec<String> = gone.iter().map(Gone::uid).collect();
        let admission = self.guard.admit(&certain, total, Instant::now());
        self.tell_brake(&admission, &gone);
        for gone in gone.iter().filter(|gone| admission.admitted.contains(&gone.uid())) {
            self.delete(gone, provider).await;
        }
    }

    fn tell_brake(&self, admission: &Admission, gone: &[Gone]) {
        let engaged = admission.brake.is_some();
        let before = self.context.metrics.brake_engaged.set(i64::from(engaged)) == 1;
        let Some(brake) = admission.brake else {
            if before {
                info!("the deletion brake is released");
            }
            return;
        };
        if !before {
            warn!(
                brake.absent,
                brake.deleted,
                brake.allowed,
                "the deletion brake is engaged: too many Nodes seem to be gone, none is deleted"
            );
        }
        let window = self.context.options.lifecycle.window.as_secs();
        for gone in gone.iter().filter(|gone| admission.newly_held.contains(&gone.uid())) {
            let message = format!(
                "Not deleted although its machine seems to be gone ({}): {} Nodes seem to be gone and {} were deleted within {window} s, \
                 but only {} may go. Check the cloud and its credentials; if the machines are really gone, delete the Nodes by hand",
                evidence(gone),
                brake.absent,
                brake.deleted,
                brake.allowed,
            );
            self.recorder
                .node(&gone.node, EventKind::Warning, "NodeDeletionBraked", message);
        }
    }

    async fn delete(&mut self, gone: &Gone, provider: &ProviderIdentity) {
        let uid = gone.uid();
        let name = gone.node.metadata.name.clone().unwrap_or_default();
        let result = self.delete_if_unchanged(gone, &name, provider).await;
        let now = Instant::now();
        match result {
            Ok(Deletion::Done) => {
                self.guard.deleted(&uid, now);
                self.context.metrics.node_deleted();
                let message = format!("Deleted node {name}: {}", evidence(gone));
                self.recorder
                    .node(&gone.node, EventKind::Normal, "DeletedNode", message);
            }
            Ok(Deletion::DryRun) => self.guard.failed(&uid, now),
            Ok(Deletion::Changed) | Err(WriteError::Conflict(_)) => {
                info!(
                    node = name,
                    "not deleted: it changed since its machine was found to be gone"
                );
                self.guard.alive(&uid);
            }
            Err(WriteError::NotFound) => self.guard.alive(&uid),
            Err(error) => {
                self.guard.failed(&uid, now);
                warn!(node = name, %error, "could not be deleted");
                let message = format!("Failed deleting node {name}: {error}");
                self.recorder
                    .node(&gone.node, EventKind::Warning, "DeletingNodeFailed", message);
            }
        }
    }

    async fn delete_if_unchanged(
        &self,
        gone: &Gone,
        name: &str,
        provider: &ProviderIdentity,
    ) -> Result<Deletion, WriteError> {
        let apply = &self.context.apply;
        let fresh: Node = apply.read(Target::node(name)).await?.ok_or(WriteError::NotFound)?;
        if !may_still_go(&fresh, &gone.node, provider) {
            return Ok(Deletion::Changed);
        }
        let unchanged = Unchanged {
            uid: fresh.metadata.uid.clone().unwrap_or_default(),
            resource_version: fresh.metadata.resource_version.clone().unwrap_or_default(),
        };
        let message = format!(
            "Deleting node {name} because it does not exist in the cloud provider: {}",
            evidence(gone)
        );
        self.recorder
            .node(&gone.node, EventKind::Normal, "DeletingNode", message);
        let done = apply
            .delete::<Node>(Target::node(name), &unchanged, "its machine is gone")
            .await?;
        Ok(if done { Deletion::Done } else { Deletion::DryRun })
    }

    /// Writes the taints that are not right yet.
    async fn mark(&self, nodes: Vec<(Arc<Node>, Mark)>) {
        let Context {
            apply,
            nodes: cache,
            options,
            ..
        } = &self.context;
        stream::iter(nodes)
            .for_each_concurrent(options.lifecycle.concurrent_syncs, async |(node, mark)| {
                if let Err(error) = write_taints(apply, cache, &node, |node| plan_taints(node, mark)).await {
                    warn!(node = node.metadata.name, %error, ?mark, "could not write taints; next try in the next period");
                }
            })
            .await;
    }
}

/// What follows from an answer.
enum Fate {
    Mark(Mark),
    Gone(Proof),
}

enum Deletion {
    Done,
    DryRun,
    Changed,
}

fn evidence(gone: &Gone) -> String {
    let id = provider_id(&gone.node).map(|id| id.to_string()).unwrap_or_default();
    let Proof { answers, over } = gone.proof;
    format!(
        "asked for the machine {id}, the cloud said {answers} times over {} s that there is none",
        over.as_secs()
    )
}

#[cfg(test)]
#[path = "cloud_node_lifecycle_tests.rs"]
mod tests;
