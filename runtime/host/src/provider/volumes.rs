//! Volumes of a loaded provider: implements `VolumeCloud` over a component.

use std::collections::BTreeMap;

use cloudwit_model::volume::{
    AttachedVolume, Capacity, CapacityQuery, Detachment, ExpandedVolume, NewAttachment, NewSnapshot, NewVolume, Page,
    SizeRange, Snapshot, Volume, VolumeDriver, VolumeNode,
};
use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{Answer, Cloud as _, NodeRef, ProviderFault, VolumeAbilities, VolumeCloud, VolumeSecrets};

use crate::call::Session;
use crate::call::answer::limits::{VOLUME_BATCH, VOLUME_PAGE};
use crate::call::instance::Subjects;
use crate::contract::volume_adapter::ListedPage;
use crate::metrics::{ItemKind, Operation};
use crate::provider::Provider;

/// A call that is about one thing, with the secrets of its request.
macro_rules! one {
    ($self:ident, $operation:ident, $method:ident($($argument:ident),*), $secrets:expr) => {
        Box::pin(async move {
            let mut session = $self.begin(Operation::$operation, Subjects::default(), $secrets).await?;
            let asked = $self.0.adapter.$method(&mut session.store, $($argument),*);
            session.call.run(asked).await
        })
    };
}

/// A call about many, with an answer for each.
macro_rules! many {
    ($self:ident, $operation:ident, $method:ident($list:ident), $of:literal, $kind:ident, $subjects:expr, $secrets:expr) => {
        Box::pin(async move {
            if $list.is_empty() {
                return Ok(Vec::new());
            }
            if $list.len() > VOLUME_BATCH {
                return Err($self.too_many($list.len(), $of, VOLUME_BATCH).into());
            }
            let mut session = $self.begin(Operation::$operation, $subjects, $secrets).await?;
            let asked = $self.0.adapter.$method(&mut session.store, $list);
            let answers = session.call.run(asked).await?;
            session.call.count_invalid(ItemKind::$kind, &answers);
            Ok(answers)
        })
    };
}

/// A page of a list.
macro_rules! page {
    ($self:ident, $operation:ident, $method:ident($($argument:ident),*; $limit:ident), $of:literal, $kind:ident, $secrets:expr) => {
        Box::pin(async move {
            if !(1..=VOLUME_PAGE).contains(&$limit) {
                let (count, most) = (usize::try_from($limit), usize::try_from(VOLUME_PAGE));
                let (count, most) = (count.unwrap_or(usize::MAX), most.unwrap_or(usize::MAX));
                return Err($self.too_many(count, $of, most).into());
            }
            let mut session = $self.begin(Operation::$operation, Subjects::default(), $secrets).await?;
            let asked = $self.0.adapter.$method(&mut session.store, $($argument,)* $limit);
            let ListedPage { listed, next } = session.call.run(asked).await?;
            let items = session.call.valid_items(ItemKind::$kind, listed);
            Ok(Page { items, next })
        })
    };
}

impl Provider {
    async fn begin(
        &self,
        operation: Operation,
        subjects: Subjects,
        secrets: &VolumeSecrets,
    ) -> Result<Session<'_>, ProviderFault> {
        self.0.caller.begin_with(operation, subjects, secrets).await
    }
}

impl VolumeCloud for Provider {
    fn volume_abilities(&self) -> VolumeAbilities {
        self.abilities().volumes
    }

    fn volume_driver(&self) -> Answer<'_, VolumeDriver> {
        one!(self, VolumeDriver, volume_driver(), &VolumeSecrets::default())
    }

    fn volume_nodes<'a>(&'a self, nodes: &'a [NodeRef]) -> Answer<'a, Each<VolumeNode>> {
        many!(
            self,
            VolumeNodes,
            volume_nodes(nodes),
            "Nodes",
            Node,
            Subjects::nodes(nodes),
            &VolumeSecrets::default()
        )
    }

    fn get_volumes<'a>(&'a self, ids: &'a [String]) -> Answer<'a, Each<Option<Volume>>> {
        many!(
            self,
            GetVolumes,
            get_volumes(ids),
            "volumes",
            Volume,
            Subjects::default(),
            &VolumeSecrets::default()
        )
    }

    fn create_volume<'a>(
        &'a self,
        new: &'a NewVolume,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Volume> {
        one!(self, CreateVolume, create_volume(new, token), secrets)
    }

    fn delete_volume<'a>(&'a self, id: &'a str, token: Option<&'a str>, secrets: &'a VolumeSecrets) -> Answer<'a, ()> {
        one!(self, DeleteVolume, delete_volume(id, token), secrets)
    }

    fn attach_volumes<'a>(
        &'a self,
        attachments: &'a [NewAttachment],
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Each<AttachedVolume>> {
        let subjects = Subjects::default();
        many!(
            self,
            AttachVolumes,
            attach_volumes(attachments),
            "attachments",
            Volume,
            subjects,
            secrets
        )
    }

    fn detach_volumes<'a>(&'a self, detachments: &'a [Detachment], secrets: &'a VolumeSecrets) -> Answer<'a, Each<()>> {
        let subjects = Subjects::default();
        many!(
            self,
            DetachVolumes,
            detach_volumes(detachments),
            "detachments",
            Volume,
            subjects,
            secrets
        )
    }

    fn expand_volume<'a>(
        &'a self,
        id: &'a str,
        size: SizeRange,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, ExpandedVolume> {
        one!(self, ExpandVolume, expand_volume(id, size, token), secrets)
    }

    fn list_volumes<'a>(&'a self, after: Option<&'a str>, limit: u32) -> Answer<'a, Page<Volume>> {
        page!(self, ListVolumes, list_volumes(after; limit), "volumes", Volume, &VolumeSecrets::default())
    }

    fn modify_volume<'a>(
        &'a self,
        id: &'a str,
        parameters: &'a BTreeMap<String, String>,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, ()> {
        one!(self, ModifyVolume, modify_volume(id, parameters, token), secrets)
    }

    fn volume_capacity<'a>(&'a self, query: &'a CapacityQuery) -> Answer<'a, Capacity> {
        one!(self, VolumeCapacity, volume_capacity(query), &VolumeSecrets::default())
    }

    fn create_snapshot<'a>(
        &'a self,
        new: &'a NewSnapshot,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Snapshot> {
        one!(self, CreateSnapshot, create_snapshot(new, token), secrets)
    }

    fn delete_snapshot<'a>(
        &'a self,
        id: &'a str,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, ()> {
        one!(self, DeleteSnapshot, delete_snapshot(id, token), secrets)
    }

    fn get_snapshots<'a>(
        &'a self,
        ids: &'a [String],
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Each<Option<Snapshot>>> {
        many!(
            self,
            GetSnapshots,
            get_snapshots(ids),
            "snapshots",
            Snapshot,
            Subjects::default(),
            secrets
        )
    }

    fn list_snapshots<'a>(
        &'a self,
        volume: Option<&'a str>,
        after: Option<&'a str>,
        limit: u32,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Page<Snapshot>> {
        page!(self, ListSnapshots, list_snapshots(volume, after; limit), "snapshots", Snapshot, secrets)
    }
}
