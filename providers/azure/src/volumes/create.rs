//! Disks come into being and go: found by their name, else created once.
//!
//! ```text
//!   operation of the token -> the disk of the name -> there is one: is it as it is wanted? is it ready? did its creation fail?
//!                                                  -> none: PUT, in the best zone that has room    -> an operation: pending until it is done
//! ```
//!
//! A name is unique in its resource group, so a lost answer makes no second disk. What failed is deleted; the token has the zones that had no room, and why a
//! creation failed, until nothing of it is left.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use crate::Azure;
use crate::arm::ids::folded;
use crate::config::Config;
use crate::volumes::class::Class;
use crate::volumes::disk::ids::{DISK, SNAPSHOT, collection, is_id, is_name};
use crate::volumes::disk::{Disk, no_disk, zone_number};
use crate::volumes::names::NodeNames;
use crate::volumes::progress::Progress;
use crate::volumes::{GIB, ZONE_KEY};

/// The key of a zone in classes that were written for other drivers.
const USUAL_ZONE_KEY: &str = "topology.kubernetes.io/zone";

/// A volume that is wanted, by Azure's rules. Pure.
#[derive(Debug)]
pub(crate) struct Wanted {
    class: Class,
    size: SizeRange,
    source: Option<VolumeSource>,
    /// Zones, best first, each `westeurope-1`; an empty one is no zone. Never empty.
    zones: Vec<String>,
    /// Whether it may be anywhere.
    anywhere: bool,
}

/// What a volume begins with, as the cloud shows it.
struct Source {
    id: String,
    /// The least size of the disk, in GiB.
    gib: u64,
    /// The only zone in which the disk can be; none for any.
    zone: Option<String>,
}

impl Wanted {
    /// Reads it.
    ///
    /// # Errors
    /// `invalid` with what Azure does not have, `out-of-range` with the size; `not-found` for a source that cannot exist.
    pub(crate) fn read(new: &NewVolume, config: &Config) -> Result<Self, Failure> {
        let class = Class::read(new, config)?;
        let is_shared = |one: &VolumeUse| matches!(one.access, AccessMode::ManyNodes | AccessMode::ManyNodesReadOnly);
        if class.max_shares < 2 && new.uses.iter().any(is_shared) {
            return Err(Failure::invalid(
                "a volume for several machines needs the parameter maxShares, 2 or more, in its class",
            ));
        }
        let (id, kind) = match &new.source {
            None => ("", ""),
            Some(VolumeSource::Snapshot(id)) => (id.as_str(), SNAPSHOT),
            Some(VolumeSource::Volume(id)) => (id.as_str(), DISK),
        };
        if !kind.is_empty() && !is_id(id, kind) {
            return Err(Failure::not_found(format!("there is no snapshot or volume {id}")));
        }
        let zones = match class.sku.is_in_many_zones {
            true => vec![String::new()],
            false => zones(new, &class.location)?,
        };
        let anywhere = class.sku.is_in_many_zones || new.allowed.is_empty();
        let wanted = Self {
            class,
            size: new.size,
            source: new.source.clone(),
            zones,
            anywhere,
        };
        wanted.gib(0).map(|_| wanted)
    }

    /// Its size, with the content of a source of so many GiB.
    ///
    /// # Errors
    /// `out-of-range`.
    fn gib(&self, source: u64) -> Result<u64, Failure> {
        let gib = self.size.at_least.div_ceil(GIB).max(source).max(1);
        let (most, sku) = (self.size.at_most.map_or(u64::MAX, |most| most / GIB), self.class.sku);
        if gib > most || gib > sku.largest {
            return Err(Failure::out_of_range(format!(
                "the disk would have {gib} GiB; at most {} GiB are wanted, and disks of the type {} have at most {}",
                most.min(sku.largest),
                sku.name,
                sku.largest
            )));
        }
        Ok(gib)
    }

    fn source_id(&self) -> &str {
        match &self.source {
            None => "",
            Some(VolumeSource::Snapshot(id) | VolumeSource::Volume(id)) => id,
        }
    }

    /// How a disk that has the name differs from this; empty where it does not.
    fn differences(&self, disk: &Disk) -> Vec<String> {
        let mut differences = Vec::new();
        let mut differs = |differs: bool, has: String, wanted: String| {
            if differs {
                differences.push(format!("{has}, wanted is {wanted}"));
            }
        };
        let least = self.size.at_least.div_ceil(GIB);
        let most = self.size.at_most.map(|most| format!(" and at most {} GiB", most / GIB));
        differs(
            !self.size.contains(disk.bytes()),
            format!("it has {} GiB", disk.gib),
            format!("at least {least} GiB{}", most.unwrap_or_default()),
        );
        let sku = self.class.sku.name;
        differs(
            !disk.sku.eq_ignore_ascii_case(sku),
            format!("its type is {}", disk.sku),
            sku.into(),
        );
        let zone = disk.zone();
        let named = |zone: &str| {
            if zone.is_empty() {
                "no zone".to_owned()
            } else {
                zone.to_owned()
            }
        };
        let zones: Vec<String> = self.zones.iter().map(|zone| named(zone)).collect();
        differs(
            !self.anywhere && !self.zones.contains(&zone),
            format!("it is in {}", named(&zone)),
            zones.join(" or "),
        );
        let made_of = |id: &str| {
            if id.is_empty() {
                "nothing".to_owned()
            } else {
                id.to_owned()
            }
        };
        differs(
            folded(&disk.source) != folded(self.source_id()),
            format!("it was made of {}", made_of(&disk.source)),
            made_of(self.source_id()),
        );
        differences
    }
}

/// The zones of a region in which a volume may be, the preferred ones first, each once. What is in no zone of the region is the place without a zone.
fn zones(new: &NewVolume, region: &str) -> Result<Vec<String>, Failure> {
    let start = format!("{region}-");
    let zone_of = |place: &Topology| {
        let zone = place.get(ZONE_KEY).or(place.get(USUAL_ZONE_KEY))?;
        Some(if zone.starts_with(&start) {
            zone.to_owned()
        } else {
            String::new()
        })
    };
    let allowed: Vec<String> = new.allowed.iter().filter_map(zone_of).collect();
    if allowed.is_empty() && !new.allowed.is_empty() {
        return Err(Failure::invalid(format!(
            "the places that are allowed have neither {ZONE_KEY} nor {USUAL_ZONE_KEY}"
        )));
    }
    let mut zones: Vec<String> = Vec::new();
    let preferred = new.preferred.iter().filter_map(zone_of);
    for zone in preferred.chain(allowed.iter().cloned()) {
        if (allowed.is_empty() || allowed.contains(&zone)) && !zones.contains(&zone) {
            zones.push(zone);
        }
    }
    if zones.is_empty() {
        zones.push(String::new());
    }
    Ok(zones)
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

/// Whether a look at an operation failed, or it runs: what came of it is not known.
fn is_of_the_look(failure: &Failure) -> bool {
    failure.is_shared()
        || matches!(
            failure.kind,
            FailureKind::Pending(_) | FailureKind::Conflict | FailureKind::Aborted
        )
}

#[cfg(test)]
mod tests;
