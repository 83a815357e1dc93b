//! Volumes come to instances and leave them, many in a call.
//!
//! ```text
//!   attach   one DescribeVolumes, one DescribeInstances, then AttachVolume for each that is nowhere    -> pending until EC2 reports `attached`
//!   detach   one DescribeVolumes, then DetachVolume for each that is there                             -> pending until it is not there any more
//! ```
//!
//! What is to be done about one is decided from both descriptions, so a lost token loses nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::Brake;
use cloudwit_guest_sdk::volumes::*;

use crate::Aws;
use crate::api::error::AwsError;
use crate::instances::by_id::{Answers, Found};
use crate::instances::machine::Machine;
use crate::volumes::disk::devices::free_name;
use crate::volumes::disk::find::{Disks, NO_VOLUME, no_volume};
use crate::volumes::disk::{AttachmentState, Disk, DiskState};
use crate::volumes::{BEGUN, POLL};

/// When changes without time left are continued.
const NEXT: Duration = Duration::from_millis(100);

/// Names of devices that are tried: EC2 refuses one that is in use without being listed (by the image).
const NAMES_TRIED: usize = 8;

/// EC2's error codes for a volume that is not attached to an instance, or where one of them does not exist.
const NOT_ATTACHED: [&str; 3] = ["InvalidAttachment.NotFound", NO_VOLUME, "InvalidInstanceID.NotFound"];

/// What is to be done for an attachment. Pure.
#[derive(Debug, PartialEq)]
enum Step {
    /// It is attached, with this name.
    Done(String),
    /// EC2 works on it.
    Wait(String),
    /// It has to be requested.
    Attach,
}

fn step(disk: &Disk, machine: &Machine) -> Result<Step, Failure> {
    let id = disk.id.as_str();
    if let Some(here) = disk.at(&machine.id) {
        let instance = &here.instance;
        return Ok(match here.state {
            AttachmentState::Attached => Step::Done(here.device.clone()),
            AttachmentState::Attaching => Step::Wait(format!("AWS attaches volume {id} to {instance}")),
            AttachmentState::Detaching => Step::Wait(format!("AWS still detaches volume {id} from {instance}")),
            AttachmentState::Busy => Step::Wait(format!(
                "volume {id} is being detached from {instance}, which still uses it"
            )),
        });
    }
    match disk.state {
        DiskState::Creating => return Ok(Step::Wait(format!("AWS creates volume {id}"))),
        DiskState::Failed => {
            return Err(Failure::failed_precondition(format!(
                "the creation of volume {id} failed in EC2"
            )));
        }
        DiskState::Gone => return Err(no_volume(id)),
        DiskState::Usable => {}
    }
    if disk.zone != machine.zone {
        return Err(Failure::invalid(format!(
            "volume {id} is in zone {}, and instance {} in {}",
            disk.zone, machine.id, machine.zone
        )));
    }
    match disk.attachments.first() {
        Some(elsewhere) if !disk.shared => Err(Failure::failed_precondition(format!(
            "volume {id} is attached to {}",
            elsewhere.instance
        ))),
        _ => Ok(Step::Attach),
    }
}

fn attached(disk: &Disk, device: String) -> Attached {
    Attached {
        // Read by upstream's node plugin.
        context: vec![Pair::new("devicePath", device)],
        // NVMe devices report it as their serial number, without the dash.
        devices: vec![Device::Serial(disk.id.replacen('-', "", 1))],
    }
}

fn waits(what: String) -> Failure {
    Failure::pending(POLL, BEGUN, what)
}

fn later() -> Failure {
    Failure::pending(
        NEXT,
        BEGUN,
        "there were more volumes than fit into one call; the next one goes on",
    )
}

fn machine_of<'m>(machines: &'m Answers, id: &str) -> Result<&'m Machine, Failure> {
    match machines.get(id) {
        Some(Found::Machine(machine)) => Ok(machine),
        Some(Found::Failed(failure)) => Err(failure.clone()),
        Some(Found::Gone) | None => Err(Failure::not_found(format!("there is no instance {id}"))),
    }
}

impl Aws {
    pub(super) fn attach(&self, attachments: &[NewAttachment]) -> Result<Each<Attached>, Failure> {
        let disks = self.disks(attachments.iter().map(|one| one.volume.as_str()))?;
        let instances: Vec<&str> = attachments
            .iter()
            .map(|one| one.node_id.as_str())
            .filter(|id| id.starts_with(crate::BARE_ID_PREFIX))
            .collect();
        let machines = self.find_by_ids(&instances)?;
        let mut names = BTreeMap::new();
        for found in machines.values() {
            if let Found::Machine(machine) = found {
                names.insert(machine.id.as_str(), machine.devices.clone());
            }
        }
        let mut brake = Brake::new(self.context, later);
        let mut one = |wanted: &NewAttachment| {
            let disk = disks.get(&wanted.volume)?.ok_or_else(|| no_volume(&wanted.volume))?;
            let machine = machine_of(&machines, &wanted.node_id)?;
            if wanted.read_only {
                return Err(Failure::invalid("EBS attaches no volume for reading only"));
            }
            match step(disk, machine)? {
                Step::Done(device) => Ok(attached(disk, device)),
                Step::Wait(what) => Err(waits(what)),
                Step::Attach => {
                    let used = names.entry(machine.id.as_str()).or_default();
                    brake.run(|| self.attach_one(disk, machine, used))?;
                    Err(waits(format!("AWS attaches volume {} to {}", disk.id, machine.id)))
                }
            }
        };
        Ok(attachments.iter().map(&mut one).collect())
    }

    /// Requests an attachment, under a name that is not in use.
    fn attach_one(&self, disk: &Disk, machine: &Machine, used: &mut Vec<String>) -> Result<(), AwsError> {
        let mut refusal = None;
        for _ in 0..NAMES_TRIED {
            let Some(name) = free_name(used) else { break };
            let call = self.api.ec2("AttachVolume").field("VolumeId", &disk.id);
            let call = call.field("InstanceId", &machine.id).field("Device", &name);
            used.push(name);
            match call.send() {
                Ok(_) => return Ok(()),
                Err(error) if error.is(&["InvalidParameterValue"]) && error.message.contains("already in use") => {
                    refusal = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        let none = || Failure::exhausted(format!("instance {} has no name of a device left", machine.id)).into();
        Err(refusal.unwrap_or_else(none))
    }

    pub(super) fn detach(&self, detachments: &[Detachment]) -> Result<Each<()>, Failure> {
        let disks = self.disks(detachments.iter().map(|one| one.volume.as_str()))?;
        let mut brake = Brake::new(self.context, later);
        let mut one = |unwanted: &Detachment| self.detach_one(&disks, unwanted, &mut brake);
        Ok(detachments.iter().map(&mut one).collect())
    }

    fn detach_one(&self, disks: &Disks, unwanted: &Detachment, brake: &mut Brake) -> Result<(), Failure> {
        let there = disks
            .get(&unwanted.volume)?
            .and_then(|disk| Some((disk, disk.at(&unwanted.node_id)?)));
        let Some((disk, there)) = there else { return Ok(()) };
        let (id, instance) = (disk.id.as_str(), there.instance.as_str());
        let what = format!("AWS detaches volume {id} from {instance}");
        match there.state {
            AttachmentState::Detaching => Err(waits(what)),
            AttachmentState::Busy => Err(waits(format!("{what}, which still uses it"))),
            AttachmentState::Attaching | AttachmentState::Attached => {
                let call = self.api.ec2("DetachVolume").field("VolumeId", id);
                let call = call.field("InstanceId", instance);
                // Meanwhile it may have been detached: then EC2 reports `IncorrectState`, and the next read shows it.
                let asked = || call.send_unless(&[&NOT_ATTACHED[..], &["IncorrectState"]].concat());
                match brake.run(asked)? {
                    Some(_) => Err(waits(what)),
                    None => Err(Failure::pending(NEXT, BEGUN, what)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
