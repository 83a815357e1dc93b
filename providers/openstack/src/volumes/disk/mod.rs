//! A volume as Cinder describes it, and the same in the contract's words.

pub(crate) mod find;

use cloudwit_guest_sdk::names::label_value;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;
use serde_json::Value;

use crate::OpenStack;
use crate::api::wire::{Fields, Read, entries};
use crate::volumes::{GIB, ZONE_KEY};

/// What can be done with a volume (`cinder/objects/fields.py`, `VolumeStatus` and what the API sets besides).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Status {
    /// `creating`, `downloading`, `restoring-backup`.
    Creating,
    /// `available`.
    Free,
    /// `reserved`, `attaching`.
    Attaching,
    /// `in-use`.
    Attached,
    /// `detaching`.
    Detaching,
    /// `deleting`.
    Deleting,
    /// `error`: Cinder gave its creation up.
    Failed,
    /// `error_extending` and the like: something else failed.
    Broken(String),
    /// `extending`, `retyping` and whatever else passes.
    Busy(String),
}

impl Status {
    fn read(text: &str) -> Self {
        match text {
            "creating" | "downloading" | "restoring-backup" => Self::Creating,
            "available" => Self::Free,
            "reserved" | "attaching" => Self::Attaching,
            "in-use" => Self::Attached,
            "detaching" => Self::Detaching,
            "deleting" => Self::Deleting,
            "error" | "error_restoring" => Self::Failed,
            broken if broken.starts_with("error") => Self::Broken(broken.into()),
            busy => Self::Busy(busy.into()),
        }
    }

    /// Cinder's word for it.
    pub(crate) fn word(&self) -> &str {
        match self {
            Self::Creating => "creating",
            Self::Free => "available",
            Self::Attaching => "attaching",
            Self::Attached => "in-use",
            Self::Detaching => "detaching",
            Self::Deleting => "deleting",
            Self::Failed => "error",
            Self::Broken(word) | Self::Busy(word) => word,
        }
    }
}

/// A server that a volume is attached to. Cinder shows those on the way only by the volume's status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiskAttachment {
    /// The server's id.
    pub server: String,
    /// The device's name on it, as Nova chose it.
    pub device: String,
}

/// A volume.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Disk {
    /// A UUID.
    pub id: String,
    /// Need not be unique.
    pub name: String,
    /// What can be done with it.
    pub status: Status,
    /// Size in GiB.
    pub gib: u64,
    /// Cinder's availability zone.
    pub zone: String,
    /// Its type's name; may be empty.
    pub kind: String,
    /// Whether several servers can have it.
    pub shared: bool,
    /// The snapshot that it was made of.
    pub snapshot: Option<String>,
    /// The volume that it was copied from.
    pub source: Option<String>,
    /// Its metadata.
    pub metadata: Vec<Pair>,
    /// Where it is attached.
    pub attachments: Vec<DiskAttachment>,
}

impl Disk {
    /// Reads an item of `volumes`.
    ///
    /// # Errors
    /// What is missing.
    pub(crate) fn read(json: &Value) -> Read<Self> {
        let attachment = |one: &Value| {
            Ok(DiskAttachment {
                server: one.need("server_id")?,
                device: one.text_or_empty("device"),
            })
        };
        Ok(Self {
            id: json.need("id")?,
            name: json.text_or_empty("name"),
            status: Status::read(&json.need("status")?),
            gib: gib(json)?,
            zone: json.text_or_empty("availability_zone"),
            kind: json.text_or_empty("volume_type"),
            shared: json.flag("multiattach"),
            snapshot: json.text("snapshot_id").map(String::from),
            source: json.text("source_volid").map(String::from),
            metadata: metadata(json),
            // Those of something else than a server have no server.
            attachments: json
                .items("attachments")
                .iter()
                .filter(|one| one.text("server_id").is_some())
                .map(attachment)
                .collect::<Read<_>>()?,
        })
    }

    /// Its attachment to this server.
    pub(crate) fn at(&self, server: &str) -> Option<&DiskAttachment> {
        self.attachments.iter().find(|one| one.server == server)
    }

    /// Its size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.gib.saturating_mul(GIB)
    }
}

/// The size of a volume or snapshot.
pub(crate) fn gib(json: &Value) -> Read<u64> {
    let size = json.number("size").and_then(|size| u64::try_from(size).ok());
    size.filter(|size| *size > 0).ok_or_else(|| "it has no \"size\"".into())
}

/// The metadata of a volume or snapshot.
pub(crate) fn metadata(json: &Value) -> Vec<Pair> {
    let all = json.field("metadata").into_iter().flat_map(entries);
    all.filter_map(|(key, value)| Some(Pair::new(key.as_str(), value.as_str()?)))
        .collect()
}

/// Whether Cinder can have given out this id, so that it is worth a request: a UUID.
pub(crate) fn is_id(text: &str) -> bool {
    let is_dash = |at| matches!(at, 8 | 13 | 18 | 23);
    let fits = |(at, byte): (usize, u8)| match is_dash(at) {
        true => byte == b'-',
        false => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}

/// The path of a volume.
pub(crate) fn volume_path(id: &str) -> String {
    format!("/volumes/{id}")
}

impl OpenStack {
    /// A volume in the contract's words.
    pub(crate) fn volume(&self, disk: &Disk) -> Volume {
        let source = match (&disk.snapshot, &disk.source) {
            (Some(snapshot), _) => Some(VolumeSource::Snapshot(snapshot.clone())),
            (None, Some(source)) => Some(VolumeSource::Volume(source.clone())),
            (None, None) => None,
        };
        let attachment = |one: &DiskAttachment| Attachment {
            node_id: one.server.clone(),
            read_only: false,
        };
        Volume {
            topology: self.places(&disk.zone),
            source,
            attachments: disk.attachments.iter().map(attachment).collect(),
            ..Volume::new(disk.id.as_str(), disk.bytes())
        }
    }

    /// Where a volume of this zone can be attached: in the servers' zone of that name, or anywhere with `ignore-volume-az`.
    fn places(&self, zone: &str) -> Vec<Topology> {
        let zone = label_value(zone);
        match self.config.blockstorage.ignore_volume_az || zone.is_empty() {
            true => Vec::new(),
            false => vec![Topology::of(ZONE_KEY, zone)],
        }
    }
}
