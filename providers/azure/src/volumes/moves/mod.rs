//! Disks come to machines and leave them, many in a call.
//!
//! ```text
//!   operations of tokens, each once -> the disks, few requests for all -> each machine once -> one PUT for each machine    -> pending until its operation is done
//! ```
//!
//! A machine's data disks are one list, which is written back as a whole, and only if the machine is unchanged since it was read (`If-Match`). What is to be done
//! about a disk is decided from its machine's and its own description, so a lost token loses nothing.

mod attach;
mod detach;
mod machine;

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::Brake;
use serde_json::Value;

use crate::Azure;
use crate::arm::{Begun, COMPUTE, Only};
use crate::volumes::progress::{POLL, Progress, by_words};
use machine::DiskMachine;

/// When what no time was left for is continued.
const NEXT: Duration = Duration::from_millis(100);

fn later() -> Failure {
    Failure::pending(
        NEXT,
        "",
        "there were more disks than fit into one change; the next one continues",
    )
}

/// The end of the call while something is under way that no operation is known of.
fn waits(what: impl Into<String>) -> Failure {
    Failure::pending(POLL, "", what)
}

/// Puts something beside what else there is of this machine.
fn add_to<T>(machines: &mut Vec<(String, Vec<T>)>, id: &str, one: T) {
    match machines.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(id)) {
        Some((_, all)) => all.push(one),
        None => machines.push((id.to_owned(), vec![one])),
    }
}

impl Azure {
    /// How the operations of these tokens stand, in their order. One that several continue is polled once.
    fn operations<'t>(
        &self,
        tokens: impl Iterator<Item = (Option<&'t str>, String)>,
        brake: &mut Brake,
    ) -> Vec<Result<(), Failure>> {
        let mut looked: Vec<(String, Result<(), Failure>)> = Vec::new();
        let mut one = |(token, doing): (Option<&str>, String)| {
            let progress = Progress::read(token);
            let Some(link) = progress.operation() else {
                return Ok(());
            };
            if let Some((_, known)) = looked.iter().find(|(known, _)| known == link) {
                return known.clone();
            }
            let outcome = brake.run(|| self.passed(&progress, &doing));
            looked.push((link.to_owned(), outcome.clone()));
            outcome
        };
        tokens.map(&mut one).collect()
    }

    /// The machine of this id; none where the cloud reports it as not found.
    fn disk_machine(&self, id: &str) -> Result<Option<DiskMachine>, Failure> {
        Ok(self.arm.find(id, COMPUTE, &[])?.as_ref().map(DiskMachine::read))
    }

    /// Writes the disks of a machine.
    ///
    /// # Errors
    /// `pending` while its operation runs, and where the machine was changed since it was read; the cloud's error.
    fn write_disks(&self, machine: &DiskMachine, doing: &str) -> Result<(), Failure> {
        if machine.etag.is_empty() {
            return Err(Failure::other(format!("the cloud told no ETag of {}", machine.id)));
        }
        let body: Value = machine.body();
        match self
            .arm
            .put(&machine.id, COMPUTE, &body, Only::IfUnchanged(&machine.etag))
        {
            Ok(Begun::Done) => Ok(()),
            Ok(Begun::Running(operation)) => Err(Progress::default().pending(Some(&operation), doing)),
            Err(failure) if is_edited(&failure) => Err(waits(format!(
                "{doing}: the machine was changed meanwhile; it is read again"
            ))),
            Err(failure) => Err(by_words(failure)),
        }
    }
}

/// Whether a write was refused since the machine is not as it was read.
fn is_edited(failure: &Failure) -> bool {
    failure
        .code
        .as_deref()
        .is_some_and(|code| code.starts_with("PreconditionFailed"))
}

#[cfg(test)]
mod tests;
