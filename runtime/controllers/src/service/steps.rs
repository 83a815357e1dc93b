//! Carries out the steps of `service::plan` for one Service: the calls to the cloud, the writes, the Events.
//!
//! A step ends in one of two ways: `None`, it is done and noted in the record, look again; or an [`Outcome`] for the queue.
//! Reasons and messages of Events: `spec/service-controller.md`, section 9.

use cloudwit_model::{AnnotationChange, Balancer, CloudError, EventKind, Failure, Retry, Target, short_list};
use k8s_openapi::api::core::v1::Service;
use kube::api::Patch;
use serde_json::Value;
use tracing::{info, warn};

use crate::assign::{BALANCER_PROVIDER, strip_reserved};
use crate::kube::cache::{Key, key_of};
use crate::kube::service::view::{ingress_status, lenient_service_view, service_view};
use crate::kube::writer::{self, Part, WriteError};
use crate::queue::Outcome;
use crate::service::ServiceLb;
use crate::service::patch::{add_finalizer, remove_finalizer, write_answers};
use crate::service::plan::Step;
use crate::service::state::{Operation, Record};
use crate::service::targets::cache::Targets;

impl ServiceLb {
    /// Carries out one step. None means: done, look again.
    pub(crate) async fn carry_out(&self, key: &Key, step: Step) -> Option<Outcome> {
        let service = self.record(key, |record| record.service().clone())?;
        let calls_the_cloud = matches!(
            step,
            Step::Ensure | Step::UpdateTargets | Step::CheckDrift | Step::Delete
        );
        if calls_the_cloud && !self.context.apply.is_leading() {
            return Some(Outcome::Retry(Retry::Never));
        }
        match step {
            Step::AddFinalizer => self.add_finalizer(key, &service).await,
            Step::Ensure => self.ensure(key, &service).await,
            Step::UpdateTargets => self.update_targets(key, &service).await,
            Step::CheckDrift => self.check_drift(key, &service).await,
            Step::Delete => self.delete(key, &service).await,
            Step::RemoveFinalizer => self.remove_finalizer(key, &service).await,
            Step::PatchStatus => self.patch_status(key, &service).await,
            Step::Nothing => Some(Outcome::Done),
        }
    }

    async fn add_finalizer(&self, key: &Key, service: &Service) -> Option<Outcome> {
        match self
            .patch(service, add_finalizer(service), "add the load balancer finalizer")
            .await
        {
            Ok(true) => None,
            // A dry run: the finalizer will not come, and what would follow it is told too.
            Ok(false) => self.ensure(key, service).await.or(Some(Outcome::Done)),
            Err(error) => Some(self.write_failed(service, "failed to add load balancer cleanup finalizer", &error)),
        }
    }

    async fn ensure(&self, key: &Key, service: &Service) -> Option<Outcome> {
        if let Some(outcome) = self.settle_owner(key, service).await {
            return outcome;
        }
        let token = self.record(key, |record| record.start(Operation::Ensure))?;
        let given = self.targets_now();
        if token.is_none() {
            self.tell(service, "EnsuringLoadBalancer", "Ensuring load balancer");
            if given.list.is_empty() {
                self.tell_no_nodes(service);
            }
        }
        match self.call_ensure(service, &given.list, token.as_deref()).await {
            Ok(balancer) => {
                self.record(key, |record| {
                    record.note_ensured(given.set, ingress_status(&balancer.ingress), balancer.annotations);
                });
                self.tell(service, "EnsuredLoadBalancer", "Ensured load balancer");
                None
            }
            Err(CloudError::Failure(Failure::ImplementedElsewhere(message))) => {
                info!(service = %key, why = %message, "another controller looks after this load balancer");
                self.record(key, |record| record.note_elsewhere(given.set));
                None
            }
            Err(CloudError::DryRun) => self.pretend_ensured(key, service, &given).await,
            Err(error) => Some(self.call_failed(key, service, Operation::Ensure, &given, &error)),
        }
    }

    pub(crate) async fn call_ensure(
        &self,
        service: &Service,
        targets: &[Target],
        token: Option<&str>,
    ) -> Result<Balancer, CloudError> {
        let view = service_view(service).map_err(|what| Failure::Invalid(what.into()))?;
        self.context.scope.may_ask_about(&view)?;
        let mut balancer = self.context.cloud.ensure_balancer(&view, targets, token).await?;
        balancer.annotations = self.accepted(balancer.annotations);
        if balancer.ingress.is_empty() {
            let message =
                "the provider reports success but gives no address; it has to answer pending until there is one";
            return Err(Failure::Other(message.into()).into());
        }
        Ok(balancer)
    }

    /// What a provider asks to have written, as far as that is for it to say.
    pub(crate) fn accepted(&self, changes: Vec<AnnotationChange>) -> Vec<AnnotationChange> {
        if self.context.scope.are_several() {
            strip_reserved(changes)
        } else {
            changes
        }
    }

    async fn update_targets(&self, key: &Key, service: &Service) -> Option<Outcome> {
        let token = self.record(key, |record| record.start(Operation::UpdateTargets))?;
        let given = self.targets_now();
        let view = lenient_service_view(service);
        let metrics = &self.context.metrics.service;
        metrics.target_updates.inc();
        let stopwatch = metrics.target_update();
        let result = match self.context.scope.may_ask_about(&view) {
            Ok(()) => {
                let call = self.context.cloud.update_targets(&view, &given.list, token.as_deref());
                call.await.map(|changes| self.accepted(changes))
            }
            Err(failure) => Err(failure.into()),
        };
        drop(stopwatch);
        match result {
            Err(CloudError::DryRun) => {
                self.record(key, |record| record.note_updated(given.set, Vec::new()));
                None
            }
            Ok(changes) => {
                if given.list.is_empty() {
                    self.tell_no_nodes(service);
                } else {
                    self.tell(service, "UpdatedLoadBalancer", "Updated load balancer with new hosts");
                }
                self.record(key, |record| record.note_updated(given.set, changes));
                None
            }
            Err(CloudError::Failure(Failure::ImplementedElsewhere(_))) => {
                self.record(key, |record| record.note_elsewhere(given.set));
                None
            }
            Err(CloudError::Failure(Failure::NotFound(message))) => {
                info!(service = %key, why = %message, "the load balancer is gone, building it again");
                self.record(key, Record::forget_ensured);
                None
            }
            Err(error) => Some(self.call_failed(key, service, Operation::UpdateTargets, &given, &error)),
        }
    }

    /// Deletes the load balancer of the Service in the record, which may be gone or have been replaced by now.
    async fn delete(&self, key: &Key, service: &Service) -> Option<Outcome> {
        let view = lenient_service_view(service);
        if let Err(failure) = self.context.scope.may_ask_about(&view) {
            self.record(key, |record| record.start(Operation::Delete))?;
            let error = failure.into();
            return Some(self.call_failed(key, service, Operation::Delete, &Targets::default(), &error));
        }
        let mut exists = self.record(key, |record| record.has_balancer())?;
        if !exists {
            // Only so that Events tell the truth (weak spot S12). It is deleted in any case: there may be parts of it.
            exists = !matches!(self.context.cloud.get_balancer(&view).await, Ok(None));
        }
        let token = self.record(key, |record| record.start(Operation::Delete))?;
        if token.is_none() && exists {
            self.tell(service, "DeletingLoadBalancer", "Deleting load balancer");
        }
        let result = match self.context.cloud.delete_balancer(&view, token.as_deref()).await {
            Err(CloudError::Failure(Failure::ImplementedElsewhere(_))) => {
                exists = false;
                Ok(Vec::new())
            }
            Err(CloudError::DryRun) => Ok(Vec::new()),
            // What is not found may be the load balancer, and then all is well, or something else.
            Err(CloudError::Failure(not_found @ Failure::NotFound(_))) => {
                match self.context.cloud.get_balancer(&view).await {
                    Ok(None) => Ok(Vec::new()),
                    Ok(Some(_)) => Err(not_found.into()),
                    Err(error) => Err(error),
                }
            }
            other => other,
        };
        match result {
            Ok(changes) => {
                let mut changes = self.accepted(changes);
                if self.context.scope.are_several() {
                    // The note goes with the load balancer.
                    changes.push(AnnotationChange {
                        key: BALANCER_PROVIDER.to_owned(),
                        value: None,
                    });
                }
                self.record(key, |record| record.note_deleted(changes));
                if exists {
                    self.tell(service, "DeletedLoadBalancer", "Deleted load balancer");
                }
                None
            }
            Err(error) => Some(self.call_failed(key, service, Operation::Delete, &Targets::default(), &error)),
        }
    }

    async fn remove_finalizer(&self, key: &Key, service: &Service) -> Option<Outcome> {
        let patch = self.record(key, |record| remove_finalizer(service, record.unwritten()))?;
        let result = self.patch(service, patch, "remove the load balancer finalizer").await;
        self.written(key, service, "failed to remove load balancer cleanup finalizer", result)
    }

    async fn patch_status(&self, key: &Key, service: &Service) -> Option<Outcome> {
        let patch = self.record(key, |record| write_answers(service, record.unwritten()))?;
        let result = self.patch(service, patch, "write the load balancer's address").await;
        if matches!(result, Ok(false)) {
            // A dry run goes on as if it were written.
            self.record(key, Record::note_written);
            return None;
        }
        self.written(key, service, "failed to update load balancer status", result)
    }

    fn written(
        &self,
        key: &Key,
        service: &Service,
        failure: &str,
        result: Result<bool, WriteError>,
    ) -> Option<Outcome> {
        match result {
            Ok(true) => {
                self.record(key, Record::note_written);
                None
            }
            Ok(false) => Some(Outcome::Done),
            // It vanished; the watch will say so.
            Err(WriteError::NotFound) => {
                self.record(key, Record::note_written);
                Some(Outcome::Done)
            }
            Err(error) => Some(self.write_failed(service, failure, &error)),
        }
    }

    /// Patches the `status` subresource and puts the answer into the cache. False in a dry run.
    pub(crate) async fn patch(&self, service: &Service, patch: Value, purpose: &str) -> Result<bool, WriteError> {
        let target = writer::Target {
            namespace: service.metadata.namespace.as_deref(),
            name: service.metadata.name.as_deref().unwrap_or_default(),
        };
        let result = self
            .context
            .apply
            .patch::<Service>(target, Part::Status, &Patch::Strategic(patch), purpose)
            .await;
        let refusal = result.as_ref().err().map(ToString::to_string);
        self.record(&key_of(service), |record| record.note_write(refusal));
        let written = result?;
        let done = written.is_some();
        written
            .into_iter()
            .for_each(|service| self.context.services.observe(service));
        Ok(done)
    }

    fn tell(&self, service: &Service, reason: &str, message: &str) {
        self.events.service(service, EventKind::Normal, reason, message);
    }

    fn tell_no_nodes(&self, service: &Service) {
        let message = "There are no available nodes for LoadBalancer";
        self.events
            .service(service, EventKind::Warning, "UnAvailableLoadBalancer", message);
    }

    pub(crate) fn write_failed(&self, service: &Service, what: &str, error: &WriteError) -> Outcome {
        if !matches!(error, WriteError::NotFound | WriteError::NotLeading) {
            warn!(service = %key_of(service), %error, "{what}");
            let message = format!("Error syncing load balancer: {what}: {error}");
            self.events
                .service(service, EventKind::Warning, "SyncLoadBalancerFailed", message);
        }
        Outcome::Retry(error.retry())
    }

    /// Notes a call without result, tells the user, and says when to go on.
    pub(crate) fn call_failed(
        &self,
        key: &Key,
        service: &Service,
        operation: Operation,
        given: &Targets,
        error: &CloudError,
    ) -> Outcome {
        let retry = error.retry();
        if let CloudError::Failure(Failure::Pending { token, message, .. }) = error {
            let (token, text) = (token.clone(), message.clone());
            let news = self
                .record(key, |record| record.wait(operation, token, text, given.set))
                .unwrap_or(false);
            if news {
                info!(service = %key, ?operation, why = message, "waiting for the cloud");
                self.events.service(
                    service,
                    EventKind::Normal,
                    waiting_reason(operation),
                    format!("Waiting: {message}"),
                );
            }
            return Outcome::Retry(retry);
        }
        warn!(service = %key, ?operation, %error, "the load balancer could not be brought up to date");
        if operation == Operation::UpdateTargets {
            self.context.metrics.service.target_update_errors.inc();
        }
        let news = self.record(key, |record| record.fail(error)).unwrap_or(true);
        // A pause that the cloud asked for is told once, not each time.
        if news || !matches!(retry, Retry::After(_)) {
            let gone = self
                .context
                .services
                .get(key)
                .is_none_or(|current| current.metadata.uid != service.metadata.uid);
            let (reason, message) = failure_event(operation, gone, given, error);
            self.events.service(service, EventKind::Warning, reason, message);
        }
        Outcome::Retry(retry)
    }
}

fn waiting_reason(operation: Operation) -> &'static str {
    match operation {
        Operation::Ensure => "EnsuringLoadBalancer",
        Operation::UpdateTargets => "UpdatingLoadBalancer",
        Operation::Delete => "DeletingLoadBalancer",
    }
}

fn failure_event(operation: Operation, gone: bool, given: &Targets, error: &CloudError) -> (&'static str, String) {
    match operation {
        Operation::Ensure => (
            "SyncLoadBalancerFailed",
            format!("Error syncing load balancer: failed to ensure load balancer: {error}"),
        ),
        Operation::UpdateTargets => (
            "UpdateLoadBalancerFailed",
            format!(
                "Error updating load balancer with new hosts [{}] [node names limited, total number of nodes: {}], error: {error}",
                short_list(&given.list),
                given.list.len()
            ),
        ),
        Operation::Delete if gone => (
            "DeleteLoadBalancerFailed",
            format!("Error deleting load balancer: {error}"),
        ),
        Operation::Delete => (
            "SyncLoadBalancerFailed",
            format!("Error syncing load balancer: failed to delete load balancer: {error}"),
        ),
    }
}
