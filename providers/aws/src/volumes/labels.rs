//! Where disks are that PersistentVolumes name by `awsElasticBlockStore`.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::{Each, InTreeSource, InTreeVolume, VolumeLabels, place_labels};

use crate::Aws;
use crate::config::Config;
use crate::volumes::disk::find::no_volume;

impl VolumeLabels for Aws {
    fn label_sources(_: Option<&Config>) -> Vec<InTreeSource> {
        vec![InTreeSource::AwsElasticBlockStore]
    }

    fn volume_labels(&self, volumes: &[InTreeVolume]) -> Result<Each<Vec<Pair>>, Failure> {
        let disks = self.disks(volumes.iter().map(|one| one.id.as_str()))?;
        let one = |volume: &InTreeVolume| {
            let disk = disks.get(&volume.id)?.ok_or_else(|| no_volume(&volume.id))?;
            Ok(place_labels(&[disk.zone.as_str()], Some(self.config.region())))
        };
        Ok(volumes.iter().map(one).collect())
    }
}
