//! Snapshots of volumes. Their ids are upstream's: the volume's id, `+`, and the snapshot's. CNS keeps the name as the description.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::time::parse_rfc3339;
use cloudwit_guest_sdk::volumes::*;
use cloudwit_guest_sdk::xml::Element;

use crate::Vsphere;
use crate::volumes::cns::volume::{cursor, is_id, next};
use crate::volumes::cns::{Cns, Page, element, fault, id_element};
use crate::volumes::find::{Found, no_volume};
use crate::volumes::pages::Position;

/// Most snapshots of a page (CNS's limit, upstream's `QuerySnapshotLimit`).
const MOST: u64 = 128;

/// Pages in which a name is looked up among the snapshots of other volumes.
const SEARCHED: usize = 40;

/// The id of a snapshot in its two parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SnapshotId {
    /// The volume's id.
    pub volume: String,
    /// CNS's id.
    pub snapshot: String,
}

impl SnapshotId {
    /// Reads one; none for what CNS cannot have given out.
    pub(crate) fn read(id: &str) -> Option<Self> {
        let (volume, snapshot) = id.split_once('+')?;
        (is_id(volume) && is_id(snapshot)).then(|| Self {
            volume: volume.into(),
            snapshot: snapshot.into(),
        })
    }

    fn written(&self) -> String {
        format!("{}+{}", self.volume, self.snapshot)
    }
}

/// A snapshot that is there.
#[derive(Debug, Clone)]
pub(crate) struct CnsSnapshot {
    id: SnapshotId,
    name: String,
    /// In milliseconds since 1970.
    created: u64,
}

impl CnsSnapshot {
    fn read(snapshot: &Element) -> Option<Self> {
        let id = |name: &str| Some(snapshot.at(&[name, "id"])?.own_text().to_owned());
        let created = snapshot.text("createTime").and_then(parse_rfc3339);
        Some(Self {
            id: SnapshotId {
                volume: id("volumeId")?,
                snapshot: id("snapshotId")?,
            },
            name: snapshot.text("description").unwrap_or_default().into(),
            created: created.unwrap_or_default().saturating_mul(1_000),
        })
    }

    fn told(&self, size: u64) -> Snapshot {
        Snapshot {
            id: self.id.written(),
            volume: self.id.volume.clone(),
            size,
            created: self.created,
            ready: true,
            extra: Vec::new(),
        }
    }
}

impl Cns<'_> {
    /// A page of snapshots: of one volume, of one id, or all.
    fn snapshots(&self, of: Option<(&str, Option<&str>)>, from: u64, most: u64) -> Result<Page<CnsSnapshot>, Failure> {
        let spec = of.map(|(volume, snapshot)| {
            let snapshot = snapshot.map(|id| id_element("snapshotId", id)).unwrap_or_default();
            let volume = id_element("volumeId", volume);
            format!("<snapshotQuerySpecs>{volume}{snapshot}</snapshotQuerySpecs>")
        });
        let filter = spec.unwrap_or_default() + &cursor(from, most.min(MOST));
        let what = format!("<snapshotQueryFilter>{filter}</snapshotQueryFilter>");
        let task = self.begin("CnsQuerySnapshots", &|_| what.clone())?;
        let result = self.outcome(&self.task(&task))?;
        let mut entries = Vec::new();
        for entry in result.children("entries") {
            match entry.child("error").map(|error| fault::failure(&fault::read(error))) {
                Some(failure) if failure.is_not_found() => {}
                Some(failure) => return Err(failure),
                None => entries.extend(entry.child("snapshot").and_then(CnsSnapshot::read)),
            }
        }
        let count = result.children("entries").count();
        let next = next(from, count, result.child("cursor"));
        Ok(Page { entries, next })
    }

    /// The snapshot with this name: of this volume first, then of all.
    fn snapshot_of_name(&self, name: &str, volume: &str) -> Result<Option<CnsSnapshot>, Failure> {
        for of in [Some((volume, None)), None] {
            let mut from = 0;
            for _ in 0..SEARCHED {
                let page = self.snapshots(of, from, MOST)?;
                if let Some(found) = page.entries.into_iter().find(|one| one.name == name) {
                    return Ok(Some(found));
                }
                let Some(next) = page.next else { break };
                from = next;
            }
        }
        Ok(None)
    }
}

impl Vsphere {
    /// A snapshot and the volume that it is of; none where CNS has none.
    pub(super) fn find_snapshot(&self, id: &SnapshotId) -> Result<Option<(Found, CnsSnapshot)>, Failure> {
        let Some(found) = self.find_volume(&id.volume)? else {
            return Ok(None);
        };
        let cns = self.cns_at(found.vcenter)?;
        let page = cns.snapshots(Some((&id.volume, Some(&id.snapshot))), 0, MOST)?;
        let snapshot = page.entries.into_iter().find(|one| one.id == *id);
        Ok(snapshot.map(|snapshot| (found, snapshot)))
    }

    /// Snapshots in the contract's words: as large as their volumes.
    fn told_snapshots(&self, snapshots: &[CnsSnapshot]) -> Vec<Snapshot> {
        let mut ids: Vec<&str> = snapshots.iter().map(|one| one.id.volume.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        let volumes = self.find_volumes(&ids);
        let told = |one: &CnsSnapshot| {
            let found = volumes.get(&one.id.volume)?.as_ref().ok()?.as_ref()?;
            Some(one.told(found.volume.size()))
        };
        snapshots.iter().filter_map(told).collect()
    }
}

impl VolumeSnapshots for Vsphere {
    fn create_snapshot(&self, new: &NewSnapshot, token: Option<&str>) -> Result<Snapshot, Failure> {
        let doing = format!("making the snapshot {}", new.name);
        self.passed(token, &doing, Some(&new.volume))?;
        known_parameters(&new.parameters, &[])?;
        let found = self.find_volume(&new.volume)?.ok_or_else(|| no_volume(&new.volume))?;
        let cns = self.cns_at(found.vcenter)?;
        if let Some(snapshot) = cns.snapshot_of_name(&new.name, &new.volume)? {
            return Ok(snapshot.told(found.volume.size()));
        }
        let spec = id_element("volumeId", &new.volume) + &element("description", &new.name);
        let what = format!("<snapshotSpecs>{spec}</snapshotSpecs>");
        let task = cns.begin("CnsCreateSnapshots", &|_| what.clone())?;
        Err(cns.task(&task).pending(&doing))
    }

    fn delete_snapshot(&self, id: &str, token: Option<&str>) -> Result<(), Failure> {
        let doing = format!("deleting the snapshot {id}");
        let Some(snapshot) = SnapshotId::read(id) else {
            return Ok(());
        };
        match self.passed(token, &doing, Some(&snapshot.volume)) {
            Err(failure) if failure.is_not_found() => return Ok(()),
            result => drop(result?),
        }
        let Some((found, _)) = self.find_snapshot(&snapshot)? else {
            return Ok(());
        };
        let ids = id_element("volumeId", &snapshot.volume) + &id_element("snapshotId", &snapshot.snapshot);
        let what = format!("<snapshotDeleteSpecs>{ids}</snapshotDeleteSpecs>");
        let cns = self.cns_at(found.vcenter)?;
        let task = cns.begin("CnsDeleteSnapshots", &|_| what.clone())?;
        Err(cns.task(&task).pending(&doing))
    }

    fn get_snapshots(&self, ids: &[String]) -> Result<Each<Option<Snapshot>>, Failure> {
        let one = |id: &String| {
            let Some(id) = SnapshotId::read(id) else {
                return Ok(None);
            };
            let found = self.find_snapshot(&id)?;
            Ok(found.map(|(found, snapshot)| snapshot.told(found.volume.size())))
        };
        Ok(ids.iter().map(one).collect())
    }

    fn list_snapshots(&self, volume: Option<&str>, after: Option<&str>, limit: u32) -> Result<SnapshotPage, Failure> {
        let vcenters = self.settings.vcenters.len();
        let mut position = Position::read(after, vcenters)?;
        let nothing = SnapshotPage {
            snapshots: Vec::new(),
            next: None,
        };
        let mut last = vcenters;
        if let Some(id) = volume {
            let Some(found) = self.find_volume(id)? else {
                return Ok(nothing);
            };
            position.vcenter = found.vcenter;
            last = found.vcenter + 1;
        }
        let cns = self.cns_at(position.vcenter)?;
        let page = cns.snapshots(volume.map(|id| (id, None)), position.from, u64::from(limit))?;
        Ok(SnapshotPage {
            snapshots: self.told_snapshots(&page.entries),
            next: position.next(page.next, last),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_upstreams() {
        let (volume, snapshot) = (
            "5a1b2c3d-0000-4000-8000-00000000000a",
            "0c1b2c3d-0000-4000-8000-00000000000b",
        );
        let id = format!("{volume}+{snapshot}");
        let read = SnapshotId::read(&id).unwrap();
        assert_eq!((read.volume.as_str(), read.written()), (volume, id));
        for foreign in ["", volume, "a+b"] {
            assert_eq!(SnapshotId::read(foreign), None, "{foreign}");
        }
    }
}
