//! Disks come into being and go: found by their name, else created once.
//!
//! ```text
//!   operation of the token -> the disk of the name -> there is one: is it as desired? is it ready? did its creation fail?
//!                                                  -> none: PUT, in the best zone that has room    -> an operation: pending until it is done
//! ```
//!
//! A name is unique in its resource group, so a lost answer makes no second disk. What failed is deleted; the token has the zones that had no room, and why a
//! creation failed, until nothing of it is left.

mod wanted;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use crate::Azure;
use crate::volumes::class::Class;
use crate::volumes::disk::find::no_disk;
use crate::volumes::disk::ids::{DISK, collection, is_name};
use crate::volumes::disk::zone_number;
use crate::volumes::names::NodeNames;
use crate::volumes::progress::Progress;
use wanted::Wanted;

/// What a volume begins with, as the cloud shows it.
struct Source {
    id: String,
    /// The least size of the disk, in GiB.
    gib: u64,
    /// The only zone in which the disk can be; none for any.
    zone: Option<String>,
}

impl Azure {
    /// Creates a disk, or finds the one of this name.
    ///
    /// # Errors
    /// As the contract's `volumes.create`.
    pub(super) fn create_disk(&self, new: &NewVolume, token: Option<&str>) -> Result<Volume, Failure> {
        let wanted = Wanted::read(new, &self.config)?;
        let name = name_or_digest(self.context.keys(), "vol-", &new.name, is_name);
        let path = self.path_of(&wanted.class, &name);
        let doing = format!("creating the disk {name}");
        let mut progress = Progress::read(token);
        match self.passed(&progress, &doing) {
            Err(failure) if is_of_the_look(&failure) => return Err(failure),
            Err(failure) => progress.failed(&failure),
            Ok(()) => {}
        }
        let disk = match self.disk(&path)? {
            Some(disk) if disk.is_going() => return Err(progress.pending(None, &doing)),
            Some(disk) if disk.is_failed() && disk.machines.is_empty() && disk.is_of_kubernetes() => {
                if progress.why.is_empty() {
                    progress.failed(&Failure::other(format!("the creation of the disk {name} failed")));
                }
                let doing = format!("deleting the disk {name}, whose creation failed: {}", progress.why);
                self.change_disk("DELETE", &path, None, (&progress, &doing))?;
                None
            }
            other => other,
        };
        let disk = match disk {
            Some(disk) => disk,
            None => {
                self.make_disk(&wanted, &path, &mut progress, &doing)?;
                self.disk(&path)?
                    .ok_or_else(|| progress.clone().pending(None, &doing))?
            }
        };
        let differences = wanted.differences(&disk);
        if !differences.is_empty() {
            let text = format!("the disk {path} is there already: {}", differences.join("; "));
            return Err(Failure::already_exists(text));
        }
        if disk.is_changing() {
            return Err(progress.pending(None, &doing));
        }
        Ok(Volume {
            source: wanted.source,
            context: wanted.class.context,
            ..disk.volume(&path, &NodeNames::default())
        })
    }

    /// Where a disk of this class and name is.
    fn path_of(&self, class: &Class, name: &str) -> String {
        match (&class.subscription, &class.group) {
            (Some(subscription), Some(group)) => {
                let group = format!("/subscriptions/{subscription}/resourceGroups/{group}");
                format!("{}/{name}", collection(&group, DISK))
            }
            (_, group) => self.disk_path(group.as_deref(), DISK, name),
        }
    }

    /// Creates it in the first zone that has room.
    ///
    /// # Errors
    /// `pending` while its operation runs; `exhausted` when none has room, and nothing of it is left; why it failed before.
    fn make_disk(&self, wanted: &Wanted, path: &str, progress: &mut Progress, doing: &str) -> Result<(), Failure> {
        if progress.gave_up {
            return Err(Failure::other(progress.why.clone()));
        }
        let source = self.source_of(wanted)?;
        let gib = wanted.gib(source.as_ref().map_or(0, |source| source.gib))?;
        let only = source.as_ref().and_then(|source| source.zone.as_ref());
        for zone in &wanted.zones {
            if progress.full.contains(zone) || (!wanted.anywhere && only.is_some_and(|only| only != zone)) {
                continue;
            }
            let zone = only.filter(|_| !wanted.class.sku.is_in_many_zones).unwrap_or(zone);
            progress.zone.clone_from(zone);
            let body = wanted
                .class
                .body(gib, zone_number(zone), source.as_ref().map(|source| source.id.as_str()));
            match self.change_disk("PUT", path, Some(&body), (progress, doing)) {
                Err(failure) if failure.kind == FailureKind::Exhausted => progress.failed(&failure),
                made => return made,
            }
        }
        let apart = || match only {
            Some(zone) => format!("what the volume begins with is in {zone}, where the volume may not be"),
            None => "no zone in which the disk may be has room".to_owned(),
        };
        let why = Some(progress.why.clone()).filter(|why| !why.is_empty());
        Err(Failure::exhausted(why.unwrap_or_else(apart)))
    }

    /// What a volume begins with.
    ///
    /// # Errors
    /// `not-found`; `failed-precondition` while it is not ready itself.
    fn source_of(&self, wanted: &Wanted) -> Result<Option<Source>, Failure> {
        match &wanted.source {
            None => Ok(None),
            Some(VolumeSource::Snapshot(id)) => {
                let missing = || Failure::not_found(format!("there is no snapshot {id}"));
                let snapshot = self.snapshot(id)?.ok_or_else(missing)?;
                if !snapshot.ready {
                    return Err(Failure::failed_precondition(format!(
                        "the snapshot {id} is not ready yet"
                    )));
                }
                Ok(Some(Source {
                    id: id.clone(),
                    gib: snapshot.gib,
                    zone: None,
                }))
            }
            Some(VolumeSource::Volume(id)) => {
                let disk = self.disk(id)?.ok_or_else(|| no_disk(id))?;
                let zone = disk.zone();
                Ok(Some(Source {
                    id: id.clone(),
                    gib: disk.gib,
                    // A copy of a disk is in its zone.
                    zone: Some(zone).filter(|zone| !zone.is_empty() && !wanted.class.sku.is_in_many_zones),
                }))
            }
        }
    }

    /// Deletes a disk. That there is none is success.
    ///
    /// # Errors
    /// As the contract's `volumes.delete`.
    pub(super) fn delete_disk(&self, id: &str, token: Option<&str>) -> Result<(), Failure> {
        let (progress, doing) = (Progress::read(token), format!("deleting {id}"));
        self.passed(&progress, &doing)?;
        let Some(disk) = self.disk(id)? else { return Ok(()) };
        if let Some(machine) = disk.machines.first() {
            return Err(Failure::failed_precondition(format!("{id} is attached to {machine}")));
        }
        match self.change_disk("DELETE", id, None, (&progress, &doing)) {
            Err(failure) if failure.is_not_found() => Ok(()),
            result => result,
        }
    }
}

/// Whether polling an operation failed, or it runs: its result is not known.
fn is_of_the_look(failure: &Failure) -> bool {
    failure.is_shared()
        || matches!(
            failure.kind,
            FailureKind::Pending(_) | FailureKind::Conflict | FailureKind::Aborted
        )
}

#[cfg(test)]
mod tests;
