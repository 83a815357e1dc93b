//! Snapshots of volumes: their content is fixed when EC2 has taken the request, and is then copied away for a while.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::time::parse_rfc3339;
use cloudwit_guest_sdk::volumes::*;
use cloudwit_guest_sdk::xml::Element;

use crate::Aws;
use crate::api::by_ids::ask_by_ids;
use crate::api::error::AwsError;
use crate::api::reading::text;
use crate::tags::{ec2_tags, tag};
use crate::volumes::class::check_snapshot_class;
use crate::volumes::class::tags::{SNAPSHOT_NAME, read_tags, tags_of};
use crate::volumes::disk::find::no_volume;
use crate::volumes::disk::ids::{snapshot_id, volume_id};
use crate::volumes::disk::{GIB, number};

/// AWS's error code for an id without a snapshot.
const NO_SNAPSHOT: &str = "InvalidSnapshot.NotFound";

/// A snapshot as EC2 describes it.
#[derive(Debug, Clone, PartialEq)]
struct DiskSnapshot {
    id: String,
    /// The volume it was made of.
    disk: String,
    gib: u64,
    /// When it was begun, in seconds since 1970.
    began: u64,
    /// `pending`, `completed`, `error`, and what is in or comes out of the recycle bin.
    state: String,
    tags: Vec<Pair>,
}

impl DiskSnapshot {
    /// Reads an item of `DescribeSnapshots`, or the answer of `CreateSnapshot`.
    fn read(item: &Element) -> Result<Self, Failure> {
        let snapshot = Self {
            id: text(item, "snapshotId"),
            disk: text(item, "volumeId"),
            gib: number(item, "volumeSize").unwrap_or_default(),
            began: parse_rfc3339(&text(item, "startTime")).unwrap_or_default(),
            state: text(item, "status"),
            tags: ec2_tags(item),
        };
        match snapshot.id.is_empty() || snapshot.gib == 0 {
            true => Err(Failure::other("AWS described a snapshot without an id or a size")),
            false => Ok(snapshot),
        }
    }

    fn has_failed(&self) -> bool {
        self.state == "error"
    }

    /// In the contract's terms, of the volume under the requested id.
    fn snapshot(self, volume: Option<&str>) -> Snapshot {
        Snapshot {
            ready: self.state == "completed",
            size: self.gib.saturating_mul(GIB),
            created: self.began.saturating_mul(1_000),
            volume: volume.map_or(self.disk, str::to_owned),
            id: self.id,
            extra: Vec::new(),
        }
    }
}

impl VolumeSnapshots for Aws {
    fn create_snapshot(&self, new: &NewSnapshot, _: Option<&str>) -> Result<Snapshot, Failure> {
        check_snapshot_class(&new.parameters)?;
        let own = read_tags(&new.parameters, &new.tags)?;
        let Some(volume) = volume_id(&new.volume) else {
            return Err(no_volume(&new.volume));
        };
        if let Some(found) = self.snapshot_named(&new.name)? {
            if found.disk != volume {
                return Err(Failure::already_exists(format!(
                    "snapshot {} has the name {} already: it is of volume {}, wanted is one of {volume}",
                    found.id, new.name, found.disk
                )));
            }
            return Ok(found.snapshot(Some(&new.volume)));
        }
        let tags = tags_of(SNAPSHOT_NAME, &new.name, &self.cluster, &new.tags, &own);
        let call = self.api.ec2("CreateSnapshot").field("VolumeId", volume);
        let call = call.field("Description", format!("Created by Cloudwit for volume {volume}"));
        let call = call.field("TagSpecification.1.ResourceType", "snapshot");
        let answer = call.tags("TagSpecification.1.Tag", &tags).send()?;
        Ok(DiskSnapshot::read(&answer)?.snapshot(Some(&new.volume)))
    }

    fn delete_snapshot(&self, id: &str, _: Option<&str>) -> Result<(), Failure> {
        if let Some(id) = snapshot_id(id) {
            let call = self.api.ec2("DeleteSnapshot").field("SnapshotId", id);
            call.send_unless(&[NO_SNAPSHOT])?;
        }
        Ok(())
    }

    fn get_snapshots(&self, ids: &[String]) -> Result<Each<Option<Snapshot>>, Failure> {
        let found = self.snapshots(ids)?;
        let one = |handle: &String| {
            let Some(id) = snapshot_id(handle) else { return Ok(None) };
            match found.get(id) {
                Some(Some(failed)) if failed.has_failed() => Err(Failure::other(format!(
                    "EC2 gave snapshot {id} up; delete it, and make another"
                ))),
                Some(found) => Ok(found.clone().map(|snapshot| snapshot.snapshot(None))),
                None => Err(Failure::unavailable(format!(
                    "AWS was asked for the snapshot {id} and neither described nor denied it"
                ))),
            }
        };
        Ok(ids.iter().map(one).collect())
    }

    fn list_snapshots(&self, volume: Option<&str>, after: Option<&str>, limit: u32) -> Result<SnapshotPage, Failure> {
        let call = self.api.ec2("DescribeSnapshots").list("Owner", ["self"]);
        let call = match volume {
            None => self.only_ours(call),
            Some(handle) => match volume_id(handle) {
                Some(id) => call.filter("volume-id", [id]),
                None => {
                    let snapshots = Vec::new();
                    return Ok(SnapshotPage { snapshots, next: None });
                }
            },
        };
        let read = |item: &Element| {
            let snapshot = DiskSnapshot::read(item)?;
            let is_there = !snapshot.has_failed() && (volume.is_some() || self.cluster.marks(&snapshot.tags));
            Ok(is_there.then(|| snapshot.snapshot(volume)))
        };
        let (snapshots, next) = self.page(call, "snapshotSet", (after, limit), &read)?;
        Ok(SnapshotPage { snapshots, next })
    }
}

impl Aws {
    /// The snapshot of this name. A failed one is deleted, since another is to be made.
    fn snapshot_named(&self, name: &str) -> Result<Option<DiskSnapshot>, Failure> {
        let filter = format!("tag:{SNAPSHOT_NAME}");
        let call = self.api.ec2("DescribeSnapshots").list("Owner", ["self"]);
        let mut named = call
            .filter(&filter, [name])
            .pages(&["snapshotSet"], DiskSnapshot::read)?;
        named.retain(|one| tag(&one.tags, SNAPSHOT_NAME) == Some(name) && self.may_be_ours(&one.tags));
        let (failed, mut named): (Vec<_>, Vec<_>) = named.into_iter().partition(DiskSnapshot::has_failed);
        for one in failed {
            self.delete_snapshot(&one.id, None)?;
        }
        if let [one, other, ..] = named.as_slice() {
            return Err(Failure::conflict(format!(
                "the snapshots {} and {} both have the name {name}; delete the one that no VolumeSnapshotContent has",
                one.id, other.id
            )));
        }
        Ok(named.pop())
    }

    /// Snapshots by id, in one request; none for what AWS reports as not found.
    fn snapshots(&self, ids: &[String]) -> Result<BTreeMap<String, Option<DiskSnapshot>>, AwsError> {
        let mut unique: Vec<&str> = ids.iter().filter_map(|id| snapshot_id(id)).collect();
        unique.sort_unstable();
        unique.dedup();
        let (mut found, mut refused) = (BTreeMap::new(), Vec::new());
        let mut ask = |ids: &[&str]| {
            let call = self.api.ec2("DescribeSnapshots").list("SnapshotId", ids);
            for snapshot in call.pages(&["snapshotSet"], DiskSnapshot::read)? {
                found.insert(snapshot.id.clone(), Some(snapshot));
            }
            Ok(())
        };
        ask_by_ids(&unique, &[NO_SNAPSHOT], &mut ask, &mut refused)?;
        for (id, _) in refused {
            found.insert(id.into(), None);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
