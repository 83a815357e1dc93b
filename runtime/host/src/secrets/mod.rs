//! Secrets of an operator: kept, used in signatures and placeholders, redacted from texts.

pub(crate) mod config_secrets;
pub(crate) mod encoding;
pub(crate) mod forms;
pub mod keys;
pub(crate) mod placeholders;
pub(crate) mod redact;
pub(crate) mod secret;

use std::sync::Arc;

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
}
