//! A disk as Compute Engine describes it, and how disks are looked up: a few one by one, many in aggregated lists.

pub(crate) mod ids;

use std::collections::{BTreeMap, BTreeSet};

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;
use serde::Deserialize;

use crate::Gce;
use crate::api::errors;
use crate::links;
use crate::place::Place;
use crate::volumes::{GIB, ZONE_KEY};
use ids::{DiskId, Scope};

/// The requested fields of a disk.
pub(crate) const FIELDS: &str = "name,zone,region,replicaZones,sizeGb,status,users,sourceSnapshot,type,description";

/// Up to so many disks are requested one by one.
const FEW: usize = 2;

/// Names in the filter of one list, as of machines.
const NAMES: usize = 100;

/// What a description of upstream's driver, of the in-tree plugin or of ours has in it.
const MARKS: [&str; 2] = ["storage.gke.io/created-by", "kubernetes.io/created-for/"];

/// A disk. One with replicas has a region and no zone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Disk {
    /// Its name.
    pub name: String,
    zone: String,
    region: String,
    replica_zones: Vec<String>,
    /// A number.
    size_gb: String,
    /// `CREATING`, `RESTORING`, `READY`, `FAILED`, `DELETING`, and what may come.
    pub status: String,
    /// Links to the machines that it is attached to.
    users: Vec<String>,
    source_snapshot: String,
    #[serde(rename = "type")]
    kind: String,
    description: String,
}

impl Disk {
    /// The zones in which it can be attached.
    pub(crate) fn zones(&self) -> BTreeSet<&str> {
        let all = self.replica_zones.iter().chain(Some(&self.zone));
        all.map(|link| links::name(link))
            .filter(|zone| !zone.is_empty())
            .collect()
    }

    pub(crate) fn region(&self) -> Option<&str> {
        match links::name(&self.region) {
            "" => links::region_of(links::name(&self.zone)),
            region => Some(region),
        }
    }

    /// Its id, in this project.
    pub(crate) fn id(&self, project: &str) -> DiskId {
        let scope = match links::name(&self.zone) {
            "" => Scope::Region(links::name(&self.region).into()),
            zone => Scope::Zone(zone.into()),
        };
        DiskId {
            project: project.into(),
            scope: Some(scope),
            name: self.name.clone(),
        }
    }

    /// Its size in GiB.
    pub(crate) fn gib(&self) -> u64 {
        self.size_gb.parse().unwrap_or_default()
    }

    /// Its type, such as `pd-balanced`.
    pub(crate) fn kind(&self) -> &str {
        links::name(&self.kind)
    }

    /// The snapshot that it was made of; may be empty.
    pub(crate) fn snapshot(&self) -> &str {
        links::tail(&self.source_snapshot)
    }

    /// Ids of the machines that it is attached to.
    pub(crate) fn machines(&self) -> impl Iterator<Item = &str> {
        self.users.iter().map(|link| links::tail(link))
    }

    /// Whether it was made for a PersistentVolume.
    pub(crate) fn is_of_kubernetes(&self) -> bool {
        is_of_kubernetes(&self.description)
    }

    /// In the contract's terms, under the requested id.
    pub(crate) fn volume(&self, id: &str) -> Volume {
        let attachment = |machine: &str| Attachment {
            node_id: machine.into(),
            read_only: false,
        };
        Volume {
            topology: self
                .zones()
                .into_iter()
                .map(|zone| Topology::of(ZONE_KEY, zone))
                .collect(),
            source: Some(self.snapshot())
                .filter(|snapshot| !snapshot.is_empty())
                .map(|snapshot| VolumeSource::Snapshot(snapshot.into())),
            attachments: self.machines().map(attachment).collect(),
            ..Volume::new(id, self.gib().saturating_mul(GIB))
        }
    }
}

/// Whether something with this description was made for an object of Kubernetes.
pub(crate) fn is_of_kubernetes(description: &str) -> bool {
    MARKS.iter().any(|mark| description.contains(mark))
}

/// The failure for a disk that does not exist.
pub(crate) fn no_disk(handle: &str) -> Failure {
    Failure::not_found(format!("there is no disk {handle}"))
}

/// Disks by the requested handles.
#[derive(Debug, Default)]
pub(crate) struct Disks(BTreeMap<String, Result<Option<(DiskId, Disk)>, Failure>>);

impl Disks {
    /// The disk that a handle means; none where Compute Engine reports it as not found, and where it cannot have given the handle out.
    ///
    /// # Errors
    /// The error of its look-up.
    pub(crate) fn get(&self, handle: &str) -> Result<Option<&(DiskId, Disk)>, Failure> {
        match self.0.get(handle) {
            None => Ok(None),
            Some(Ok(found)) => Ok(found.as_ref()),
            Some(Err(failure)) => Err(failure.clone()),
        }
    }
}

impl Gce {
    /// The disks that these handles mean. A failure of one is its own.
    ///
    /// # Errors
    /// What prevents every look-up.
    pub(crate) fn disks<'h>(&self, handles: impl Iterator<Item = &'h str>) -> Result<Disks, Failure> {
        let place = Place::of(&self.config.global, self.context)?;
        let read = |handle: &'h str| Some((handle, DiskId::read(handle, &place.project)?));
        let wanted: BTreeMap<&str, DiskId> = handles.filter_map(read).collect();
        let mut listed = Vec::new();
        let mut complete = Ok(());
        if wanted.len() > FEW || wanted.values().any(|id| id.scope.is_none()) {
            let mut projects: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
            for id in wanted.values() {
                projects.entry(&id.project).or_default().insert(&id.name);
            }
            for (project, names) in projects {
                let names: Vec<&str> = names.into_iter().collect();
                for names in names.chunks(NAMES) {
                    let mut each = |disk: Disk| listed.push((disk.id(project), disk));
                    complete = complete.and(self.listed_disks(project, names, &mut each)?);
                }
            }
        }
        let one = |(handle, id): (&str, DiskId)| {
            let found = match id.scope {
                // The list may be older than the disk, so a disk missing there is no evidence.
                Some(_) => match listed.iter().find(|(other, _)| *other == id) {
                    Some(found) => Ok(Some(found.clone())),
                    None => self.disk(&id).map(|disk| disk.map(|disk| (id, disk))),
                },
                None => by_name(&id, &listed, &place.region, complete.clone()),
            };
            (handle.to_owned(), found)
        };
        Ok(Disks(wanted.into_iter().map(one).collect()))
    }

    /// The disk of this id; none where Compute Engine reports it as not found.
    ///
    /// # Errors
    /// Its error.
    pub(crate) fn disk(&self, id: &DiskId) -> Result<Option<Disk>, Failure> {
        match self.api.get(&format!("/{id}"), &[("fields", FIELDS)]) {
            Ok(disk) => Ok(Some(disk)),
            Err(failure) if errors::denies(&failure, "disks", &id.name) => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

/// The one disk of this name in the region, for an id without a zone or region.
fn by_name(
    id: &DiskId,
    listed: &[(DiskId, Disk)],
    region: &str,
    complete: Result<(), Failure>,
) -> Result<Option<(DiskId, Disk)>, Failure> {
    let is_it = |(other, disk): &&(DiskId, Disk)| {
        other.project == id.project && other.name == id.name && disk.region() == Some(region)
    };
    let mut found = listed.iter().filter(is_it);
    match (found.next(), found.next()) {
        (Some(one), Some(other)) => Err(Failure::invalid(format!(
            "the disk {} may be {} or {}; its zone has to be in the PersistentVolume",
            id.name, one.0, other.0
        ))),
        (Some(only), None) => complete.map(|()| Some(only.clone())),
        (None, _) => complete.map(|()| None),
    }
}
