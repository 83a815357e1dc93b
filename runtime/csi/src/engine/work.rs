//! What can be requested, and what comes of it.

use std::collections::BTreeMap;
use std::fmt;

use cloudwit_model::volume::{
    AttachedVolume, Detachment, ExpandedVolume, NewAttachment, NewSnapshot, NewVolume, SizeRange, Snapshot, Volume,
};
use cloudwit_model::{CloudError, Failure, VolumeSecrets};

/// A change of one volume or snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// A new volume.
    Create(NewVolume),
    /// A volume goes.
    Delete(String),
    /// A volume is attached to a machine.
    Attach(NewAttachment),
    /// A volume is detached from a machine.
    Detach(Detachment),
    /// A volume grows.
    Expand {
        /// Its id.
        volume: String,
        /// The sizes that will do.
        size: SizeRange,
        /// Whether that is possible while it is attached.
        online: bool,
    },
    /// The kind of a volume changes.
    Modify {
        /// Its id.
        volume: String,
        /// What it gets.
        parameters: BTreeMap<String, String>,
    },
    /// A new snapshot.
    CreateSnapshot(NewSnapshot),
    /// A snapshot goes.
    DeleteSnapshot(String),
}

/// A change, and the secrets that the RPC brought for it.
#[derive(Debug, Clone)]
pub struct Request {
    /// The change.
    pub work: Work,
    /// For the provider's calls about it, and no others.
    pub secrets: VolumeSecrets,
}

/// Without secrets.
impl From<Work> for Request {
    fn from(work: Work) -> Self {
        let secrets = VolumeSecrets::default();
        Self { work, secrets }
    }
}

/// What an operation is about. Two about the same never run at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// A volume that does not exist yet, by name.
    NewVolume(String),
    /// A volume, by id.
    Volume(String),
    /// A snapshot that does not exist yet, by name.
    NewSnapshot(String),
    /// A snapshot, by id.
    Snapshot(String),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NewVolume(name) | Self::Volume(name) => write!(f, "volume {name}"),
            Self::NewSnapshot(name) | Self::Snapshot(name) => write!(f, "snapshot {name}"),
        }
    }
}

impl Work {
    /// What it is about.
    pub fn subject(&self) -> Subject {
        match self {
            Self::Create(new) => Subject::NewVolume(new.name.clone()),
            Self::Attach(NewAttachment { volume, .. })
            | Self::Detach(Detachment { volume, .. })
            | Self::Expand { volume, .. }
            | Self::Modify { volume, .. }
            | Self::Delete(volume) => Subject::Volume(volume.clone()),
            Self::CreateSnapshot(new) => Subject::NewSnapshot(new.name.clone()),
            Self::DeleteSnapshot(id) => Subject::Snapshot(id.clone()),
        }
    }
}

/// For messages: `attach volume vol-1 to node-1`.
impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(new) => write!(f, "create volume {}", new.name),
            Self::Delete(volume) => write!(f, "delete volume {volume}"),
            Self::Attach(new) => write!(f, "attach volume {} to {}", new.volume, new.node_id),
            Self::Detach(gone) => write!(f, "detach volume {} from {}", gone.volume, gone.node_id),
            Self::Expand { volume, size, .. } => write!(f, "expand volume {volume} to {} bytes", size.at_least),
            Self::Modify { volume, .. } => write!(f, "modify volume {volume}"),
            Self::CreateSnapshot(new) => write!(f, "create snapshot {} of volume {}", new.name, new.volume),
            Self::DeleteSnapshot(id) => write!(f, "delete snapshot {id}"),
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// No further result: deleted, detached, modified.
    Gone,
    /// The volume that was created.
    Created(Volume),
    /// The volume is attached.
    Attached(AttachedVolume),
    /// The volume is large enough.
    Expanded(ExpandedVolume),
    /// The snapshot that was made.
    Snapshot(Snapshot),
}

/// Why nothing came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What the cloud answered.
    pub error: CloudError,
    /// Whether the cloud had begun before: what it began may still come true.
    pub in_flight: bool,
}

impl Trouble {
    /// Whether there is no room. That is final even once the cloud had begun: by the contract the provider answers so when nothing of what was begun is left.
    pub fn is_exhausted(&self) -> bool {
        matches!(self.error, CloudError::Failure(Failure::Exhausted(_)))
    }
}
