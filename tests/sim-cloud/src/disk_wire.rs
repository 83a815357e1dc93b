//! Disks and snapshots, as they stand in JSON.

use serde::{Deserialize, Serialize};

/// A disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Unique, never used again.
    pub id: String,
    /// Whether it can be attached already.
    pub ready: bool,
    /// What it was asked to be.
    pub spec: DiskSpec,
    /// Machines it is attached to.
    pub attachments: Vec<DiskAttachment>,
}

/// What a disk shall be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DiskSpec {
    /// Unique in its cluster.
    pub name: String,
    /// The cluster it belongs to.
    pub cluster: String,
    /// In bytes, a multiple of 1 GiB up to 16 TiB.
    pub size: u64,
    /// Zone; it can be attached to machines of it.
    pub zone: String,
    /// `standard` or `fast`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Operations a second; none for what its type has.
    #[serde(default)]
    pub iops: Option<u32>,
    /// Whether it can be attached to several machines.
    #[serde(default)]
    pub shared: bool,
    /// What it begins with.
    #[serde(default)]
    pub source: Option<DiskSource>,
    /// Whether it is encrypted with the passphrase that its creation brings and that attaching and deleting it demand.
    #[serde(default)]
    pub encrypted: bool,
}

/// What a disk begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskSource {
    /// The content of another disk, by its id.
    Disk(String),
    /// The content of a snapshot, by its id.
    Snapshot(String),
}

/// What changes of a disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskChange {
    /// New size in bytes, not below what it has.
    #[serde(default)]
    pub size: Option<u64>,
    /// New speed.
    #[serde(default)]
    pub iops: Option<u32>,
}

/// A machine that a disk is attached to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiskAttachment {
    /// Id of the machine.
    pub machine: String,
    /// Whether the machine can only read.
    pub read_only: bool,
    /// Whether it is done.
    pub state: AttachmentState,
}

/// How far an attachment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttachmentState {
    /// Not yet usable.
    Attaching,
    /// Usable.
    Attached,
    /// Not yet gone.
    Detaching,
}

/// A disk that shall be attached to a machine, or detached from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DiskMove {
    /// Id of the disk.
    pub disk: String,
    /// Id of the machine.
    pub machine: String,
    /// Whether the machine can only read; for attaching.
    #[serde(default)]
    pub read_only: bool,
}

/// Many moves at once: detached first.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiskMoves {
    #[serde(default)]
    pub(crate) attach: Vec<DiskMove>,
    #[serde(default)]
    pub(crate) detach: Vec<DiskMove>,
}

/// A snapshot of a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskSnapshot {
    /// Unique, never used again.
    pub id: String,
    /// Whether disks can be made of it already.
    pub ready: bool,
    /// The least size of such a disk, in bytes.
    pub size: u64,
    /// When it was made, in milliseconds since 1970.
    pub created: u64,
    /// What it was asked to be.
    pub spec: SnapshotSpec,
}

/// What a snapshot shall be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotSpec {
    /// Unique in its cluster.
    pub name: String,
    /// The cluster it belongs to.
    pub cluster: String,
    /// Id of the disk.
    pub disk: String,
}

/// What there is room for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiskLimits {
    /// Bytes that disks of the zone can still have; of all zones together where none was named.
    pub available: u64,
    /// Disks that a machine can have.
    pub per_machine: u32,
}
