//! Volumes: persistent disks under the name, ids and parameters of upstream's driver, so that its PersistentVolumes, classes and node plugin stay in use.
//!
//! | file | what it does |
//! | ---- | ------------ |
//! | `disk` | a disk: its ids, its description by Compute Engine, how it is looked up |
//! | `class` | what a class requests, and what is written on a disk; pure |
//! | `create` | found by name, else created once, in a zone or in two |
//! | `moves` | attached and detached, many in a call |
//! | `progress` | operations, from call to call |
//! | `nodes` | machines and how many disks they take |
//! | `growth`, `snapshots`, `pages` | resize; snapshots; lists |
//! | `labels` | where disks of PersistentVolumes are that name them by a source of Kubernetes |

mod class;
mod create;
pub(crate) mod disk;
mod growth;
mod labels;
mod moves;
mod nodes;
mod pages;
mod progress;
mod snapshots;
#[cfg(test)]
mod testing;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use crate::Gce;
use crate::config::Config;

/// Name of the driver, upstream's: PersistentVolumes have it, and the names that CSI migration gives those of the in-tree plugin lead to it.
pub(crate) const DRIVER: &str = "pd.csi.storage.gke.io";

/// Where a disk can be attached, as upstream writes it into PersistentVolumes (`pkg/common/constants.go`).
pub(crate) const ZONE_KEY: &str = "topology.gke.io/zone";

/// The unit of sizes, which the API calls GB.
pub(crate) const GIB: u64 = 1 << 30;

/// The largest disk (Google Cloud, "Persistent Disk": 64 TiB).
const LARGEST: u64 = 64 << 40;

/// The size of a volume that no claim gives one, as upstream's.
const USUAL: u64 = 100 * GIB;

impl Volumes for Gce {
    fn volume_driver(_: Option<&Config>) -> Driver {
        let driver = Driver::new(DRIVER, GIB, LARGEST, USUAL).topology_key(ZONE_KEY);
        driver.feature(Feature::ExpandOnline)
    }

    fn volume_nodes(&self, nodes: &[NodeRef]) -> Result<Each<VolumeNode>, Failure> {
        self.nodes_for_volumes(nodes)
    }

    fn get_volumes(&self, ids: &[String]) -> Result<Each<Option<Volume>>, Failure> {
        let disks = self.disks(ids.iter().map(String::as_str))?;
        let one = |id: &String| Ok(disks.get(id)?.map(|(_, disk)| disk.volume(id)));
        Ok(ids.iter().map(one).collect())
    }

    fn create_volume(&self, new: &NewVolume, token: Option<&str>) -> Result<Volume, Failure> {
        self.create_disk(new, token)
    }

    fn delete_volume(&self, id: &str, token: Option<&str>) -> Result<(), Failure> {
        self.delete_disk(id, token)
    }

    fn attach_volumes(&self, attachments: &[NewAttachment]) -> Result<Each<Attached>, Failure> {
        self.attach(attachments)
    }

    fn detach_volumes(&self, detachments: &[Detachment]) -> Result<Each<()>, Failure> {
        self.detach(detachments)
    }
}
