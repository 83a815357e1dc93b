//! Disks come to machines and leave them, many in a call.
//!
//! ```text
//!   tasks of tokens -> the disks, few requests for all -> for each: done, or one request that begins a task -> pending until the disk shows it
//! ```
//!
//! What is to be done about one is decided from its disk, so a lost token loses nothing. The cloud does one thing at a time with a machine: what is requested
//! meanwhile is refused as `ConcurrentTask`, and requested again.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::Brake;
use cloudwit_guest_sdk::volumes::*;
use serde_json::json;

use crate::Photon;
use crate::api::NO_MACHINE;
use crate::config::is_id;
use crate::task::{BEGUN, POLL, Task};
use crate::volumes::create::when_free;
use crate::volumes::disk::{Disk, DiskState, Disks, NO_DISK, no_disk};

/// When changes without time left are continued.
const NEXT: Duration = Duration::from_millis(100);

/// What is to be done for an attachment. Pure.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// It is attached.
    Done,
    /// The cloud works on the disk.
    Wait,
    /// It has to be requested.
    Attach,
}

/// Decides it.
///
/// # Errors
/// Why the disk cannot be attached there.
pub(crate) fn step(disk: &Disk, machine: &str) -> Result<Step, Failure> {
    if disk.is_at(machine) {
        return Ok(Step::Done);
    }
    if let Some(elsewhere) = disk.machines().first() {
        return Err(Failure::failed_precondition(format!(
            "the persistent disk {} is attached to the virtual machine {elsewhere}",
            disk.id
        )));
    }
    match disk.state {
        DiskState::Detached => Ok(Step::Attach),
        // Attached to nothing: in the middle of a change.
        DiskState::Creating | DiskState::Attached | DiskState::Other => Ok(Step::Wait),
        DiskState::Error => Err(Failure::failed_precondition(format!(
            "the cloud gave the persistent disk {} up: its state is ERROR",
            disk.id
        ))),
        DiskState::Deleted => Err(no_disk(&disk.id)),
    }
}

fn attached(disk: &Disk) -> Attached {
    Attached {
        context: Vec::new(),
        // ESXi gives a disk its id as its World Wide Name; the in-tree plugin searched for it.
        devices: vec![Device::Wwn(format!("0x{}", disk.id.replace('-', "")))],
    }
}

fn later() -> Failure {
    Failure::pending(
        NEXT,
        BEGUN,
        "there were more disks than fit into one call; the next one goes on",
    )
}

impl Photon {
    pub(super) fn attach(&self, attachments: &[NewAttachment]) -> Result<Each<Attached>, Failure> {
        let mut brake = Brake::new(self.context, later);
        let doing = |one: &NewAttachment| format!("attaching the disk {} to {}", one.volume, one.node_id);
        // Tasks first: what they did is in what is read after them.
        let tasks = attachments
            .iter()
            .map(|one| brake.run(|| self.api.passed(one.token.as_deref(), &doing(one))));
        let tasks: Each<()> = tasks.collect();
        let disks = self.disks(attachments.iter().map(|one| one.volume.as_str()))?;
        let mut one = |(wanted, task): (&NewAttachment, Result<(), Failure>)| {
            task?;
            let disk = disks.get(&wanted.volume)?.ok_or_else(|| no_disk(&wanted.volume))?;
            if wanted.read_only {
                return Err(Failure::invalid("Photon Controller attaches no disk for reading only"));
            }
            match step(disk, &wanted.node_id)? {
                Step::Done => {}
                Step::Wait => return Err(Failure::pending(POLL, BEGUN, doing(wanted))),
                Step::Attach => brake.run(|| self.attach_one(disk, &wanted.node_id, &doing(wanted)))?,
            }
            Ok(attached(disk))
        };
        Ok(attachments.iter().zip(tasks).map(&mut one).collect())
    }

    fn attach_one(&self, disk: &Disk, machine: &str, doing: &str) -> Result<(), Failure> {
        let missing = || Failure::not_found(format!("there is no virtual machine {machine}"));
        let task = self.change((machine, "attach_disk"), disk, &[NO_MACHINE], doing)?;
        task.ok_or_else(missing)?.passed(doing)
    }

    pub(super) fn detach(&self, detachments: &[Detachment]) -> Result<Each<()>, Failure> {
        let mut brake = Brake::new(self.context, later);
        let doing = |one: &Detachment| format!("detaching the disk {} from {}", one.volume, one.node_id);
        let tasks = detachments
            .iter()
            .map(|one| brake.run(|| self.api.passed(one.token.as_deref(), &doing(one))));
        let tasks: Each<()> = tasks.collect();
        let disks = self.disks(detachments.iter().map(|one| one.volume.as_str()))?;
        let mut one = |(unwanted, task): (&Detachment, Result<(), Failure>)| {
            task?;
            self.detach_one(&disks, unwanted, &doing(unwanted), &mut brake)
        };
        Ok(detachments.iter().zip(tasks).map(&mut one).collect())
    }

    fn detach_one(&self, disks: &Disks, unwanted: &Detachment, doing: &str, brake: &mut Brake) -> Result<(), Failure> {
        let machine = unwanted.node_id.as_str();
        let there = disks.get(&unwanted.volume)?.filter(|disk| disk.is_at(machine));
        let Some(disk) = there else { return Ok(()) };
        brake.run(|| {
            let task = self.change((machine, "detach_disk"), disk, &[NO_MACHINE, NO_DISK], doing)?;
            task.map_or(Ok(()), |task| task.passed(doing))
        })
    }

    /// Requests a change of a machine's disks. None where the cloud answers with one of these codes for something that does not exist.
    fn change(
        &self,
        (machine, what): (&str, &str),
        disk: &Disk,
        missing: &[&str],
        doing: &str,
    ) -> Result<Option<Task>, Failure> {
        if machine.is_empty() || !is_id(machine) {
            return Ok(None);
        }
        let (path, body) = (format!("/vms/{machine}/{what}"), json!({ "diskId": disk.id }));
        let task = self.api.request("POST", &path, Some(&body), missing);
        task.map_err(|failure| when_free(failure, doing))
    }
}

#[cfg(test)]
mod tests;
