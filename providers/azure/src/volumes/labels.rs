//! Where disks are that PersistentVolumes name by `azureDisk`.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::{Each, InTreeSource, InTreeVolume, VolumeLabels, place_labels};

use crate::Azure;
use crate::config::Config;
use crate::volumes::disk::find::no_disk;

impl VolumeLabels for Azure {
    fn label_sources(_: Option<&Config>) -> Vec<InTreeSource> {
        vec![InTreeSource::AzureDisk]
    }

    fn volume_labels(&self, volumes: &[InTreeVolume]) -> Result<Each<Vec<Pair>>, Failure> {
        let disks = self.disks(volumes.iter().map(|one| one.id.as_str()))?;
        let one = |volume: &InTreeVolume| {
            let disk = disks.get(&volume.id)?.ok_or_else(|| no_disk(&volume.id))?;
            // One in no zone has a label of the region alone, as upstream's.
            Ok(place_labels(&[disk.zone().as_str()], Some(&disk.location)))
        };
        Ok(volumes.iter().map(one).collect())
    }
}
