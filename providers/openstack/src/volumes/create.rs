//! Volumes come into being: found by their name, else created once.
//!
//! ```text
//!   name -> /volumes/detail?name= -> there is one: is it as desired? is it ready?
//!                                 -> none: POST /volumes, in the best zone
//! ```
//!
//! Cinder takes every request and fails later where no backend has room. What failed is deleted, and the token of the `pending` answer has the attempt's progress:
//! how many zones have been tried, and that none had room. The latter is answered once nothing is left. Cinder shows what it took in the same moment, so a request whose
//! answer is lost is found by its name.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use crate::OpenStack;
use crate::api::Endpoint;
use crate::api::wire::{Fields, Object};
use crate::volumes::class::{Class, metadata_of};
use crate::volumes::disk::{Disk, Status, is_id};
use crate::volumes::modify::wanted_type;
use crate::volumes::snapshots::{DiskSnapshot, no_snapshot};
use crate::volumes::{GIB, POLL, ZONE_KEY};

/// The description in Cinder's own lists.
const DESCRIPTION: &str = "Created by Cloudwit for a PersistentVolume";

/// Key of a zone in classes that were written for other drivers.
const USUAL_ZONE_KEY: &str = "topology.kubernetes.io/zone";

/// The detail of an event for no backend with room (`cinder/message/message_field.py`, `Detail.NO_BACKEND_AVAILABLE`).
const NO_ROOM: &str = "_003";

/// The status of a volume whose deletion failed in Cinder. Users cannot delete it again.
const ERROR_DELETING: &str = "error_deleting";

/// The property of a type whose volumes several servers can have.
const SHARED: &str = "multiattach";

/// How the token begins once no zone had room; why follows.
const FULL: &str = "full: ";

/// More of Cinder's words is not in the token.
const LONGEST_REASON: usize = 1_000;

/// How far an attempt is, from call to call. Pure.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Attempt {
    /// So many zones had no room.
    Tried(usize),
    /// None had, for this reason. What the last creation left is deleted.
    Full(String),
}

impl Attempt {
    /// The content of a token; the beginning for none.
    fn read(token: Option<&str>) -> Self {
        let token = token.unwrap_or_default();
        match token.strip_prefix(FULL) {
            Some(why) => Self::Full(why.into()),
            None => Self::Tried(token.parse().unwrap_or_default()),
        }
    }

    /// The end of a call while Cinder works on this.
    fn pending(&self, what: impl Into<String>) -> Failure {
        let token = match self {
            Self::Tried(zones) => zones.to_string(),
            Self::Full(why) => format!("{FULL}{}", &why[..why.floor_char_boundary(LONGEST_REASON)]),
        };
        Failure::pending(POLL, token, what)
    }
}

/// A volume to create. Pure.
#[derive(Debug)]
pub(super) struct Wanted {
    name: String,
    class: Class,
    /// Least and most, in GiB.
    sizes: (u64, Option<u64>),
    shared: bool,
    /// The snapshot or the volume it begins with.
    source: Option<VolumeSource>,
    /// Best first; empty for any.
    zones: Vec<String>,
}

impl Wanted {
    /// Reads the desired volume by Cinder's rules.
    ///
    /// # Errors
    /// `invalid` and `out-of-range` with the parameter or the size; `not-found` for a source that cannot exist.
    pub(super) fn read(new: &NewVolume) -> Result<Self, Failure> {
        let mut class = Class::read(&new.parameters)?;
        if let Some(kind) = wanted_type(&new.mutable_parameters)? {
            class.kind = kind.into();
        }
        let sizes = (
            new.size.at_least.div_ceil(GIB).max(1),
            new.size.at_most.map(|most| most / GIB),
        );
        if sizes.1.is_some_and(|most| most < sizes.0) {
            return Err(Failure::out_of_range(format!(
                "volumes have whole GiB, of which there are none from {} to {} bytes",
                new.size.at_least,
                new.size.at_most.unwrap_or_default()
            )));
        }
        if let Some(VolumeSource::Snapshot(id) | VolumeSource::Volume(id)) = &new.source
            && !is_id(id)
        {
            return Err(Failure::not_found(format!("there is no snapshot or volume {id}")));
        }
        let is_shared = |one: &VolumeUse| matches!(one.access, AccessMode::ManyNodes | AccessMode::ManyNodesReadOnly);
        let zones = match class.zone.is_empty() {
            true => zones(new)?,
            false => vec![class.zone.clone()],
        };
        Ok(Self {
            name: new.name.clone(),
            class,
            sizes,
            shared: new.uses.iter().any(is_shared),
            source: new.source.clone(),
            zones,
        })
    }

    /// How a volume that has the name differs from this; empty where it does not.
    fn differences(&self, disk: &Disk) -> Vec<String> {
        let (least, most) = self.sizes;
        let mut differences = Vec::new();
        if disk.gib < least || most.is_some_and(|most| disk.gib > most) {
            let most = most.map(|most| format!(" to {most}")).unwrap_or_default();
            differences.push(format!("it has {} GiB, wanted are {least}{most} GiB", disk.gib));
        }
        let source = match &self.source {
            None => (None, None),
            Some(VolumeSource::Snapshot(id)) => (Some(id), None),
            Some(VolumeSource::Volume(id)) => (None, Some(id)),
        };
        if source != (disk.snapshot.as_ref(), disk.source.as_ref()) {
            let named = |id: Option<&String>| id.map_or("nothing", String::as_str).to_owned();
            differences.push(format!(
                "it was made of {}, wanted is one of {}",
                named(disk.snapshot.as_ref().or(disk.source.as_ref())),
                named(source.0.or(source.1))
            ));
        }
        if self.shared && !disk.shared {
            differences.push("it is for one server, wanted is one for several".into());
        }
        differences
    }

    fn body(&self, gib: u64, zone: Option<&str>, metadata: &[Pair]) -> Object {
        let pairs = metadata.iter();
        let metadata = pairs.fold(Object::new(), |object, pair| object.text(&pair.key, &pair.value));
        let (snapshot, volume) = match &self.source {
            None => (None, None),
            Some(VolumeSource::Snapshot(id)) => (Some(id.as_str()), None),
            Some(VolumeSource::Volume(id)) => (None, Some(id.as_str())),
        };
        let kind = Some(self.class.kind.as_str()).filter(|kind| !kind.is_empty());
        let volume = Object::new()
            .text("name", &self.name)
            .text("description", DESCRIPTION)
            .number("size", i64::try_from(gib).unwrap_or(i64::MAX))
            .text_opt("availability_zone", zone)
            .text_opt("volume_type", kind)
            .text_opt("snapshot_id", snapshot)
            .text_opt("source_volid", volume)
            .object("metadata", metadata);
        Object::new().object("volume", volume)
    }
}

/// The zones in which it may be, the preferred ones first, each once.
fn zones(new: &NewVolume) -> Result<Vec<String>, Failure> {
    let mut zones: Vec<String> = Vec::new();
    for place in new.preferred.iter().chain(&new.allowed) {
        let zone = place.get(ZONE_KEY).or(place.get(USUAL_ZONE_KEY));
        if let Some(zone) = zone.filter(|zone| !zones.iter().any(|known| known == zone)) {
            zones.push(zone.into());
        }
    }
    if zones.is_empty() && !new.allowed.is_empty() {
        return Err(Failure::invalid(format!(
            "the places that are allowed have neither the key {ZONE_KEY} nor {USUAL_ZONE_KEY}"
        )));
    }
    Ok(zones)
}

impl OpenStack {
    /// Creates a volume, or finds the one of this name.
    ///
    /// # Errors
    /// As the contract's `volumes.create`.
    pub(super) fn create_disk(&self, new: &NewVolume, token: Option<&str>) -> Result<Volume, Failure> {
        let mut wanted = Wanted::read(new)?;
        if self.config.blockstorage.ignore_volume_az && wanted.class.zone.is_empty() {
            // Zones of servers do not restrict volumes then.
            wanted.zones.clear();
        }
        let attempt = Attempt::read(token);
        let disk = match (self.disk_of_name(&wanted, &attempt)?, &attempt) {
            (Some(disk), _) => disk,
            (None, Attempt::Tried(zones)) => self.make(&wanted, &new.tags, *zones)?,
            (None, Attempt::Full(why)) => return Err(Failure::exhausted(why)),
        };
        if disk.status == Status::Creating {
            return Err(attempt.pending(format!("Cinder creates volume {}", disk.id)));
        }
        Ok(Volume {
            context: wanted.class.context,
            ..self.volume(&disk)
        })
    }

    /// The volume that has the name. One whose creation failed is deleted.
    fn disk_of_name(&self, wanted: &Wanted, attempt: &Attempt) -> Result<Option<Disk>, Failure> {
        let mut disks = self.named("volumes", &wanted.name, &Disk::read)?;
        if let Some(failed) = disks.iter().find(|disk| disk.status == Status::Failed) {
            return Err(self.give_up(failed, wanted, attempt));
        }
        if let Some(going) = disks.iter().find(|disk| disk.status == Status::Deleting) {
            let waits = format!("Cinder deletes volume {}, which has the same name", going.id);
            return Err(attempt.pending(waits));
        }
        if let Some(stuck) = disks.iter().find(|disk| disk.status.word() == ERROR_DELETING) {
            return Err(Failure::other(format!(
                "Cinder gave the deletion of volume {} up, which has the same name; an administrator of the cloud has to delete it (openstack volume delete --force)",
                stuck.id
            )));
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

    /// Deletes what failed in Cinder, and returns why. Where there is another zone, that is next.
    fn give_up(&self, failed: &Disk, wanted: &Wanted, attempt: &Attempt) -> Failure {
        let (no_room, why) = self.reason(&failed.id);
        if let Err(failure) = self.delete_disk(failed)
            && !matches!(failure.kind, FailureKind::Pending(_))
        {
            return failure.context(&format!("deleting volume {}, whose creation failed", failed.id));
        }
        let text = format!("Cinder gave the creation of volume {} up: {why}", failed.id);
        let next = match attempt {
            _ if !no_room => return Failure::other(text),
            Attempt::Tried(zones) if zones + 1 < wanted.zones.len() => Attempt::Tried(zones + 1),
            Attempt::Tried(_) => Attempt::Full(text.clone()),
            Attempt::Full(_) => attempt.clone(),
        };
        next.pending(text)
    }

    /// Whether a creation failed for want of room, and Cinder's own message about it.
    fn reason(&self, id: &str) -> (bool, String) {
        let call = self
            .api
            .get(Endpoint::BlockStorage, "/messages")
            .query("resource_uuid", id);
        let told = call.read(|json| {
            let message = json.items("messages").first();
            Ok(message.map(|message| (message.text_or_empty("event_id"), message.text_or_empty("user_message"))))
        });
        match told {
            Ok(Some((event, text))) => (event.ends_with(NO_ROOM), text),
            Ok(None) => (false, "it does not say why".into()),
            Err(failure) => (false, format!("it does not say why ({})", failure.message)),
        }
    }

    /// Creates it in the next zone to try.
    fn make(&self, wanted: &Wanted, about: &[Pair], tried: usize) -> Result<Disk, Failure> {
        if wanted.shared {
            self.check_shared(&wanted.class.kind)?;
        }
        let (least, most) = wanted.sizes;
        let source = self.size_of_source(wanted.source.as_ref())?;
        let gib = least.max(source);
        if let Some(most) = most.filter(|most| gib > *most) {
            return Err(Failure::out_of_range(format!(
                "what the volume begins with has {source} GiB, at most {most} GiB are wanted"
            )));
        }
        let zone = wanted.zones.get(tried).or(wanted.zones.first());
        let metadata = metadata_of(&self.context.cluster().name, about, &wanted.class.metadata);
        let call = self.api.post(Endpoint::BlockStorage, "/volumes");
        let call = call.body(wanted.body(gib, zone.map(String::as_str), &metadata));
        call.read(|json| Disk::read(json.need_field("volume")?))
            .map_err(|failure| match failure.is_not_found() {
                // The source was there a moment ago.
                true => Failure::invalid(format!(
                    "parameter type is \"{}\"; {}",
                    wanted.class.kind, failure.message
                )),
                false => failure,
            })
    }

    /// The size in GiB of what a volume begins with; 0 for nothing.
    ///
    /// # Errors
    /// `not-found`; `pending` while it is not ready itself.
    fn size_of_source(&self, source: Option<&VolumeSource>) -> Result<u64, Failure> {
        match source {
            None => Ok(0),
            Some(VolumeSource::Volume(id)) => Ok(self.disk(id)?.gib),
            Some(VolumeSource::Snapshot(id)) => {
                let snapshot = self.one("snapshots", id, &DiskSnapshot::read)?;
                let snapshot = snapshot.ok_or_else(|| no_snapshot(id))?;
                match snapshot.is_ready() {
                    true => Ok(snapshot.gib),
                    false => Err(Failure::failed_precondition(format!(
                        "snapshot {id} is {}, no volume can be made of it",
                        snapshot.status
                    ))),
                }
            }
        }
    }

    /// Refuses a type whose volumes only one server can have: Cinder would take it, and a second server would be refused later.
    fn check_shared(&self, kind: &str) -> Result<(), Failure> {
        let types = self.api.get(Endpoint::BlockStorage, "/types");
        let mut shared = Vec::new();
        self.api.pages(types, "volume_types", &mut |json| {
            let specs = json.field("extra_specs");
            if specs.and_then(|specs| specs.text(SHARED)) == Some("<is> True") {
                shared.push((json.text_or_empty("id"), json.need("name")?));
            }
            Ok(())
        })?;
        if shared.iter().any(|(id, name)| id == kind || name == kind) {
            return Ok(());
        }
        let names: Vec<&str> = shared.iter().map(|(_, name)| name.as_str()).collect();
        let there = match names.is_empty() {
            true => "the cloud has none".to_owned(),
            false => format!("the cloud has {}", names.join(", ")),
        };
        Err(Failure::invalid(format!(
            "parameter type is \"{kind}\"; volumes for several machines need a type with {SHARED}=\"<is> True\", {there}"
        )))
    }
}
