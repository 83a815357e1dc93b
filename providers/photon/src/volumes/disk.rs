//! A persistent disk as the cloud describes it, and how disks are requested.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::Brake;
use cloudwit_guest_sdk::url::percent_encode;
use cloudwit_guest_sdk::volumes::*;
use serde::Deserialize;
use serde_json::Value;

use crate::Photon;
use crate::config::is_id;
use crate::volumes::GIB;

/// The kind of these disks, of their flavors too.
pub(crate) const KIND: &str = "persistent-disk";

/// The cloud's error code for an id without a disk.
pub(crate) const NO_DISK: &str = "DiskNotFound";

/// So many disks are requested one by one; more are taken from the project's list.
const FEW: usize = 3;

/// How the tag begins that has the volume's name: the disk's own may be a digest, and the cloud lets several disks have one.
pub(crate) const NAME_TAG: &str = "cloudwit:volume=";

/// How the tag begins that has the cluster's name.
pub(crate) const CLUSTER_TAG: &str = "cloudwit:cluster=";

/// What can be done with a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum DiskState {
    Creating,
    Detached,
    Attached,
    /// The cloud gave its creation up.
    Error,
    Deleted,
    #[serde(other)]
    Other,
}

/// A disk.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Disk {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) state: DiskState,
    #[serde(default)]
    pub(crate) flavor: String,
    capacity_gb: u64,
    vms: Option<Vec<String>>,
    tags: Option<Vec<String>>,
}

impl Disk {
    /// Its size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.capacity_gb.saturating_mul(GIB)
    }

    /// The machines that it is attached to: none or one.
    pub(crate) fn machines(&self) -> &[String] {
        self.vms.as_deref().unwrap_or_default()
    }

    /// Whether it is attached to this machine.
    pub(crate) fn is_at(&self, machine: &str) -> bool {
        self.machines().iter().any(|one| one == machine)
    }

    /// What follows a tag's prefix.
    fn tag(&self, beginning: &str) -> Option<&str> {
        self.tags.iter().flatten().find_map(|tag| tag.strip_prefix(beginning))
    }

    /// Whether it was made for a volume of this cluster.
    pub(crate) fn is_of(&self, cluster: &str) -> bool {
        self.tag(NAME_TAG).is_some() && self.tag(CLUSTER_TAG).unwrap_or_default() == cluster
    }

    /// In the contract's words.
    pub(crate) fn volume(&self) -> Volume {
        let attachment = |machine: &String| Attachment {
            node_id: machine.clone(),
            read_only: false,
        };
        Volume {
            attachments: self.machines().iter().map(attachment).collect(),
            ..Volume::new(&self.id, self.bytes())
        }
    }
}

/// Whether it can be a disk's id, so that it is worth a request.
pub(crate) fn is_disk(id: &str) -> bool {
    !id.is_empty() && is_id(id)
}

/// The failure for a disk that does not exist.
pub(crate) fn no_disk(id: &str) -> Failure {
    Failure::not_found(format!("there is no persistent disk {id}"))
}

/// Disks by id.
#[derive(Debug, Default)]
pub(crate) struct Disks(BTreeMap<String, Result<Option<Disk>, Failure>>);

impl Disks {
    /// The disk of this id; none where the cloud reports it as not found, and where it cannot have given the id out.
    ///
    /// # Errors
    /// The error of its look-up.
    pub(crate) fn get(&self, id: &str) -> Result<Option<&Disk>, Failure> {
        match self.0.get(id) {
            None => Ok(None),
            Some(Ok(disk)) => Ok(disk.as_ref().filter(|disk| disk.state != DiskState::Deleted)),
            Some(Err(failure)) => Err(failure.clone()),
        }
    }
}

impl Photon {
    /// The disk of this id; none where the cloud reports it as not found.
    ///
    /// # Errors
    /// The cloud's error.
    pub(crate) fn disk(&self, id: &str) -> Result<Option<Disk>, Failure> {
        let disk = self.api.request("GET", &format!("/disks/{id}"), None, &[NO_DISK])?;
        Ok(disk.filter(|disk: &Disk| disk.state != DiskState::Deleted))
    }

    /// The disks of these ids. A failure of one is its own.
    ///
    /// # Errors
    /// What prevents every look-up.
    pub(crate) fn disks<'i>(&self, ids: impl Iterator<Item = &'i str>) -> Result<Disks, Failure> {
        let mut ids: Vec<&str> = ids.filter(|id| is_disk(id)).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut found = BTreeMap::new();
        if ids.len() > FEW {
            for disk in self.project_disks("")? {
                found.insert(disk.id.clone(), Ok(Some(disk)));
            }
        }
        let late = || Failure::unavailable("further disks are asked for in the next call");
        let mut brake = Brake::new(self.context, late);
        for id in ids {
            // What the list does not show may be new, or of another project.
            if !found.contains_key(id) {
                found.insert(id.to_owned(), brake.run(|| self.disk(id)));
            }
        }
        Ok(Disks(found))
    }

    /// The disks that were made for this cluster's volume of this name. Several have one name where the cloud does not show yet what it was requested.
    ///
    /// # Errors
    /// The cloud's error.
    pub(crate) fn disks_named(&self, disk: &str, volume: &str) -> Result<Vec<Disk>, Failure> {
        let mut disks = self.project_disks(&format!("?name={}", percent_encode(disk)))?;
        let is_it = |one: &Disk| one.name == disk && one.tag(NAME_TAG) == Some(volume) && one.is_of(&self.cluster);
        disks.retain(is_it);
        Ok(disks)
    }

    /// The disks of the project that are not deleted. One that cannot be read is left out.
    ///
    /// # Errors
    /// The cloud's error.
    pub(crate) fn project_disks(&self, query: &str) -> Result<Vec<Disk>, Failure> {
        let read = |item: Value| {
            let read = serde_json::from_value::<Disk>(item);
            read.inspect_err(|mistake| warn!("a disk is left out of the list, it cannot be read: {mistake}"))
                .ok()
                .filter(|disk| disk.state != DiskState::Deleted)
        };
        Ok(self
            .api
            .of_project("disks", query)?
            .into_iter()
            .filter_map(read)
            .collect())
    }
}
