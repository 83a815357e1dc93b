//! Snapshots of disks.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use crate::Sim;
use crate::api::disks::{DiskSnapshot, SnapshotSpec};

/// What the id of every snapshot begins with.
const SNAPSHOT_ID: &str = "snap-";

/// Whether the cloud can have given this id out.
fn is_snapshot(id: &str) -> bool {
    let number = id.strip_prefix(SNAPSHOT_ID);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn shown(snapshot: DiskSnapshot) -> Snapshot {
    Snapshot {
        id: snapshot.id,
        volume: snapshot.spec.disk,
        size: snapshot.size,
        created: snapshot.created,
        ready: snapshot.ready,
        extra: Vec::new(),
    }
}

impl VolumeSnapshots for Sim {
    fn create_snapshot(&self, new: &NewSnapshot, _: Option<&str>) -> Result<Snapshot, Failure> {
        known_parameters(&new.parameters, &[])?;
        let spec = SnapshotSpec {
            name: new.name.clone(),
            cluster: self.cluster.clone(),
            disk: new.volume.clone(),
        };
        let snapshot = match self.api.create_snapshot(&spec) {
            Err(failure) if failure.kind == FailureKind::AlreadyExists => {
                let named = self.api.snapshot_by_name(&self.cluster, &new.name)?;
                named.filter(|named| named.spec.disk == new.volume).ok_or(failure)?
            }
            result => result?,
        };
        Ok(shown(snapshot))
    }

    fn delete_snapshot(&self, id: &str, _: Option<&str>) -> Result<(), Failure> {
        match is_snapshot(id) {
            true => self.api.delete_snapshot(id),
            false => Ok(()),
        }
    }

    fn get_snapshots(&self, ids: &[String]) -> Result<Each<Option<Snapshot>>, Failure> {
        let possible: Vec<&str> = ids.iter().map(String::as_str).filter(|id| is_snapshot(id)).collect();
        let found = match possible.is_empty() {
            true => Vec::new(),
            false => self.api.snapshots_by_id(&possible)?,
        };
        let one = |id: &String| found.iter().find(|snapshot| snapshot.id == *id);
        Ok(ids.iter().map(|id| Ok(one(id).cloned().map(shown))).collect())
    }

    fn list_snapshots(&self, volume: Option<&str>, after: Option<&str>, limit: u32) -> Result<SnapshotPage, Failure> {
        let (snapshots, next) = self.api.snapshots(&self.cluster, volume, after, limit)?;
        Ok(SnapshotPage {
            snapshots: snapshots.into_iter().map(shown).collect(),
            next,
        })
    }
}
