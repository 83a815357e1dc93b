//! Volumes, snapshots, and the places they can be used at. All sizes are in bytes.

mod node_annotation;

use std::collections::BTreeMap;

use crate::{Failure, Reason};

pub use node_annotation::{NODE_ANNOTATION, NodeAnnotation, NodeAnnotationError};

/// The largest number of entries in one call about many volumes; part of the contract.
pub const MAX_VOLUME_BATCH: usize = 100;

/// The largest page of a list of volumes or snapshots; part of the contract.
pub const MAX_VOLUME_PAGE: u32 = 1000;

/// A place: a value for each topology key.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Topology(pub BTreeMap<String, String>);

/// The sizes that will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeRange {
    /// The smallest.
    pub at_least: u64,
    /// The largest; none for no limit.
    pub at_most: Option<u64>,
}

impl SizeRange {
    /// Whether this size will do.
    pub fn contains(&self, size: u64) -> bool {
        size >= self.at_least && self.at_most.is_none_or(|most| size <= most)
    }
}

/// From how many machines a volume is used at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessMode {
    /// From one, which reads and writes.
    OneNode,
    /// From one, which reads.
    OneNodeReadOnly,
    /// From many, which read.
    ManyNodesReadOnly,
    /// From many, which read and write.
    ManyNodes,
}

/// How a volume is used on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeUse {
    /// Whether as a raw device.
    pub block: bool,
    /// The file system that is requested; none for the default.
    pub fs_type: Option<String>,
    /// From how many machines.
    pub access: AccessMode,
}

/// What a new volume begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VolumeSource {
    /// The content of the snapshot with this id.
    Snapshot(String),
    /// The content of the volume with this id.
    Volume(String),
}

/// What volumes can be, beyond being attached to one machine that reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum VolumeFeature {
    /// A new volume begins with the content of another.
    Clone,
    /// Machines can be kept from writing.
    ReadOnly,
    /// Many machines read.
    ManyReaders,
    /// Many machines read and write.
    ManyWriters,
    /// A volume grows while it is attached.
    ExpandOnline,
}

impl VolumeFeature {
    /// The contract's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clone => "clone",
            Self::ReadOnly => "read-only",
            Self::ManyReaders => "many-readers",
            Self::ManyWriters => "many-writers",
            Self::ExpandOnline => "expand-online",
        }
    }
}

/// What a provider says about its volumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeDriver {
    /// Name of the CSI driver.
    pub name: String,
    /// Keys of the places that volumes are bound to; empty where they can be attached to any machine.
    pub topology_keys: Vec<String>,
    /// Sizes are multiples of it; at least 1.
    pub size_step: u64,
    /// The smallest volume.
    pub smallest: u64,
    /// The largest volume.
    pub largest: u64,
    /// The size of a volume without a requested size.
    pub usual: u64,
    /// Each once.
    pub features: Vec<VolumeFeature>,
    /// The largest number of entries of a call about many; 1 to [`MAX_VOLUME_BATCH`].
    pub batch: usize,
}

impl VolumeDriver {
    /// Whether volumes can be that.
    pub fn has(&self, feature: VolumeFeature) -> bool {
        self.features.contains(&feature)
    }

    /// The sizes to request from the provider, for these bounds: multiples of the step, not below the smallest volume.
    ///
    /// # Errors
    /// [`Failure::OutOfRange`] when no volume is in the range.
    pub fn size(&self, at_least: Option<u64>, at_most: Option<u64>) -> Result<SizeRange, Failure> {
        let wanted = match (at_least, at_most) {
            (Some(least), _) => least,
            (None, Some(most)) => self.usual.min(most),
            (None, None) => self.usual,
        };
        let out_of_range = |message: String| Err(Failure::OutOfRange(Reason::from(message)));
        let step = self.size_step.max(1);
        let largest = self.largest;
        let rounded = wanted.max(self.smallest).checked_next_multiple_of(step);
        let Some(rounded) = rounded.filter(|rounded| *rounded <= largest) else {
            return out_of_range(format!(
                "{wanted} bytes are more than a volume can have, {largest} bytes"
            ));
        };
        match at_most {
            Some(most) if most < rounded => out_of_range(format!(
                "at most {most} bytes are requested, and the smallest volume that is large enough has {rounded} bytes (steps of {step}, \
                 at least {} bytes)",
                self.smallest
            )),
            _ => Ok(SizeRange {
                at_least: rounded,
                at_most,
            }),
        }
    }
}

/// Id and topology of a machine for the plugin on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeNode {
    /// By what volumes are attached to it.
    pub id: String,
    /// Where it is.
    pub topology: Topology,
    /// How many volumes it can have; none for no limit.
    pub max_volumes: Option<u32>,
}

/// A volume to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVolume {
    /// Unique in the cluster.
    pub name: String,
    /// From [`VolumeDriver::size`].
    pub size: SizeRange,
    /// How it will be used. Never empty.
    pub uses: Vec<VolumeUse>,
    /// Of the StorageClass.
    pub parameters: BTreeMap<String, String>,
    /// Of a VolumeAttributesClass.
    pub mutable_parameters: BTreeMap<String, String>,
    /// What it begins with.
    pub source: Option<VolumeSource>,
    /// Where it may be; empty for anywhere.
    pub allowed: Vec<Topology>,
    /// The same, best first.
    pub preferred: Vec<Topology>,
    /// For the cloud's tags.
    pub tags: BTreeMap<String, String>,
}

/// A machine that a volume is attached to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeAttachment {
    /// As [`VolumeNode::id`].
    pub node_id: String,
    /// Whether the machine can only read.
    pub read_only: bool,
}

/// A volume in the cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// The cloud's id.
    pub id: String,
    /// Its size.
    pub size: u64,
    /// Where it can be attached; empty for everywhere.
    pub topology: Vec<Topology>,
    /// What it began with, where the cloud reports it.
    pub source: Option<VolumeSource>,
    /// For the plugin on the machine.
    pub context: BTreeMap<String, String>,
    /// Where it is attached.
    pub attachments: Vec<VolumeAttachment>,
}

/// A volume that is to be attached to a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAttachment {
    /// Id of the volume.
    pub volume: String,
    /// As [`VolumeNode::id`].
    pub node_id: String,
    /// Whether the machine can only read.
    pub read_only: bool,
    /// How it is used there.
    pub volume_use: VolumeUse,
    /// Continues a [`Failure::Pending`] about it.
    pub token: Option<String>,
}

/// How the plugin on the machine finds the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceHint {
    /// Serial number.
    Serial(String),
    /// World Wide Name.
    Wwn(String),
    /// Name below `/dev/disk/by-id`.
    ById(String),
    /// Logical unit number.
    Lun(u32),
    /// Path that the cloud says.
    Path(String),
}

/// A volume that is attached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttachedVolume {
    /// For the plugin on the machine.
    pub context: BTreeMap<String, String>,
    /// All that can be said of the device.
    pub devices: Vec<DeviceHint>,
}

/// A volume that is to be detached from a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detachment {
    /// Id of the volume.
    pub volume: String,
    /// As [`VolumeNode::id`].
    pub node_id: String,
    /// Continues a [`Failure::Pending`] about it.
    pub token: Option<String>,
}

/// A volume that is large enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpandedVolume {
    /// Its size.
    pub size: u64,
    /// Whether the machine it is attached to has to do something.
    pub on_node: bool,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// Where the next one begins; none on the last.
    pub next: Option<String>,
}

/// A snapshot to create.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewSnapshot {
    /// Unique in the cluster.
    pub name: String,
    /// Id of the volume.
    pub volume: String,
    /// Of the VolumeSnapshotClass.
    pub parameters: BTreeMap<String, String>,
    /// For the cloud's tags.
    pub tags: BTreeMap<String, String>,
}

/// A snapshot in the cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The cloud's id.
    pub id: String,
    /// Id of the volume it was made of.
    pub volume: String,
    /// The least size of a volume that is made of it.
    pub size: u64,
    /// When it was made, in milliseconds since 1970.
    pub created: u64,
    /// Whether volumes can be made of it.
    pub ready: bool,
}

/// For which volumes there should be room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapacityQuery {
    /// How they are used; empty for any way.
    pub uses: Vec<VolumeUse>,
    /// Of the StorageClass.
    pub parameters: BTreeMap<String, String>,
    /// Where; none for all places together.
    pub at: Option<Topology>,
}

/// Room for volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Bytes that are available.
    pub available: u64,
    /// The largest volume that there is room for, where it is known.
    pub largest: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn driver() -> VolumeDriver {
        VolumeDriver {
            name: "csi.test".into(),
            topology_keys: Vec::new(),
            size_step: GIB,
            smallest: 2 * GIB,
            largest: 16 * GIB,
            usual: 8 * GIB,
            features: vec![VolumeFeature::Clone],
            batch: 10,
        }
    }

    #[test]
    fn sizes_are_rounded_up_to_what_the_cloud_has() {
        let size = |least, most| driver().size(least, most).map(|range| range.at_least);
        assert_eq!(size(None, None), Ok(8 * GIB));
        assert_eq!(size(None, Some(3 * GIB)), Ok(3 * GIB));
        assert_eq!(size(Some(1), None), Ok(2 * GIB));
        assert_eq!(size(Some(3 * GIB + 1), Some(4 * GIB)), Ok(4 * GIB));
        assert_eq!(size(Some(16 * GIB), None), Ok(16 * GIB));
    }

    #[test]
    fn size_that_no_volume_has_is_out_of_range() {
        for (least, most) in [
            (Some(3 * GIB + 1), Some(4 * GIB - 1)),
            (None, Some(GIB)),
            (Some(16 * GIB + 1), None),
            (Some(u64::MAX), None),
        ] {
            let refused = driver().size(least, most);
            assert!(
                matches!(refused, Err(Failure::OutOfRange(_))),
                "{least:?} {most:?}: {refused:?}"
            );
        }
    }

    #[test]
    fn range_contains_its_bounds() {
        let range = SizeRange {
            at_least: 2,
            at_most: Some(4),
        };
        assert_eq!(
            [1, 2, 4, 5].map(|size| range.contains(size)),
            [false, true, true, false]
        );
        let open = SizeRange { at_most: None, ..range };
        assert!(open.contains(u64::MAX));
    }
}
