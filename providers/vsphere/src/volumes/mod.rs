//! Volumes: disks of vSphere's Cloud Native Storage (CNS) under the name, ids and parameters of upstream's driver, so that its PersistentVolumes, classes and
//! node plugin stay in use.
//!
//! | file | what it does |
//! | ---- | ------------ |
//! | `cns` | calls of CNS, its tasks and faults, its description of a volume |
//! | `place` | datastores, the zones they are in, storage policies |
//! | `class` | what a class requests; pure |
//! | `find` | volumes by id and name, over all vCenters |
//! | `create` | found by name, else created once; deleted |
//! | `moves`, `machines` | attached and detached, a call for each machine |
//! | `nodes` | machines and how many volumes they take |
//! | `growth`, `snapshots`, `pages` | resize; snapshots; lists |
//! | `labels` | where disks of PersistentVolumes are that name them by a source of Kubernetes |

mod class;
mod cns;
mod create;
mod find;
mod growth;
mod labels;
mod machines;
mod moves;
mod nodes;
mod pages;
pub(crate) mod place;
mod snapshots;
#[cfg(test)]
mod testing;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use crate::Vsphere;
use crate::config::Config;
use crate::config::settings::Settings;

/// Name of the driver, upstream's: PersistentVolumes have it.
pub(crate) const DRIVER: &str = "csi.vsphere.vmware.com";

/// The unit of sizes.
pub(crate) const MIB: u64 = 1 << 20;

/// The largest disk (VMware, "Configuration Maximums": 62 TiB).
const LARGEST: u64 = 62 << 40;

/// The size of a volume that no claim gives one, upstream's (`DefaultGbDiskSize`).
const USUAL: u64 = 10 << 30;

/// What a volume's kind is in the context of PersistentVolumes (`AttributeDiskType`, `DiskTypeBlockVolume`).
pub(crate) const KIND: (&str, &str) = ("type", "vSphere CNS Block Volume");

impl Volumes for Vsphere {
    fn volume_driver(config: Option<&Config>) -> Driver {
        let driver = Driver::new(DRIVER, MIB, LARGEST, USUAL).feature(Feature::ExpandOnline);
        let settings = config.map(|config| Settings::of(config, &mut Problems::default()));
        let categories = settings.and_then(|settings| settings.categories);
        let keys = categories.as_ref().and_then(place::topology_keys);
        keys.into_iter().flatten().fold(driver, Driver::topology_key)
    }

    fn volume_nodes(&self, nodes: &[NodeRef]) -> Result<Each<VolumeNode>, Failure> {
        self.nodes_for_volumes(nodes)
    }

    fn get_volumes(&self, ids: &[String]) -> Result<Each<Option<Volume>>, Failure> {
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let mut found = self.find_volumes(&ids);
        let told = self.told(&mut found);
        let one = |id: &&str| told.get(*id).cloned().unwrap_or(Ok(None));
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
