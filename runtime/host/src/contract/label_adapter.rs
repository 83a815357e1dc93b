//! What each version of the contract implements of labels of volumes; a part of `adapter`.

use std::collections::BTreeMap;

use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{InTreeSource, InTreeVolume};
use wasmtime::Store;

use crate::call::instance::CallState;
use crate::contract::adapter::Reply;

/// The calls about labels of volumes. A component that does not export them answers
/// [`CallError::NotExported`](crate::contract::adapter::CallError::NotExported).
pub(crate) trait LabelAdapter {
    fn label_sources<'a>(&'a self, store: &'a mut Store<CallState>) -> Reply<'a, Vec<InTreeSource>>;
    fn volume_labels<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        volumes: &'a [InTreeVolume],
    ) -> Reply<'a, Each<BTreeMap<String, String>>>;
}
