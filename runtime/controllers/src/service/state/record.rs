//! Memory of one Service: its load balancer's state, and what is still to be written.
//!
//! Steps note here what they did; `service::plan` reads it to find the next step. One record for one Service (by uid), dropped
//! when the Service is gone. Nothing in it has to survive a restart.

use std::sync::Arc;

use cloudwit_model::{AnnotationChange, CloudError};
use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};

use crate::kube::service::ingress;
use crate::options::classes::Classes;
use crate::report::cause::{Cause, CauseKind};
use crate::service::needs_update::needs_update;
use crate::service::plan::wants_balancer;
use crate::service::state::{BalancerState, DriftState, Ensured, Operation, Pending, StartedChange, Unwritten};
use crate::service::targets::DatedSet;

/// The memory of one Service.
#[derive(Debug, Clone)]
pub struct Record {
    service: Arc<Service>,
    classes: Classes,
    foreign: bool,
    state: BalancerState,
    unwritten: Unwritten,
    /// The last failure, until a call succeeds.
    failure: Option<Cause>,
    /// Why the API server did not take the last write, until it takes one.
    refusal: Option<String>,
    /// Whether the last call about it faulted, so that it gets calls of its own.
    faulted: bool,
    /// What periodic drift checks have found.
    pub drift: DriftState,
}

impl Record {
    /// An empty record.
    pub fn new(service: Arc<Service>, classes: &Classes) -> Self {
        let foreign = classes.is_foreign_class(&service);
        Self {
            service,
            classes: classes.clone(),
            foreign,
            state: BalancerState::Unknown,
            unwritten: Unwritten::default(),
            failure: None,
            refusal: None,
            faulted: false,
            drift: DriftState::default(),
        }
    }

    /// The Service as it was seen last. Deleting a load balancer is always about this one.
    pub fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// The classes that are ours.
    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    /// Whether it is the same Service, not one of the same name that was created later.
    pub fn is_about(&self, service: &Service) -> bool {
        self.service.metadata.uid == service.metadata.uid
    }

    /// Takes note of the Service as it stands. Only for the Service this record [`is_about`](Self::is_about).
    ///
    /// A finalizer of a Service that was seen with a class belongs to that class's controller, also after a type change has
    /// removed the class from the object.
    pub fn observe(&mut self, service: Arc<Service>) {
        self.foreign =
            !wants_balancer(&service, &self.classes) && (self.foreign || self.classes.is_foreign_class(&service));
        self.service = service;
    }

    /// Whether the finalizer belongs to the controller of another class.
    pub fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// The load balancer as recorded by this process.
    pub fn state(&self) -> &BalancerState {
        &self.state
    }

    /// What the Service still lacks.
    pub fn unwritten(&self) -> &Unwritten {
        &self.unwritten
    }

    /// Whether this process made a call that may have created something, and no later delete has succeeded.
    pub fn is_touched(&self) -> bool {
        match self.state {
            BalancerState::Unknown | BalancerState::Deleted => false,
            BalancerState::Ensuring(_) | BalancerState::Ensured { .. } | BalancerState::Elsewhere(_) => true,
            BalancerState::Deleting { touched, .. } => touched,
        }
    }

    /// Whether the load balancer was deleted and not ensured since.
    pub fn is_deleted(&self) -> bool {
        matches!(self.state, BalancerState::Deleted)
    }

    /// Whether there is a load balancer by this process's record and the Service's status. False means unknown.
    pub fn has_balancer(&self) -> bool {
        matches!(self.state, BalancerState::Ensured { .. })
            || self.state.pending().is_some()
            || !ingress(&self.service).is_empty()
    }

    /// Whether the load balancer is finished, so that a drift check makes sense.
    pub fn is_settled(&self) -> bool {
        matches!(self.state, BalancerState::Ensured { .. }) && self.state.pending().is_none()
    }

    /// What an unfinished call waits for, in the provider's words.
    pub fn waits_for(&self) -> Option<&str> {
        self.state.pending().map(|pending| pending.message.as_str())
    }

    /// The last failure in words, until a call succeeds.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_ref().map(|cause| &*cause.reason)
    }

    /// Why the Service is failing: the last write that the API server did not take, else the last failed call.
    pub fn cause(&self) -> Option<Cause> {
        let refusal = self.refusal.as_deref();
        let refusal = refusal.map(|refusal| Cause::new(CauseKind::ApiServer, refusal));
        refusal.or_else(|| self.failure.clone())
    }

    /// Why the API server did not take the last write, until it takes one.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Whether the last call or the last write failed.
    pub fn is_failing(&self) -> bool {
        self.failure.is_some() || self.refusal.is_some()
    }

    /// Whether a call may be about this Service and others. After a fault it may be this one that the provider faults on: until a call has been
    /// answered, none is about others too.
    pub fn may_share_call(&self) -> bool {
        !self.faulted
    }

    /// The API server took the last write, or did not for this reason.
    pub fn note_write(&mut self, refusal: Option<String>) {
        self.refusal = refusal;
    }

    /// Whether the load balancer that the cloud shows (none: there is none) is another one than the status says.
    pub fn note_shown(&mut self, shown: Option<Vec<LoadBalancerIngress>>) -> bool {
        self.drift.observe(shown, ingress(&self.service))
    }

    /// Starts a call: returns the token to continue with, if this call continues one.
    ///
    /// A token is dropped when the operation is another one or the Service has changed in a way that matters: what the
    /// provider waits for may have become moot. A changed set of nodes keeps it; the new set is given afterwards.
    pub fn start(&mut self, operation: Operation) -> Option<String> {
        let same = self.state.operation() == Some(operation);
        let pending = self.state.take_pending().filter(|pending| {
            same && (operation == Operation::Delete
                || needs_update(&pending.service, &self.service, &self.classes).is_none())
        });
        let token = pending.as_ref().map(|pending| pending.token.clone());
        let touched = self.is_touched();
        let state = std::mem::replace(&mut self.state, BalancerState::Unknown);
        self.state = match (operation, state) {
            (Operation::Delete, _) => BalancerState::Deleting { pending, touched },
            (Operation::UpdateTargets, BalancerState::Ensured { last, change }) => BalancerState::Ensured {
                last,
                change: match change {
                    Some(StartedChange::Ensure(_)) => Some(StartedChange::Ensure(None)),
                    _ => Some(StartedChange::UpdateTargets(pending)),
                },
            },
            (Operation::Ensure, BalancerState::Ensured { last, .. }) => BalancerState::Ensured {
                last,
                change: Some(StartedChange::Ensure(pending)),
            },
            (Operation::Ensure | Operation::UpdateTargets, _) => BalancerState::Ensuring(pending),
        };
        token
    }

    /// The call that was started continues later. `targets` are those it was given. Returns whether the provider waits for something new.
    pub fn note_pending(&mut self, token: String, message: String, targets: DatedSet) -> bool {
        let news = self.waits_for() != Some(&message);
        let (service, targets) = self.finish(targets);
        if let Some(pending) = self.state.pending_mut() {
            *pending = Some(Pending {
                token,
                message,
                service,
                targets,
            });
        }
        news
    }

    /// The call has failed. Returns whether the failure is another one than before.
    ///
    /// The token is kept where the provider only could not be called, and dropped where it may be what the provider fails on.
    pub fn fail(&mut self, error: &CloudError) -> bool {
        if !error.keeps_token() {
            self.state.take_pending();
        }
        self.faulted |= error.is_about_items();
        let failure = Cause::from(error);
        let news = self.failure.as_ref() != Some(&failure);
        self.failure = Some(failure);
        news
    }

    /// An `ensure` has succeeded.
    pub fn note_ensured(
        &mut self,
        targets: DatedSet,
        ingress: Vec<LoadBalancerIngress>,
        changes: Vec<AnnotationChange>,
    ) {
        let (service, targets) = self.finish(targets);
        self.note_usable(ingress, changes);
        self.state = BalancerState::Ensured {
            last: Ensured { service, targets },
            change: None,
        };
    }

    /// An `ensure` has succeeded and continues: the load balancer is reached already. [`Self::note_pending`] follows.
    pub fn note_usable(&mut self, ingress: Vec<LoadBalancerIngress>, changes: Vec<AnnotationChange>) {
        self.unwritten.ingress = Some(ingress);
        self.unwritten.add_annotations(changes);
    }

    /// The provider leaves this Service to another controller.
    pub fn note_elsewhere(&mut self, targets: DatedSet) {
        let (service, _) = self.finish(targets);
        self.state = BalancerState::Elsewhere(service);
    }

    /// The nodes were updated.
    pub fn note_updated(&mut self, targets: DatedSet, changes: Vec<AnnotationChange>) {
        let (_, targets) = self.finish(targets);
        self.unwritten.add_annotations(changes);
        if let BalancerState::Ensured { last, change } = &mut self.state {
            last.targets = targets;
            change.take_if(|change| matches!(change, StartedChange::UpdateTargets(_)));
        }
    }

    /// The load balancer has to be ensured again: it is gone, or may have changed.
    pub fn forget_ensured(&mut self) {
        self.state = BalancerState::Ensuring(None);
    }

    /// The load balancer is gone; the status has to follow.
    pub fn note_deleted(&mut self, changes: Vec<AnnotationChange>) {
        self.state = BalancerState::Deleted;
        self.failure = None;
        self.unwritten = Unwritten {
            ingress: Some(Vec::new()),
            ..Unwritten::default()
        };
        self.unwritten.add_annotations(changes);
    }

    /// The load balancer is gone from the cloud of its last provider and is to be made in another's: it has to be ensured anew.
    pub fn note_moved(&mut self, changes: Vec<AnnotationChange>) {
        self.note_deleted(changes);
        self.state = BalancerState::Unknown;
    }

    /// In whose cloud the load balancer will be. Answers all that has to be written.
    pub fn note_owner(&mut self, note: AnnotationChange) -> Unwritten {
        self.unwritten.add_annotations(vec![note]);
        self.unwritten.clone()
    }

    /// All answers are on the Service.
    pub fn note_written(&mut self) {
        let written = std::mem::take(&mut self.unwritten);
        for service in self.state.services_mut() {
            written.annotate(service);
        }
    }

    /// The arguments that a finished call is about: those of its first part.
    fn finish(&mut self, targets: DatedSet) -> (Arc<Service>, DatedSet) {
        self.failure = None;
        self.faulted = false;
        match self.state.take_pending() {
            Some(pending) => (pending.service, pending.targets),
            None => (self.service.clone(), targets),
        }
    }
}
