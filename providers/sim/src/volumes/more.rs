//! What disks can do besides: grow, be listed, change their speed; and how much room there is.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use super::{IOPS, iops, is_disk};
use crate::Sim;
use crate::api::disks::DiskChange;

/// The failure for a disk that cannot exist.
pub(super) fn no_disk(id: &str) -> Failure {
    Failure::not_found(format!("there is no disk {id}"))
}

impl VolumeExpansion for Sim {
    fn expand_volume(&self, id: &str, size: SizeRange, _: Option<&str>) -> Result<Expanded, Failure> {
        if !is_disk(id) {
            return Err(no_disk(id));
        }
        let disk = self.api.disks_by_id(&[id])?.pop().ok_or_else(|| no_disk(id))?;
        let disk = match disk.spec.size >= size.at_least {
            true => disk,
            false => self.api.change_disk(
                id,
                &DiskChange {
                    size: Some(size.at_least),
                    ..DiskChange::default()
                },
            )?,
        };
        Ok(Expanded {
            size: disk.spec.size,
            on_node: true,
        })
    }
}

impl VolumeListing for Sim {
    fn list_volumes(&self, after: Option<&str>, limit: u32) -> Result<VolumePage, Failure> {
        let (disks, next) = self.api.disks(&self.cluster, after, limit)?;
        Ok(VolumePage {
            volumes: disks.iter().map(|disk| self.volume(disk)).collect(),
            next,
        })
    }
}

impl VolumeModification for Sim {
    fn modify_volume(&self, id: &str, parameters: &[Pair], _: Option<&str>) -> Result<(), Failure> {
        known_parameters(parameters, &[IOPS])?;
        let change = DiskChange {
            iops: iops(parameters)?,
            ..DiskChange::default()
        };
        match is_disk(id) {
            true => self.api.change_disk(id, &change).map(drop),
            false => Err(no_disk(id)),
        }
    }
}

impl VolumeCapacity for Sim {
    fn volume_capacity(&self, query: &CapacityQuery) -> Result<Capacity, Failure> {
        let zone = query.at.as_ref().and_then(|place| place.get(&self.zone_key));
        let limits = self.api.disk_limits(zone)?;
        Ok(Capacity {
            available: limits.available,
            largest: None,
        })
    }
}
