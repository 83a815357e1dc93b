//! What each version of the contract implements of volumes; the other half of `adapter`.

use std::collections::BTreeMap;

use cloudwit_model::NodeRef;
use cloudwit_model::volume::{
    AttachedVolume, Capacity, CapacityQuery, Detachment, ExpandedVolume, NewAttachment, NewSnapshot, NewVolume,
    SizeRange, Snapshot, Volume, VolumeDriver, VolumeNode,
};
use cloudwit_model::volume_cloud::Each;
use wasmtime::Store;

use crate::call::instance::CallState;
use crate::contract::adapter::{Listed, Reply};

/// A page of a list, without its invalid items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedPage<T> {
    pub listed: Listed<T>,
    /// By what the next page is requested; none on the last.
    pub next: Option<String>,
}

/// The calls about volumes. A component that does not export one answers [`CallError::NotExported`](crate::contract::adapter::CallError::NotExported).
pub(crate) trait VolumeAdapter {
    fn volume_driver<'a>(&'a self, store: &'a mut Store<CallState>) -> Reply<'a, VolumeDriver>;
    fn volume_nodes<'a>(&'a self, store: &'a mut Store<CallState>, nodes: &'a [NodeRef])
    -> Reply<'a, Each<VolumeNode>>;
    fn get_volumes<'a>(&'a self, store: &'a mut Store<CallState>, ids: &'a [String])
    -> Reply<'a, Each<Option<Volume>>>;
    fn create_volume<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        new: &'a NewVolume,
        token: Option<&'a str>,
    ) -> Reply<'a, Volume>;
    fn delete_volume<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        id: &'a str,
        token: Option<&'a str>,
    ) -> Reply<'a, ()>;
    fn attach_volumes<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        attachments: &'a [NewAttachment],
    ) -> Reply<'a, Each<AttachedVolume>>;
    fn detach_volumes<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        detachments: &'a [Detachment],
    ) -> Reply<'a, Each<()>>;
    fn expand_volume<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        id: &'a str,
        size: SizeRange,
        token: Option<&'a str>,
    ) -> Reply<'a, ExpandedVolume>;
    fn list_volumes<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        after: Option<&'a str>,
        limit: u32,
    ) -> Reply<'a, ListedPage<Volume>>;
    fn modify_volume<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        id: &'a str,
        parameters: &'a BTreeMap<String, String>,
        token: Option<&'a str>,
    ) -> Reply<'a, ()>;
    fn volume_capacity<'a>(&'a self, store: &'a mut Store<CallState>, query: &'a CapacityQuery) -> Reply<'a, Capacity>;
    fn create_snapshot<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        new: &'a NewSnapshot,
        token: Option<&'a str>,
    ) -> Reply<'a, Snapshot>;
    fn delete_snapshot<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        id: &'a str,
        token: Option<&'a str>,
    ) -> Reply<'a, ()>;
    fn get_snapshots<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        ids: &'a [String],
    ) -> Reply<'a, Each<Option<Snapshot>>>;
    fn list_snapshots<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        volume: Option<&'a str>,
        after: Option<&'a str>,
        limit: u32,
    ) -> Reply<'a, ListedPage<Snapshot>>;
}
