//! Host functions outside a component: calls go to this thread's [`FakeHost`](crate::testing::FakeHost).
//!
//! Same names as in `host.rs`, so that the rest of the crate compiles against either.

use crate::bindings::imports::cloudwit::provider::keys::{Derivation, Encoding, Hash, KeyError, Signature};
use crate::bindings::imports::cloudwit::provider::log::Level;
use crate::bindings::imports::cloudwit::provider::state::{Entry, Keep, StateError};
use crate::http::{Answer, Request, TransportError};
use crate::testing::granted::{insist_on_secret, insist_on_view};
use crate::testing::requests;
use crate::testing::{self, Kept, LogLine, SentEvent, world};
use crate::types::{ClusterInfo, ClusterNode, ClusterView, EventKind, Pair, SecretUse, Service};

/// Every line is seen in tests.
pub fn log_enabled(_: Level) -> bool {
    true
}

pub(crate) fn log(level: Level, message: &str, fields: &[Pair]) {
    world(|world| {
        world.logs.push(LogLine {
            level,
            message: message.into(),
            fields: fields.to_vec(),
        })
    });
}

pub(crate) fn send(request: &Request, body: &[u8]) -> Result<Answer, TransportError> {
    requests::answer(request, body)
}

pub(crate) fn config_text() -> String {
    world(|world| world.config.clone())
}

pub(crate) fn config_values() -> Vec<Pair> {
    world(|world| world.values.clone())
}

pub(crate) fn deadline_left() -> u64 {
    world(|world| world.deadline.saturating_sub(world.now) * 1_000)
}

pub(crate) fn dry_run() -> bool {
    world(|world| world.dry_run)
}

pub(crate) fn call_id() -> String {
    "test-1".into()
}

pub(crate) fn cluster() -> ClusterInfo {
    world(|world| world.cluster.clone())
}

pub(crate) fn nodes() -> Result<Vec<ClusterNode>, String> {
    insist_on_view(ClusterView::Nodes);
    world(|world| world.nodes.clone()).ok_or_else(|| "the view on Nodes is not granted".into())
}

pub(crate) fn services() -> Result<Vec<Service>, String> {
    insist_on_view(ClusterView::Services);
    world(|world| world.services.clone()).ok_or_else(|| "the view on Services is not granted".into())
}

pub(crate) fn emit(node: Option<&str>, kind: EventKind, reason: &str, message: &str) {
    let event = SentEvent {
        node: node.map(Into::into),
        kind,
        reason: reason.into(),
        message: message.into(),
    };
    world(|world| world.events.push(event));
}

pub(crate) fn unix_seconds() -> u64 {
    world(|world| world.now)
}

/// What the controller takes the book-keeping of one entry to cost, in bytes.
const ENTRY_OVERHEAD: u64 = 64;

pub(crate) fn state_get(key: &str) -> Option<Entry> {
    world(|world| {
        let kept = world.state.get(key)?;
        let over = kept.expires.is_some_and(|expires| expires <= world.now * 1_000);
        (!over).then(|| kept.entry.clone())
    })
}

pub(crate) fn state_put(key: &str, value: &[u8], keep: Keep) -> Result<u64, StateError> {
    world(|world| {
        if (key.len() + value.len()) as u64 + ENTRY_OVERHEAD > world.state_limit {
            return Err(StateError::TooLarge(world.state_limit));
        }
        let version = world.state.get(key).map_or(1, |kept| kept.entry.version + 1);
        let entry = Entry {
            value: value.to_vec(),
            version,
        };
        let expires = keep.for_ms.map(|lifetime| lifetime.saturating_add(world.now * 1_000));
        world.state.insert(key.into(), Kept { entry, expires });
        Ok(version)
    })
}

pub(crate) fn state_swap(key: &str, version: Option<u64>, value: &[u8], keep: Keep) -> Result<u64, StateError> {
    let current = state_get(key).map(|entry| entry.version);
    if current == version {
        state_put(key, value, keep)
    } else {
        Err(StateError::Changed)
    }
}

pub(crate) fn state_remove(key: &str) {
    world(|world| world.state.remove(key));
}

/// A lock that is held; the name is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Held(String);

impl Drop for Held {
    fn drop(&mut self) {
        world(|world| world.locks.remove(&self.0));
    }
}

/// A test has no other callers, so a taken lock becomes free while waiting only if the test set so (`FakeHost::locked`).
pub(crate) fn lock(name: &str, _wait_ms: u32) -> Option<Held> {
    if let Some(meanwhile) = world(|world| world.locked_by_others.remove(name)) {
        meanwhile();
    }
    world(|world| world.locks.insert(name.into())).then(|| Held(name.into()))
}

/// A key as bytes.
#[derive(Debug)]
pub(crate) struct Key {
    name: String,
    bytes: Vec<u8>,
}

impl Key {
    pub(crate) fn hmac(&self, hash: Hash, data: &[u8]) -> Result<Vec<u8>, KeyError> {
        insist_on_secret(&self.name, Some(SecretUse::Hmac));
        let algorithm = match hash {
            Hash::Sha1 => ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Hash::Sha256 => ring::hmac::HMAC_SHA256,
        };
        Ok(ring::hmac::sign(&ring::hmac::Key::new(algorithm, &self.bytes), data)
            .as_ref()
            .to_vec())
    }

    pub(crate) fn derive(&self, hash: Hash, data: &[u8], how: &Derivation) -> Result<Self, KeyError> {
        Ok(Self {
            name: self.name.clone(),
            bytes: self.hmac_with(hash, data, how)?,
        })
    }

    pub(crate) fn hmac_with(&self, hash: Hash, data: &[u8], how: &Derivation) -> Result<Vec<u8>, KeyError> {
        let word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
        let usual = how.prefix.len() <= 16 && how.prefix.iter().all(word) && matches!(&*how.suffix, b"" | b"&");
        if !usual {
            return Err(KeyError::Unusable(
                "no key is derived with this prefix or suffix".into(),
            ));
        }
        let framed = Self {
            name: self.name.clone(),
            bytes: [&how.prefix, &self.bytes, &how.suffix].map(Vec::as_slice).concat(),
        };
        let bytes = framed.hmac(hash, data)?;
        Ok(if how.as_hex {
            bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
                .into()
        } else {
            bytes
        })
    }

    /// No real signature: readable text, so that a test can check what was signed by which key.
    pub(crate) fn sign(&self, scheme: Signature, data: &[u8]) -> Result<Vec<u8>, KeyError> {
        insist_on_secret(&self.name, Some(SecretUse::Sign));
        Ok(format!("{scheme:?} by {} of {}", self.name, String::from_utf8_lossy(data)).into_bytes())
    }
}

pub(crate) fn key_open(name: &str) -> Result<Key, KeyError> {
    secret(name, None).map(|bytes| Key {
        name: name.into(),
        bytes,
    })
}

pub(crate) fn key_reveal(name: &str) -> Result<Vec<u8>, KeyError> {
    secret(name, Some(SecretUse::Reveal))
}

pub(crate) fn key_placeholder(name: &str, encoding: Encoding) -> Result<String, KeyError> {
    secret(name, Some(SecretUse::Placeholder)).map(|_| testing::placeholder(name, encoding))
}

pub(crate) fn key_basic(user: &str, password: &str) -> Result<String, KeyError> {
    secret(user, Some(SecretUse::Placeholder))?;
    secret(password, Some(SecretUse::Placeholder)).map(|_| testing::basic(user, password))
}

/// A secret for this use, or for whatever follows.
fn secret(name: &str, how: Option<SecretUse>) -> Result<Vec<u8>, KeyError> {
    insist_on_secret(name, how);
    world(|world| world.secrets.get(name).cloned())
        .ok_or_else(|| KeyError::NotGranted(format!("the secret {name:?} is not granted")))
}

pub(crate) fn digest(hash: Hash, data: &[u8]) -> Vec<u8> {
    let algorithm = match hash {
        Hash::Sha1 => &ring::digest::SHA1_FOR_LEGACY_USE_ONLY,
        Hash::Sha256 => &ring::digest::SHA256,
    };
    ring::digest::digest(algorithm, data).as_ref().to_vec()
}
