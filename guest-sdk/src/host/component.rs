//! The host functions, as they are inside a component. `fake.rs` has the same ones for native tests.
//!
//! Nothing here decides anything: it only converts the SDK's types to those of the generated bindings and back. HTTP, the one longer
//! part, is in `wasi_http.rs`.

use crate::bindings::imports::cloudwit::provider::{call, cluster, config, events, keys, log, state};
use crate::types::{ClusterInfo, ClusterNode, EventKind, Pair, Service};

pub(crate) use super::wasi_http::send;
pub(crate) use keys::{
    Key, basic as key_basic, digest, open as key_open, placeholder as key_placeholder, reveal as key_reveal,
};
pub(crate) use log::{enabled as log_enabled_by_host, log};
pub(crate) use state::{
    Held, compare_and_swap as state_swap, get as state_get, lock, put as state_put, remove as state_remove,
};

/// Whether a line of this level would be seen.
pub fn log_enabled(level: log::Level) -> bool {
    log_enabled_by_host(level)
}

pub(crate) fn config_text() -> String {
    config::text()
}

pub(crate) fn config_values() -> Vec<Pair> {
    config::values()
}

pub(crate) fn deadline_left() -> u64 {
    call::deadline_left()
}

pub(crate) fn dry_run() -> bool {
    call::dry_run()
}

pub(crate) fn call_id() -> String {
    call::id()
}

pub(crate) fn cluster() -> ClusterInfo {
    config::cluster()
}

pub(crate) fn nodes() -> Result<Vec<ClusterNode>, String> {
    cluster::nodes().map_err(|refusal| refusal.message)
}

pub(crate) fn services() -> Result<Vec<Service>, String> {
    cluster::services().map_err(|refusal| refusal.message)
}

/// An Event on the Node of this name, or on the Service of this call.
pub(crate) fn emit(node: Option<&str>, kind: EventKind, reason: &str, message: &str) {
    match node {
        Some(name) => events::emit_node(name, kind, reason, message),
        None => events::emit_service(kind, reason, message),
    }
}

/// The host's clock.
pub(crate) fn unix_seconds() -> u64 {
    wasip2::clocks::wall_clock::now().seconds
}
