//! Disks come into being and go: found by their name, else created once.
//!
//! ```text
//!   name -> one aggregated list -> there is one where it may be: is it as desired? is it ready?
//!                               -> none: insert, in the best place that has room    -> an operation: pending until it is done
//! ```
//!
//! A name is unique in its zone, so a lost answer makes no second disk. The token has the places that had no room.

use cloudwit_guest_sdk::keys::Hash;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::serde_json::{Value, json};
use cloudwit_guest_sdk::volumes::*;

use crate::Gce;
use crate::api::Page;
use crate::links;
use crate::place::Place;
use crate::resource::text;
use crate::volumes::class::{Class, description};
use crate::volumes::disk::Disk;
use crate::volumes::disk::ids::{DiskId, Scope, is_new_name, snapshot_path};
use crate::volumes::progress::Progress;
use crate::volumes::{GIB, ZONE_KEY};

/// A desired volume, by Compute Engine's rules. Pure.
#[derive(Debug)]
pub(crate) struct Wanted {
    class: Class,
    size: SizeRange,
    /// Path of the snapshot that it is made of.
    snapshot: Option<String>,
    /// Zones, best first; empty for any.
    zones: Vec<String>,
    /// In which it may be; empty for any.
    allowed: Vec<String>,
}

impl Wanted {
    /// Reads it.
    ///
    /// # Errors
    /// `invalid` with what Compute Engine does not have; `not-found` for a snapshot that cannot exist.
    pub(crate) fn read(new: &NewVolume) -> Result<Self, Failure> {
        known_parameters(&new.mutable_parameters, &[])?;
        let class = Class::read(&new.parameters, &new.tags)?;
        let snapshot = match &new.source {
            None => None,
            Some(VolumeSource::Snapshot(id)) => {
                let missing = || Failure::not_found(format!("there is no snapshot {id}"));
                Some(snapshot_path(id).ok_or_else(missing)?.to_owned())
            }
            Some(VolumeSource::Volume(_)) => {
                let text = "a volume cannot be made of another one; make a snapshot of it";
                return Err(Failure::invalid(text));
            }
        };
        let allowed = zones(&new.allowed);
        if allowed.is_empty() && !new.allowed.is_empty() {
            let text = format!("the places that are allowed have no {ZONE_KEY}");
            return Err(Failure::invalid(text));
        }
        let mut best = zones(&new.preferred);
        best.retain(|zone| allowed.is_empty() || allowed.contains(zone));
        best.extend(
            allowed
                .iter()
                .filter(|zone| !best.contains(zone))
                .cloned()
                .collect::<Vec<_>>(),
        );
        Ok(Self {
            class,
            size: new.size,
            snapshot,
            zones: best,
            allowed,
        })
    }

    /// Whether a disk is where this one may be, so that a disk of the same name there is it.
    fn may_be(&self, disk: &Disk, region: &str) -> bool {
        match self.allowed.is_empty() {
            true => disk.region() == Some(region),
            false => disk
                .zones()
                .into_iter()
                .any(|zone| self.allowed.iter().any(|one| one == zone)),
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
        let least = format!("at least {} GiB", self.size.at_least.div_ceil(GIB));
        let most = self.size.at_most.map(|most| format!(" and at most {} GiB", most / GIB));
        let fits = self.size.contains(disk.gib().saturating_mul(GIB));
        differs(
            !fits,
            format!("it has {} GiB", disk.gib()),
            least + &most.unwrap_or_default(),
        );
        let kind = self.class.kind.as_str();
        differs(disk.kind() != kind, format!("its type is {}", disk.kind()), kind.into());
        let count = disk.zones().len();
        let wanted = if self.class.is_regional { 2 } else { 1 };
        differs(count != wanted, format!("it is in {count} zones"), format!("{wanted}"));
        let named = |path: &str| {
            if path.is_empty() {
                "no snapshot".to_owned()
            } else {
                path.to_owned()
            }
        };
        let snapshot = self.snapshot.as_deref().unwrap_or_default();
        let has = format!("it was made of {}", named(disk.snapshot()));
        differs(disk.snapshot() != snapshot, has, named(snapshot));
        differences
    }
}

/// The zones of places, each once and in their order.
fn zones(places: &[Topology]) -> Vec<String> {
    let mut zones: Vec<String> = Vec::new();
    for zone in places.iter().filter_map(|place| place.get(ZONE_KEY)) {
        if !zones.iter().any(|known| known == zone) {
            zones.push(zone.into());
        }
    }
    zones
}

impl Gce {
    /// Creates a disk, or finds the one of this name.
    ///
    /// # Errors
    /// As the contract's `volumes.create`.
    pub(super) fn create_disk(&self, new: &NewVolume, token: Option<&str>) -> Result<Volume, Failure> {
        let wanted = Wanted::read(new)?;
        let place = Place::of(&self.config.global, self.context)?;
        let name = name_or_digest(self.context.keys(), "vol-", &new.name, is_new_name);
        let doing = format!("creating the disk {name}");
        let mut progress = Progress::read(token);
        let mut full = None;
        match self.passed(&progress, &doing) {
            Ok(()) => {}
            Err(failure) if failure.kind == FailureKind::Exhausted => {
                progress.full.extend(progress.place());
                full = Some(failure);
            }
            // Another call came first: what there is now is read below.
            Err(failure) if failure.kind == FailureKind::AlreadyExists => {}
            Err(failure) => return Err(failure),
        }
        let (id, disk) = match self.disk_of_name(&wanted, &place, &name)? {
            Some(found) => found,
            None => {
                let id = self.make(&wanted, &place, (&name, &new.tags), (progress.clone(), full))?;
                let gone = || progress.clone().pending(None, &doing);
                let disk = self.disk(&id)?.ok_or_else(gone)?;
                (id, disk)
            }
        };
        match disk.status.as_str() {
            "CREATING" | "RESTORING" => Err(progress.pending(None, &doing)),
            _ => Ok(disk.volume(&id.to_string())),
        }
    }

    /// The disk that has the name. One whose creation failed is deleted.
    fn disk_of_name(&self, wanted: &Wanted, place: &Place, name: &str) -> Result<Option<(DiskId, Disk)>, Failure> {
        let mut disks = Vec::new();
        let mut each = |disk: Disk| {
            if wanted.may_be(&disk, &place.region) && disk.status != "DELETING" {
                disks.push((disk.id(&place.project), disk));
            }
        };
        // A zone that does not answer may have it.
        self.listed_disks(&place.project, &[name], &mut each)??;
        if let [(one, _), (other, _), ..] = disks.as_slice() {
            return Err(Failure::conflict(format!(
                "{one} and {other} both have the name that is wanted; delete the one that no PersistentVolume has"
            )));
        }
        let Some((id, disk)) = disks.pop() else { return Ok(None) };
        if disk.status == "FAILED" {
            self.delete_disk(&id.to_string(), None)?;
            return Err(Failure::other(format!("the creation of {id} failed; it is made anew")));
        }
        let differences = wanted.differences(&disk);
        if differences.is_empty() {
            return Ok(Some((id, disk)));
        }
        let text = format!("{id} has the name already: {}", differences.join("; "));
        Err(Failure::already_exists(text))
    }

    /// Creates it in the first place that has room.
    fn make(
        &self,
        wanted: &Wanted,
        place: &Place,
        (name, tags): (&str, &[Pair]),
        (mut progress, mut full): (Progress, Option<Failure>),
    ) -> Result<DiskId, Failure> {
        for (scope, replicas) in self.places(wanted, place, name)? {
            let id = DiskId {
                project: place.project.clone(),
                scope: Some(scope),
                name: name.into(),
            };
            if progress.full.contains(&id.place()) {
                continue;
            }
            let collection = format!("projects/{}/{}/disks", id.project, id.place());
            let body = self.body(wanted, &id, &replicas, tags);
            let doing = format!("creating the disk {name} in {}", id.place());
            match self.change_disk("POST", &collection, Some(&body), (&progress, &doing)) {
                Ok(()) => return Ok(id),
                Err(failure) if failure.kind == FailureKind::Exhausted => {
                    progress.full.push(id.place());
                    full = Some(failure);
                }
                // The list does not show it yet.
                Err(failure) if failure.kind == FailureKind::AlreadyExists => {
                    return Err(progress.pending(None, &doing));
                }
                Err(failure) => return Err(failure),
            }
        }
        Err(full.unwrap_or_else(|| Failure::exhausted("no zone in which the disk may be has room")))
    }

    fn body(&self, wanted: &Wanted, id: &DiskId, replicas: &[String], tags: &[Pair]) -> Value {
        let (class, scope) = (&wanted.class, format!("projects/{}/{}", id.project, id.place()));
        let mut body = json!({
            "name": id.name,
            "sizeGb": wanted.size.at_least.div_ceil(GIB).to_string(),
            "type": self.api.link(&format!("{scope}/diskTypes/{}", class.kind)),
            "description": description(tags),
        });
        let mut set = |field: &str, value: Option<Value>| {
            if let Some(value) = value {
                body[field] = value;
            }
        };
        set("labels", (!class.labels.is_empty()).then(|| json!(class.labels)));
        set(
            "sourceSnapshot",
            wanted.snapshot.as_ref().map(|path| json!(self.api.link(path))),
        );
        set(
            "diskEncryptionKey",
            class.kms_key.as_ref().map(|key| json!({ "kmsKeyName": key })),
        );
        set("provisionedIops", class.iops.map(|iops| json!(iops.to_string())));
        set(
            "provisionedThroughput",
            class.throughput.map(|each| json!(each.to_string())),
        );
        let link = |zone: &String| self.api.link(&format!("projects/{}/zones/{zone}", id.project));
        let replicas: Vec<String> = replicas.iter().map(link).collect();
        set("replicaZones", (!replicas.is_empty()).then(|| json!(replicas)));
        body
    }

    /// Where it may be made, best first, with the zones of its replicas.
    fn places(&self, wanted: &Wanted, place: &Place, name: &str) -> Result<Vec<(Scope, Vec<String>)>, Failure> {
        let mut zones = wanted.zones.clone();
        let needed = if wanted.class.is_regional { 2 } else { 1 };
        let in_all = self.config.global.regional || self.config.global.multizone;
        if zones.is_empty() && !in_all && !wanted.class.is_regional {
            zones.push(place.zone.clone());
        }
        if zones.len() < needed {
            // Which zones follow is the same each time, and another for each name.
            let region = zones
                .first()
                .and_then(|zone| links::region_of(zone))
                .unwrap_or(&place.region)
                .to_owned();
            let mut others = self.zones_of(&place.project, &region)?;
            others.retain(|zone| !zones.contains(zone));
            let first = self
                .context
                .keys()
                .digest(Hash::Sha256, name.as_bytes())
                .first()
                .copied()
                .unwrap_or_default();
            let count = others.len().max(1);
            others.rotate_left(usize::from(first) % count);
            zones.extend(others);
        }
        if !wanted.class.is_regional {
            return Ok(zones.into_iter().map(|zone| (Scope::Zone(zone), Vec::new())).collect());
        }
        let [one, other, ..] = zones.as_slice() else {
            return Err(Failure::invalid("a disk with replicas needs two zones of one region"));
        };
        let region = links::region_of(one).filter(|region| links::region_of(other) == Some(region));
        let wrong = || Failure::invalid(format!("{one} and {other} are not zones of one region"));
        let scope = Scope::Region(region.ok_or_else(wrong)?.to_owned());
        Ok(vec![(scope, vec![one.clone(), other.clone()])])
    }

    /// The zones of a region, in order.
    fn zones_of(&self, project: &str, region: &str) -> Result<Vec<String>, Failure> {
        let mut zones = Vec::new();
        let query = [("fields", "nextPageToken,items(name,status)")];
        self.api
            .pages(&format!("/projects/{project}/zones"), &query, |page: Page| {
                let up = page.items.iter().filter(|zone| text(zone, "status") != "DOWN");
                let names = up.map(|zone| text(zone, "name"));
                zones.extend(
                    names
                        .filter(|zone| links::region_of(zone) == Some(region))
                        .map(str::to_owned),
                );
                Ok(())
            })?;
        zones.sort();
        Ok(zones)
    }

    /// Deletes a disk. That there is none is success.
    ///
    /// # Errors
    /// As the contract's `volumes.delete`.
    pub(super) fn delete_disk(&self, handle: &str, token: Option<&str>) -> Result<(), Failure> {
        let doing = format!("deleting {handle}");
        let progress = Progress::read(token);
        self.passed(&progress, &doing)?;
        let disks = self.disks(Some(handle).into_iter())?;
        let Some((id, disk)) = disks.get(handle)? else {
            return Ok(());
        };
        if let Some(machine) = disk.machines().next() {
            return Err(Failure::failed_precondition(format!("{id} is attached to {machine}")));
        }
        match self.change_disk("DELETE", &id.to_string(), None, (&progress, &doing)) {
            Err(failure) if failure.is_not_found() => Ok(()),
            result => result,
        }
    }
}

#[cfg(test)]
mod tests;
