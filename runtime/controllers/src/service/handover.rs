//! In whose cloud a load balancer is, where several providers run: noted on the Service before the first call that can create anything,
//! so that neither a restart nor a change of class, type or annotation leaves something behind.
//!
//! ```text
//!   ensure --> noted == wanted            go on
//!              nothing noted              write the note, look again
//!              noted another provider     delete there (which may take its time), write the new note, begin anew
//! ```
//!
//! Every Service is given to the controllers of the noted provider (`assign`), so the deletion finds what was made.

use cloudwit_model::{AnnotationChange, CloudError, EventKind, Failure};
use k8s_openapi::api::core::v1::Service;

use crate::assign::BALANCER_PROVIDER;
use crate::kube::cache::Key;
use crate::kube::service::view::lenient_service_view;
use crate::queue::Outcome;
use crate::service::ServiceLb;
use crate::service::patch::write_answers;
use crate::service::state::{Operation, Record};
use crate::service::targets::cache::Targets;

impl ServiceLb {
    /// Brings the load balancer to the provider that shall have it. None: it is there, go on. Otherwise what the step ends in, where none
    /// means: done, look again.
    pub(crate) async fn settle_owner(&self, key: &Key, service: &Service) -> Option<Option<Outcome>> {
        let view = lenient_service_view(service);
        let wanted = match self.context.scope.wanted(&view) {
            Ok(None) => return None,
            Ok(Some(wanted)) => wanted,
            Err(failure) => {
                let error = CloudError::from(failure);
                let outcome = self.call_failed(key, service, Operation::Ensure, &Targets::default(), &error);
                return Some(Some(outcome));
            }
        };
        let noted = view.annotations.get(BALANCER_PROVIDER);
        match noted {
            Some(noted) if *noted == wanted => return None,
            Some(noted) => {
                if let Err(outcome) = self.leave(key, service, &view, noted, &wanted).await {
                    return Some(Some(outcome));
                }
            }
            None => {}
        }
        match self.note_owner(key, service, wanted).await {
            // The controllers of the new provider make it.
            Ok(true) if noted.is_some() => Some(Some(Outcome::Done)),
            Ok(true) => Some(None),
            // A dry run: the note will not come, and what would follow it is told too.
            Ok(false) => None,
            Err(outcome) => Some(Some(outcome)),
        }
    }

    /// Deletes the load balancer in the cloud it is in; it is made anew elsewhere.
    async fn leave(
        &self,
        key: &Key,
        service: &Service,
        view: &cloudwit_model::Service,
        noted: &str,
        wanted: &str,
    ) -> Result<(), Outcome> {
        let token = self
            .record(key, |record| record.start(Operation::Delete))
            .ok_or(Outcome::Done)?;
        if token.is_none() {
            let message = format!("Moving load balancer from provider {noted} to {wanted}: deleting it there first");
            self.events
                .service(service, EventKind::Normal, "DeletingLoadBalancer", message);
        }
        let deleted = match self.context.scope.may_ask_about(view) {
            Ok(()) => self.context.cloud.delete_balancer(view, token.as_deref()).await,
            Err(failure) => Err(failure.into()),
        };
        let changes = match deleted {
            Ok(changes) => self.accepted(changes),
            Err(CloudError::DryRun | CloudError::Failure(Failure::ImplementedElsewhere(_))) => Vec::new(),
            Err(error) => {
                return Err(self.call_failed(key, service, Operation::Delete, &Targets::default(), &error));
            }
        };
        self.record(key, |record| record.note_moved(changes));
        Ok(())
    }

    /// Writes the note, together with what the last provider's deletion left to write. False in a dry run.
    async fn note_owner(&self, key: &Key, service: &Service, wanted: String) -> Result<bool, Outcome> {
        let note = AnnotationChange {
            key: BALANCER_PROVIDER.to_owned(),
            value: Some(wanted),
        };
        let unwritten = self
            .record(key, |record| record.note_owner(note))
            .ok_or(Outcome::Done)?;
        let patch = write_answers(service, &unwritten);
        let written = self.patch(service, patch, "note the load balancer's provider").await;
        let failed = |error| self.write_failed(service, "failed to note the load balancer's provider", &error);
        if written.map_err(failed)? {
            self.record(key, Record::note_written);
            return Ok(true);
        }
        Ok(false)
    }
}
