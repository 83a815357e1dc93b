//! Calls about volumes: which of their interfaces a component exports, and their calls.

use std::collections::BTreeMap;

use cloudwit_model::volume::{
    AttachedVolume, Capacity, CapacityQuery, Detachment, ExpandedVolume, NewAttachment, NewSnapshot, NewVolume,
    SizeRange, Snapshot, Volume, VolumeDriver, VolumeNode,
};
use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{NodeRef, VolumeAbilities};
use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre};

use crate::call::answer::Screen;
use crate::call::instance::CallState;
use crate::call::walk::Walk;
use crate::contract::adapter::{CallError, Reply};
use crate::contract::v0_1::generated::exports::cloudwit::provider as exports;
use crate::contract::v0_1::{V0_1, convert, converted, volume_answers as answers, volume_convert};
use crate::contract::volume_adapter::{ListedPage, VolumeAdapter};

/// The places of the functions about volumes that a component exports.
pub(super) struct VolumeExports {
    basic: Option<exports::volumes::GuestIndices>,
    expansion: Option<exports::volume_expansion::GuestIndices>,
    listing: Option<exports::volume_listing::GuestIndices>,
    snapshots: Option<exports::volume_snapshots::GuestIndices>,
    modification: Option<exports::volume_modification::GuestIndices>,
    capacity: Option<exports::volume_capacity::GuestIndices>,
}

/// The functions of one interface, where it is exported; the error names the interface.
macro_rules! found {
    ($pre:ident, $has:expr, $module:ident, $name:literal) => {
        $has.then(|| exports::$module::GuestIndices::new($pre).map_err(|error| ($name, error)))
            .transpose()?
    };
}

/// An instance of one interface, or that it is not exported.
macro_rules! guest {
    ($self:ident, $store:ident, $field:ident, $name:literal) => {{
        let found = $self.volumes.$field.as_ref().ok_or(CallError::NotExported($name))?;
        let instance = $self.instantiate($store).await?;
        found.load(&mut *$store, &instance)?
    }};
}

impl VolumeExports {
    pub fn find(
        pre: &InstancePre<CallState>,
        abilities: VolumeAbilities,
    ) -> Result<Self, (&'static str, wasmtime::Error)> {
        Ok(Self {
            basic: found!(pre, abilities.basic, volumes, "volumes"),
            expansion: found!(pre, abilities.expansion, volume_expansion, "volume-expansion"),
            listing: found!(pre, abilities.listing, volume_listing, "volume-listing"),
            snapshots: found!(pre, abilities.snapshots, volume_snapshots, "volume-snapshots"),
            modification: found!(pre, abilities.modification, volume_modification, "volume-modification"),
            capacity: found!(pre, abilities.capacity, volume_capacity, "volume-capacity"),
        })
    }

    pub fn abilities(&self) -> VolumeAbilities {
        VolumeAbilities {
            basic: self.basic.is_some(),
            expansion: self.expansion.is_some(),
            listing: self.listing.is_some(),
            snapshots: self.snapshots.is_some(),
            modification: self.modification.is_some(),
            capacity: self.capacity.is_some(),
        }
    }

    /// Looks the types of all functions up in an instance, by interface.
    pub fn loaded(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
    ) -> [(&'static str, Option<wasmtime::Result<()>>); 6] {
        macro_rules! load {
            ($field:ident) => {
                self.$field
                    .as_ref()
                    .map(|found| found.load(&mut *store, instance).map(drop))
            };
        }
        [
            ("volumes", load!(basic)),
            ("volume-expansion", load!(expansion)),
            ("volume-listing", load!(listing)),
            ("volume-snapshots", load!(snapshots)),
            ("volume-modification", load!(modification)),
            ("volume-capacity", load!(capacity)),
        ]
    }
}

impl VolumeAdapter for V0_1 {
    fn volume_driver<'a>(&'a self, store: &'a mut Store<CallState>) -> Reply<'a, VolumeDriver> {
        Box::pin(async move {
            let redactor = store.data().log.redactor();
            let guest = guest!(self, store, basic, "volumes");
            let described = guest.call_describe(store).await?;
            Ok(Ok(answers::driver(Screen(&redactor), described)?))
        })
    }

    fn volume_nodes<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        nodes: &'a [NodeRef],
    ) -> Reply<'a, Each<VolumeNode>> {
        Box::pin(async move {
            let (redactor, mut walk) = (store.data().log.redactor(), Walk::default());
            let (screen, guest) = (Screen(&redactor), guest!(self, store, basic, "volumes"));
            let asked: Vec<_> = nodes.iter().map(convert::node_ref).collect();
            let result = guest.call_nodes(store, &asked).await?;
            converted(screen, result, |found| answers::nodes(screen, &mut walk, nodes, found)).await
        })
    }

    fn get_volumes<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        ids: &'a [String],
    ) -> Reply<'a, Each<Option<Volume>>> {
        Box::pin(async move {
            let (redactor, mut walk) = (store.data().log.redactor(), Walk::default());
            let (screen, guest) = (Screen(&redactor), guest!(self, store, basic, "volumes"));
            let result = guest.call_get(store, ids).await?;
            converted(screen, result, |found| answers::volumes(screen, &mut walk, ids, found)).await
        })
    }

    fn create_volume<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        new: &'a NewVolume,
        token: Option<&'a str>,
    ) -> Reply<'a, Volume> {
        Box::pin(async move {
            let redactor = store.data().log.redactor();
            let (screen, guest) = (Screen(&redactor), guest!(self, store, basic, "volumes"));
            let result = guest
                .call_create(store, &volume_convert::new_volume(new), token)
                .await?;
            converted(screen, result, async |created| answers::created(screen, new, created)).await
        })
    }

    fn delete_volume<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        id: &'a str,
        token: Option<&'a str>,
    ) -> Reply<'a, ()> {
        Box::pin(async move {
            let redactor = store.data().log.redactor();
            let guest = guest!(self, store, basic, "volumes");
            let result = guest.call_delete(store, id, token).await?;
            converted(Screen(&redactor), result, async |()| Ok(())).await
        })
    }

    fn attach_volumes<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        attachments: &'a [NewAttachment],
    ) -> Reply<'a, Each<AttachedVolume>> {
        Box::pin(async move {
            let (redactor, mut walk) = (store.data().log.redactor(), Walk::default());
            let (screen, guest) = (Screen(&redactor), guest!(self, store, basic, "volumes"));
            let asked: Vec<_> = attachments.iter().map(volume_convert::new_attachment).collect();
            let result = guest.call_attach(store, &asked).await?;
            converted(screen, result, |results| {
                answers::attached(screen, &mut walk, attachments, results)
            })
            .await
        })
    }

    fn detach_volumes<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        detachments: &'a [Detachment],
    ) -> Reply<'a, Each<()>> {
        Box::pin(async move {
            let (redactor, mut walk) = (store.data().log.redactor(), Walk::default());
            let (screen, guest) = (Screen(&redactor), guest!(self, store, basic, "volumes"));
            let asked: Vec<_> = detachments.iter().map(volume_convert::detachment).collect();
            let result = guest.call_detach(store, &asked).await?;
            converted(screen, result, |results| {
                answers::detached(screen, &mut walk, detachments, results)
            })
            .await
        })
    }

    fn expand_volume<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        id: &'a str,
        size: SizeRange,
        token: Option<&'a str>,
    ) -> Reply<'a, ExpandedVolume> {
        Box::pin(async move {
            let redactor = store.data().log.redactor();
            let guest = guest!(self, store, expansion, "volume-expansion");
            let result = guest.call_expand(store, id, volume_convert::size(size), token).await?;
            converted(Screen(&redactor), result, async |grown| answers::expanded(size, grown)).await
        })
    }

    fn list_volumes<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        after: Option<&'a str>,
        limit: u32,
    ) -> Reply<'a, ListedPage<Volume>> {
        Box::pin(async move {
            let (redactor, mut walk) = (store.data().log.redactor(), Walk::default());
            let (screen, guest) = (Screen(&redactor), guest!(self, store, listing, "volume-listing"));
            let result = guest.call_list(store, after, limit).await?;
            converted(screen, result, |page| {
                answers::volume_page(screen, &mut walk, limit, page)
            })
            .await
        })
    }

    fn modify_volume<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        id: &'a str,
        parameters: &'a BTreeMap<String, String>,
        token: Option<&'a str>,
    ) -> Reply<'a, ()> {
        Box::pin(async move {
            let redactor = store.data().log.redactor();
            let guest = guest!(self, store, modification, "volume-modification");
            let result = guest.call_modify(store, id, &convert::pairs(parameters), token).await?;
            converted(Screen(&redactor), result, async |()| Ok(())).await
        })
    }

    fn volume_capacity<'a>(&'a self, store: &'a mut Store<CallState>, query: &'a CapacityQuery) -> Reply<'a, Capacity> {
        Box::pin(async move {
            let redactor = store.data().log.redactor();
            let guest = guest!(self, store, capacity, "volume-capacity");
            let result = guest.call_get(store, &volume_convert::capacity_query(query)).await?;
            converted(Screen(&redactor), result, async |room| Ok(answers::capacity(room))).await
        })
    }

    fn create_snapshot<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        new: &'a NewSnapshot,
        token: Option<&'a str>,
    ) -> Reply<'a, Snapshot> {
        Box::pin(async move {
            let redactor = store.data().log.redactor();
            let (screen, guest) = (Screen(&redactor), guest!(self, store, snapshots, "volume-snapshots"));
            let result = guest
                .call_create(store, &volume_convert::new_snapshot(new), token)
                .await?;
            converted(screen, result, async |made| answers::snapshot(screen, made)).await
        })
    }

    fn delete_snapshot<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        id: &'a str,
        token: Option<&'a str>,
    ) -> Reply<'a, ()> {
        Box::pin(async move {
            let redactor = store.data().log.redactor();
            let guest = guest!(self, store, snapshots, "volume-snapshots");
            let result = guest.call_delete(store, id, token).await?;
            converted(Screen(&redactor), result, async |()| Ok(())).await
        })
    }

    fn get_snapshots<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        ids: &'a [String],
    ) -> Reply<'a, Each<Option<Snapshot>>> {
        Box::pin(async move {
            let (redactor, mut walk) = (store.data().log.redactor(), Walk::default());
            let (screen, guest) = (Screen(&redactor), guest!(self, store, snapshots, "volume-snapshots"));
            let result = guest.call_get(store, ids).await?;
            converted(screen, result, |found| {
                answers::snapshots(screen, &mut walk, ids, found)
            })
            .await
        })
    }

    fn list_snapshots<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        volume: Option<&'a str>,
        after: Option<&'a str>,
        limit: u32,
    ) -> Reply<'a, ListedPage<Snapshot>> {
        Box::pin(async move {
            let (redactor, mut walk) = (store.data().log.redactor(), Walk::default());
            let (screen, guest) = (Screen(&redactor), guest!(self, store, snapshots, "volume-snapshots"));
            let result = guest.call_list(store, volume, after, limit).await?;
            converted(screen, result, |page| {
                answers::snapshot_page(screen, &mut walk, limit, page)
            })
            .await
        })
    }
}
