//! Bytes of HTTP headers that the handles of one call hold.
//!
//! wasi-http bounds one map of headers, and `HANDLES` the number of maps; together that would be 64 MiB beside the guest's own memory. So headers
//! count as memory of the call: against `limits.memoryBytes`, and in the provider's share of the guest memory.

use std::any::Any;

use http::{HeaderMap, HeaderName, HeaderValue};
use wasmtime::component::ResourceTable;
use wasmtime_wasi_http::FieldMap;
use wasmtime_wasi_http::p2::types::{HostIncomingResponse, HostOutgoingRequest};

/// What all maps of headers in the table hold, in bytes.
pub(super) fn held(table: &mut ResourceTable) -> usize {
    table.iter_mut().map(|entry| of_entry(entry)).sum()
}

fn of_entry(entry: &dyn Any) -> usize {
    let fields = entry.downcast_ref::<FieldMap>();
    let request = || {
        entry
            .downcast_ref::<HostOutgoingRequest>()
            .map(|request| &request.headers)
    };
    let response = || {
        entry
            .downcast_ref::<HostIncomingResponse>()
            .map(|response| &response.headers)
    };
    fields.or_else(request).or_else(response).map_or(0, |map| of_map(map))
}

fn of_map(map: &HeaderMap) -> usize {
    let entry = size_of::<HeaderName>() + size_of::<HeaderValue>();
    map.iter()
        .map(|(name, value)| name.as_str().len() + value.len() + entry)
        .sum()
}
