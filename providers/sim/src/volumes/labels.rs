//! Labels of disks that PersistentVolumes name by one of Kubernetes' own sources.
//!
//! No source of Kubernetes is meant for this cloud, so the configuration lists which of them name its disks; none by default.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use super::is_disk;
use super::more::no_disk;
use crate::Sim;
use crate::config::Config;

impl VolumeLabels for Sim {
    fn label_sources(config: Option<&Config>) -> Vec<InTreeSource> {
        let sources = config.map(|config| config.label_sources.as_slice()).unwrap_or_default();
        sources.iter().map(|source| source.source()).collect()
    }

    fn volume_labels(&self, volumes: &[InTreeVolume]) -> Result<Each<Vec<Pair>>, Failure> {
        let possible: Vec<&str> = volumes
            .iter()
            .map(|one| one.id.as_str())
            .filter(|id| is_disk(id))
            .collect();
        let disks = match possible.is_empty() {
            true => Vec::new(),
            false => self.api.disks_by_id(&possible)?,
        };
        let zones = match disks.is_empty() {
            true => Vec::new(),
            false => self.api.zones()?,
        };
        let one = |volume: &InTreeVolume| {
            let disk = disks.iter().find(|disk| disk.id == volume.id);
            let zone = disk.ok_or_else(|| no_disk(&volume.id))?.spec.zone.as_str();
            let region = zones.iter().find(|one| one.name == zone).map(|one| one.region.as_str());
            Ok(place_labels(&[zone], region))
        };
        Ok(volumes.iter().map(one).collect())
    }
}
