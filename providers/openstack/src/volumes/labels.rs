//! Where volumes are that PersistentVolumes name by `cinder`.

use cloudwit_guest_sdk::names::label_value;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::{Each, InTreeSource, InTreeVolume, VolumeLabels, place_labels};

use crate::OpenStack;
use crate::config::{Config, given};
use crate::volumes::disk::find::no_volume;

impl VolumeLabels for OpenStack {
    fn label_sources(_: Option<&Config>) -> Vec<InTreeSource> {
        vec![InTreeSource::Cinder]
    }

    fn volume_labels(&self, volumes: &[InTreeVolume]) -> Result<Each<Vec<Pair>>, Failure> {
        let disks = self.disks(volumes.iter().map(|one| one.id.as_str()))?;
        let region = given(&self.config.global.region).map(label_value);
        let one = |volume: &InTreeVolume| {
            let disk = disks.get(&volume.id)?.ok_or_else(|| no_volume(&volume.id))?;
            let zone = match self.config.blockstorage.ignore_volume_az {
                true => String::new(),
                false => label_value(&disk.zone),
            };
            Ok(place_labels(&[zone.as_str()], region.as_deref()))
        };
        Ok(volumes.iter().map(one).collect())
    }
}
