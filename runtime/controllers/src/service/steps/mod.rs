//! Carries out the steps of `service::plan` for one Service: cloud calls, writes, Events.
//!
//! A step ends in one of two ways: `None`, it is done and noted in the record, plan again; or an [`Outcome`] for the queue.
//! Reasons and messages of Events: `spec/service-controller.md`, section 9.

mod delete;
mod drift;
mod dry_run;
mod ensure;
mod failure;
mod owner;
mod targets;
mod write;

use std::sync::Arc;

use cloudwit_model::{AnnotationChange, EventKind, Retry};
use k8s_openapi::api::core::v1::Service;

use crate::assign::strip_reserved;
use crate::context::Context;
use crate::kube::cache::Key;
use crate::queue::Outcome;
use crate::service::ServiceLb;
use crate::service::plan::Step;
use crate::service::state::Record;

/// Carries out one step for the Service in the record. None means: done, plan again.
pub(crate) async fn carry_out(controller: &ServiceLb, key: &Key, step: Step) -> Option<Outcome> {
    let service = controller.records.change(key, |record| record.service().clone())?;
    let this = Reconcile {
        controller,
        context: &controller.context,
        key,
        service: &service,
    };
    let calls_the_cloud = matches!(
        step,
        Step::Ensure | Step::UpdateTargets | Step::CheckDrift | Step::Delete
    );
    if calls_the_cloud && !this.context.apply.is_leading() {
        return Some(Outcome::Retry(Retry::Never));
    }
    match step {
        Step::AddFinalizer => write::add_finalizer(&this).await,
        Step::Ensure => ensure::ensure(&this).await,
        Step::UpdateTargets => targets::update(&[this]).await.pop()?,
        Step::CheckDrift => drift::check(&this).await,
        Step::Delete => delete::delete(&this).await,
        Step::RemoveFinalizer => write::remove_finalizer(&this).await,
        Step::PatchStatus => write::patch_status(&this).await,
        Step::Nothing => Some(Outcome::Done),
    }
}

/// Brings the targets of these Services up to date with one call; for each an outcome as of [`carry_out`].
pub(crate) async fn update_targets(controller: &ServiceLb, keys: &[Key]) -> Vec<Option<Outcome>> {
    let context = &controller.context;
    if !context.apply.is_leading() {
        return vec![Some(Outcome::Retry(Retry::Never)); keys.len()];
    }
    let service = |key: &Key| controller.records.change(key, |record| record.service().clone());
    let services: Vec<Arc<Service>> = keys.iter().map(|key| service(key).unwrap_or_default()).collect();
    let each = keys.iter().zip(&services);
    let all: Vec<Reconcile<'_>> = each
        .map(|(key, service)| Reconcile {
            controller,
            context,
            key,
            service,
        })
        .collect();
    targets::update(&all).await
}

/// Work on one Service.
struct Reconcile<'a> {
    controller: &'a ServiceLb,
    context: &'a Context,
    key: &'a Key,
    /// The Service in the record. When its load balancer is deleted, it may be gone or have been replaced by now.
    service: &'a Service,
}

impl Reconcile<'_> {
    /// Changes the record of the Service; no effect when there is none.
    fn record<T>(&self, change: impl FnOnce(&mut Record) -> T) -> Option<T> {
        self.controller.records.change(self.key, change)
    }

    fn event(&self, reason: &str, message: &str) {
        self.controller
            .events
            .service(self.service, EventKind::Normal, reason, message);
    }

    fn warning(&self, reason: &str, message: impl Into<String>) {
        self.controller
            .events
            .service(self.service, EventKind::Warning, reason, message);
    }

    fn warn_of_no_nodes(&self) {
        self.warning(
            "UnAvailableLoadBalancer",
            "There are no available nodes for LoadBalancer",
        );
    }

    /// What a provider requests to write, as far as that is for it to say.
    fn accepted(&self, changes: Vec<AnnotationChange>) -> Vec<AnnotationChange> {
        if self.context.scope.are_several() {
            strip_reserved(changes)
        } else {
            changes
        }
    }
}
