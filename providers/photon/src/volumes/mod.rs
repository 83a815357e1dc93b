//! Volumes: the persistent disks of the project, which the in-tree provider made and attached too.
//!
//! | file | what it does |
//! | ---- | ------------ |
//! | `disk` | a disk as the cloud describes it; disks by id and by name |
//! | `create` | found by its name, else created once; deleted |
//! | `moves` | attached and detached, many in a call |
//! | `pages` | the cluster's disks in pages, and the room that the project has |
//!
//! Disks cannot grow, have no snapshots and are in no zone. A machine is locked while one of its tasks runs, so one disk after the other is attached to it.

mod create;
mod disk;
mod moves;
mod pages;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use cloudwit_guest_sdk::lookup::{Key, Machines as _};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::id_after;
use cloudwit_guest_sdk::volumes::*;

use crate::config::Config;
use crate::instances::Machine;
use crate::{PROVIDER_ID_PREFIX, Photon};
use disk::is_disk;

/// Name of the driver. There is no driver of others that it would have to replace. It MUST NOT change: PersistentVolumes have it.
pub(crate) const DRIVER: &str = "photon.csi.cloudwit.dev";

/// The unit of the cloud's sizes, which it calls GB.
pub(crate) const GIB: u64 = 1 << 30;

/// The largest disk of ESXi (VMware, "Configuration Maximums": 62 TB for a virtual disk).
pub(crate) const LARGEST: u64 = 62 << 40;

/// The size of a volume without a requested one.
const USUAL: u64 = 10 * GIB;

impl Volumes for Photon {
    fn volume_driver(_: Option<&Config>) -> Driver {
        Driver::new(DRIVER, GIB, LARGEST, USUAL)
    }

    fn volume_nodes(&self, nodes: &[NodeRef]) -> Result<Each<VolumeNode>, Failure> {
        let machines = self.machines()?;
        Ok(nodes.iter().map(|node| self.volume_node(node, &machines)).collect())
    }

    fn get_volumes(&self, ids: &[String]) -> Result<Each<Option<Volume>>, Failure> {
        let disks = self.disks(ids.iter().map(String::as_str))?;
        let one = |id: &String| Ok(disks.get(id)?.map(disk::Disk::volume));
        Ok(ids.iter().map(one).collect())
    }

    fn create_volume(&self, new: &NewVolume, token: Option<&str>) -> Result<Volume, Failure> {
        self.create_disk(new, token)
    }

    fn delete_volume(&self, id: &str, token: Option<&str>) -> Result<(), Failure> {
        match is_disk(id) {
            true => self.delete_disk(id, token),
            false => Ok(()),
        }
    }

    fn attach_volumes(&self, attachments: &[NewAttachment]) -> Result<Each<Attached>, Failure> {
        self.attach(attachments)
    }

    fn detach_volumes(&self, detachments: &[Detachment]) -> Result<Each<()>, Failure> {
        self.detach(detachments)
    }
}

impl Photon {
    /// The machine of a Node. The cloud reports no limit of disks for one.
    fn volume_node(&self, node: &NodeRef, machines: &[Machine]) -> Result<VolumeNode, Failure> {
        let missing = || Failure::not_found(format!("Node {} has no virtual machine", node.name));
        let id = match self.key(node)? {
            Key::Id(id) if machines.iter().any(|machine| machine.id == id) => id.to_owned(),
            Key::Id(id) => self.api.machine::<Machine>(id)?.ok_or_else(missing)?.id,
            Key::Name(_) => match self.lookup(std::slice::from_ref(node))?.pop().ok_or_else(missing)?? {
                Presence::Running(instance) | Presence::Stopped(instance) => {
                    let id = id_after(PROVIDER_ID_PREFIX, &instance.provider_id);
                    id.ok_or_else(missing)?.to_owned()
                }
                Presence::Absent(_) => return Err(missing()),
            },
        };
        Ok(VolumeNode {
            id,
            topology: Topology { segments: Vec::new() },
            max_volumes: None,
        })
    }
}
