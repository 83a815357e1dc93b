//! Deleting Nodes whose machine is gone for certain: what the brake says, one more look at the API server, an Event
//! before, the delete with uid and version, an Event after. When and how many is decided in [`guard`](crate::guard).

use std::sync::Arc;

use cloudwit_model::{EventKind, ProviderIdentity};
use tokio::time::Instant;
use tracing::{Instrument as _, info, warn};

use crate::apply::{Target, Unchanged, WriteError};
use crate::cloud_node_lifecycle_plan::may_still_go;
use crate::cluster::Context;
use crate::events::Recorder;
use crate::guard::{Admission, Guard, Proof};
use crate::node::Node;
use crate::node_view::provider_id;
use crate::options::Controller;
use crate::passes::Pass;
use crate::reconcile_span;

/// A Node that is gone for certain.
pub struct Gone {
    /// The Node as it was judged.
    pub node: Arc<Node>,
    /// Why.
    pub proof: Proof,
}

impl Gone {
    fn uid(&self) -> String {
        self.node.metadata.uid.clone().unwrap_or_default()
    }

    fn evidence(&self) -> String {
        let id = provider_id(&self.node).map(|id| id.to_string()).unwrap_or_default();
        let Proof { answers, over } = self.proof;
        let seconds = over.as_secs();
        format!("asked for the machine {id}, the cloud said {answers} times over {seconds} s that there is none")
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
    /// Who said that they are gone.
    pub provider: &'a ProviderIdentity,
    /// The pass in which they are deleted.
    pub step: Option<&'a Pass>,
}

enum Deletion {
    Done,
    DryRun,
    Changed,
}

impl Deleter<'_> {
    /// Deletes those that the brake lets go. `total` is how many Nodes the provider has.
    pub async fn delete_all(&mut self, gone: Vec<Gone>, total: usize) {
        let certain: Vec<String> = gone.iter().map(Gone::uid).collect();
        let engaged = self.guard.brake().is_some();
        let admission = self.guard.admit(&certain, total, Instant::now());
        self.tell_brake(engaged, &admission, &gone);
        for gone in gone.iter().filter(|gone| admission.admitted.contains(&gone.uid())) {
            let name = gone.node.metadata.name.as_deref().unwrap_or_default();
            let span = reconcile_span::part_on_object(Controller::CloudNodeLifecycle, name);
            let deleted = self.delete(gone).instrument(span.clone()).await;
            self.step.iter().for_each(|pass| pass.goes_on());
            reconcile_span::ended(&span, deleted);
        }
    }

    fn tell_brake(&self, before: bool, admission: &Admission, gone: &[Gone]) {
        // Counted, since each of several providers has its own brake.
        let engaged = i64::from(admission.brake.is_some()) - i64::from(before);
        self.context.metrics.brake_engaged.inc_by(engaged);
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
                "Not deleted although its machine seems to be gone ({}): {} Nodes seem to be gone and {} were \
                 deleted within {window} s, but only {} may go. Check the cloud and its credentials; if the machines \
                 are really gone, delete the Nodes by hand",
                gone.evidence(),
                brake.absent,
                brake.deleted,
                brake.allowed,
            );
            self.recorder
                .node(&gone.node, EventKind::Warning, "NodeDeletionBraked", message);
        }
    }

    /// False when the API server did not let it go.
    async fn delete(&mut self, gone: &Gone) -> bool {
        let uid = gone.uid();
        let name = gone.node.metadata.name.clone().unwrap_or_default();
        let result = self.delete_if_unchanged(gone, &name).await;
        let failed =
            matches!(result, Err(ref error) if !matches!(error, WriteError::Conflict(_) | WriteError::NotFound));
        let now = Instant::now();
        match result {
            Ok(Deletion::Done) => {
                self.guard.deleted(&uid, now);
                self.context.metrics.node_deleted();
                let message = format!("Deleted node {name}: {}", gone.evidence());
                self.recorder
                    .node(&gone.node, EventKind::Normal, "DeletedNode", message);
            }
            Ok(Deletion::DryRun) => self.guard.failed(&uid, now),
            // It is looked at again in the next pass.
            Err(WriteError::Conflict(_)) => {}
            Ok(Deletion::Changed) => {
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
        !failed
    }

    async fn delete_if_unchanged(&self, gone: &Gone, name: &str) -> Result<Deletion, WriteError> {
        let apply = &self.context.apply;
        let fresh: Node = apply.read(Target::node(name)).await?.ok_or(WriteError::NotFound)?;
        if !may_still_go(&fresh, &gone.node, self.provider) {
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
        let done = apply
            .delete::<Node>(Target::node(name), &unchanged, "its machine is gone")
            .await?;
        Ok(if done { Deletion::Done } else { Deletion::DryRun })
    }
}
