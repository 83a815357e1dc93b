//! Snapshots of disks.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::serde_json::json;
use cloudwit_guest_sdk::time::parse_rfc3339;
use cloudwit_guest_sdk::volumes::*;
use serde::Deserialize;

use crate::Gce;
use crate::api::{Paged, errors};
use crate::links;
use crate::place::Place;
use crate::volumes::GIB;
use crate::volumes::class::{LABELS, description, lower, read_labels};
use crate::volumes::disk::ids::{DiskId, is_new_name, snapshot_path};
use crate::volumes::disk::{is_of_kubernetes, no_disk};
use crate::volumes::pages::{MOST, stale};
use crate::volumes::progress::Progress;

/// The requested fields of a snapshot.
const FIELDS: &str = "name,status,diskSizeGb,sourceDisk,creationTimestamp,description";

/// Parameter of a VolumeSnapshotClass: a region or multi-region, such as `eu`.
const LOCATIONS: &str = "storage-locations";

/// `snapshots`. Upstream also makes images, which are none here.
const TYPE: &str = "snapshot-type";

/// A snapshot.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PdSnapshot {
    name: String,
    /// `CREATING`, `UPLOADING`, `READY`, `FAILED`, `DELETING`.
    status: String,
    disk_size_gb: String,
    source_disk: String,
    creation_timestamp: String,
    description: String,
}

impl PdSnapshot {
    /// In the contract's words, under its id.
    fn snapshot(&self, id: &str) -> Snapshot {
        let gib: u64 = self.disk_size_gb.parse().unwrap_or_default();
        Snapshot {
            id: id.into(),
            volume: links::tail(&self.source_disk).into(),
            size: gib.saturating_mul(GIB),
            created: parse_rfc3339(&self.creation_timestamp)
                .unwrap_or_default()
                .saturating_mul(1_000),
            ready: self.status == "READY",
            extra: Vec::new(),
        }
    }
}

/// A page of snapshots.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SnapshotItems {
    items: Vec<PdSnapshot>,
    next_page_token: Option<String>,
}

impl Paged for SnapshotItems {
    fn next(&mut self) -> Option<String> {
        self.next_page_token.take()
    }
}

impl Gce {
    /// The snapshot of this id; none where Compute Engine reports it as not found.
    fn snapshot(&self, id: &str) -> Result<Option<PdSnapshot>, Failure> {
        match self.api.get::<PdSnapshot>(&format!("/{id}"), &[("fields", FIELDS)]) {
            Ok(snapshot) => Ok(Some(snapshot).filter(|snapshot| snapshot.status != "DELETING")),
            Err(failure) if errors::denies(&failure, "snapshots", links::name(id)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Requests a snapshot of this disk.
    fn begin_snapshot(&self, new: &NewSnapshot, disk: &DiskId, name: &str) -> Result<(), Failure> {
        let parameters = lower(&new.parameters);
        let given = |name: &str| parameter(&parameters, name).filter(|value| !value.is_empty());
        let mut body = json!({ "name": name, "description": description(&new.tags) });
        let labels = read_labels(given(LABELS))?;
        if !labels.is_empty() {
            body["labels"] = json!(labels);
        }
        if let Some(place) = given(LOCATIONS) {
            body["storageLocations"] = json!([place.to_ascii_lowercase()]);
        }
        let doing = format!("making the snapshot {name}");
        let made = self.change_disk(
            "POST",
            &format!("{disk}/createSnapshot"),
            Some(&body),
            (&Progress::default(), &doing),
        );
        match made {
            // It is there and not shown yet.
            Err(failure) if failure.kind == FailureKind::AlreadyExists => {
                Err(Progress::default().pending(None, &doing))
            }
            made => made,
        }
    }
}

/// Refuses what no snapshot can have.
fn check(new: &NewSnapshot) -> Result<(), Failure> {
    let parameters = lower(&new.parameters);
    known_parameters(&parameters, &[LOCATIONS, TYPE, LABELS])?;
    read_labels(parameter(&parameters, LABELS).filter(|labels| !labels.is_empty()))?;
    match parameter(&parameters, TYPE) {
        None | Some("" | "snapshots") => Ok(()),
        Some(other) => Err(Failure::invalid(format!(
            "parameter {TYPE} is \"{other}\"; it can be snapshots"
        ))),
    }
}

impl VolumeSnapshots for Gce {
    fn create_snapshot(&self, new: &NewSnapshot, token: Option<&str>) -> Result<Snapshot, Failure> {
        check(new)?;
        let place = Place::of(&self.config.global, self.context)?;
        let name = name_or_digest(self.context.keys(), "snapshot-", &new.name, is_new_name);
        let path = place.global("snapshots", &name);
        let doing = format!("making the snapshot {name}");
        let disks = self.disks(Some(new.volume.as_str()).into_iter())?;
        // A disk may be gone whose snapshot stays.
        let disk = disks.get(&new.volume)?.map(|(id, _)| id);
        let Some(snapshot) = self.snapshot(&path)? else {
            // Nothing to see yet: the operation shows whether there will be.
            self.passed(&Progress::read(token), &doing)?;
            self.begin_snapshot(new, disk.ok_or_else(|| no_disk(&new.volume))?, &name)?;
            return Err(Progress::default().pending(None, &doing));
        };
        let shown = snapshot.snapshot(&path);
        let is_of = disk.map_or_else(|| new.volume == shown.volume, |disk| disk.to_string() == shown.volume);
        if !is_of {
            let text = format!("the snapshot {name} is there already, of {}", shown.volume);
            return Err(Failure::already_exists(text));
        }
        match snapshot.status.as_str() {
            "CREATING" => Err(Progress::read(token).pending(None, &doing)),
            "FAILED" => {
                // Its name is in the way of another one.
                self.delete_snapshot(&path, None)?;
                Err(Failure::other(format!("{doing}: it failed, and is made anew")))
            }
            _ => Ok(Snapshot {
                volume: new.volume.clone(),
                ..shown
            }),
        }
    }

    fn delete_snapshot(&self, id: &str, token: Option<&str>) -> Result<(), Failure> {
        let Some(path) = snapshot_path(id) else { return Ok(()) };
        let (progress, doing) = (Progress::read(token), format!("deleting {id}"));
        self.passed(&progress, &doing)?;
        if self.snapshot(path)?.is_none() {
            return Ok(());
        }
        match self.change_disk("DELETE", path, None, (&progress, &doing)) {
            Err(failure) if failure.is_not_found() => Ok(()),
            result => result,
        }
    }

    fn get_snapshots(&self, ids: &[String]) -> Result<Each<Option<Snapshot>>, Failure> {
        let one = |id: &String| match snapshot_path(id) {
            Some(path) => Ok(self.snapshot(path)?.map(|snapshot| snapshot.snapshot(id))),
            None => Ok(None),
        };
        Ok(ids.iter().map(one).collect())
    }

    fn list_snapshots(&self, volume: Option<&str>, after: Option<&str>, limit: u32) -> Result<SnapshotPage, Failure> {
        let place = Place::of(&self.config.global, self.context)?;
        let filter = match volume {
            None => None,
            Some(handle) => {
                let disks = self.disks(Some(handle).into_iter())?;
                let known = disks.get(handle)?.map(|(id, _)| id.clone());
                // One that is deleted may have some.
                match known.or_else(|| DiskId::read(handle, &place.project)) {
                    Some(id) => Some(format!("sourceDisk eq \".*/{id}\"")),
                    None => {
                        return Ok(SnapshotPage {
                            snapshots: Vec::new(),
                            next: None,
                        });
                    }
                }
            }
        };
        let (size, fields) = (limit.min(MOST).to_string(), format!("nextPageToken,items({FIELDS})"));
        let mut query = vec![("maxResults", &*size), ("fields", &*fields)];
        query.extend(after.map(|token| ("pageToken", token)));
        query.extend(filter.as_deref().map(|filter| ("filter", filter)));
        let path = format!("/projects/{}/global/snapshots", place.project);
        let page = self.api.get::<SnapshotItems>(&path, &query);
        let mut page = page.map_err(|failure| stale(failure, after))?;
        let next = page.next();
        let is_shown = |snapshot: &&PdSnapshot| {
            let is_there = !matches!(snapshot.status.as_str(), "CREATING" | "FAILED" | "DELETING");
            is_there && is_of_kubernetes(&snapshot.description)
        };
        let shown = page.items.iter().filter(is_shown);
        let snapshots = shown.map(|one| one.snapshot(&place.global("snapshots", &one.name)));
        Ok(SnapshotPage {
            snapshots: snapshots.collect(),
            next,
        })
    }
}

#[cfg(test)]
mod tests;
