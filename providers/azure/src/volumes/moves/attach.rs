//! Disks come to machines.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::Brake;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::volumes::*;

use super::machine::DiskMachine;
use super::{add_to, later, waits};
use crate::Azure;
use crate::arm::ids::folded;
use crate::volumes::disk::Disk;
use crate::volumes::disk::find::no_disk;
use crate::volumes::nodes::most_disks;

/// Key in the state of a machine that did not get several disks at once; it gets one after the other as long as that is kept.
const ALONE: &str = "disks/alone/";
const FOR_A_WHILE: Keep = Keep::at_most(Duration::from_secs(300));

/// What is to be done for an attachment. Pure.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// It is attached, under this number.
    Done(u64),
    /// The cloud works on it.
    Wait(String),
    /// The machine's list has it under this number, but the machine does not: an attachment that failed. It is written once more.
    Again(u64),
    /// It is to come into the list.
    Add,
}

/// # Errors
/// What keeps a disk from being attached to this machine.
fn step(disk: &Disk, machine: &DiskMachine) -> Result<Step, Failure> {
    let (id, to) = (&disk.id, &machine.id);
    if let Some(here) = machine.disk(id) {
        return Ok(match here.is_leaving {
            true => Step::Wait(format!("{id} is still being detached from {to}")),
            false if disk.is_at(to) => Step::Done(here.lun),
            false => Step::Again(here.lun),
        });
    }
    if disk.is_going() {
        return Err(no_disk(id));
    }
    let zone = disk.zone();
    if !zone.is_empty() && zone != machine.zone {
        let there = if machine.zone.is_empty() {
            "no zone"
        } else {
            &machine.zone
        };
        return Err(Failure::invalid(format!("{id} is in {zone}, and {to} in {there}")));
    }
    // Where the machine does not have it yet, or any more, its own operation still runs.
    let mut others = disk.machines.iter().filter(|one| !one.eq_ignore_ascii_case(to));
    match others.next() {
        Some(other) if u64::try_from(1 + others.count()).unwrap_or(u64::MAX) >= disk.max_shares => {
            Err(Failure::failed_precondition(format!("{id} is attached to {other}")))
        }
        _ if disk.is_changing() => Ok(Step::Wait(format!("{id} is being changed"))),
        _ => Ok(Step::Add),
    }
}

fn attached(lun: u64) -> Attached {
    Attached {
        // Read by upstream's node plugin.
        context: vec![Pair::new("LUN", lun.to_string())],
        // The links of Azure's udev rules for data disks. The number alone is no hint: the disk that the machine starts from may have the same one, at another
        // controller.
        devices: vec![
            Device::Path(format!("/dev/disk/azure/scsi1/lun{lun}")),
            Device::Path(format!("/dev/disk/azure/data/by-lun/{lun}")),
        ],
    }
}

/// Whether a refusal of several disks may be about one of them.
fn is_about_one(failure: &Failure) -> bool {
    !failure.is_shared() && !matches!(failure.kind, FailureKind::Pending(_) | FailureKind::Conflict)
}

/// An attachment that is to be made: where in the request it is, and the disk.
type Entry<'d> = (usize, &'d Disk);

impl Azure {
    pub(in crate::volumes) fn attach(&self, attachments: &[NewAttachment]) -> Result<Each<Attached>, Failure> {
        let mut brake = Brake::new(self.context, later);
        let doing = |one: &NewAttachment| format!("attaching {} to {}", one.volume, one.node_id);
        // Operations first: what they did is in what is read after them.
        let tokens = attachments.iter().map(|one| (one.token.as_deref(), doing(one)));
        let passed = self.operations(tokens, &mut brake);
        let disks = self.disks(attachments.iter().map(|one| one.volume.as_str()))?;
        let ids = self.machine_ids(attachments.iter().map(|one| one.node_id.as_str()))?;
        let mut results: Vec<Result<Attached, Failure>> = Vec::with_capacity(attachments.len());
        let mut machines: Vec<(String, Vec<Entry<'_>>)> = Vec::new();
        for (at, (wanted, passed)) in attachments.iter().zip(passed).enumerate() {
            let missing = || Failure::not_found(format!("there is no virtual machine of the Node {}", wanted.node_id));
            let id = ids.get(wanted.node_id.as_str());
            if let (Err(failure), Some(id)) = (&passed, id)
                && is_about_one(failure)
            {
                self.context
                    .state()
                    .put(&format!("{ALONE}{}", folded(id)), &true, FOR_A_WHILE);
            }
            let begin = || {
                passed?;
                if wanted.read_only {
                    return Err(Failure::invalid("disks are attached for reading and writing only"));
                }
                let disk = disks.get(&wanted.volume)?.ok_or_else(|| no_disk(&wanted.volume))?;
                Ok((id.ok_or_else(missing)?, disk))
            };
            results.push(match begin() {
                Ok((id, disk)) => {
                    add_to(&mut machines, id, (at, disk));
                    // Replaced below.
                    Err(missing())
                }
                Err(failure) => Err(failure),
            });
        }
        for (id, entries) in machines {
            let outcomes = match brake.run(|| self.disk_machine(&id)) {
                Ok(Some(machine)) => self.attach_to(machine, &entries, &mut brake),
                Ok(None) => continue,
                Err(failure) => entries.iter().map(|_| Err(failure.clone())).collect(),
            };
            for ((at, _), outcome) in entries.iter().zip(outcomes) {
                if let Some(result) = results.get_mut(*at) {
                    *result = outcome;
                }
            }
        }
        Ok(results)
    }

    /// Attaches disks to one machine, with one write; the outcomes in their order.
    fn attach_to(&self, machine: DiskMachine, entries: &[Entry<'_>], brake: &mut Brake) -> Each<Attached> {
        let steps: Vec<_> = entries.iter().map(|(_, disk)| step(disk, &machine)).collect();
        let is_to_do = |step: &Result<Step, Failure>| matches!(step, Ok(Step::Add | Step::Again(_)));
        let to_do = steps.iter().filter(|step| is_to_do(step)).count();
        let alone = to_do > 1 && {
            let key = format!("{ALONE}{}", folded(&machine.id));
            self.context.state().get::<bool>(&key).is_some()
        };
        // Without the sizes the cloud itself refuses once a machine is full.
        let sizes = if to_do > 0 {
            self.machine_sizes().unwrap_or_default()
        } else {
            BTreeMap::new()
        };
        let most = most_disks(&sizes, &machine.size).and_then(|most| usize::try_from(most).ok());
        let mut written = machine.clone();
        let mut planned = Vec::new();
        let mut outcomes: Each<Attached> = Vec::with_capacity(entries.len());
        for ((_, disk), step) in entries.iter().zip(steps) {
            let outcome = match step {
                Err(failure) => Err(failure),
                Ok(Step::Done(lun)) => Ok(attached(lun)),
                Ok(Step::Wait(what)) => Err(waits(what)),
                Ok(Step::Add | Step::Again(_)) if machine.is_changing() => {
                    Err(waits(format!("{} waits for another change of {}", disk.id, machine.id)))
                }
                Ok(Step::Add | Step::Again(_)) if alone && !planned.is_empty() => Err(later()),
                Ok(Step::Again(lun)) => {
                    planned.push((outcomes.len(), *disk, lun));
                    Ok(attached(lun))
                }
                Ok(Step::Add) => match most
                    .is_none_or(|most| written.count() < most)
                    .then(|| written.add(disk))
                    .flatten()
                {
                    None => Err(Failure::exhausted(format!(
                        "{} takes no further disk than its {}",
                        machine.id,
                        machine.count()
                    ))),
                    Some(lun) => {
                        planned.push((outcomes.len(), *disk, lun));
                        Ok(attached(lun))
                    }
                },
            };
            outcomes.push(outcome);
        }
        if planned.is_empty() {
            return outcomes;
        }
        let doing = |count: usize| format!("attaching {count} disks to {}", machine.id);
        let refused = match brake.run(|| self.write_disks(&written, &doing(planned.len()))) {
            Ok(()) => return outcomes,
            Err(failure) => failure,
        };
        let by_one = planned.len() > 1 && is_about_one(&refused);
        let mut is_busy = false;
        for (at, disk, lun) in planned {
            let outcome = if !by_one {
                Err(refused.clone())
            } else if is_busy {
                Err(later())
            } else {
                let mut single = machine.clone();
                let lun = single.disk(&disk.id).map(|_| lun).or_else(|| single.add(disk));
                let written = brake.run(|| self.write_disks(&single, &doing(1)));
                // The machine takes one change at a time, and was read before this one.
                is_busy = written.as_ref().err().is_none_or(|failure| !is_about_one(failure));
                written.map(|()| attached(lun.unwrap_or_default()))
            };
            if let Some(result) = outcomes.get_mut(at) {
                *result = outcome;
            }
        }
        outcomes
    }
}
