//! Snapshots of volumes. Cinder takes the request at once and makes the copy after it, so `pending` lasts until the copy is made.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::time::parse_rfc3339;
use cloudwit_guest_sdk::volumes::*;
use serde_json::Value;

use crate::OpenStack;
use crate::api::Endpoint;
use crate::api::wire::{Fields, Object, Read};
use crate::volumes::class::{FORCE, SnapshotClass, metadata_of};
use crate::volumes::disk::find::no_volume;
use crate::volumes::disk::{gib, is_id};
use crate::volumes::{GIB, waits};

/// A snapshot as Cinder describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiskSnapshot {
    /// A UUID.
    pub id: String,
    /// The volume it was made of.
    pub disk: String,
    /// Size in GiB.
    pub gib: u64,
    /// When it was begun, in seconds since 1970.
    pub began: u64,
    /// `creating`, `available`, `deleting`, `error` and so on.
    pub status: String,
}

/// The failure for a snapshot that does not exist.
pub(crate) fn no_snapshot(id: &str) -> Failure {
    Failure::not_found(format!("there is no snapshot {id}"))
}

impl DiskSnapshot {
    /// Reads an item of `snapshots`.
    ///
    /// # Errors
    /// What is missing.
    pub(crate) fn read(json: &Value) -> Read<Self> {
        Ok(Self {
            id: json.need("id")?,
            disk: json.need("volume_id")?,
            gib: gib(json)?,
            began: json.text("created_at").and_then(parse_rfc3339).unwrap_or_default(),
            status: json.need("status")?,
        })
    }

    /// Whether volumes can be made of it.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.status.as_str(), "available" | "backing-up")
    }

    fn has_failed(&self) -> bool {
        self.status == "error"
    }

    fn is_made(&self) -> bool {
        !self.has_failed() && !matches!(self.status.as_str(), "creating" | "deleting")
    }

    /// In the contract's words.
    fn snapshot(&self) -> Snapshot {
        Snapshot {
            ready: self.is_ready(),
            size: self.gib.saturating_mul(GIB),
            created: self.began.saturating_mul(1_000),
            volume: self.disk.clone(),
            id: self.id.clone(),
            extra: Vec::new(),
        }
    }
}

impl VolumeSnapshots for OpenStack {
    fn create_snapshot(&self, new: &NewSnapshot, _: Option<&str>) -> Result<Snapshot, Failure> {
        let class = SnapshotClass::read(&new.parameters)?;
        if !is_id(&new.volume) {
            return Err(no_volume(&new.volume));
        }
        let found = match self.snapshot_named(&new.name)? {
            Some(found) if !found.disk.eq_ignore_ascii_case(&new.volume) => {
                return Err(Failure::already_exists(format!(
                    "snapshot {} has the name {} already: it is of volume {}, wanted is one of {}",
                    found.id, new.name, found.disk, new.volume
                )));
            }
            Some(found) => found,
            None => self.make_snapshot(new, &class)?,
        };
        match found.is_made() {
            true => Ok(found.snapshot()),
            false => Err(waits(format!("snapshot {} is in status {}", found.id, found.status))),
        }
    }

    fn delete_snapshot(&self, id: &str, _: Option<&str>) -> Result<(), Failure> {
        let found = match is_id(id) {
            true => self.one("snapshots", id, &DiskSnapshot::read)?,
            false => None,
        };
        let Some(found) = found else { return Ok(()) };
        match found.status.as_str() {
            "deleting" => return Err(waits(format!("Cinder deletes snapshot {id}"))),
            "creating" | "backing-up" | "restoring" => {
                return Err(waits(format!(
                    "snapshot {id} can be deleted once it is not {} any more",
                    found.status
                )));
            }
            _ => {}
        }
        match self
            .api
            .delete(Endpoint::BlockStorage, &format!("/snapshots/{id}"))
            .send()
        {
            Ok(_) => Err(waits(format!("Cinder deletes snapshot {id}"))),
            Err(failure) if failure.is_not_found() => Ok(()),
            Err(failure) if failure.kind == FailureKind::Invalid => Err(Failure::failed_precondition(failure.message)),
            Err(failure) => Err(failure),
        }
    }

    fn get_snapshots(&self, ids: &[String]) -> Result<Each<Option<Snapshot>>, Failure> {
        let found = self.by_id("snapshots", ids.iter().map(String::as_str), &DiskSnapshot::read)?;
        let one = |id: &String| match found.get(id)? {
            Some(failed) if failed.has_failed() => Err(Failure::other(format!(
                "Cinder gave snapshot {id} up; delete it, and make another"
            ))),
            found => Ok(found.map(DiskSnapshot::snapshot)),
        };
        Ok(ids.iter().map(one).collect())
    }

    fn list_snapshots(&self, volume: Option<&str>, after: Option<&str>, limit: u32) -> Result<SnapshotPage, Failure> {
        let call = match volume {
            Some(id) if is_id(id) => {
                let call = self.api.get(Endpoint::BlockStorage, "/snapshots/detail");
                call.query("volume_id", id)
            }
            Some(_) => {
                let snapshots = Vec::new();
                return Ok(SnapshotPage { snapshots, next: None });
            }
            None => self.only_ours("/snapshots/detail"),
        };
        let (found, next) = self.page(call, "snapshots", (after, limit), volume.is_none(), &DiskSnapshot::read)?;
        let snapshots = found.iter().filter(|one| one.is_made()).map(DiskSnapshot::snapshot);
        Ok(SnapshotPage {
            snapshots: snapshots.collect(),
            next,
        })
    }
}

impl OpenStack {
    /// The snapshot of this name. A failed one is deleted, since another is to be made.
    fn snapshot_named(&self, name: &str) -> Result<Option<DiskSnapshot>, Failure> {
        let mut named = self.named("snapshots", name, &DiskSnapshot::read)?;
        if let Some(failed) = named.iter().find(|one| one.has_failed()) {
            return match self.delete_snapshot(&failed.id, None) {
                Err(failure) if !matches!(failure.kind, FailureKind::Pending(_)) => Err(failure),
                _ => Err(Failure::other(format!(
                    "Cinder gave snapshot {} up; it is deleted",
                    failed.id
                ))),
            };
        }
        if let [one, other, ..] = named.as_slice() {
            return Err(Failure::conflict(format!(
                "the snapshots {} and {} both have the name {name}; delete the one that no VolumeSnapshotContent has",
                one.id, other.id
            )));
        }
        Ok(named.pop())
    }

    fn make_snapshot(&self, new: &NewSnapshot, class: &SnapshotClass) -> Result<DiskSnapshot, Failure> {
        let metadata = metadata_of(&self.context.cluster().name, &new.tags, &class.metadata);
        let pairs = metadata.iter();
        let metadata = pairs.fold(Object::new(), |object, pair| object.text(&pair.key, &pair.value));
        let snapshot = Object::new()
            .text("name", &new.name)
            .text("volume_id", &new.volume)
            .flag("force", class.force)
            .object("metadata", metadata);
        let call = self.api.post(Endpoint::BlockStorage, "/snapshots");
        let call = call.body(Object::new().object("snapshot", snapshot));
        let made = call.read(|json| DiskSnapshot::read(json.need_field("snapshot")?));
        made.map_err(|failure| match failure.kind {
            FailureKind::NotFound => no_volume(&new.volume),
            // The volume is attached and may not be, or something else is done to it.
            FailureKind::Invalid if !class.force => Failure::failed_precondition(format!(
                "{}; with {FORCE}: \"true\" in the VolumeSnapshotClass attached volumes are copied as they are",
                failure.message
            )),
            FailureKind::Invalid => Failure::failed_precondition(failure.message),
            _ => failure,
        })
    }
}
