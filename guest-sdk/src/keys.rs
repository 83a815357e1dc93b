//! Secrets, without ever seeing them.
//!
//! Two ways: a [`Secret`] is text that stands for a secret in a request and that the host replaces on its way out, only for
//! destinations the secret is bound to; a [`Key`] lets the host compute with one. [`Keys::reveal`] is the third, to be avoided.

use core::fmt;

use crate::host;
use crate::types::Failure;
use crate::without_std::prelude::*;

pub use crate::bindings::imports::cloudwit::provider::keys::{Derivation, Hash, KeyError, Signature};

/// The place of a secret in a header or body: `{{secret:NAME}}` until the host fills it in.
///
/// ```
/// # use cloudwit_guest_sdk::Secret;
/// assert_eq!(Secret::new("token").to_string(), "{{secret:token}}");
/// assert_eq!(Secret::new("password").json().to_string(), "{{secret:password|json}}");
/// assert_eq!(Secret::basic("user", "password").to_string(), "{{basic:user:password}}");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The secret of this name as it is.
    pub fn new(name: &str) -> Self {
        Self(["{{secret:", name, "}}"].concat())
    }

    /// The value of an HTTP Basic header, `Basic` included, from the names of two secrets.
    pub fn basic(user: &str, password: &str) -> Self {
        Self(["{{basic:", user, ":", password, "}}"].concat())
    }

    /// In Base64.
    pub fn base64(self) -> Self {
        self.escaped("|base64}}")
    }

    /// Escaped for the inside of a JSON string.
    pub fn json(self) -> Self {
        self.escaped("|json}}")
    }

    /// Escaped for a form value.
    pub fn form(self) -> Self {
        self.escaped("|form}}")
    }

    /// Escaped for XML text.
    pub fn xml(self) -> Self {
        self.escaped("|xml}}")
    }

    fn escaped(self, end: &str) -> Self {
        Self([self.0.trim_end_matches('}'), end].concat())
    }

    /// The text to write into the request.
    pub fn placeholder(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Key handles and hashes. From [`Context::keys`](crate::Context::keys).
#[derive(Debug, Clone, Copy)]
pub struct Keys(pub(crate) ());

impl Keys {
    /// A handle to the secret of this name.
    ///
    /// # Errors
    /// `denied` when it is not granted, with the lines to add.
    pub fn open(&self, name: &str) -> Result<Key, Failure> {
        host::key_open(name).map(Key).map_err(Failure::from)
    }

    /// The secret itself. Needs a grant of its own and every use is logged; prefer [`Secret`] and [`Key`].
    ///
    /// # Errors
    /// `denied` when it is not granted for this use.
    pub fn reveal(&self, name: &str) -> Result<Vec<u8>, Failure> {
        host::key_reveal(name).map_err(Failure::from)
    }

    /// Hash of the data. Computed by the host, which saves the component from carrying the code.
    pub fn digest(&self, hash: Hash, data: &[u8]) -> Vec<u8> {
        host::digest(hash, data)
    }
}

/// A secret, or a key derived from one, that the host computes with.
#[derive(Debug)]
pub struct Key(host::Key);

impl Key {
    /// HMAC of the data under this key.
    ///
    /// # Errors
    /// `denied` when this use is not granted.
    pub fn hmac(&self, hash: Hash, data: &[u8]) -> Result<Vec<u8>, Failure> {
        self.0.hmac(hash, data).map_err(Failure::from)
    }

    /// A new key: HMAC of the data under this key with `prefix` put before it (AWS wants `AWS4` for the first step, nothing after).
    ///
    /// # Errors
    /// `denied` when this use is not granted.
    pub fn derive(&self, hash: Hash, prefix: &str, data: &[u8]) -> Result<Self, Failure> {
        self.derive_as(
            hash,
            data,
            &Derivation {
                prefix: prefix.into(),
                suffix: Vec::new(),
                as_hex: false,
            },
        )
    }

    /// A new key, with all that [`Derivation`] can say.
    ///
    /// # Errors
    /// `denied` when this use is not granted.
    pub fn derive_as(&self, hash: Hash, data: &[u8], how: &Derivation) -> Result<Self, Failure> {
        self.0.derive(hash, data, how).map(Self).map_err(Failure::from)
    }

    /// Signature of the data by this private key.
    ///
    /// # Errors
    /// `denied` when this use is not granted.
    pub fn sign(&self, scheme: Signature, data: &[u8]) -> Result<Vec<u8>, Failure> {
        self.0.sign(scheme, data).map_err(Failure::from)
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::NotGranted(text) | KeyError::Unusable(text) => Self::Denied(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;
    use crate::testing::FakeHost;

    /// The key of AWS's published example (Signature Version 4, "Deriving the signing key").
    #[test]
    fn keys_are_derived_step_by_step_as_aws_does() {
        let host = FakeHost::new();
        host.secret("secret", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
        let secret = Context::new().keys().open("secret").unwrap();
        let key = ["20150830", "us-east-1", "iam"]
            .iter()
            .enumerate()
            .fold(secret, |key, (step, part)| {
                key.derive(Hash::Sha256, if step == 0 { "AWS4" } else { "" }, part.as_bytes())
                    .unwrap()
            });
        let signing: String = key
            .hmac(Hash::Sha256, b"aws4_request")
            .unwrap()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            signing,
            "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"
        );
    }

    #[test]
    fn a_secret_that_is_not_granted_is_denied() {
        let _host = FakeHost::new();
        let keys = Context::new().keys();
        assert!(matches!(keys.open("other"), Err(Failure::Denied(text)) if text.contains("other")));
        assert!(matches!(keys.reveal("other"), Err(Failure::Denied(_))));
        assert_eq!(keys.digest(Hash::Sha1, b"").len(), 20);
    }
}
