//! Secrets of an operator: kept, used in signatures and placeholders, redacted from texts.

pub(crate) mod config_secrets;
pub(crate) mod encoding;
pub(crate) mod forms;
pub mod keys;
pub(crate) mod placeholders;
pub(crate) mod redact;
mod refused;
pub(crate) mod secret;

use std::sync::Arc;

use cloudwit_model::{VOLUME_SECRET, VolumeSecrets};

use crate::secrets::keys::Keyring;
use crate::secrets::redact::Redactor;

/// Secrets of one provider, and what hides them in its texts. Clones share both.
#[derive(Clone)]
pub(crate) struct Secrets {
    pub keyring: Arc<Keyring>,
    pub redactor: Arc<Redactor>,
}

impl Secrets {
    /// `written`: name and value of each secret that stands in the configuration instead of in a file.
    pub fn new(keyring: Keyring, written: &[(String, String)]) -> Self {
        let written = written.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let redactor = Redactor::new(keyring.contents().chain(written));
        Self {
            keyring: Arc::new(keyring),
            redactor: Arc::new(redactor),
        }
    }

    /// The same for one call, with the secrets of the request that it belongs to. All of these are hidden in its texts; those that are granted can be used.
    pub fn with_volume_secrets(&self, secrets: &VolumeSecrets) -> Self {
        if secrets.is_empty() {
            return self.clone();
        }
        let named = secrets
            .expose()
            .map(|(key, value)| (format!("{VOLUME_SECRET}{key}"), value));
        let named: Vec<(String, &str)> = named.collect();
        let named = named.iter().map(|(name, value)| (name.as_str(), *value));
        let keyring = self.keyring.with_volume_secrets(named.clone());
        let redactor = Redactor::over(&self.redactor, named.map(|(name, value)| (name, value.as_bytes())));
        Self {
            keyring: Arc::new(keyring),
            redactor: Arc::new(redactor),
        }
    }
}

#[cfg(test)]
mod tests;
