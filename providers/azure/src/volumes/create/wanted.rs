//! A desired volume, by Azure's rules. Pure.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use crate::arm::ids::folded;
use crate::config::Config;
use crate::volumes::class::Class;
use crate::volumes::disk::Disk;
use crate::volumes::disk::ids::{DISK, SNAPSHOT, is_id};
use crate::volumes::{GIB, ZONE_KEY};

/// The key of a zone in classes that were written for other drivers.
const USUAL_ZONE_KEY: &str = "topology.kubernetes.io/zone";

/// The desired volume.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// Its class.
    pub(super) class: Class,
    size: SizeRange,
    /// What it begins with.
    pub(super) source: Option<VolumeSource>,
    /// Zones, best first, each `westeurope-1`; an empty one is no zone. Never empty.
    pub(super) zones: Vec<String>,
    /// Whether it may be anywhere.
    pub(super) anywhere: bool,
}

impl Wanted {
    /// Reads it.
    ///
    /// # Errors
    /// `invalid` with what Azure does not have, `out-of-range` with the size; `not-found` for a source that cannot exist.
    pub(crate) fn read(new: &NewVolume, config: &Config) -> Result<Self, Failure> {
        let class = Class::read(new, config)?;
        let is_shared = |one: &VolumeUse| matches!(one.access, AccessMode::ManyNodes | AccessMode::ManyNodesReadOnly);
        if class.max_shares < 2 && new.uses.iter().any(is_shared) {
            return Err(Failure::invalid(
                "a volume for several machines needs the parameter maxShares, 2 or more, in its class",
            ));
        }
        let (id, kind) = match &new.source {
            None => ("", ""),
            Some(VolumeSource::Snapshot(id)) => (id.as_str(), SNAPSHOT),
            Some(VolumeSource::Volume(id)) => (id.as_str(), DISK),
        };
        if !kind.is_empty() && !is_id(id, kind) {
            return Err(Failure::not_found(format!("there is no snapshot or volume {id}")));
        }
        let zones = match class.sku.is_in_many_zones {
            true => vec![String::new()],
            false => zones(new, &class.location)?,
        };
        let anywhere = class.sku.is_in_many_zones || new.allowed.is_empty();
        let wanted = Self {
            class,
            size: new.size,
            source: new.source.clone(),
            zones,
            anywhere,
        };
        wanted.gib(0).map(|_| wanted)
    }

    /// Its size, with the content of a source of so many GiB.
    ///
    /// # Errors
    /// `out-of-range`.
    pub(super) fn gib(&self, source: u64) -> Result<u64, Failure> {
        let gib = self.size.at_least.div_ceil(GIB).max(source).max(1);
        let (most, sku) = (self.size.at_most.map_or(u64::MAX, |most| most / GIB), self.class.sku);
        if gib > most || gib > sku.largest {
            return Err(Failure::out_of_range(format!(
                "the disk would have {gib} GiB; at most {} GiB are wanted, and disks of the type {} have at most {}",
                most.min(sku.largest),
                sku.name,
                sku.largest
            )));
        }
        Ok(gib)
    }

    fn source_id(&self) -> &str {
        match &self.source {
            None => "",
            Some(VolumeSource::Snapshot(id) | VolumeSource::Volume(id)) => id,
        }
    }

    /// How a disk that has the name differs from this; empty where it does not.
    pub(super) fn differences(&self, disk: &Disk) -> Vec<String> {
        let mut differences = Vec::new();
        let mut differs = |differs: bool, has: String, wanted: String| {
            if differs {
                differences.push(format!("{has}, wanted is {wanted}"));
            }
        };
        let least = self.size.at_least.div_ceil(GIB);
        let most = self.size.at_most.map(|most| format!(" and at most {} GiB", most / GIB));
        differs(
            !self.size.contains(disk.bytes()),
            format!("it has {} GiB", disk.gib),
            format!("at least {least} GiB{}", most.unwrap_or_default()),
        );
        let sku = self.class.sku.name;
        differs(
            !disk.sku.eq_ignore_ascii_case(sku),
            format!("its type is {}", disk.sku),
            sku.into(),
        );
        let zone = disk.zone();
        let named = |zone: &str| {
            if zone.is_empty() {
                "no zone".to_owned()
            } else {
                zone.to_owned()
            }
        };
        let zones: Vec<String> = self.zones.iter().map(|zone| named(zone)).collect();
        differs(
            !self.anywhere && !self.zones.contains(&zone),
            format!("it is in {}", named(&zone)),
            zones.join(" or "),
        );
        let made_of = |id: &str| {
            if id.is_empty() {
                "nothing".to_owned()
            } else {
                id.to_owned()
            }
        };
        differs(
            folded(&disk.source) != folded(self.source_id()),
            format!("it was made of {}", made_of(&disk.source)),
            made_of(self.source_id()),
        );
        differences
    }
}

/// The zones of a region in which a volume may be, the preferred ones first, each once. What is in no zone of the region is the place without a zone.
fn zones(new: &NewVolume, region: &str) -> Result<Vec<String>, Failure> {
    let start = format!("{region}-");
    let zone_of = |place: &Topology| {
        let zone = place.get(ZONE_KEY).or(place.get(USUAL_ZONE_KEY))?;
        Some(if zone.starts_with(&start) {
            zone.to_owned()
        } else {
            String::new()
        })
    };
    let allowed: Vec<String> = new.allowed.iter().filter_map(zone_of).collect();
    if allowed.is_empty() && !new.allowed.is_empty() {
        return Err(Failure::invalid(format!(
            "the places that are allowed have neither {ZONE_KEY} nor {USUAL_ZONE_KEY}"
        )));
    }
    let mut zones: Vec<String> = Vec::new();
    let preferred = new.preferred.iter().filter_map(zone_of);
    for zone in preferred.chain(allowed.iter().cloned()) {
        if (allowed.is_empty() || allowed.contains(&zone)) && !zones.contains(&zone) {
            zones.push(zone);
        }
    }
    if zones.is_empty() {
        zones.push(String::new());
    }
    Ok(zones)
}
