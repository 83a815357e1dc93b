//! Volumes of a provider that can change: each call takes the one that runs when it begins.

use std::collections::BTreeMap;

use cloudwit_model::volume::{
    AttachedVolume, Capacity, CapacityQuery, Detachment, ExpandedVolume, NewAttachment, NewSnapshot, NewVolume, Page,
    SizeRange, Snapshot, Volume, VolumeDriver, VolumeNode,
};
use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{Answer, Cloud as _, NodeRef, VolumeAbilities, VolumeCloud, VolumeSecrets};

use crate::swap::SwappableProvider;

impl VolumeCloud for SwappableProvider {
    fn volume_abilities(&self) -> VolumeAbilities {
        self.current().abilities().volumes
    }

    fn volume_driver(&self) -> Answer<'_, VolumeDriver> {
        let provider = self.current();
        Box::pin(async move { provider.volume_driver().await })
    }

    fn volume_nodes<'a>(&'a self, nodes: &'a [NodeRef]) -> Answer<'a, Each<VolumeNode>> {
        let provider = self.current();
        Box::pin(async move { provider.volume_nodes(nodes).await })
    }

    fn get_volumes<'a>(&'a self, ids: &'a [String]) -> Answer<'a, Each<Option<Volume>>> {
        let provider = self.current();
        Box::pin(async move { provider.get_volumes(ids).await })
    }

    fn create_volume<'a>(
        &'a self,
        new: &'a NewVolume,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Volume> {
        let provider = self.current();
        Box::pin(async move { provider.create_volume(new, token, secrets).await })
    }

    fn delete_volume<'a>(&'a self, id: &'a str, token: Option<&'a str>, secrets: &'a VolumeSecrets) -> Answer<'a, ()> {
        let provider = self.current();
        Box::pin(async move { provider.delete_volume(id, token, secrets).await })
    }

    fn attach_volumes<'a>(
        &'a self,
        attachments: &'a [NewAttachment],
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Each<AttachedVolume>> {
        let provider = self.current();
        Box::pin(async move { provider.attach_volumes(attachments, secrets).await })
    }

    fn detach_volumes<'a>(&'a self, detachments: &'a [Detachment], secrets: &'a VolumeSecrets) -> Answer<'a, Each<()>> {
        let provider = self.current();
        Box::pin(async move { provider.detach_volumes(detachments, secrets).await })
    }

    fn expand_volume<'a>(
        &'a self,
        id: &'a str,
        size: SizeRange,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, ExpandedVolume> {
        let provider = self.current();
        Box::pin(async move { provider.expand_volume(id, size, token, secrets).await })
    }

    fn list_volumes<'a>(&'a self, after: Option<&'a str>, limit: u32) -> Answer<'a, Page<Volume>> {
        let provider = self.current();
        Box::pin(async move { provider.list_volumes(after, limit).await })
    }

    fn modify_volume<'a>(
        &'a self,
        id: &'a str,
        parameters: &'a BTreeMap<String, String>,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, ()> {
        let provider = self.current();
        Box::pin(async move { provider.modify_volume(id, parameters, token, secrets).await })
    }

    fn volume_capacity<'a>(&'a self, query: &'a CapacityQuery) -> Answer<'a, Capacity> {
        let provider = self.current();
        Box::pin(async move { provider.volume_capacity(query).await })
    }

    fn create_snapshot<'a>(
        &'a self,
        new: &'a NewSnapshot,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Snapshot> {
        let provider = self.current();
        Box::pin(async move { provider.create_snapshot(new, token, secrets).await })
    }

    fn delete_snapshot<'a>(
        &'a self,
        id: &'a str,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, ()> {
        let provider = self.current();
        Box::pin(async move { provider.delete_snapshot(id, token, secrets).await })
    }

    fn get_snapshots<'a>(
        &'a self,
        ids: &'a [String],
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Each<Option<Snapshot>>> {
        let provider = self.current();
        Box::pin(async move { provider.get_snapshots(ids, secrets).await })
    }

    fn list_snapshots<'a>(
        &'a self,
        volume: Option<&'a str>,
        after: Option<&'a str>,
        limit: u32,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Page<Snapshot>> {
        let provider = self.current();
        Box::pin(async move { provider.list_snapshots(volume, after, limit, secrets).await })
    }
}
