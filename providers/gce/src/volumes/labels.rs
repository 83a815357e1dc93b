//! Disks that PersistentVolumes name themselves (`gcePersistentDisk`): where they are, found by their names in one aggregated list.
//!
//! A name is unique in a zone, or in a region for a disk with replicas in several zones. As upstream (`k8s.io/kubernetes`
//! `staging/src/k8s.io/legacy-cloud-providers/gce/gce_disks.go`, 1.30): the PersistentVolume's own zone counts, else the cluster's zones.

use std::collections::BTreeSet;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::{Each, InTreeSource, InTreeVolume, MANY_ZONES, place_labels};

use crate::Gce;
use crate::config::Config;
use crate::place::Place;
use crate::volumes::disk::Disk;
use crate::volumes::disk::ids::is_name;

impl VolumeLabels for Gce {
    fn label_sources(_: Option<&Config>) -> Vec<InTreeSource> {
        vec![InTreeSource::GcePersistentDisk]
    }

    fn volume_labels(&self, volumes: &[InTreeVolume]) -> Result<Each<Vec<Pair>>, Failure> {
        let names: BTreeSet<&str> = volumes
            .iter()
            .map(|one| one.id.as_str())
            .filter(|id| is_name(id))
            .collect();
        let names: Vec<&str> = names.into_iter().collect();
        if names.is_empty() {
            return Ok(volumes.iter().map(|volume| Err(no_disk(&volume.id))).collect());
        }
        let place = Place::of(&self.config.global, self.context)?;
        let mut disks = Vec::new();
        let complete = self.listed_disks(&place.project, &names, &mut |disk| disks.push(disk))?;
        let whole_region = self.config.global.regional || self.config.global.multizone;
        let ours = |disk: &Disk| {
            disk.region() == Some(&*place.region) && (whole_region || disk.zones().contains(&*place.zone))
        };
        let one = |volume: &InTreeVolume| {
            let mut named = disks
                .iter()
                .filter(|disk| disk.name == volume.id && fits(disk, volume, &ours));
            match (named.next(), named.next()) {
                (Some(only), None) => Ok(labels(only)),
                (None, _) => Err(complete.clone().err().unwrap_or_else(|| no_disk(&volume.id))),
                (Some(one), Some(other)) => Err(Failure::invalid(format!(
                    "there is a disk {} in {:?} and in {:?}; label the PersistentVolume with the zone of the one that is meant",
                    volume.id,
                    one.zones(),
                    other.zones()
                ))),
            }
        };
        Ok(volumes.iter().map(one).collect())
    }
}

fn labels(disk: &Disk) -> Vec<Pair> {
    let zones: Vec<&str> = disk.zones().into_iter().collect();
    place_labels(&zones, disk.region())
}

/// Whether it is in the PersistentVolume's zone; without one, in the cluster's zones.
fn fits(disk: &Disk, volume: &InTreeVolume, ours: &dyn Fn(&Disk) -> bool) -> bool {
    match &volume.zone {
        Some(zone) => disk.zones() == zone.split(MANY_ZONES).map(str::trim).collect(),
        None => ours(disk),
    }
}

fn no_disk(name: &str) -> Failure {
    Failure::not_found(format!(
        "there is no disk {name} in the cluster's zones, or in those of the PersistentVolume's label"
    ))
}

#[cfg(test)]
mod tests;
