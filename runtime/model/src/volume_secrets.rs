//! Secrets that come with a request about volumes: bounded, never printed, wiped when dropped.
//!
//! Kubernetes' sidecars read them from the Secret that a class names (`csi.storage.k8s.io/provisioner-secret-name` and the like) and send them with each
//! request. A provider uses them by name, [`VOLUME_SECRET`] and the key, and only in the call that they came with.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher as _;
use std::sync::{Arc, LazyLock};

use thiserror::Error;
use zeroize::Zeroizing;

/// How the names of all these secrets begin. No name of a secret with a file contains a slash.
pub const VOLUME_SECRET: &str = "volume/";

/// The largest number of secrets of one request.
pub const MAX_VOLUME_SECRETS: usize = 16;

/// The longest key, in bytes: with [`VOLUME_SECRET`] before it, it is the name of a secret, which has at most 128 (`wit/v0.1/info.wit`).
pub const MAX_VOLUME_SECRET_KEY: usize = 128 - VOLUME_SECRET.len();

/// The longest value, in bytes. The largest private keys have 4 KiB, and the interface has no more for a whole map.
pub const MAX_VOLUME_SECRET_VALUE: usize = 4 << 10;

/// The longest values of one request together, in bytes. Hiding them takes up to a hundred times as much memory for the time of a call.
pub const MAX_VOLUME_SECRETS_VALUES: usize = 8 << 10;

type Map = BTreeMap<String, Zeroizing<String>>;

/// The secrets of one request, by their keys. Clones share them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct VolumeSecrets(Arc<Map>);

/// Stands for secrets where they are only compared. The key of the hash is made anew by each process, so nothing can be guessed from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretsFingerprint(u64);

/// What is wrong with the secrets of a request: each key with its limit. Never contains a value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", .0.join("; "))]
pub struct VolumeSecretsError(pub Vec<String>);

impl VolumeSecrets {
    /// Secrets by their keys, within the limits of this module.
    ///
    /// # Errors
    /// With all that is wrong.
    pub fn new(secrets: impl IntoIterator<Item = (String, String)>) -> Result<Self, VolumeSecretsError> {
        let secrets: Map = secrets
            .into_iter()
            .map(|(key, value)| (key, Zeroizing::new(value)))
            .collect();
        let mut mistakes = Vec::new();
        if secrets.len() > MAX_VOLUME_SECRETS {
            let count = secrets.len();
            mistakes.push(format!("{count} secrets, at most {MAX_VOLUME_SECRETS} are allowed"));
        }
        let keys = secrets.iter().take(MAX_VOLUME_SECRETS);
        mistakes.extend(keys.filter_map(|(key, value)| mistake(key, value)));
        let bytes: usize = secrets.values().map(|value| value.len()).sum();
        if mistakes.is_empty() && bytes > MAX_VOLUME_SECRETS_VALUES {
            mistakes.push(format!(
                "the secrets have {bytes} bytes together, at most {MAX_VOLUME_SECRETS_VALUES} are allowed"
            ));
        }
        if mistakes.is_empty() {
            Ok(Self(Arc::new(secrets)))
        } else {
            Err(VolumeSecretsError(mistakes))
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their keys, sorted.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Keys and values. Callers must not pass the values anywhere but where the grant of each allows.
    pub fn expose(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// What they are compared by.
    pub fn fingerprint(&self) -> SecretsFingerprint {
        static PROCESS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        let pairs: Vec<(&str, &str)> = self.expose().collect();
        SecretsFingerprint(PROCESS.hash_one(pairs))
    }
}

/// What is wrong with one.
fn mistake(key: &str, value: &str) -> Option<String> {
    if key.is_empty() {
        return Some("a secret has an empty key".to_owned());
    }
    if key.len() > MAX_VOLUME_SECRET_KEY {
        let begin = &key[..key.floor_char_boundary(MAX_VOLUME_SECRET_KEY)];
        return Some(format!(
            "the key {begin:?}... of a secret has {} bytes, at most {MAX_VOLUME_SECRET_KEY} are allowed",
            key.len()
        ));
    }
    if !key.bytes().all(is_in_key) {
        return Some(format!(
            "the key {key:?} of a secret has other characters than letters, digits, '.', '_' and '-'"
        ));
    }
    (value.len() > MAX_VOLUME_SECRET_VALUE).then(|| {
        format!(
            "the secret {key:?} has {} bytes, at most {MAX_VOLUME_SECRET_VALUE} are allowed",
            value.len()
        )
    })
}

/// As keys of a Kubernetes Secret.
fn is_in_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._-".contains(&byte)
}

impl fmt::Debug for VolumeSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} secrets]", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<VolumeSecrets, VolumeSecretsError> {
        let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        VolumeSecrets::new(pairs.into_iter().map(owned))
    }

    #[test]
    fn debug_shows_how_many_there_are() {
        let text = format!("{:?}", secrets([("passphrase", "hunter2-hunter2")]).unwrap());
        assert_eq!(text, "[1 secrets]");
    }

    #[test]
    fn limits_name_the_key_and_never_the_value() {
        let long_key = "k".repeat(MAX_VOLUME_SECRET_KEY + 1);
        let long_value = "hunter2-".repeat(MAX_VOLUME_SECRET_VALUE / 8 + 1);
        for (key, value, told) in [
            ("", "hunter2-hunter2", "empty key"),
            (&*long_key, "hunter2-hunter2", "has 122 bytes, at most 121"),
            ("a/b", "hunter2-hunter2", "\"a/b\""),
            (
                "passphrase",
                &*long_value,
                "\"passphrase\" has 4104 bytes, at most 4096",
            ),
        ] {
            let error = secrets([(key, value)]).unwrap_err().to_string();
            assert!(error.contains(told) && !error.contains("hunter2"), "{error}");
        }
        let longest = "k".repeat(MAX_VOLUME_SECRET_KEY);
        let largest = "v".repeat(MAX_VOLUME_SECRET_VALUE);
        assert!(secrets([(&*longest, &*largest)]).is_ok());
    }

    #[test]
    fn number_and_bytes_together_are_bounded() {
        let keys: Vec<String> = (0..=MAX_VOLUME_SECRETS).map(|number| format!("key-{number}")).collect();
        let all = keys.iter().map(|key| (key.as_str(), "hunter2-hunter2"));
        let many = secrets(all.clone()).unwrap_err();
        assert_eq!(many.to_string(), "17 secrets, at most 16 are allowed");
        assert_eq!(secrets(all.take(MAX_VOLUME_SECRETS)).unwrap().keys().count(), 16);
        let large = "v".repeat(MAX_VOLUME_SECRET_VALUE);
        let three = keys.iter().take(3).map(|key| (key.as_str(), large.as_str()));
        let large = secrets(three).unwrap_err().to_string();
        assert_eq!(large, "the secrets have 12288 bytes together, at most 8192 are allowed");
    }

    #[test]
    fn fingerprints_are_equal_for_equal_secrets_only() {
        let of = |pairs: &[(&str, &str)]| secrets(pairs.iter().copied()).unwrap().fingerprint();
        assert_eq!(of(&[("a", "1"), ("b", "2")]), of(&[("b", "2"), ("a", "1")]));
        for other in [
            &[][..],
            &[("a", "1")],
            &[("a", "1"), ("b", "3")],
            &[("a", "1b"), ("2", "")],
        ] {
            assert_ne!(of(&[("a", "1"), ("b", "2")]), of(other), "{other:?}");
        }
    }
}
