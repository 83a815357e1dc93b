//! What a provider may use: [`Context`] is the door to everything outside the component.

use std::time::Duration;

use crate::host;
use crate::http::Http;
use crate::keys::Keys;
use crate::state::State;
use crate::types::*;

/// What is left of a call's time when no further change is begun: one request may take as long.
pub(crate) const RESERVE: Duration = Duration::from_secs(10);

/// The world outside, as far as the operator granted it. Costs nothing to copy.
#[derive(Debug, Clone, Copy)]
pub struct Context(());

impl Context {
    pub(crate) fn new() -> Self {
        Self(())
    }

    /// A client for the cloud's API.
    pub fn http(&self) -> Http {
        Http::new()
    }

    /// Secrets that the host keeps: placeholders for requests, key handles, hashes.
    pub fn keys(&self) -> Keys {
        Keys(())
    }

    /// What outlives this call: tokens, snapshots, locks.
    pub fn state(&self) -> State {
        State(())
    }

    /// The time by the host's clock, in seconds since 1970.
    pub fn now(&self) -> u64 {
        host::unix_seconds()
    }

    /// How long until the host cuts this call off. Requests wait no longer than nine tenths of it, whatever their own timeout.
    pub fn time_left(&self) -> Duration {
        Duration::from_millis(host::deadline_left())
    }

    /// Whether this is a dry run: nothing may be changed.
    pub fn is_dry_run(&self) -> bool {
        host::dry_run()
    }

    /// A text that no other call has, for idempotency keys.
    pub fn call_id(&self) -> String {
        host::call_id()
    }

    /// The cluster's name (`--cluster-name`) and Pod ranges (`--cluster-cidr`).
    pub fn cluster(&self) -> ClusterInfo {
        host::cluster()
    }

    /// All Nodes, from the controller's cache.
    ///
    /// # Errors
    /// `denied` when the operator did not grant the view, with the line to add.
    pub fn nodes(&self) -> Result<Vec<ClusterNode>, Failure> {
        host::nodes().map_err(Failure::denied)
    }

    /// All Services of type `LoadBalancer` of this provider, from the controller's cache.
    ///
    /// # Errors
    /// `denied` when the operator did not grant the view, with the line to add.
    pub fn services(&self) -> Result<Vec<Service>, Failure> {
        host::services().map_err(Failure::denied)
    }

    /// Writes an Event on the Service of this call. `reason` is short CamelCase, `message` a sentence without secrets.
    pub fn service_event(&self, kind: EventKind, reason: &str, message: &str) {
        host::emit(None, kind, reason, message);
    }

    /// Writes an Event on a Node of this call.
    pub fn node_event(&self, node: &str, kind: EventKind, reason: &str, message: &str) {
        host::emit(Some(node), kind, reason, message);
    }
}
