//! Next step for the load balancer of one Service.
//!
//! Pure: from the object ([`Service`]), this process's record ([`Record`]) and the nodes of the
//! last pass ([`DatedSet`]) comes one [`Step`]. `service` carries the step out, notes the result in the record and plans again, until the
//! answer is [`Step::Nothing`] or a step has to wait.
//!
//! The record is only a memory of work that need not be repeated. Losing it (a restart, another leader) costs one idempotent
//! call for each Service and nothing else, because the finalizer is on the object before the first call that can create anything.
//! Rules: `spec/service-controller.md`, sections 4 and 6, with weak spots S1, S3, S4, S6, S7, S8, S10 and S12 put right.

use k8s_openapi::api::core::v1::Service;

use crate::kube::service::{has_cleanup_finalizer, service_type};
use crate::options::classes::Classes;
use crate::service::needs_update::needs_update;
use crate::service::state::{BalancerState, Record, StartedChange};
use crate::service::targets::DatedSet;

/// The next thing to do for one Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Put the cleanup finalizer on the Service. Comes before the first call to the cloud.
    AddFinalizer,
    /// Create the load balancer or bring it to the Service's spec.
    Ensure,
    /// Give it the new set of nodes.
    UpdateTargets,
    /// Look whether the load balancer is still there and as it was.
    CheckDrift,
    /// Delete the load balancer of the Service in the record.
    Delete,
    /// Let the Service go: take the finalizer off and clear the status in one write.
    RemoveFinalizer,
    /// Write the status and the annotations that the provider gave.
    PatchStatus,
    /// All is as it should be, or it is none of our business.
    Nothing,
}

/// Whether we look after this Service: type `LoadBalancer` and no class that names another controller.
pub fn wants_balancer(service: &Service, classes: &Classes) -> bool {
    service_type(service) == "LoadBalancer" && !classes.is_foreign_class(service)
}

/// Whether the Service is being deleted.
pub fn dying(service: &Service) -> bool {
    service.metadata.deletion_timestamp.is_some()
}

/// Whether the Service carries our finalizer and no longer a reason for it.
///
/// Upstream does not check the class here, and so takes Services of other controllers over while they are deleted: the
/// finalizer is shared (weak spot S1).
pub fn needs_cleanup(service: &Service, classes: &Classes) -> bool {
    has_cleanup_finalizer(service)
        && !classes.is_foreign_class(service)
        && (dying(service) || service_type(service) != "LoadBalancer")
}

/// Whether a change of a Service is worth a look. `old` is none for a Service that was not seen before.
///
/// Everything else (status, labels, our own writes) must not wake anything, so that it cannot cut a pause short.
pub fn needs_sync(old: Option<&Service>, new: &Service, classes: &Classes) -> bool {
    let Some(old) = old else {
        return wants_balancer(new, classes) || needs_cleanup(new, classes);
    };
    needs_update(old, new, classes).is_some()
        || (needs_cleanup(new, classes) && !needs_cleanup(old, classes))
        || (dying(new) && !dying(old) && wants_balancer(new, classes))
        || (lacks_finalizer(new, classes) && !lacks_finalizer(old, classes))
        || (old.metadata.uid != new.metadata.uid && (wants_balancer(old, classes) || needs_cleanup(new, classes)))
}

fn lacks_finalizer(service: &Service, classes: &Classes) -> bool {
    wants_balancer(service, classes) && !dying(service) && !has_cleanup_finalizer(service)
}

/// The next step. `current` is none when the Service is gone from the API server, `targets` are those of the last pass.
pub fn next_step(record: &Record, current: Option<&Service>, targets: &DatedSet) -> Step {
    let Some(service) = current else {
        return delete_if_touched(record);
    };
    if !record.is_about(service) {
        return delete_if_touched(record);
    }
    if wants_balancer(service, record.classes()) && !dying(service) {
        return step_of_wanted(record, service, targets);
    }
    if record.classes().is_foreign_class(service) || record.is_foreign() {
        return delete_if_touched(record);
    }
    step_of_unwanted(record, service)
}

fn delete_if_touched(record: &Record) -> Step {
    if record.is_touched() {
        Step::Delete
    } else {
        Step::Nothing
    }
}

fn step_of_wanted(record: &Record, service: &Service, targets: &DatedSet) -> Step {
    if !has_cleanup_finalizer(service) {
        return Step::AddFinalizer;
    }
    let (seen, is_behind) = match record.state() {
        BalancerState::Unknown
        | BalancerState::Ensuring(_)
        | BalancerState::Deleting { .. }
        | BalancerState::Deleted => return Step::Ensure,
        BalancerState::Ensured {
            change: Some(StartedChange::Ensure(_)),
            ..
        } => return Step::Ensure,
        BalancerState::Ensured { last, change } => (&last.service, change.is_some() || last.targets.is_behind(targets)),
        BalancerState::Elsewhere(service) => (service, false),
    };
    if needs_update(seen, service, record.classes()).is_some() {
        Step::Ensure
    } else if record.unwritten().differs_from(service) {
        Step::PatchStatus
    } else if is_behind {
        Step::UpdateTargets
    } else if record.drift.is_check_due() && record.is_settled() {
        Step::CheckDrift
    } else {
        Step::Nothing
    }
}

fn step_of_unwanted(record: &Record, service: &Service) -> Step {
    let finalizer = has_cleanup_finalizer(service);
    if record.is_touched() || (finalizer && !record.is_deleted()) {
        Step::Delete
    } else if finalizer {
        Step::RemoveFinalizer
    } else if !dying(service) && record.unwritten().differs_from(service) {
        Step::PatchStatus
    } else {
        Step::Nothing
    }
}

#[cfg(test)]
mod tests;
