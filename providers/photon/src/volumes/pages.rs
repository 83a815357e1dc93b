//! The cluster's disks in pages, and the room that the project has for more.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;
use serde::Deserialize;

use crate::Photon;
use crate::volumes::create::known;
use crate::volumes::disk::Disk;
use crate::volumes::{GIB, LARGEST};

/// How the token of a page begins; the id of the last disk before it follows.
const AFTER: &str = "after:";

/// What the project's limits call the size of its persistent disks.
const CAPACITY: &str = "persistent-disk.capacity";

/// A project, as far as it is read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Project {
    resource_ticket: Option<Ticket>,
}

/// What a project may have, and what it has.
#[derive(Debug, Default, Deserialize)]
struct Ticket {
    limits: Option<Vec<Line>>,
    usage: Option<Vec<Line>>,
}

/// A line of limits or of usage.
#[derive(Debug, Deserialize)]
struct Line {
    key: String,
    value: f64,
    unit: String,
}

impl Line {
    /// In bytes; none for a unit that is no size.
    fn bytes(&self) -> Option<u64> {
        let unit = match self.unit.as_str() {
            "B" => 1,
            "KB" => 1 << 10,
            "MB" => 1 << 20,
            "GB" => GIB,
            _ => return None,
        };
        // Limits are fractions where a project has a share of its tenant's.
        Some((self.value.max(0.0) * unit as f64) as u64)
    }
}

impl Ticket {
    /// What is left of the limit; none where there is no limit.
    fn room(&self) -> Option<u64> {
        let find = |lines: &Option<Vec<Line>>| lines.iter().flatten().find(|line| line.key == CAPACITY)?.bytes();
        let limit = find(&self.limits)?;
        Some(limit.saturating_sub(find(&self.usage).unwrap_or_default()))
    }
}

impl VolumeListing for Photon {
    fn list_volumes(&self, after: Option<&str>, limit: u32) -> Result<VolumePage, Failure> {
        let stale = || Failure::aborted("the list goes on nowhere: the token is none of this provider's");
        let last = after
            .map(|token| token.strip_prefix(AFTER).ok_or_else(stale))
            .transpose()?;
        let mut disks = self.project_disks("")?;
        disks.retain(|disk| disk.is_of(&self.cluster) && last.is_none_or(|last| disk.id.as_str() > last));
        disks.sort_by(|one, other| one.id.cmp(&other.id));
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let is_last = disks.len() <= limit;
        disks.truncate(limit);
        let next = disks
            .last()
            .filter(|_| !is_last)
            .map(|disk| format!("{AFTER}{}", disk.id));
        Ok(VolumePage {
            volumes: disks.iter().map(Disk::volume).collect(),
            next,
        })
    }
}

impl VolumeCapacity for Photon {
    fn volume_capacity(&self, query: &CapacityQuery) -> Result<Capacity, Failure> {
        known(&query.parameters)?;
        let path = format!("/projects/{}", self.api.project()?);
        let project: Option<Project> = self.api.request("GET", &path, None, &[])?;
        let room = project
            .and_then(|project| project.resource_ticket)
            .and_then(|ticket| ticket.room());
        Ok(Capacity {
            // Where the project has no limit, the datastores have one, which only an administrator can read.
            available: room.unwrap_or(LARGEST),
            largest: None,
        })
    }
}
