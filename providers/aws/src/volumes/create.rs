//! Volumes come into being: found by their name, else created once.
//!
//! ```text
//!   name -> DescribeVolumes tag:CSIVolumeName -> there is one: is it as desired? is it ready?
//!                                             -> none: CreateVolume with a ClientToken, in the best zone that has room
//! ```
//!
//! The token makes a request that is repeated before AWS shows the volume give the same one. A volume whose creation failed burns it for half a day: the token
//! of the `pending` answer then counts attempts, which are part of the ClientToken.

use std::time::Duration;

use cloudwit_guest_sdk::form::Form;
use cloudwit_guest_sdk::keys::Hash;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;
use data_encoding::HEXLOWER;

use crate::Aws;
use crate::api::error::AwsError;
use crate::tags::tag;
use crate::volumes::class::kinds::wanted as size_text;
use crate::volumes::class::tags::{grow_key, iops_per_gib_key, tags_of};
use crate::volumes::class::{Class, WantedIops};
use crate::volumes::disk::find::VOLUME_NAME;
use crate::volumes::disk::ids::snapshot_id;
use crate::volumes::disk::{Disk, DiskState, GIB, gib_of};
use crate::volumes::{POLL, ZONE_KEYS};

/// Attempts with ClientTokens of their own. Each follows a failed creation, so more of them would fail too.
const ATTEMPTS: u32 = 20;

/// How long to wait before a creation is tried under another token.
const NEXT_ATTEMPT: Duration = Duration::from_secs(2);

/// EC2's codes for a zone without capacity for the volume, where another one may have it.
const NO_ROOM: [&str; 3] = [
    "InsufficientVolumeCapacity",
    "VolumeTypeNotAvailableInZone",
    "VolumeTypeNotAvailableInRegion",
];

/// A desired volume, as it is requested from EC2. Pure.
#[derive(Debug)]
pub(crate) struct Wanted {
    name: String,
    class: Class,
    sizes: (u64, Option<u64>),
    gib: u64,
    iops: Option<u32>,
    shared: bool,
    snapshot: Option<String>,
    /// Best first; empty for any.
    zones: Vec<String>,
    /// In which it may be; empty for any.
    allowed: Vec<String>,
}

impl Wanted {
    /// Reads the desired volume by EBS's rules.
    ///
    /// # Errors
    /// `invalid` and `out-of-range` with the parameter or the size; `not-found` for a snapshot that cannot exist.
    pub(crate) fn read(new: &NewVolume) -> Result<Self, Failure> {
        let class = Class::read(&new.parameters, &new.mutable_parameters, &new.tags)?;
        let sizes = (gib_of(new.size.at_least), new.size.at_most.map(|most| most / GIB));
        let gib = class.kind.size(sizes.0, sizes.1)?;
        let iops = class.iops_of(gib)?;
        if let Some(throughput) = class.throughput {
            class.kind.check_throughput(throughput, iops)?;
        }
        let shared = new.uses.iter().any(is_shared);
        if shared && !class.kind.shareable {
            let text =
                "only volumes of the types io1 and io2 can be attached to several machines, and the class has type ";
            return Err(Failure::invalid(format!("{text}{}", class.kind.name)));
        }
        let snapshot = match &new.source {
            None => None,
            Some(VolumeSource::Snapshot(id)) => {
                let missing = || Failure::not_found(format!("there is no snapshot {id}"));
                Some(snapshot_id(id).ok_or_else(missing)?.to_owned())
            }
            Some(VolumeSource::Volume(_)) => {
                return Err(Failure::invalid(
                    "a volume cannot be made of another one; make a snapshot of it",
                ));
            }
        };
        let allowed = zones(&new.allowed);
        if allowed.is_empty() && !new.allowed.is_empty() {
            return Err(Failure::invalid(format!(
                "the places that are allowed have none of the keys {}",
                ZONE_KEYS.join(", ")
            )));
        }
        let mut best = zones(&new.preferred);
        best.retain(|zone| allowed.is_empty() || allowed.contains(zone));
        for zone in &allowed {
            if !best.contains(zone) {
                best.push(zone.clone());
            }
        }
        Ok(Self {
            name: new.name.clone(),
            class,
            sizes,
            gib,
            iops,
            shared,
            snapshot,
            zones: best,
            allowed,
        })
    }

    /// How a volume that has the name differs from this; empty where it does not.
    pub(crate) fn differences(&self, disk: &Disk) -> Vec<String> {
        let (least, most) = self.sizes;
        let snapshot = self.snapshot.as_deref().unwrap_or_default();
        let mut differences = Vec::new();
        let mut differs = |differs: bool, has: &str, wanted: &str| {
            if differs {
                differences.push(format!("{has}, wanted is {wanted}"));
            }
        };
        let fits = disk.gib >= least && most.is_none_or(|most| disk.gib <= most);
        differs(!fits, &format!("it has {} GiB", disk.gib), &size_text(least, most));
        let kind = self.class.kind.name;
        differs(disk.kind != kind, &format!("its type is {}", disk.kind), kind);
        let zones = self.allowed.join(" or ");
        let elsewhere = !self.allowed.is_empty() && !self.allowed.contains(&disk.zone);
        differs(elsewhere, &format!("its zone is {}", disk.zone), &zones);
        let named = |id: &str| {
            if id.is_empty() {
                "no snapshot".to_owned()
            } else {
                id.to_owned()
            }
        };
        differs(
            disk.snapshot != snapshot,
            &format!("it was made of {}", named(&disk.snapshot)),
            &named(snapshot),
        );
        differs(self.shared && !disk.shared, "it is for one machine", "one for several");
        differences
    }

    /// The request, in this zone.
    fn form(&self, zone: &str, client_token: &str) -> Form {
        let class = &self.class;
        let mut form = Form::new()
            .field("AvailabilityZone", zone)
            .field("Size", self.gib)
            .field("VolumeType", class.kind.name)
            .field("ClientToken", client_token)
            .field_opt("Iops", self.iops)
            .field_opt("Throughput", class.throughput)
            .field_opt("Encrypted", class.encrypted)
            .field_opt("SnapshotId", self.snapshot.as_deref());
        if !class.key.is_empty() {
            form.push("KmsKeyId", &class.key);
        }
        if self.shared {
            form.push("MultiAttachEnabled", "true");
        }
        match (class.initialization_rate, &self.snapshot) {
            (Some(rate), Some(_)) => form.field("VolumeInitializationRate", rate),
            _ => form,
        }
    }

    /// The class's tags, and what a later expansion needs.
    fn own_tags(&self) -> Vec<Pair> {
        let mut tags = self.class.tags.clone();
        if let Some(WantedIops::PerGib(each)) = self.class.iops {
            tags.push(Pair::new(iops_per_gib_key(), each.to_string()));
        }
        if self.class.grow {
            tags.push(Pair::new(grow_key(), "true"));
        }
        tags
    }
}

/// Whether several machines use it at once.
fn is_shared(volume_use: &VolumeUse) -> bool {
    matches!(volume_use.access, AccessMode::ManyNodes | AccessMode::ManyNodesReadOnly)
}

/// The zones of places, each once and in their order.
fn zones(places: &[Topology]) -> Vec<String> {
    let mut zones: Vec<String> = Vec::new();
    for place in places {
        let zone = ZONE_KEYS.iter().find_map(|key| place.get(key));
        if let Some(zone) = zone.filter(|zone| !zones.iter().any(|known| known == zone)) {
            zones.push(zone.into());
        }
    }
    zones
}

impl Aws {
    /// Creates a volume, or finds the one of this name.
    ///
    /// # Errors
    /// As the contract's `volumes.create`.
    pub(super) fn create_disk(&self, new: &NewVolume, token: Option<&str>) -> Result<Volume, Failure> {
        let wanted = Wanted::read(new)?;
        let attempt = token.and_then(|token| token.parse().ok()).unwrap_or(1_u32);
        let disk = match self.disk_of_name(&wanted)? {
            Some(disk) => disk,
            None => self.make(&wanted, &new.tags, attempt)?,
        };
        if disk.state == DiskState::Creating {
            let waits = format!("AWS creates volume {}", disk.id);
            return Err(Failure::pending(POLL, attempt.to_string(), waits));
        }
        Ok(Volume {
            context: wanted.class.context,
            ..disk.volume(&disk.id)
        })
    }

    /// The volume that has the name. One whose creation failed is deleted.
    fn disk_of_name(&self, wanted: &Wanted) -> Result<Option<Disk>, Failure> {
        let mut disks = self.disks_named(&wanted.name)?;
        disks.retain(|disk| tag(&disk.tags, VOLUME_NAME) == Some(&wanted.name));
        if let Some(failed) = disks.iter().find(|disk| disk.state == DiskState::Failed) {
            // EC2 takes it away itself after a while; until then its name is in the way.
            self.delete_disk(&failed.id)?;
            let advice =
                "EC2 gave its creation up; where a KMS key is wanted, that is often a key that may not be used";
            return Err(Failure::other(format!("volume {} failed: {advice}", failed.id)));
        }
        if let [one, other, ..] = disks.as_slice() {
            return Err(Failure::conflict(format!(
                "the volumes {} and {} both have the name {}; delete the one that no PersistentVolume has",
                one.id, other.id, wanted.name
            )));
        }
        let Some(disk) = disks.pop() else { return Ok(None) };
        let differences = wanted.differences(&disk);
        if differences.is_empty() {
            return Ok(Some(disk));
        }
        Err(Failure::already_exists(format!(
            "volume {} has the name {} already: {}",
            disk.id,
            wanted.name,
            differences.join("; ")
        )))
    }

    /// Creates it in the first of the zones that has room.
    fn make(&self, wanted: &Wanted, about: &[Pair], attempt: u32) -> Result<Disk, Failure> {
        let zones = match wanted.zones.is_empty() {
            true => self.any_zones(&wanted.name)?,
            false => wanted.zones.clone(),
        };
        let tags = tags_of(VOLUME_NAME, &wanted.name, &self.cluster, about, &wanted.own_tags());
        let mut full = None;
        for zone in &zones {
            let form = wanted.form(zone, &self.client_token(&wanted.name, zone, attempt));
            let call = self.api.ec2("CreateVolume").form(&form);
            let call = call.field("TagSpecification.1.ResourceType", "volume");
            match call.tags("TagSpecification.1.Tag", &tags).send() {
                Ok(answer) => {
                    let disk = Disk::read(&answer)?;
                    // The same answer again, about a volume that is no more.
                    let is_over = matches!(disk.state, DiskState::Gone | DiskState::Failed);
                    return if is_over {
                        Err(next_attempt(&disk.id, attempt))
                    } else {
                        Ok(disk)
                    };
                }
                Err(error) if error.is(&NO_ROOM) => full = Some(error),
                Err(error) if error.is(&["IdempotentParameterMismatch"]) && attempt < ATTEMPTS => {
                    return Err(next_attempt(&error.code, attempt));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let none = || AwsError::invalid("there is no zone in which the volume may be".into());
        Err(full.unwrap_or_else(none).into())
    }

    /// The availability zones of the region: the configured one first, else one that the name decides, so that volumes that may be anywhere are spread.
    fn any_zones(&self, name: &str) -> Result<Vec<String>, Failure> {
        let zones = self.zones(&[])?.into_iter();
        let zones = zones.filter(|zone| zone.kind == "availability-zone");
        let mut zones: Vec<String> = zones.map(|zone| zone.name).collect();
        let configured = zones.iter().position(|zone| *zone == self.config.global.zone);
        let digest = self.context.keys().digest(Hash::Sha256, name.as_bytes());
        let decided = digest.first().map(|byte| usize::from(*byte)).unwrap_or_default();
        if let Some(decided) = decided.checked_rem(zones.len()) {
            zones.rotate_left(configured.unwrap_or(decided));
        }
        Ok(zones)
    }

    /// The same for the same volume, in the same zone and attempt. At most 64 characters (EC2).
    fn client_token(&self, name: &str, zone: &str, attempt: u32) -> String {
        let text = format!("{}\n{name}\n{zone}\n{attempt}", self.cluster.id);
        HEXLOWER.encode(&self.context.keys().digest(Hash::Sha256, text.as_bytes()))
    }
}

/// The ClientToken has been used: by a creation that failed, since the volume of this name would have been found.
fn next_attempt(why: &str, attempt: u32) -> Failure {
    let waits = format!("an earlier creation of this volume failed in EC2 ({why}); it is created under another token");
    Failure::pending(NEXT_ATTEMPT, (attempt + 1).to_string(), waits)
}

#[cfg(test)]
mod tests;
