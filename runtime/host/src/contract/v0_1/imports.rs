//! Imports of guests of version 0.1: thin conversions to `keys`, `state`, `guest_log`, `Outside`.

use std::time::Duration;

use cloudwit_model::{EventKind, ObjectEvent, Subject};
use tokio::time::Instant;
use tracing::Level;
use wasmtime::Result;
use wasmtime::component::Resource;

use crate::call::answer::limits;
use crate::call::answer::{self, Screen};
use crate::call::guest_log;
use crate::call::instance::CallState;
use crate::contract::v0_1::convert;
use crate::contract::v0_1::generated::cloudwit::provider as wit;
use crate::secrets::encoding::Encoding;
use crate::secrets::keys::{self, Derivation, Key, KeyError};
use crate::secrets::placeholders::StandsFor;
use crate::state::{self, Keep, OwnedGuard, StateError};

impl wit::common::Host for CallState {}
impl wit::services::Host for CallState {}
impl wit::volume_types::Host for CallState {}

impl wit::call::Host for CallState {
    fn deadline_left(&mut self) -> Result<u64> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        Ok(u64::try_from(left.as_millis()).unwrap_or(u64::MAX))
    }

    fn dry_run(&mut self) -> Result<bool> {
        Ok(self.env.dry_run)
    }

    fn id(&mut self) -> Result<String> {
        Ok(self.id.to_string())
    }
}

impl wit::config::Host for CallState {
    fn text(&mut self) -> Result<String> {
        Ok(self.env.config_text.clone())
    }

    fn values(&mut self) -> Result<Vec<wit::common::Pair>> {
        Ok(convert::pairs(self.env.values.iter().map(|(key, value)| (key, value))))
    }

    fn cluster(&mut self) -> Result<wit::config::ClusterInfo> {
        Ok(wit::config::ClusterInfo {
            name: self.env.cluster_name.clone(),
            cidrs: self.env.cluster_cidrs.clone(),
        })
    }
}

fn hash(hash: wit::keys::Hash) -> keys::Hash {
    match hash {
        wit::keys::Hash::Sha1 => keys::Hash::Sha1,
        wit::keys::Hash::Sha256 => keys::Hash::Sha256,
    }
}

fn derivation(how: wit::keys::Derivation) -> Derivation {
    Derivation {
        prefix: how.prefix,
        suffix: how.suffix,
        as_hex: how.as_hex,
    }
}

fn key_error(error: KeyError) -> wit::keys::KeyError {
    match error {
        KeyError::NotGranted(text) => wit::keys::KeyError::NotGranted(text),
        KeyError::Unusable(text) => wit::keys::KeyError::Unusable(text),
    }
}

fn encoding(encoding: wit::keys::Encoding) -> Encoding {
    match encoding {
        wit::keys::Encoding::Plain => Encoding::Plain,
        wit::keys::Encoding::Base64 => Encoding::Base64,
        wit::keys::Encoding::Json => Encoding::Json,
        wit::keys::Encoding::Form => Encoding::Form,
        wit::keys::Encoding::Xml => Encoding::Xml,
    }
}

impl wit::keys::Host for CallState {
    fn placeholder(
        &mut self,
        name: String,
        written: wit::keys::Encoding,
    ) -> Result<Result<String, wit::keys::KeyError>> {
        let stands_for = StandsFor::Secret(name, encoding(written));
        Ok(self.hooks.placeholder(stands_for).map_err(key_error))
    }

    fn basic(&mut self, user: String, password: String) -> Result<Result<String, wit::keys::KeyError>> {
        let stands_for = StandsFor::Basic(user, password);
        Ok(self.hooks.placeholder(stands_for).map_err(key_error))
    }

    fn open(&mut self, name: String) -> Result<Result<Resource<Key>, wit::keys::KeyError>> {
        match self.hooks.secrets().keyring.open(&name) {
            Ok(key) => Ok(Ok(self.table.push(key)?)),
            Err(error) => Ok(Err(key_error(error))),
        }
    }

    fn reveal(&mut self, name: String) -> Result<Result<Vec<u8>, wit::keys::KeyError>> {
        Ok(self.hooks.secrets().keyring.reveal(&name).map_err(key_error))
    }

    fn digest(&mut self, algorithm: wit::keys::Hash, data: Vec<u8>) -> Result<Vec<u8>> {
        Ok(keys::digest(hash(algorithm), &data))
    }
}

impl wit::keys::HostKey for CallState {
    fn hmac(
        &mut self,
        key: Resource<Key>,
        algorithm: wit::keys::Hash,
        data: Vec<u8>,
    ) -> Result<Result<Vec<u8>, wit::keys::KeyError>> {
        Ok(self.table.get(&key)?.hmac(hash(algorithm), &data).map_err(key_error))
    }

    fn hmac_with(
        &mut self,
        key: Resource<Key>,
        algorithm: wit::keys::Hash,
        data: Vec<u8>,
        how: wit::keys::Derivation,
    ) -> Result<Result<Vec<u8>, wit::keys::KeyError>> {
        let key = self.table.get(&key)?;
        Ok(key
            .hmac_with(hash(algorithm), &data, &derivation(how))
            .map_err(key_error))
    }

    fn derive(
        &mut self,
        key: Resource<Key>,
        algorithm: wit::keys::Hash,
        data: Vec<u8>,
        how: wit::keys::Derivation,
    ) -> Result<Result<Resource<Key>, wit::keys::KeyError>> {
        match self.table.get(&key)?.derive(hash(algorithm), &data, &derivation(how)) {
            Ok(derived) => Ok(Ok(self.table.push(derived)?)),
            Err(error) => Ok(Err(key_error(error))),
        }
    }

    fn sign(
        &mut self,
        key: Resource<Key>,
        scheme: wit::keys::Signature,
        data: Vec<u8>,
    ) -> Result<Result<Vec<u8>, wit::keys::KeyError>> {
        let scheme = match scheme {
            wit::keys::Signature::RsaPkcs1Sha256 => keys::Signature::RsaPkcs1Sha256,
            wit::keys::Signature::RsaPssSha256 => keys::Signature::RsaPssSha256,
        };
        Ok(self.table.get(&key)?.sign(scheme, &data).map_err(key_error))
    }

    fn drop(&mut self, key: Resource<Key>) -> Result<()> {
        self.table.delete(key)?;
        Ok(())
    }
}

fn keep(keep: &wit::state::Keep) -> Keep {
    Keep {
        for_time: keep.for_ms.map(Duration::from_millis),
        over_swap: keep.over_swap,
    }
}

fn state_error(error: StateError) -> wit::state::StateError {
    match error {
        StateError::TooLarge(limit) => wit::state::StateError::TooLarge(limit),
        StateError::Changed => wit::state::StateError::Changed,
    }
}

impl wit::state::Host for CallState {
    fn get(&mut self, key: String) -> Result<Option<wit::state::Entry>> {
        let entry = self.env.state.get(&key);
        Ok(entry.map(|state::Entry { value, version }| wit::state::Entry { value, version }))
    }

    fn put(
        &mut self,
        key: String,
        value: Vec<u8>,
        how: wit::state::Keep,
    ) -> Result<Result<u64, wit::state::StateError>> {
        Ok(self.env.state.put(&key, value, keep(&how)).map_err(state_error))
    }

    fn compare_and_swap(
        &mut self,
        key: String,
        version: Option<u64>,
        value: Vec<u8>,
        how: wit::state::Keep,
    ) -> Result<Result<u64, wit::state::StateError>> {
        Ok(self
            .env
            .state
            .compare_and_swap(&key, version, value, keep(&how))
            .map_err(state_error))
    }

    fn remove(&mut self, key: String) -> Result<()> {
        self.env.state.remove(&key);
        Ok(())
    }

    async fn lock(&mut self, name: String, wait_ms: u32) -> Result<Option<Resource<OwnedGuard>>> {
        let held = self.env.state.lock(&name, Duration::from_millis(wait_ms.into())).await;
        Ok(held.map(|held| self.table.push(held)).transpose()?)
    }
}

impl wit::state::HostHeld for CallState {
    fn drop(&mut self, held: Resource<OwnedGuard>) -> Result<()> {
        self.table.delete(held)?;
        Ok(())
    }
}

fn level(level: wit::log::Level) -> Level {
    match level {
        wit::log::Level::Trace => Level::TRACE,
        wit::log::Level::Debug => Level::DEBUG,
        wit::log::Level::Info => Level::INFO,
        wit::log::Level::Warn => Level::WARN,
        wit::log::Level::Error => Level::ERROR,
    }
}

impl wit::log::Host for CallState {
    fn log(&mut self, at: wit::log::Level, message: String, fields: Vec<wit::common::Pair>) -> Result<()> {
        let fields = fields.into_iter().take(limits::LOG_FIELDS);
        let fields: Vec<(String, String)> = fields.map(|pair| (pair.key, pair.value)).collect();
        self.log.log(level(at), &message, &fields);
        Ok(())
    }

    fn enabled(&mut self, at: wit::log::Level) -> Result<bool> {
        Ok(guest_log::enabled(level(at)))
    }
}

impl CallState {
    /// Sends an Event, or logs why not. `whose` is what it is about; there is no subject where this call is not about that.
    fn emit(&mut self, whose: &str, subject: Option<Subject>, kind: wit::events::Kind, reason: String, message: &str) {
        let redactor = self.log.redactor();
        let screen = Screen(&redactor);
        // A reason is a name, but none that anything depends on: nothing of a secret may be in it.
        let is_word = |reason: &str| {
            (1..=limits::EVENT_REASON).contains(&reason.len())
                && reason.bytes().all(|b| b.is_ascii_alphanumeric())
                && screen.shown(reason, limits::EVENT_REASON) == reason
        };
        let why_not = match subject {
            None => "which this call is not about",
            Some(_) if !is_word(&reason) => "whose reason is not a short CamelCase word",
            Some(_) if self.events_left == 0 => "which is over limits.events",
            Some(subject) => {
                self.events_left -= 1;
                let kind = match kind {
                    wit::events::Kind::Normal => EventKind::Normal,
                    wit::events::Kind::Warning => EventKind::Warning,
                };
                let message = screen.shown(message, limits::EVENT_MESSAGE);
                self.env.outside.events.emit(ObjectEvent {
                    subject,
                    kind,
                    reason,
                    message,
                });
                return;
            }
        };
        let text = format!("an Event about {whose}, {why_not}, was dropped");
        self.log.log(Level::WARN, &text, &[("reason".into(), reason)]);
    }
}

impl wit::events::Host for CallState {
    fn emit_service(&mut self, kind: wit::events::Kind, reason: String, message: String) -> Result<()> {
        let subject = self.subjects.of_service();
        self.emit("the Service", subject, kind, reason, &message);
        Ok(())
    }

    fn emit_node(&mut self, node: String, kind: wit::events::Kind, reason: String, message: String) -> Result<()> {
        let subject = self.subjects.of_node(&node);
        self.emit(
            &format!("Node {}", answer::quoted(&node)),
            subject,
            kind,
            reason,
            &message,
        );
        Ok(())
    }
}

fn not_granted(view: &str, line: &str) -> wit::cluster::NotGranted {
    let message =
        format!("the view of {view} is not granted; to allow it, write in the grants: cluster: {{{line}: true}}");
    wit::cluster::NotGranted { message }
}

impl wit::cluster::Host for CallState {
    fn nodes(&mut self) -> Result<Result<Vec<wit::cluster::Node>, wit::cluster::NotGranted>> {
        if !self.env.grants.cluster.nodes {
            return Ok(Err(not_granted("all Nodes", "nodes")));
        }
        let nodes = self.env.outside.cluster.nodes();
        let nodes = nodes.iter().map(|node| wit::cluster::Node {
            ref_: convert::node_ref(&node.node),
            labels: convert::pairs(node.labels.iter().map(|(key, value)| (key, value))),
            pod_cidrs: node.pod_cidrs.clone(),
        });
        Ok(Ok(nodes.collect()))
    }

    fn services(&mut self) -> Result<Result<Vec<wit::services::Service>, wit::cluster::NotGranted>> {
        if !self.env.grants.cluster.services {
            return Ok(Err(not_granted("all Services", "services")));
        }
        Ok(Ok(self
            .env
            .outside
            .cluster
            .services()
            .iter()
            .map(convert::service)
            .collect()))
    }
}
