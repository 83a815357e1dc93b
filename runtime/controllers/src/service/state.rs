//! What this process remembers about the load balancer of one Service.
//!
//! `service` notes here what it did; `service::plan` reads it to find the next step. One record for one Service (by uid), dropped
//! when the Service is gone. Nothing in it has to survive a restart.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudwit_model::{AnnotationChange, CloudError, Failure};
use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};

use crate::kube::service::{ingress, ingress_equal};
use crate::options::classes::Classes;
use crate::service::needs_update::needs_update;
use crate::service::plan::wants_balancer;
use crate::service::targets::DatedSet;

/// A call to the cloud that changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `ensure`.
    Ensure,
    /// `update-targets`.
    UpdateTargets,
    /// `delete`.
    Delete,
}

/// What the load balancer was brought to last.
#[derive(Debug, Clone)]
pub struct Ensured {
    /// The Service as the provider saw it, plus the annotations that were written for it since.
    pub service: Arc<Service>,
    /// The nodes it was given.
    pub targets: DatedSet,
    /// The provider said that another controller looks after it; asked again when the Service changes.
    pub elsewhere: bool,
}

/// A call that is not finished.
#[derive(Debug, Clone)]
struct Pending {
    operation: Operation,
    token: String,
    message: String,
    /// What the first call of the operation was given; that, and nothing newer, is done when it succeeds.
    service: Arc<Service>,
    targets: DatedSet,
}

/// Answers of the provider that are not on the Service yet.
#[derive(Debug, Clone, Default)]
pub struct Unwritten {
    /// Ingress points for the status.
    pub ingress: Option<Vec<LoadBalancerIngress>>,
    /// New values of annotations; none removes.
    pub annotations: BTreeMap<String, Option<String>>,
}

impl Unwritten {
    /// Whether writing it would change the Service.
    pub fn differs_from(&self, service: &Service) -> bool {
        self.ingress_for(service).is_some() || !self.annotations_for(service).is_empty()
    }

    /// The ingress points, unless the Service has them.
    pub fn ingress_for(&self, service: &Service) -> Option<&[LoadBalancerIngress]> {
        self.ingress
            .as_deref()
            .filter(|wanted| !ingress_equal(wanted, ingress(service)))
    }

    /// The annotations that the Service does not have like this.
    pub fn annotations_for(&self, service: &Service) -> BTreeMap<String, Option<String>> {
        let current = service.metadata.annotations.as_ref();
        let missing = |key: &String, value: &Option<String>| current.and_then(|all| all.get(key)) != value.as_ref();
        self.annotations
            .iter()
            .filter(|(key, value)| missing(key, value))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect()
    }

    fn add_annotations(&mut self, changes: Vec<AnnotationChange>) {
        self.annotations
            .extend(changes.into_iter().map(|change| (change.key, change.value)));
    }
}

/// The memory of one Service.
#[derive(Debug, Clone)]
pub struct Record {
    service: Arc<Service>,
    classes: Classes,
    ensured: Option<Ensured>,
    pending: Option<Pending>,
    /// A call that was started and has not succeeded: it may be half done.
    unfinished: Option<Operation>,
    unwritten: Unwritten,
    touched: bool,
    deleted: bool,
    foreign: bool,
    /// The last failure in words, until a call succeeds.
    failure: Option<String>,
    /// Why the API server did not take the last write, until it takes one.
    refusal: Option<String>,
    /// Why the last look at the load balancer failed, until one succeeds.
    unseen: Option<String>,
    /// It is time to ask the cloud whether the load balancer is still there.
    look_due: bool,
    /// Looks that found nothing wrong since the last full one.
    looks: u32,
    /// What the cloud showed when it was ensured again because of that.
    odd: Option<Vec<LoadBalancerIngress>>,
}

impl Record {
    /// A record that knows nothing yet.
    pub fn new(service: Arc<Service>, classes: &Classes) -> Self {
        let foreign = classes.give_away(&service);
        Self {
            service,
            classes: classes.clone(),
            ensured: None,
            pending: None,
            unfinished: None,
            unwritten: Unwritten::default(),
            touched: false,
            deleted: false,
            foreign,
            failure: None,
            refusal: None,
            unseen: None,
            look_due: false,
            looks: 0,
            odd: None,
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
    pub fn see(&mut self, service: Arc<Service>) {
        self.foreign = !wants_balancer(&service, &self.classes) && (self.foreign || self.classes.give_away(&service));
        self.service = service;
    }

    /// What the load balancer was brought to last.
    pub fn ensured(&self) -> Option<&Ensured> {
        self.ensured.as_ref()
    }

    /// What the Service still lacks.
    pub fn unwritten(&self) -> &Unwritten {
        &self.unwritten
    }

    /// Whether this process made a call that may have created something, and no later delete has succeeded.
    pub fn is_touched(&self) -> bool {
        self.touched
    }

    /// Whether the load balancer was deleted and not ensured since.
    pub fn is_deleted(&self) -> bool {
        self.deleted
    }

    /// Whether there is a load balancer as far as this process and the Service's status know. False means unknown.
    pub fn has_balancer(&self) -> bool {
        self.ensured.as_ref().is_some_and(|ensured| !ensured.elsewhere)
            || self.pending.is_some()
            || !ingress(&self.service).is_empty()
    }

    /// A call that was started and has not succeeded. It may be half done, so it is repeated also where what it was to change is as before again.
    pub fn unfinished(&self) -> Option<Operation> {
        self.unfinished
    }

    /// Whether the load balancer is finished, so that a look at it makes sense.
    pub fn is_settled(&self) -> bool {
        self.pending.is_none() && self.ensured.as_ref().is_some_and(|ensured| !ensured.elsewhere)
    }

    /// Asks for a look at the load balancer in the cloud.
    pub fn want_look(&mut self) {
        self.look_due = true;
    }

    /// Whether a look was asked for.
    pub fn is_look_due(&self) -> bool {
        self.look_due
    }

    /// The cloud was asked and did not tell, for this reason.
    pub fn note_unseen(&mut self, reason: String) {
        self.look_due = false;
        self.unseen = Some(reason);
    }

    /// Whether the load balancer that the cloud shows (none: there is none) is another one than the status says.
    ///
    /// One that looks the same as before an `ensure` that could not change it is how this provider shows it, and no drift;
    /// otherwise such a provider would cost an `ensure` for each look.
    pub fn note_seen(&mut self, seen: Option<Vec<LoadBalancerIngress>>) -> bool {
        self.look_due = false;
        self.unseen = None;
        let Some(seen) = seen else { return true };
        if ingress_equal(&seen, ingress(&self.service)) {
            self.odd = None;
            return false;
        }
        let known = self.odd.as_ref().is_some_and(|odd| ingress_equal(odd, &seen));
        self.odd = Some(seen);
        !known
    }

    /// Counts a look that found nothing wrong. Whether it is the turn of one that asks for more.
    pub fn is_full_look_due(&mut self, every: u32) -> bool {
        self.looks = (self.looks + 1) % every.max(1);
        self.looks == 0
    }

    /// Whether the finalizer belongs to the controller of another class.
    pub fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// What an unfinished call waits for, in the provider's words.
    pub fn waits_for(&self) -> Option<&str> {
        self.pending.as_ref().map(|pending| pending.message.as_str())
    }

    /// The last failure in words, until a call succeeds.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Why the API server did not take the last write, until it takes one.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Why the last look at the load balancer failed, until one succeeds.
    pub fn unseen(&self) -> Option<&str> {
        self.unseen.as_deref()
    }

    /// The API server took the last write, or did not for this reason.
    pub fn note_write(&mut self, refusal: Option<String>) {
        self.refusal = refusal;
    }

    /// Starts a call: returns the token to go on with, if this call continues one.
    ///
    /// A token is dropped when the operation is another one or the Service has changed in a way that matters: what the
    /// provider waits for may have become moot. A changed set of nodes keeps it; the new set is given afterwards.
    pub fn start(&mut self, operation: Operation) -> Option<String> {
        if operation != Operation::Delete {
            (self.touched, self.deleted) = (true, false);
            // An ensure gives the nodes too.
            if self.unfinished != Some(Operation::Ensure) {
                self.unfinished = Some(operation);
            }
        }
        let pending = self.pending.as_ref().filter(|pending| {
            let same = operation == Operation::Delete
                || needs_update(&pending.service, &self.service, &self.classes).is_none();
            pending.operation == operation && same
        });
        let token = pending.map(|pending| pending.token.clone());
        if token.is_none() {
            self.pending = None;
        }
        token
    }

    /// The call goes on later. `targets` are those it was given. Returns whether the provider waits for something new.
    pub fn wait(&mut self, operation: Operation, token: String, message: String, targets: DatedSet) -> bool {
        let news = self.waits_for() != Some(&message);
        let (service, targets) = self.finish(targets);
        self.pending = Some(Pending {
            operation,
            token,
            message,
            service,
            targets,
        });
        news
    }

    /// The call has failed. Returns whether the failure is another one than before.
    ///
    /// The token is kept where the provider only could not be asked, and dropped where it may be what the provider fails on.
    pub fn fail(&mut self, error: &CloudError) -> bool {
        if !matches!(
            error,
            CloudError::Failure(
                Failure::RateLimited { .. } | Failure::Unavailable(_) | Failure::Conflict(_) | Failure::Aborted(_)
            )
        ) {
            self.pending = None;
        }
        let failure = error.to_string();
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
        self.unfinished = None;
        self.unwritten.ingress = Some(ingress);
        self.unwritten.add_annotations(changes);
        self.ensured = Some(Ensured {
            service,
            targets,
            elsewhere: false,
        });
    }

    /// The provider leaves this Service to somebody else.
    pub fn note_elsewhere(&mut self, targets: DatedSet) {
        let (service, targets) = self.finish(targets);
        self.unfinished = None;
        self.ensured = Some(Ensured {
            service,
            targets,
            elsewhere: true,
        });
    }

    /// The nodes were updated.
    pub fn note_updated(&mut self, targets: DatedSet, changes: Vec<AnnotationChange>) {
        let (_, targets) = self.finish(targets);
        self.unfinished
            .take_if(|operation| *operation == Operation::UpdateTargets);
        self.unwritten.add_annotations(changes);
        if let Some(ensured) = &mut self.ensured {
            ensured.targets = targets;
        }
    }

    /// The load balancer has to be ensured again: it is gone, or may have changed.
    pub fn forget_ensured(&mut self) {
        (self.ensured, self.pending, self.unfinished) = (None, None, None);
    }

    /// The load balancer is gone; the status has to follow.
    pub fn note_deleted(&mut self, changes: Vec<AnnotationChange>) {
        (self.ensured, self.pending, self.unfinished) = (None, None, None);
        (self.touched, self.deleted) = (false, true);
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
        self.deleted = false;
    }

    /// In whose cloud the load balancer will be. Answers all that has to be written.
    pub fn note_owner(&mut self, note: AnnotationChange) -> Unwritten {
        self.unwritten.add_annotations(vec![note]);
        self.unwritten.clone()
    }

    /// All answers are on the Service.
    pub fn note_written(&mut self) {
        let written = std::mem::take(&mut self.unwritten);
        if let Some(ensured) = &mut self.ensured {
            ensured.service = with_annotations(ensured.service.clone(), &written.annotations);
        }
    }

    /// The arguments that a finished call is about: those of its first part.
    fn finish(&mut self, targets: DatedSet) -> (Arc<Service>, DatedSet) {
        self.failure = None;
        match self.pending.take() {
            Some(pending) => (pending.service, pending.targets),
            None => (self.service.clone(), targets),
        }
    }
}

/// The Service with these annotations, so that writing them is not taken for a change by somebody else.
fn with_annotations(service: Arc<Service>, changes: &BTreeMap<String, Option<String>>) -> Arc<Service> {
    if changes.is_empty() {
        return service;
    }
    let mut service = Arc::unwrap_or_clone(service);
    let annotations = service.metadata.annotations.get_or_insert_default();
    for (key, value) in changes {
        match value {
            Some(value) => annotations.insert(key.clone(), value.clone()),
            None => annotations.remove(key),
        };
    }
    Arc::new(service)
}

#[cfg(test)]
pub(crate) mod testing;

#[cfg(test)]
mod tests;
