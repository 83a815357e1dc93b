//! Why a secret is not used, with the entry of `grants.secrets` that would allow it. The texts never contain a secret.

use std::path::PathBuf;

use thiserror::Error;

use crate::grants::{SecretGrant, SecretUse, is_secret_name, yaml};
use crate::net::destination::{Destination, Host};

/// Why a secret cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    /// No secret of that name is granted. Carries the lines to add.
    #[error("{0}")]
    NotGranted(String),
    /// It is granted, but not for this use (carries the line to change), or it is not fit for it.
    #[error("{0}")]
    Unusable(String),
}

/// Why a placeholder is not filled.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{error}")]
pub(crate) struct Withheld {
    /// In words.
    pub error: KeyError,
    /// The entry for `grants.secrets` that would allow it.
    pub entry: String,
}

/// The entry that would grant one use. The file can only be guessed; a secret of volumes has none.
pub(super) fn suggestion(name: &str, wanted: SecretUse) -> SecretGrant {
    let mut grant = SecretGrant {
        name: name.to_owned(),
        uses: vec![wanted],
        ..SecretGrant::default()
    };
    if grant.volume_key().is_none() {
        grant.file = PathBuf::from("/etc/cloudwit/secrets").join(name);
    }
    grant
}

/// The refusal of a secret for which there is no entry.
pub(super) fn not_granted(entry: &SecretGrant) -> KeyError {
    if !is_secret_name(&entry.name) {
        return KeyError::NotGranted("the provider requested a secret by an invalid name".into());
    }
    let file = match entry.volume_key() {
        Some(_) => "",
        None => " (with the file it is in)",
    };
    KeyError::NotGranted(format!(
        "secret {:?} is not granted; to allow it, add to grants.secrets{file}: {}",
        entry.name,
        yaml::secret_entry(entry)
    ))
}

/// The refusal of a secret of volumes that is granted and did not come with the request.
pub(super) fn not_in_request(key: &str) -> KeyError {
    KeyError::Unusable(format!(
        "the request that this call belongs to has no value for the key {key:?}; the Secret that the class names for such requests (its parameter \
         csi.storage.k8s.io/...-secret-name) has to have it"
    ))
}

/// How a destination is written in the `hosts` of an entry.
pub(super) fn binding_text(to: &Destination) -> String {
    match &to.host {
        Host::Name(name) if to.port == to.scheme.default_port() => name.clone(),
        host => format!("{host}:{}", to.port),
    }
}
