//! Volumes: EBS, under the name, ids, tags and parameters of upstream's driver, so that its PersistentVolumes, classes and node plugin keep working.
//!
//! | file | what it does |
//! | ---- | ------------ |
//! | `disk` | a volume: its ids, its description by EC2, how it is requested, names of devices |
//! | `class` | what a class requests, what EBS allows, what is written on a volume; pure |
//! | `create` | found by name, else created once |
//! | `moves` | attached and detached |
//! | `nodes` | how many an instance takes |
//! | `modify` | they grow and change |
//! | `snapshots`, `pages`, `labels` | snapshots; lists; where disks of PersistentVolumes are |

mod class;
mod create;
mod disk;
mod labels;
mod modify;
mod moves;
mod nodes;
mod pages;
mod snapshots;

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use crate::Aws;
use crate::config::Config;
use crate::volumes::disk::GIB;
use crate::volumes::disk::find::NO_VOLUME;
use crate::volumes::disk::ids::volume_id;

/// Name of the driver, upstream's: PersistentVolumes have it, and the names that CSI migration gives those of the in-tree plugin lead to it.
pub(crate) const DRIVER: &str = "ebs.csi.aws.com";

/// Where a volume can be attached, as upstream writes it into PersistentVolumes.
pub(crate) const ZONE_KEY: &str = "topology.kubernetes.io/zone";

/// Keys of a zone in the places of machines and classes: today's, and upstream's own, which older PersistentVolumes and migrated ones have.
pub(crate) const ZONE_KEYS: [&str; 2] = [ZONE_KEY, "topology.ebs.csi.aws.com/zone"];

/// How long to wait before looking again at what EC2 works on: most of it takes one to four seconds.
pub(crate) const POLL: Duration = Duration::from_secs(1);

/// The token of what was begun. Its state is looked up again each time.
pub(crate) const BEGUN: &str = "begun";

/// The size of a volume without a requested one, as upstream's.
const USUAL: u64 = 100 * GIB;

impl Volumes for Aws {
    fn volume_driver(_: Option<&Config>) -> Driver {
        let driver = Driver::new(DRIVER, GIB, class::kinds::LARGEST * GIB, USUAL);
        let driver = ZONE_KEYS.iter().fold(driver, |driver, key| driver.topology_key(*key));
        driver.feature(Feature::ManyWriters).feature(Feature::ExpandOnline)
    }

    fn volume_nodes(&self, nodes: &[NodeRef]) -> Result<Each<VolumeNode>, Failure> {
        self.nodes_for_volumes(nodes)
    }

    fn get_volumes(&self, ids: &[String]) -> Result<Each<Option<Volume>>, Failure> {
        let disks = self.disks(ids.iter().map(String::as_str))?;
        let one = |id: &String| Ok(disks.get(id)?.map(|disk| disk.volume(id)));
        Ok(ids.iter().map(one).collect())
    }

    fn create_volume(&self, new: &NewVolume, token: Option<&str>) -> Result<Volume, Failure> {
        self.create_disk(new, token)
    }

    fn delete_volume(&self, id: &str, _: Option<&str>) -> Result<(), Failure> {
        match volume_id(id) {
            Some(id) => self.delete_disk(id),
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

impl Aws {
    /// Deletes a volume. That it was deleted already is success; that EC2 takes a moment for it does not matter, for it can be used no more.
    fn delete_disk(&self, id: &str) -> Result<(), Failure> {
        let call = self.api.ec2("DeleteVolume").field("VolumeId", id);
        call.send_unless(&[NO_VOLUME])?;
        Ok(())
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
