//! A volume as EC2 describes it, and the same in the contract's words.

pub(crate) mod devices;
pub(crate) mod find;
pub(crate) mod ids;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;
use cloudwit_guest_sdk::xml::Element;

use crate::api::reading::text;
use crate::tags::ec2_tags;
use crate::volumes::ZONE_KEY;

/// The unit of EBS's sizes.
pub(crate) const GIB: u64 = 1 << 30;

/// What can be done with a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskState {
    /// `creating`.
    Creating,
    /// `available` and `in-use`, and what EC2 may add.
    Usable,
    /// `error`: EC2 gave its creation up.
    Failed,
    /// `deleting` and `deleted`.
    Gone,
}

/// How far an attachment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttachmentState {
    /// `attaching`.
    Attaching,
    /// `attached`.
    Attached,
    /// `detaching`.
    Detaching,
    /// `busy`: it is detaching, and the machine still uses the device.
    Busy,
}

/// An instance that a volume is attached to, those on the way included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiskAttachment {
    /// The instance's id.
    pub instance: String,
    /// The device's name on it.
    pub device: String,
    /// How far it is.
    pub state: AttachmentState,
}

/// A volume.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Disk {
    /// `vol-...`.
    pub id: String,
    /// What can be done with it.
    pub state: DiskState,
    /// Size in GiB.
    pub gib: u64,
    /// Availability zone.
    pub zone: String,
    /// Its type, such as `gp3`.
    pub kind: String,
    /// Operations a second, where it has a number.
    pub iops: Option<u32>,
    /// MiB a second, where it has a number.
    pub throughput: Option<u32>,
    /// Whether several instances can have it.
    pub shared: bool,
    /// The snapshot that it was made of; may be empty.
    pub snapshot: String,
    /// The volume that it was copied from; may be empty.
    pub source: String,
    /// Its tags.
    pub tags: Vec<Pair>,
    /// Where it is attached.
    pub attachments: Vec<DiskAttachment>,
}

impl Disk {
    /// Reads an item of `DescribeVolumes`, or the answer of `CreateVolume`.
    ///
    /// # Errors
    /// `other` when it has no id or no size.
    pub(crate) fn read(item: &Element) -> Result<Self, Failure> {
        let id = text(item, "volumeId");
        let gib = number(item, "size").unwrap_or_default();
        if id.is_empty() || gib == 0 {
            return Err(Failure::other("AWS described a volume without an id or a size"));
        }
        Ok(Self {
            state: match item.text("status") {
                Some("creating") => DiskState::Creating,
                Some("error") => DiskState::Failed,
                Some("deleting" | "deleted") => DiskState::Gone,
                _ => DiskState::Usable,
            },
            gib,
            zone: text(item, "availabilityZone"),
            kind: text(item, "volumeType"),
            iops: number(item, "iops").and_then(|iops| iops.try_into().ok()),
            throughput: number(item, "throughput").and_then(|throughput| throughput.try_into().ok()),
            shared: item.text("multiAttachEnabled") == Some("true"),
            snapshot: text(item, "snapshotId"),
            source: text(item, "sourceVolumeId"),
            tags: ec2_tags(item),
            attachments: item.all(&["attachmentSet", "item"]).filter_map(attachment).collect(),
            id,
        })
    }

    /// Its attachment to this instance.
    pub(crate) fn at(&self, instance: &str) -> Option<&DiskAttachment> {
        self.attachments.iter().find(|one| one.instance == instance)
    }

    /// Its size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.gib.saturating_mul(GIB)
    }

    /// In the contract's terms, under the requested id.
    pub(crate) fn volume(&self, id: &str) -> Volume {
        let attachment = |one: &DiskAttachment| Attachment {
            node_id: one.instance.clone(),
            read_only: false,
        };
        let source = match (self.snapshot.as_str(), self.source.as_str()) {
            ("", "") => None,
            ("", source) => Some(VolumeSource::Volume(source.into())),
            (snapshot, _) => Some(VolumeSource::Snapshot(snapshot.into())),
        };
        Volume {
            topology: vec![Topology::of(ZONE_KEY, &self.zone)],
            source,
            attachments: self.attachments.iter().map(attachment).collect(),
            ..Volume::new(id, self.bytes())
        }
    }
}

fn attachment(item: &Element) -> Option<DiskAttachment> {
    let state = match item.text("status") {
        Some("attaching") => AttachmentState::Attaching,
        Some("detaching") => AttachmentState::Detaching,
        Some("busy") => AttachmentState::Busy,
        Some("detached") => return None,
        _ => AttachmentState::Attached,
    };
    let instance = text(item, "instanceId");
    // Without one it is attached to a machine that is none of EC2's; no Node of ours is it.
    (!instance.is_empty()).then(|| DiskAttachment {
        instance,
        device: text(item, "device"),
        state,
    })
}

/// A number in a child's text.
pub(crate) fn number(item: &Element, name: &str) -> Option<u64> {
    item.text(name)?.parse().ok()
}

/// GiB that hold so many bytes.
pub(crate) fn gib_of(bytes: u64) -> u64 {
    bytes.div_ceil(GIB)
}
