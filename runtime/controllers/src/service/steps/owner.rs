//! Owner of a load balancer where several providers run, noted on the Service.
//!
//! It is noted before the first call that can create anything, so that neither a restart nor a change of class, type or annotation leaves
//! something behind.
//!
//! ```text
//!   ensure --> noted == desired           continue
//!              nothing noted              write the note, look again
//!              noted another provider     delete there (which may take its time), write the new note, begin anew
//! ```
//!
//! Every Service is given to the controllers of the noted provider (`assign`), so the deletion finds what was made.

use cloudwit_model::{AnnotationChange, CloudError, Failure, Service};

use crate::assign::BALANCER_PROVIDER;
use crate::kube::service::view::lenient_service_view;
use crate::queue::Outcome;
use crate::service::patch::write_answers;
use crate::service::state::{Operation, Record};
use crate::service::steps::Reconcile;
use crate::service::steps::failure::call_failed;
use crate::service::steps::write::{patch, write_failed};
use crate::service::targets::cache::Targets;

/// Brings the load balancer to the provider that shall have it. None: it is there, continue. Otherwise what the step ends in, where none
/// means: done, plan again.
pub(super) async fn settle_owner(this: &Reconcile<'_>) -> Option<Option<Outcome>> {
    let view = lenient_service_view(this.service);
    let wanted = match this.context.scope.wanted(&view) {
        Ok(None) => return None,
        Ok(Some(wanted)) => wanted,
        Err(failure) => {
            let error = CloudError::from(failure);
            return Some(Some(call_failed(this, Operation::Ensure, &Targets::default(), &error)));
        }
    };
    let noted = view.annotations.get(BALANCER_PROVIDER);
    match noted {
        Some(noted) if *noted == wanted => return None,
        Some(noted) => {
            if let Err(outcome) = leave(this, &view, noted, &wanted).await {
                return Some(Some(outcome));
            }
        }
        None => {}
    }
    match note_owner(this, wanted).await {
        // The controllers of the new provider make it.
        Ok(true) if noted.is_some() => Some(Some(Outcome::Done)),
        Ok(true) => Some(None),
        // A dry run: the note will not come, and what would follow it is logged too.
        Ok(false) => None,
        Err(outcome) => Some(Some(outcome)),
    }
}

/// Deletes the load balancer in the cloud it is in; it is made anew elsewhere.
async fn leave(this: &Reconcile<'_>, view: &Service, noted: &str, wanted: &str) -> Result<(), Outcome> {
    let token = this
        .record(|record| record.start(Operation::Delete))
        .ok_or(Outcome::Done)?;
    if token.is_none() {
        let message = format!("Moving load balancer from provider {noted} to {wanted}: deleting it there first");
        this.event("DeletingLoadBalancer", &message);
    }
    let deleted = match this.context.scope.may_ask_about(view) {
        Ok(()) => this.context.cloud.delete_balancer(view, token.as_deref()).await,
        Err(failure) => Err(failure.into()),
    };
    let changes = match deleted {
        Ok(changes) => this.accepted(changes),
        Err(CloudError::DryRun | CloudError::Failure(Failure::ImplementedElsewhere(_))) => Vec::new(),
        Err(error) => return Err(call_failed(this, Operation::Delete, &Targets::default(), &error)),
    };
    this.record(|record| record.note_moved(changes));
    Ok(())
}

/// Writes the note, together with what the last provider's deletion left to write. False in a dry run.
async fn note_owner(this: &Reconcile<'_>, wanted: String) -> Result<bool, Outcome> {
    let note = AnnotationChange {
        key: BALANCER_PROVIDER.to_owned(),
        value: Some(wanted),
    };
    let unwritten = this.record(|record| record.note_owner(note)).ok_or(Outcome::Done)?;
    let body = write_answers(this.service, &unwritten);
    let written = patch(this, body, "note the load balancer's provider").await;
    let failed = |error| write_failed(this, "failed to note the load balancer's provider", &error);
    let is_written = written.map_err(failed)?;
    if is_written {
        this.record(Record::note_written);
    }
    Ok(is_written)
}
