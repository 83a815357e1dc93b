//! One trait for each interface of the contract that is about volumes.

use crate::types::*;
use crate::volumes::*;
use crate::{Failure, Provider};

/// Volumes: created, attached to machines, deleted. Export `volumes` of the contract.
///
/// Calls about one volume or one name never overlap. What takes time is answered with [`Failure::pending`] and called again with its token; a token can be
/// lost, so find by name and id first. What is there already as requested is success, and so is what does not exist when it is deleted or detached.
pub trait Volumes: Provider {
    /// What volumes of this cloud are. No network; must answer even when the configuration is wrong or missing.
    fn volume_driver(config: Option<&Self::Config>) -> Driver;

    /// Id and topology of these machines for their plugins, in the order and number of `nodes` (at most 100). `not-found` for a machine that the cloud does not have.
    ///
    /// # Errors
    /// What prevents every look-up.
    fn volume_nodes(&self, nodes: &[NodeRef]) -> Result<Each<VolumeNode>, Failure>;

    /// The volumes with these ids, in their order and number (at most 100). None for what the cloud reports as not found, and for an id that it cannot have given
    /// out. List pages of volumes instead of fetching each.
    ///
    /// # Errors
    /// What prevents every look-up.
    fn get_volumes(&self, ids: &[String]) -> Result<Each<Option<Volume>>, Failure>;

    /// Creates a volume, or finds the one of this name that was created before. It succeeds when the volume can be attached.
    ///
    /// # Errors
    /// `already-exists` when the volume of this name is not as requested, `pending` while the cloud works on it; else the cloud's error.
    fn create_volume(&self, new: &NewVolume, token: Option<&str>) -> Result<Volume, Failure>;

    /// Deletes a volume. Success when there is none.
    ///
    /// # Errors
    /// `failed-precondition` while it is attached, `pending` while the cloud works on it; else the cloud's error.
    fn delete_volume(&self, id: &str, token: Option<&str>) -> Result<(), Failure>;

    /// Attaches volumes, in the order and number of `attachments` (at most 100).
    ///
    /// An inner failure is for one: `already-exists` when it is attached there in another way, `failed-precondition` when it is attached elsewhere,
    /// `exhausted` when the machine takes no further one, `not-found` when volume or machine do not exist, `pending` while the cloud works on it.
    ///
    /// # Errors
    /// What prevents all of them.
    fn attach_volumes(&self, attachments: &[NewAttachment]) -> Result<Each<Attached>, Failure>;

    /// Detaches volumes, in the order and number of `detachments` (at most 100). Success for what is not attached there, whatever exists of it.
    ///
    /// # Errors
    /// What prevents all of them.
    fn detach_volumes(&self, detachments: &[Detachment]) -> Result<Each<()>, Failure>;
}

/// Volumes that grow. Export `volume-expansion` of the contract.
pub trait VolumeExpansion: Volumes {
    /// Lets a volume grow into this range. Success when it is large enough.
    ///
    /// # Errors
    /// `out-of-range`, `failed-precondition` while it is attached and cannot grow so, `not-found`, `pending`; else the cloud's error.
    fn expand_volume(&self, id: &str, size: SizeRange, token: Option<&str>) -> Result<Expanded, Failure>;
}

/// A list of all volumes. Export `volume-listing` of the contract, where a page costs few requests.
pub trait VolumeListing: Volumes {
    /// A page of this cluster's volumes, at most `limit` (1 to 1,000).
    ///
    /// # Errors
    /// `aborted` for an `after` that is not good any more; else the cloud's error.
    fn list_volumes(&self, after: Option<&str>, limit: u32) -> Result<VolumePage, Failure>;
}

/// Snapshots, and volumes that begin with one. Export `volume-snapshots` of the contract.
pub trait VolumeSnapshots: Volumes {
    /// Makes a snapshot, or finds the one of this name. It succeeds as soon as the content is fixed.
    ///
    /// # Errors
    /// `already-exists` when the snapshot of this name is of another volume, `not-found` when there is no such volume, `pending`; else the cloud's error.
    fn create_snapshot(&self, new: &NewSnapshot, token: Option<&str>) -> Result<Snapshot, Failure>;

    /// Deletes a snapshot. Success when there is none.
    ///
    /// # Errors
    /// The cloud's error.
    fn delete_snapshot(&self, id: &str, token: Option<&str>) -> Result<(), Failure>;

    /// The snapshots with these ids, as [`Volumes::get_volumes`].
    ///
    /// # Errors
    /// What prevents every look-up.
    fn get_snapshots(&self, ids: &[String]) -> Result<Each<Option<Snapshot>>, Failure>;

    /// A page of this cluster's snapshots, or of those of one volume, at most `limit` (1 to 1,000).
    ///
    /// # Errors
    /// `aborted` for an `after` that is not good any more; else the cloud's error.
    fn list_snapshots(&self, volume: Option<&str>, after: Option<&str>, limit: u32) -> Result<SnapshotPage, Failure>;
}

/// Volumes whose kind changes while they are used. Export `volume-modification` of the contract.
pub trait VolumeModification: Volumes {
    /// Changes what `parameters` name.
    ///
    /// # Errors
    /// `invalid` for a parameter that is unknown or cannot be changed, `not-found`, `pending`; else the cloud's error.
    fn modify_volume(&self, id: &str, parameters: &[Pair], token: Option<&str>) -> Result<(), Failure>;
}

/// How much room there is for volumes. Export `volume-capacity` of the contract.
pub trait VolumeCapacity: Volumes {
    /// How much room there is. Changes nothing.
    ///
    /// # Errors
    /// The cloud's error.
    fn volume_capacity(&self, query: &CapacityQuery) -> Result<Capacity, Failure>;
}

/// Labels of volumes that PersistentVolumes name by one of Kubernetes' own sources. Export `volume-labels` of the contract; it needs no [`Volumes`].
pub trait VolumeLabels: Provider {
    /// The sources that it answers for, each once. No network; must answer even when the configuration is wrong or missing.
    fn label_sources(config: Option<&Self::Config>) -> Vec<InTreeSource>;

    /// The labels of these volumes, in their order and number (at most 100); [`place_labels`] makes them of zones and a region. `not-found` for a volume that the
    /// cloud does not have. List pages of volumes instead of fetching each.
    ///
    /// # Errors
    /// What prevents every look-up.
    fn volume_labels(&self, volumes: &[InTreeVolume]) -> Result<Each<Vec<Pair>>, Failure>;
}
