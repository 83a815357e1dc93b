//! Disks come to machines and leave them, many in a call.
//!
//! ```text
//!   operations of tokens -> the disks, few requests for all -> each machine once -> attachDisk or detachDisk for each    -> pending until its operation is done
//! ```
//!
//! What is to be done about one is decided from its machine's description, so a lost token loses nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::Brake;
use cloudwit_guest_sdk::serde_json::json;
use cloudwit_guest_sdk::url::percent_encode;
use cloudwit_guest_sdk::volumes::*;
use serde::Deserialize;

use crate::Gce;
use crate::api::errors;
use crate::links;
use crate::volumes::disk::ids::{DiskId, machine_of};
use crate::volumes::disk::{Disk, no_disk};
use crate::volumes::progress::Progress;

/// When changes without time left are continued.
const NEXT: Duration = Duration::from_millis(100);

/// The requested fields of a machine.
const FIELDS: &str = "name,disks(source,deviceName,mode)";

/// A machine with its disks.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WithDisks {
    disks: Vec<OnMachine>,
}

/// A disk of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OnMachine {
    source: String,
    device_name: String,
    mode: String,
}

/// Machines by id; none for one that Compute Engine reports as not found.
type Machines = BTreeMap<String, Result<Option<WithDisks>, Failure>>;

impl WithDisks {
    /// Its attachment of this disk.
    fn disk(&self, id: &DiskId) -> Option<&OnMachine> {
        let path = id.to_string();
        self.disks.iter().find(|disk| links::tail(&disk.source) == path)
    }
}

/// What keeps a disk from being attached to this machine now.
///
/// # Errors
/// That.
fn check(id: &DiskId, disk: &Disk, machine: &str) -> Result<(), Failure> {
    let (zone, _) = machine_of(machine).unwrap_or_default();
    if !disk.zones().contains(zone) {
        let zones: Vec<&str> = disk.zones().into_iter().collect();
        return Err(Failure::invalid(format!(
            "{id} is in {}, and {machine} in {zone}",
            zones.join(" and ")
        )));
    }
    // Where its machine does not list it yet, the operation still runs.
    if let Some(elsewhere) = disk.machines().find(|one| *one != machine) {
        return Err(Failure::failed_precondition(format!("{id} is attached to {elsewhere}")));
    }
    match disk.status.as_str() {
        "FAILED" => Err(Failure::failed_precondition(format!("the creation of {id} failed"))),
        "DELETING" => Err(no_disk(&id.to_string())),
        _ => Ok(()),
    }
}

fn attached(device: &str) -> Attached {
    Attached {
        context: Vec::new(),
        // Upstream's plugin finds it by the volume's id alone; ours by the device's own serial number, or by the link that Google's udev rules make.
        devices: vec![Device::Serial(device.into()), Device::ById(format!("google-{device}"))],
    }
}

fn later() -> Failure {
    Failure::pending(
        NEXT,
        "",
        "there were more disks than fit into one call; the next one goes on",
    )
}

impl Gce {
    pub(super) fn attach(&self, attachments: &[NewAttachment]) -> Result<Each<Attached>, Failure> {
        let mut brake = Brake::new(self.context, later);
        let doing = |one: &NewAttachment| format!("attaching {} to {}", one.volume, one.node_id);
        let progress: Vec<Progress> = attachments
            .iter()
            .map(|one| Progress::read(one.token.as_deref()))
            .collect();
        // Operations first: what they did is in what is read after them.
        let passed = attachments
            .iter()
            .zip(&progress)
            .map(|(one, progress)| brake.run(|| self.passed(progress, &doing(one))));
        let passed: Each<()> = passed.collect();
        let disks = self.disks(attachments.iter().map(|one| one.volume.as_str()))?;
        let machines = self.machines(attachments.iter().map(|one| one.node_id.as_str()), &mut brake);
        let mut one = |((wanted, progress), passed): ((&NewAttachment, &Progress), Result<(), Failure>)| {
            passed?;
            let (id, disk) = disks.get(&wanted.volume)?.ok_or_else(|| no_disk(&wanted.volume))?;
            let missing = || Failure::not_found(format!("there is no instance {}", wanted.node_id));
            let machine = found(&machines, &wanted.node_id)?.ok_or_else(missing)?;
            if wanted.read_only {
                return Err(Failure::invalid("disks are attached for reading and writing only"));
            }
            if let Some(here) = machine.disk(id) {
                return match here.mode.as_str() {
                    "READ_ONLY" => Err(Failure::already_exists(format!(
                        "{id} is attached to {} for reading only",
                        wanted.node_id
                    ))),
                    _ => Ok(attached(&here.device_name)),
                };
            }
            check(id, disk, &wanted.node_id)?;
            let device = id.device();
            let body = json!({
                "deviceName": device, "mode": "READ_WRITE", "source": self.api.link(&id.to_string()), "type": "PERSISTENT",
            });
            let path = format!("{}/attachDisk", wanted.node_id);
            brake.run(|| self.change_disk("POST", &path, Some(&body), (progress, &doing(wanted))))?;
            Ok(attached(&device))
        };
        Ok(attachments.iter().zip(&progress).zip(passed).map(&mut one).collect())
    }

    pub(super) fn detach(&self, detachments: &[Detachment]) -> Result<Each<()>, Failure> {
        let mut brake = Brake::new(self.context, later);
        let doing = |one: &Detachment| format!("detaching {} from {}", one.volume, one.node_id);
        let progress: Vec<Progress> = detachments
            .iter()
            .map(|one| Progress::read(one.token.as_deref()))
            .collect();
        let passed = detachments
            .iter()
            .zip(&progress)
            .map(|(one, progress)| brake.run(|| self.passed(progress, &doing(one))));
        let passed: Each<()> = passed.collect();
        let disks = self.disks(detachments.iter().map(|one| one.volume.as_str()))?;
        let machines = self.machines(detachments.iter().map(|one| one.node_id.as_str()), &mut brake);
        let mut one = |((unwanted, progress), passed): ((&Detachment, &Progress), Result<(), Failure>)| {
            passed?;
            let Some((id, _)) = disks.get(&unwanted.volume)? else {
                return Ok(());
            };
            let Some(machine) = found(&machines, &unwanted.node_id)? else {
                return Ok(());
            };
            let Some(here) = machine.disk(id) else { return Ok(()) };
            let device = percent_encode(&here.device_name);
            let path = format!("{}/detachDisk?deviceName={device}", unwanted.node_id);
            brake.run(|| self.change_disk("POST", &path, None, (progress, &doing(unwanted))))
        };
        Ok(detachments.iter().zip(&progress).zip(passed).map(&mut one).collect())
    }

    /// Each of these machines, once.
    fn machines<'m>(&self, ids: impl Iterator<Item = &'m str>, brake: &mut Brake) -> Machines {
        let mut machines = Machines::new();
        for id in ids {
            let Some((_, name)) = machine_of(id).filter(|_| !machines.contains_key(id)) else {
                continue;
            };
            let found = brake.run(|| match self.api.get(&format!("/{id}"), &[("fields", FIELDS)]) {
                Ok(machine) => Ok(Some(machine)),
                Err(failure) if errors::denies_instance(&failure, name) => Ok(None),
                Err(failure) => Err(failure),
            });
            machines.insert(id.into(), found);
        }
        machines
    }
}

/// The machine of this id; none where there is none.
fn found<'m>(machines: &'m Machines, id: &str) -> Result<Option<&'m WithDisks>, Failure> {
    match machines.get(id) {
        None => Ok(None),
        Some(Ok(machine)) => Ok(machine.as_ref()),
        Some(Err(failure)) => Err(failure.clone()),
    }
}

#[cfg(test)]
mod tests;
