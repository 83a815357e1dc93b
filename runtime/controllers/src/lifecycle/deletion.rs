//! Deletion of Nodes whose machine is certainly missing.
//!
//! What the brake admits is read once more from the API server; an Event, the delete with uid and version, an Event. When and how many is
//! decided in [`lifecycle::brake`](crate::lifecycle::brake).

use std::collections::HashSet;
use std::sync::Arc;

use cloudwit_model::{EventKind, Evidence, ProviderIdentity};
use tokio::time::Instant;
use tracing::{Instrument as _, info, warn};

use crate::context::Context;
use crate::kube::events::Recorder;
use crate::kube::node::Node;
use crate::kube::node::view::provider_id;
use crate::kube::writer::{Target, Unchanged, WriteError};
use crate::lifecycle::brake::{Admission, Brake, Guard, Proof};
use crate::lifecycle::brake_by_name::GuardByName;
use crate::lifecycle::plan::{may_still_go, may_still_go_by_name};
use crate::options::Controller;
use crate::queue::span;
use crate::report::reconcile_clock::ReconcileRun;

/// A Node that is gone for certain.
pub struct AbsentNode {
    /// The Node as it was judged.
    pub node: Arc<Node>,
    /// Why.
    pub proof: Proof,
    /// By id or by name.
    pub evidence: Evidence,
}

impl AbsentNode {
    fn uid(&self) -> String {
        self.node.metadata.uid.clone().unwrap_or_default()
    }

    fn evidence(&self) -> String {
        let absent = match self.evidence {
            Evidence::ById => {
                let id = provider_id(&self.node).map(|id| id.to_string()).unwrap_or_default();
                format!("machine {id} not found in the cloud")
            }
            Evidence::ByName => "no provider id, and no machine of its name found in the cloud".to_owned(),
        };
        let Proof { answers, over } = self.proof;
        let seconds = over.as_secs();
        format!("{absent}, {answers} times over {seconds} s")
    }
}

/// Deletes Nodes of one pass.
pub struct Deleter<'a> {
    /// The writer, metrics and settings.
    pub context: &'a Context,
    /// For `kubectl describe`.
    pub recorder: &'a Recorder,
    /// The brake.
    pub guard: &'a mut Guard,
    /// What is known of Nodes without a provider id.
    pub by_name: &'a mut GuardByName,
    /// Who said that they are gone.
    pub provider: &'a ProviderIdentity,
    /// The pass in which they are deleted.
    pub pass: Option<&'a ReconcileRun>,
}

enum Deletion {
    Done,
    DryRun,
    Changed,
    /// It was sent, and there was no answer: it may be done.
    Unanswered(WriteError),
}

impl Deleter<'_> {
    /// Deletes those that were found to be gone by their name, all of them or none, as the brake says. `total` is how many Nodes the
    /// provider has, these included.
    pub async fn delete_all_by_name(&mut self, gone: Vec<AbsentNode>, total: usize) {
        let brake = self.guard.brake_by_name(gone.len(), total, Instant::now());
        for gone in &gone {
            match brake {
                Some(brake) if self.by_name.hold(&gone.uid()) => self.report_held(gone, brake),
                Some(_) => {}
                None => self.delete_one(gone).await,
            }
        }
    }

    /// Deletes those that the brake lets go. `total` is how many Nodes the provider has.
    pub async fn delete_all(&mut self, gone: Vec<AbsentNode>, total: usize) {
        let certain: Vec<String> = gone.iter().map(AbsentNode::uid).collect();
        let engaged = self.guard.brake().is_some();
        let admission = self.guard.admit(&certain, total, Instant::now());
        self.report_brake(engaged, &admission, &gone);
        let admitted: HashSet<&str> = admission.admitted.iter().map(String::as_str).collect();
        for gone in gone.iter().filter(|gone| admitted.contains(&*gone.uid())) {
            self.delete_one(gone).await;
        }
    }

    async fn delete_one(&mut self, gone: &AbsentNode) {
        let name = gone.node.metadata.name.as_deref().unwrap_or_default();
        let span = span::part_on_object(Controller::CloudNodeLifecycle, name);
        let deleted = self.delete(gone).instrument(span.clone()).await;
        self.pass.iter().for_each(|pass| pass.heartbeat());
        span::ended(&span, deleted);
    }

    fn report_brake(&self, before: bool, admission: &Admission, gone: &[AbsentNode]) {
        // Counted, since each of several providers has its own brake.
        let engaged = i64::from(admission.brake.is_some()) - i64::from(before);
        self.context.metrics.brake_engaged.inc_by(engaged);
        let Some(brake) = admission.brake else {
            if before {
                info!("deletion brake released");
            }
            return;
        };
        if !before {
            warn!(
                brake.absent,
                brake.deleted, brake.allowed, "deletion brake engaged; Node deletion paused"
            );
        }
        let newly_held: HashSet<&str> = admission.newly_held.iter().map(String::as_str).collect();
        let held = gone.iter().filter(|gone| newly_held.contains(&*gone.uid()));
        held.for_each(|gone| self.report_held(gone, brake));
    }

    fn report_held(&self, gone: &AbsentNode, brake: Brake) {
        let window = self.context.options.lifecycle.window.as_secs();
        let message = format!(
            "Node deletion paused ({}): {} Nodes missing and {} deleted within {window} s, \
             but only {} may go. Check the cloud and its credentials; if the machines are really gone, delete the Nodes by hand",
            gone.evidence(),
            brake.absent,
            brake.deleted,
            brake.allowed,
        );
        self.recorder
            .node(&gone.node, EventKind::Warning, "NodeDeletionBraked", message);
    }

    /// False when the API server did not let it go.
    async fn delete(&mut self, gone: &AbsentNode) -> bool {
        let uid = gone.uid();
        let name = gone.node.metadata.name.clone().unwrap_or_default();
        let result = self.delete_if_unchanged(gone, &name).await;
        let failed = match &result {
            Ok(Deletion::Unanswered(_)) => true,
            Ok(_) | Err(WriteError::Conflict(_) | WriteError::NotFound) => false,
            Err(_) => true,
        };
        let now = Instant::now();
        match result {
            Ok(Deletion::Done) => {
                match gone.evidence {
                    Evidence::ById => self.guard.deleted(&uid, now),
                    Evidence::ByName => self.guard.deleted_by_name(now),
                }
                self.by_name.restart(&uid);
                self.context.metrics.node_deleted();
                let message = format!("Deleted node {name}: {}", gone.evidence());
                self.recorder
                    .node(&gone.node, EventKind::Normal, "DeletedNode", message);
            }
            Ok(Deletion::DryRun) => self.postpone(&uid, now),
            // It is checked again in the next pass.
            Err(WriteError::Conflict(_)) => {}
            Ok(Deletion::Changed) => {
                info!(node = name, "Node not deleted: changed since its machine was not found");
                self.start_over(&uid);
            }
            Err(WriteError::NotFound) => {
                self.guard.vanished(&uid);
                self.by_name.restart(&uid);
            }
            Ok(Deletion::Unanswered(error)) => {
                match gone.evidence {
                    Evidence::ById => self.guard.unanswered(&uid, now),
                    Evidence::ByName => self.guard.deleted_by_name(now),
                }
                self.by_name.failed(&uid, now);
                self.report_failed(gone, &name, &error);
            }
            Err(error) => {
                self.postpone(&uid, now);
                self.report_failed(gone, &name, &error);
            }
        }
        !failed
    }

    fn report_failed(&self, gone: &AbsentNode, name: &str, error: &WriteError) {
        warn!(node = name, %error, "could not be deleted");
        let message = format!("Failed deleting node {name}: {error}");
        self.recorder
            .node(&gone.node, EventKind::Warning, "DeletingNodeFailed", message);
    }

    fn postpone(&mut self, uid: &str, now: Instant) {
        self.guard.failed(uid, now);
        self.by_name.failed(uid, now);
    }

    fn start_over(&mut self, uid: &str) {
        self.guard.alive(uid);
        self.by_name.restart(uid);
    }

    async fn delete_if_unchanged(&self, gone: &AbsentNode, name: &str) -> Result<Deletion, WriteError> {
        let apply = &self.context.apply;
        let fresh: Node = apply.read(Target::node(name)).await?.ok_or(WriteError::NotFound)?;
        let several = self.context.scope.are_several();
        let still = match gone.evidence {
            Evidence::ById => may_still_go(&fresh, &gone.node, self.provider),
            Evidence::ByName => may_still_go_by_name(&fresh, &gone.node, self.provider, several),
        };
        if !still {
            return Ok(Deletion::Changed);
        }
        let unchanged = Unchanged {
            uid: fresh.metadata.uid.clone().unwrap_or_default(),
            resource_version: fresh.metadata.resource_version.clone().unwrap_or_default(),
        };
        let message = format!(
            "Deleting node {name} because it does not exist in the cloud provider: {}",
            gone.evidence()
        );
        self.recorder
            .node(&gone.node, EventKind::Normal, "DeletingNode", message);
        let sent = apply.delete::<Node>(Target::node(name), &unchanged, "its machine is gone");
        match sent.await {
            Ok(true) => Ok(Deletion::Done),
            Ok(false) => Ok(Deletion::DryRun),
            Err(error @ WriteError::Unreachable(_)) => Ok(Deletion::Unanswered(error)),
            Err(error) => Err(error),
        }
    }
}
