//! Volumes: Cinder, under the name, ids, metadata and parameters of upstream's driver, so that its PersistentVolumes, classes and node plugin keep working.
//!
//! | file | what it does |
//! | ---- | ------------ |
//! | `config` | `[BlockStorage]` |
//! | `disk` | a volume as Cinder describes it, and in the contract's words; `disk/find`: look-ups of volumes and snapshots by id and by name |
//! | `class` | what a class requests; pure |
//! | `create` | found by name, else created once |
//! | `moves` | attached and detached, by Nova |
//! | `nodes` | where servers are, and how many volumes they take |
//! | `expand`, `modify` | volumes grow; their type changes |
//! | `snapshots`, `pages`, `labels` | snapshots; lists; where volumes of PersistentVolumes are |

mod class;
pub mod config;
mod create;
mod disk;
mod expand;
mod labels;
mod modify;
mod moves;
mod nodes;
mod pages;
mod snapshots;

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use crate::OpenStack;
use crate::api::Endpoint;
use crate::config::Config;
use crate::volumes::disk::{Status, volume_path};

/// Name of the driver, upstream's: PersistentVolumes have it, and the names that CSI migration gives those of the in-tree plugin lead to it.
pub(crate) const DRIVER: &str = "cinder.csi.openstack.org";

/// Where a volume can be attached, as upstream writes it into PersistentVolumes (`driver.go`, `topologyKey`).
pub(crate) const ZONE_KEY: &str = "topology.cinder.csi.openstack.org/zone";

/// The metadata with the cluster's name, upstream's (`controllerserver.go`, `cinderCSIClusterIDKey`).
pub(crate) const CLUSTER: &str = "cinder.csi.openstack.org/cluster";

/// The unit of Cinder's sizes.
pub(crate) const GIB: u64 = 1 << 30;

/// The largest volume: what Cinder's API takes (`MAX_INT`, in GiB) is beyond what any backend has.
const LARGEST: u64 = (i32::MAX as u64) * GIB;

/// The size of a volume without a requested one, as upstream's.
const USUAL: u64 = GIB;

/// How long to wait before looking again at what Cinder or Nova works on.
pub(crate) const POLL: Duration = Duration::from_secs(1);

/// The token of what was begun. Its state is looked up again each time.
pub(crate) const BEGUN: &str = "begun";

/// Not finished: Cinder or Nova works on it.
pub(crate) fn waits(what: impl Into<String>) -> Failure {
    Failure::pending(POLL, BEGUN, what)
}

impl Volumes for OpenStack {
    fn volume_driver(_: Option<&Config>) -> Driver {
        let driver = Driver::new(DRIVER, GIB, LARGEST, USUAL).topology_key(ZONE_KEY);
        let features = [Feature::Clone, Feature::ManyWriters, Feature::ExpandOnline];
        features.into_iter().fold(driver, Driver::feature)
    }

    fn volume_nodes(&self, nodes: &[NodeRef]) -> Result<Each<VolumeNode>, Failure> {
        self.nodes_for_volumes(nodes)
    }

    fn get_volumes(&self, ids: &[String]) -> Result<Each<Option<Volume>>, Failure> {
        let disks = self.disks(ids.iter().map(String::as_str))?;
        let one = |id: &String| Ok(disks.get(id)?.map(|disk| self.volume(disk)));
        Ok(ids.iter().map(one).collect())
    }

    fn create_volume(&self, new: &NewVolume, token: Option<&str>) -> Result<Volume, Failure> {
        self.create_disk(new, token)
    }

    fn delete_volume(&self, id: &str, _: Option<&str>) -> Result<(), Failure> {
        match self.optional_disk(id)? {
            Some(disk) => self.delete_disk(&disk),
            None => Ok(()),
        }
    }

    fn attach_volumes(&self, attachments: &[NewAttachment]) -> Result<Each<Attached>, Failure> {
        self.attach(attachments)
    }

    fn detach_volumes(&self, detachments: &[Detachment]) -> Result<Each<()>, Failure> {
        self.detach(detachments)
    }
}

impl OpenStack {
    /// Deletes a volume; `pending` until Cinder does not have it any more.
    fn delete_disk(&self, disk: &disk::Disk) -> Result<(), Failure> {
        let id = disk.id.as_str();
        match &disk.status {
            Status::Deleting => return Err(waits(format!("Cinder deletes volume {id}"))),
            Status::Creating | Status::Busy(_) => {
                return Err(waits(format!(
                    "volume {id} can be deleted once it is not {} any more",
                    disk.status.word()
                )));
            }
            Status::Attaching | Status::Attached | Status::Detaching => {
                let servers: Vec<&str> = disk.attachments.iter().map(|one| one.server.as_str()).collect();
                return Err(Failure::failed_precondition(format!(
                    "volume {id} is {} ({})",
                    disk.status.word(),
                    servers.join(", ")
                )));
            }
            Status::Free | Status::Failed | Status::Broken(_) => {}
        }
        let call = self.api.delete(Endpoint::BlockStorage, &volume_path(id));
        match call.send() {
            Ok(_) => Err(waits(format!("Cinder deletes volume {id}"))),
            Err(failure) if failure.is_not_found() => Ok(()),
            // It has snapshots, above all.
            Err(failure) if failure.kind == FailureKind::Invalid => Err(Failure::failed_precondition(failure.message)),
            Err(failure) => Err(failure),
        }
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
