//! Volumes: managed disks under the name, ids and parameters of upstream's driver (`azuredisk-csi-driver`), so that its PersistentVolumes, classes and node
//! plugin stay in use.
//!
//! | file | what it does |
//! | ---- | ------------ |
//! | `disk` | a disk: its ids, its description by the cloud, how it is looked up |
//! | `class` | what a class requests of a disk: parameters, types, tags; pure |
//! | `create` | found by name, else created once, in a zone that has room; deleted |
//! | `moves` | attached and detached, many in a call, with one write for each machine |
//! | `progress` | operations, from call to call |
//! | `names`, `nodes` | which Node is which machine; places of machines and how many disks they take |
//! | `modify`, `snapshots`, `pages` | growth and change; snapshots; lists |
//! | `labels` | where disks of PersistentVolumes are that name them by a source of Kubernetes |

mod class;
mod create;
mod disk;
mod labels;
mod modify;
mod moves;
mod names;
mod nodes;
mod pages;
mod progress;
mod snapshots;
#[cfg(test)]
mod testing;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use crate::Azure;
use crate::config::Config;

/// Name of the driver, upstream's: PersistentVolumes have it, and the names that CSI migration gives those of the in-tree plugin (`kubernetes.io/azure-disk`)
/// lead to it.
const DRIVER: &str = "disk.csi.azure.com";

/// Where a disk can be attached, as upstream writes it into PersistentVolumes: `westeurope-1`, and empty for what is in no zone.
const ZONE_KEY: &str = "topology.disk.csi.azure.com/zone";

/// The unit of sizes, which the API calls GB.
const GIB: u64 = 1 << 30;

/// The largest disk (Microsoft, "Azure managed disk types": 65,536 GiB of Ultra Disks and Premium SSD v2).
const LARGEST: u64 = class::sku::LARGEST * GIB;

impl Volumes for Azure {
    fn volume_driver(_: Option<&Config>) -> Driver {
        // Upstream's size of a volume that no claim gives one is the smallest.
        Driver::new(DRIVER, GIB, LARGEST, GIB)
            .topology_key(ZONE_KEY)
            .feature(Feature::Clone)
            .feature(Feature::ManyWriters)
            .feature(Feature::ExpandOnline)
    }

    fn volume_nodes(&self, nodes: &[NodeRef]) -> Result<Each<VolumeNode>, Failure> {
        self.nodes_for_volumes(nodes)
    }

    fn get_volumes(&self, ids: &[String]) -> Result<Each<Option<Volume>>, Failure> {
        let disks = self.disks(ids.iter().map(String::as_str))?;
        let names = self.node_names(disks.found())?;
        let one = |id: &String| Ok(disks.get(id)?.map(|disk| disk.volume(id, &names)));
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
