//! Volumes: the cloud's disks.
//!
//! A disk is found by its name, which the cloud keeps unique in a cluster, so it is made without a look-up first. The cloud makes and attaches disks for a
//! while: `pending` comes with a token that only records that it was begun, and the next call reads its state.

mod encryption;
mod labels;
mod more;
mod snapshots;

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::id_after;
use cloudwit_guest_sdk::volumes::*;

use crate::api::PartResult;
use crate::api::disks::{Disk, DiskMove, DiskMoves, DiskSource, DiskSpec, kind_of};
use crate::config::Config;
use crate::{PROVIDER_ID_SCHEME, Sim};

pub(crate) use encryption::passphrase_wish;
use encryption::{ENCRYPTED, is_encrypted};

/// How long to wait before looking again at what the cloud works on.
const POLL: Duration = Duration::from_millis(500);

/// The token of what was begun.
const BEGUN: &str = "begun";

/// The cloud's steps of sizes.
const GIB: u64 = 1 << 30;

/// What the name of every disk's id begins with. The cloud gives out no others.
const DISK_ID: &str = "disk-";

/// Parameter of a StorageClass: `standard` (the default) or `fast`.
const TYPE: &str = "type";

/// Parameter of a VolumeAttributesClass: operations a second.
const IOPS: &str = "iops";

/// Name of the CSI driver of the cloud with this scheme.
fn driver_name(scheme: &str) -> String {
    format!("{scheme}.csi.cloudwit.dev")
}

impl Volumes for Sim {
    fn volume_driver(config: Option<&Config>) -> Driver {
        let scheme = config.map_or(PROVIDER_ID_SCHEME, |config| &config.provider_id_scheme);
        Driver::new(driver_name(scheme), GIB, 16 << 40, 10 * GIB)
            .topology_key(zone_key(&driver_name(scheme)))
            .feature(Feature::Clone)
            .feature(Feature::ReadOnly)
            .feature(Feature::ManyReaders)
            .feature(Feature::ManyWriters)
            .feature(Feature::ExpandOnline)
    }

    fn volume_nodes(&self, nodes: &[NodeRef]) -> Result<Each<VolumeNode>, Failure> {
        let limit = self.api.disk_limits(None)?.per_machine;
        let found = self.lookup(nodes)?;
        let one = |(node, presence): (&NodeRef, Result<Presence, Failure>)| match presence? {
            Presence::Running(machine) | Presence::Stopped(machine) => Ok(VolumeNode {
                id: id_after(&self.prefix, &machine.provider_id).unwrap_or_default().into(),
                topology: Topology::of(&self.zone_key, machine.zone.unwrap_or_default()),
                max_volumes: Some(limit),
            }),
            Presence::Absent(_) => Err(Failure::not_found(format!("Node {} has no machine", node.name))),
        };
        Ok(nodes.iter().zip(found).map(one).collect())
    }

    fn get_volumes(&self, ids: &[String]) -> Result<Each<Option<Volume>>, Failure> {
        let possible: Vec<&str> = ids.iter().map(String::as_str).filter(|id| is_disk(id)).collect();
        let disks = match possible.is_empty() {
            true => Vec::new(),
            false => self.api.disks_by_id(&possible)?,
        };
        let one = |id: &String| disks.iter().find(|disk| disk.id == *id);
        Ok(ids.iter().map(|id| Ok(one(id).map(|disk| self.volume(disk)))).collect())
    }

    fn create_volume(&self, new: &NewVolume, token: Option<&str>) -> Result<Volume, Failure> {
        known_parameters(&new.parameters, &[TYPE, ENCRYPTED])?;
        known_parameters(&new.mutable_parameters, &[IOPS])?;
        let made = match token {
            Some(_) => self.api.disk_by_name(&self.cluster, &new.name)?,
            None => None,
        };
        let disk = match made {
            Some(disk) => disk,
            None => match self.make_disk(new) {
                Err(failure) if failure.kind == FailureKind::AlreadyExists => {
                    self.api.disk_by_name(&self.cluster, &new.name)?.ok_or(failure)?
                }
                result => result?,
            },
        };
        self.same(&disk, new)?;
        if disk.ready {
            return Ok(self.volume(&disk));
        }
        let waits = format!("the cloud creates disk {}", disk.id);
        Err(Failure::pending(POLL, BEGUN, waits))
    }

    fn delete_volume(&self, id: &str, _: Option<&str>) -> Result<(), Failure> {
        match is_disk(id) {
            true => {
                let passphrase = self.passphrase();
                let deleted = self.api.delete_disk(id, passphrase.if_any());
                deleted.map_err(|failure| passphrase.explain(failure))
            }
            false => Ok(()),
        }
    }

    fn attach_volumes(&self, attachments: &[NewAttachment]) -> Result<Each<Attached>, Failure> {
        let one = |wanted: &'_ NewAttachment| wanted.read_only || is_read_only(&wanted.volume_use);
        let attach = attachments.iter().map(|wanted| DiskMove {
            disk: &wanted.volume,
            machine: &wanted.node_id,
            read_only: one(wanted),
        });
        let moves = DiskMoves {
            attach: attach.collect(),
            ..DiskMoves::default()
        };
        let passphrase = self.passphrase();
        let mut results = self.api.move_disks(&moves, passphrase.if_any())?.created.into_iter();
        let attached = |wanted: &NewAttachment| {
            done(results.next(), || format!("the cloud attaches disk {}", wanted.volume))
                .map_err(|failure| passphrase.explain(failure))?;
            Ok(Attached {
                context: Vec::new(),
                devices: vec![Device::Serial(wanted.volume.clone())],
            })
        };
        Ok(attachments.iter().map(attached).collect())
    }

    fn detach_volumes(&self, detachments: &[Detachment]) -> Result<Each<()>, Failure> {
        let detach = detachments.iter().map(|unwanted| DiskMove {
            disk: &unwanted.volume,
            machine: &unwanted.node_id,
            read_only: false,
        });
        let moves = DiskMoves {
            detach: detach.collect(),
            ..DiskMoves::default()
        };
        let mut results = self.api.move_disks(&moves, None)?.deleted.into_iter();
        let detached = |unwanted: &Detachment| {
            done(results.next(), || {
                format!("the cloud detaches disk {}", unwanted.volume)
            })
        };
        Ok(detachments.iter().map(detached).collect())
    }
}

impl Sim {
    /// Makes a disk in the first of the zones that has room.
    fn make_disk(&self, new: &NewVolume) -> Result<Disk, Failure> {
        let (mut zones, mut last) = (self.zones_for(new)?.into_iter(), None);
        let mut spec = self.disk_spec(new)?;
        let passphrase = match spec.encrypted {
            true => Some(self.passphrase().required()?),
            false => None,
        };
        for zone in zones.by_ref() {
            spec.zone = zone;
            match self.api.create_disk(&spec, passphrase.as_ref()) {
                Err(failure) if failure.kind == FailureKind::Exhausted => last = Some(failure),
                result => return result,
            }
        }
        Err(last.unwrap_or_else(|| Failure::invalid("there is no zone in which the volume may be")))
    }

    /// Zones in which it may be, best first.
    fn zones_for(&self, new: &NewVolume) -> Result<Vec<String>, Failure> {
        let places = new.preferred.iter().chain(&new.allowed);
        let mut zones: Vec<String> = Vec::new();
        for zone in places.filter_map(|place| place.get(&self.zone_key)) {
            if !zones.iter().any(|known| known == zone) {
                zones.push(zone.into());
            }
        }
        match zones.is_empty() {
            true => self.api.zone_names(),
            false => Ok(zones),
        }
    }

    /// The desired disk, still without a zone.
    fn disk_spec(&self, new: &NewVolume) -> Result<DiskSpec, Failure> {
        Ok(DiskSpec {
            name: new.name.clone(),
            cluster: self.cluster.clone(),
            size: new.size.at_least,
            zone: String::new(),
            kind: disk_type(new)?.into(),
            iops: iops(&new.mutable_parameters)?,
            shared: is_shared(new),
            source: new.source.as_ref().map(disk_source),
            encrypted: is_encrypted(&new.parameters)?,
        })
    }

    /// Whether the disk of the name is as desired.
    fn same(&self, disk: &Disk, new: &NewVolume) -> Result<(), Failure> {
        let spec = &disk.spec;
        let allowed: Vec<&str> = new
            .allowed
            .iter()
            .filter_map(|place| place.get(&self.zone_key))
            .collect();
        let differs = [
            (!new.size.contains(spec.size), "size"),
            (spec.kind != disk_type(new)?, "type"),
            (spec.source != new.source.as_ref().map(disk_source), "source"),
            (spec.encrypted != is_encrypted(&new.parameters)?, "encryption"),
            (is_shared(new) && !spec.shared, "number of machines"),
            (!allowed.is_empty() && !allowed.contains(&spec.zone.as_str()), "zone"),
        ];
        let differs: Vec<&str> = differs
            .into_iter()
            .filter(|(differs, _)| *differs)
            .map(|(_, what)| what)
            .collect();
        if differs.is_empty() {
            return Ok(());
        }
        Err(Failure::new(
            FailureKind::AlreadyExists,
            format!(
                "disk {} is named {} and differs in: {}",
                disk.id,
                new.name,
                differs.join(", ")
            ),
        ))
    }

    /// The disk in the contract's words.
    fn volume(&self, disk: &Disk) -> Volume {
        let attachment = |one: &crate::api::disks::DiskAttachment| Attachment {
            node_id: one.machine.clone(),
            read_only: one.read_only,
        };
        Volume {
            topology: vec![Topology::of(&self.zone_key, &disk.spec.zone)],
            source: disk.spec.source.as_ref().map(|source| match source {
                DiskSource::Disk(id) => VolumeSource::Volume(id.clone()),
                DiskSource::Snapshot(id) => VolumeSource::Snapshot(id.clone()),
            }),
            attachments: disk.attachments.iter().map(attachment).collect(),
            ..Volume::new(&disk.id, disk.spec.size)
        }
    }
}

/// Key of the zone in the places of this driver.
pub(crate) fn zone_key(driver: &str) -> String {
    format!("topology.{driver}/zone")
}

/// The same, from the scheme of provider ids.
pub(crate) fn zone_key_of(scheme: &str) -> String {
    zone_key(&driver_name(scheme))
}

/// Whether the cloud can have given this id out.
fn is_disk(id: &str) -> bool {
    let number = id.strip_prefix(DISK_ID);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_read_only(volume_use: &VolumeUse) -> bool {
    matches!(
        volume_use.access,
        AccessMode::OneNodeReadOnly | AccessMode::ManyNodesReadOnly
    )
}

fn is_shared(new: &NewVolume) -> bool {
    let many = |one: &VolumeUse| matches!(one.access, AccessMode::ManyNodes | AccessMode::ManyNodesReadOnly);
    new.uses.iter().any(many)
}

fn disk_source(source: &VolumeSource) -> DiskSource {
    match source {
        VolumeSource::Snapshot(id) => DiskSource::Snapshot(id.clone()),
        VolumeSource::Volume(id) => DiskSource::Disk(id.clone()),
    }
}

fn disk_type(new: &NewVolume) -> Result<&str, Failure> {
    match parameter(&new.parameters, TYPE) {
        None => Ok("standard"),
        Some(known @ ("standard" | "fast")) => Ok(known),
        Some(other) => Err(Failure::invalid(format!(
            "parameter {TYPE} is \"{other}\"; it can be standard or fast"
        ))),
    }
}

fn iops(parameters: &[Pair]) -> Result<Option<u32>, Failure> {
    let Some(text) = parameter(parameters, IOPS) else {
        return Ok(None);
    };
    match text.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(Failure::invalid(format!(
            "parameter {IOPS} is \"{text}\"; it has to be a number"
        ))),
    }
}

/// What has come of one disk's move.
fn done(result: Option<PartResult>, waits: impl FnOnce() -> String) -> Result<(), Failure> {
    let result = result.ok_or_else(|| Failure::other("the cloud did not answer for this disk"))?;
    match result.status {
        202 => Err(Failure::pending(POLL, BEGUN, waits())),
        200..=299 => Ok(()),
        status => Err(match kind_of(status) {
            Some(kind) => Failure::new(kind, result.message),
            None => Failure::from_status(status, result.message),
        }),
    }
}

#[cfg(test)]
mod tests;
