//! Gate for changes of a [`VolumeCloud`]: the counterpart of [`gated`](crate::gated).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::volume::{
    AttachedVolume, Capacity, CapacityQuery, Detachment, ExpandedVolume, NewAttachment, NewSnapshot, NewVolume, Page,
    SizeRange, Snapshot, Volume, VolumeDriver, VolumeNode,
};
use crate::volume_cloud::Each;
use crate::{Answer, Gate, NodeRef, PlannedWrite, VolumeAbilities, VolumeCloud, VolumeSecrets};

/// A call that would change volumes or snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeWrite<'a> {
    /// [`VolumeCloud::create_volume`].
    Create(&'a NewVolume),
    /// [`VolumeCloud::delete_volume`].
    Delete(&'a str),
    /// [`VolumeCloud::attach_volumes`].
    Attach(&'a [NewAttachment]),
    /// [`VolumeCloud::detach_volumes`].
    Detach(&'a [Detachment]),
    /// [`VolumeCloud::expand_volume`].
    Expand {
        /// Its id.
        volume: &'a str,
        /// The sizes that would do.
        size: SizeRange,
    },
    /// [`VolumeCloud::modify_volume`].
    Modify {
        /// Its id.
        volume: &'a str,
        /// What it would get.
        parameters: &'a BTreeMap<String, String>,
    },
    /// [`VolumeCloud::create_snapshot`].
    CreateSnapshot(&'a NewSnapshot),
    /// [`VolumeCloud::delete_snapshot`].
    DeleteSnapshot(&'a str),
}

/// Volumes behind a [`Gate`].
pub struct GatedVolumes<G> {
    cloud: Arc<dyn VolumeCloud>,
    gate: G,
}

impl<G> GatedVolumes<G> {
    /// The volumes of this cloud behind this gate.
    pub fn over(cloud: Arc<dyn VolumeCloud>, gate: G) -> Self {
        Self { cloud, gate }
    }
}

impl<G> fmt::Debug for GatedVolumes<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatedVolumes").finish_non_exhaustive()
    }
}

impl<G: Gate> GatedVolumes<G> {
    fn change<'a, T: Send + 'a>(
        &'a self,
        write: VolumeWrite<'a>,
        call: impl FnOnce() -> Answer<'a, T> + Send + 'a,
    ) -> Answer<'a, T> {
        self.gate.change(PlannedWrite::Volumes(write), call)
    }
}

impl<G: Gate> VolumeCloud for GatedVolumes<G> {
    fn volume_abilities(&self) -> VolumeAbilities {
        self.cloud.volume_abilities()
    }

    fn volume_driver(&self) -> Answer<'_, VolumeDriver> {
        self.cloud.volume_driver()
    }

    fn volume_nodes<'a>(&'a self, nodes: &'a [NodeRef]) -> Answer<'a, Each<VolumeNode>> {
        self.cloud.volume_nodes(nodes)
    }

    fn get_volumes<'a>(&'a self, ids: &'a [String]) -> Answer<'a, Each<Option<Volume>>> {
        self.cloud.get_volumes(ids)
    }

    fn create_volume<'a>(
        &'a self,
        new: &'a NewVolume,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Volume> {
        self.change(VolumeWrite::Create(new), move || {
            self.cloud.create_volume(new, token, secrets)
        })
    }

    fn delete_volume<'a>(&'a self, id: &'a str, token: Option<&'a str>, secrets: &'a VolumeSecrets) -> Answer<'a, ()> {
        self.change(VolumeWrite::Delete(id), move || {
            self.cloud.delete_volume(id, token, secrets)
        })
    }

    fn attach_volumes<'a>(
        &'a self,
        attachments: &'a [NewAttachment],
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Each<AttachedVolume>> {
        self.change(VolumeWrite::Attach(attachments), move || {
            self.cloud.attach_volumes(attachments, secrets)
        })
    }

    fn detach_volumes<'a>(&'a self, detachments: &'a [Detachment], secrets: &'a VolumeSecrets) -> Answer<'a, Each<()>> {
        self.change(VolumeWrite::Detach(detachments), move || {
            self.cloud.detach_volumes(detachments, secrets)
        })
    }

    fn expand_volume<'a>(
        &'a self,
        id: &'a str,
        size: SizeRange,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, ExpandedVolume> {
        self.change(VolumeWrite::Expand { volume: id, size }, move || {
            self.cloud.expand_volume(id, size, token, secrets)
        })
    }

    fn list_volumes<'a>(&'a self, after: Option<&'a str>, limit: u32) -> Answer<'a, Page<Volume>> {
        self.cloud.list_volumes(after, limit)
    }

    fn modify_volume<'a>(
        &'a self,
        id: &'a str,
        parameters: &'a BTreeMap<String, String>,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, ()> {
        self.change(VolumeWrite::Modify { volume: id, parameters }, move || {
            self.cloud.modify_volume(id, parameters, token, secrets)
        })
    }

    fn volume_capacity<'a>(&'a self, query: &'a CapacityQuery) -> Answer<'a, Capacity> {
        self.cloud.volume_capacity(query)
    }

    fn create_snapshot<'a>(
        &'a self,
        new: &'a NewSnapshot,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Snapshot> {
        self.change(VolumeWrite::CreateSnapshot(new), move || {
            self.cloud.create_snapshot(new, token, secrets)
        })
    }

    fn delete_snapshot<'a>(
        &'a self,
        id: &'a str,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, ()> {
        self.change(VolumeWrite::DeleteSnapshot(id), move || {
            self.cloud.delete_snapshot(id, token, secrets)
        })
    }

    fn get_snapshots<'a>(
        &'a self,
        ids: &'a [String],
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Each<Option<Snapshot>>> {
        self.cloud.get_snapshots(ids, secrets)
    }

    fn list_snapshots<'a>(
        &'a self,
        volume: Option<&'a str>,
        after: Option<&'a str>,
        limit: u32,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Page<Snapshot>> {
        self.cloud.list_snapshots(volume, after, limit, secrets)
    }
}
