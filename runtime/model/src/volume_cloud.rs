//! The door between whatever serves volumes and a cloud that has them.

use crate::volume::{
    AttachedVolume, Capacity, CapacityQuery, Detachment, ExpandedVolume, NewAttachment, NewSnapshot, NewVolume, Page,
    SizeRange, Snapshot, Volume, VolumeDriver, VolumeNode,
};
use crate::{Answer, Failure, NodeRef, VolumeAbilities, VolumeSecrets};
use std::collections::BTreeMap;

/// What an answer about many has for each.
pub type Each<T> = Vec<Result<T, Failure>>;

/// A cloud with volumes, as a provider sees it.
///
/// Beside [`Cloud`](crate::Cloud), with the same rules: every call ends, and dropping the future cancels it. What
/// [`volume_abilities`](Self::volume_abilities) does not list is a fault of kind [`NotExported`](crate::FaultKind::NotExported). Calls about many take at
/// most [`VolumeDriver::batch`] entries, and on success the answer has their order and their number; an implementation guarantees that. Calls about one volume,
/// or one name, must not overlap; the caller sees to that. `secrets` are those of the request that a call belongs to; calls with different ones are not one call.
pub trait VolumeCloud: Send + Sync {
    /// Its interfaces.
    fn volume_abilities(&self) -> VolumeAbilities;

    /// What the provider says about its volumes. Uses no network.
    fn volume_driver(&self) -> Answer<'_, VolumeDriver>;

    /// Ids and topology of these machines, for their plugins.
    fn volume_nodes<'a>(&'a self, nodes: &'a [NodeRef]) -> Answer<'a, Each<VolumeNode>>;

    /// The volumes with these ids; none for each that does not exist.
    fn get_volumes<'a>(&'a self, ids: &'a [String]) -> Answer<'a, Each<Option<Volume>>>;

    /// Creates a volume, or finds the one of this name. `token` continues a [`Failure::Pending`].
    fn create_volume<'a>(
        &'a self,
        new: &'a NewVolume,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Volume>;

    /// Deletes a volume. Success when there is none.
    fn delete_volume<'a>(&'a self, id: &'a str, token: Option<&'a str>, secrets: &'a VolumeSecrets) -> Answer<'a, ()>;

    /// Attaches volumes to machines. Success for each that is.
    fn attach_volumes<'a>(
        &'a self,
        attachments: &'a [NewAttachment],
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Each<AttachedVolume>>;

    /// Detaches volumes from machines. Success for each that is not attached there.
    fn detach_volumes<'a>(&'a self, detachments: &'a [Detachment], secrets: &'a VolumeSecrets) -> Answer<'a, Each<()>>;

    /// Lets a volume grow into this range.
    fn expand_volume<'a>(
        &'a self,
        id: &'a str,
        size: SizeRange,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, ExpandedVolume>;

    /// A page of all volumes of this cluster, with at most `limit` of them (1 to [`MAX_VOLUME_PAGE`](crate::volume::MAX_VOLUME_PAGE)). `after` is the `next` of
    /// the page before.
    fn list_volumes<'a>(&'a self, after: Option<&'a str>, limit: u32) -> Answer<'a, Page<Volume>>;

    /// Changes what the parameters name.
    fn modify_volume<'a>(
        &'a self,
        id: &'a str,
        parameters: &'a BTreeMap<String, String>,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, ()>;

    /// How much room there is for new volumes.
    fn volume_capacity<'a>(&'a self, query: &'a CapacityQuery) -> Answer<'a, Capacity>;

    /// Makes a snapshot, or finds the one of this name.
    fn create_snapshot<'a>(
        &'a self,
        new: &'a NewSnapshot,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Snapshot>;

    /// Deletes a snapshot. Success when there is none.
    fn delete_snapshot<'a>(&'a self, id: &'a str, token: Option<&'a str>, secrets: &'a VolumeSecrets)
    -> Answer<'a, ()>;

    /// The snapshots with these ids; none for each that does not exist.
    fn get_snapshots<'a>(&'a self, ids: &'a [String], secrets: &'a VolumeSecrets)
    -> Answer<'a, Each<Option<Snapshot>>>;

    /// A page of the snapshots of this cluster, or of one volume, as [`list_volumes`](Self::list_volumes).
    fn list_snapshots<'a>(
        &'a self,
        volume: Option<&'a str>,
        after: Option<&'a str>,
        limit: u32,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Page<Snapshot>>;
}
