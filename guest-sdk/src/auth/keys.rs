//! Secrets, without ever seeing them.
//!
//! Two ways: a [`Placeholder`] is text that stands for a secret in a request and that the host replaces on its way out, only for
//! destinations the secret is bound to; a [`Key`] lets the host compute with one. [`Keys::reveal`] is the third, to be avoided.

use std::fmt;

use serde::Serialize;

use crate::host;
use crate::types::Failure;

pub use crate::bindings::imports::cloudwit::provider::keys::{Derivation, Encoding, Hash, KeyError, Signature};

/// The place of a secret in a header or body, until the host fills it in. From [`Keys::placeholder`].
///
/// Letters, digits and `-` only, so that JSON, XML and forms carry it unchanged; how the secret itself is to be escaped was set when it
/// was requested. It is good for the call at hand only: kept in the state, it would be sent as it is later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Placeholder(String);

impl Placeholder {
    /// The text to write into the request.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for Placeholder {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<Placeholder> for String {
    fn from(placeholder: Placeholder) -> Self {
        placeholder.0
    }
}

/// Bytes of a block of SHA-1 and SHA-256.
const BLOCK: usize = 64;

/// Key handles and hashes. From [`Context::keys`](crate::Context::keys).
#[derive(Debug, Clone, Copy)]
pub struct Keys(pub(crate) ());

impl Keys {
    /// The secret of this name as it is, for a header.
    ///
    /// ```
    /// # use cloudwit_guest_sdk::{Failure, testing::{FakeHost, placeholder}, keys::Encoding};
    /// # let host = FakeHost::new();
    /// # host.secret("token", "t").expect("GET", "https://lab.test/").answers_with(204, &[], "");
    /// # let cloud = host.context();
    /// let token = cloud.keys().placeholder("token")?;
    /// cloud.http().bearer(&token).get("https://lab.test/").send()?;
    /// # assert_eq!(token.as_str(), placeholder("token", Encoding::Plain));
    /// # Ok::<(), Failure>(())
    /// ```
    ///
    /// # Errors
    /// `denied` when it is not granted for this use, with the lines to add.
    pub fn placeholder(&self, name: &str) -> Result<Placeholder, Failure> {
        self.placeholder_as(name, Encoding::Plain)
    }

    /// The secret of this name, escaped for where its placeholder stands: [`Encoding::Json`] inside a JSON string, [`Encoding::Form`]
    /// for a form's value, [`Encoding::Xml`] in XML.
    ///
    /// # Errors
    /// As [`placeholder`](Self::placeholder); also when the secret cannot be written so.
    pub fn placeholder_as(&self, name: &str, encoding: Encoding) -> Result<Placeholder, Failure> {
        host::key_placeholder(name, encoding)
            .map(Placeholder)
            .map_err(Failure::from)
    }

    /// The value of an HTTP Basic header, `Basic` included, from the names of the secrets for user and password.
    ///
    /// # Errors
    /// As [`placeholder`](Self::placeholder); also when the user contains a colon.
    pub fn basic(&self, user: &str, password: &str) -> Result<Placeholder, Failure> {
        host::key_basic(user, password).map(Placeholder).map_err(Failure::from)
    }

    /// A handle to the secret of this name.
    ///
    /// # Errors
    /// `denied` when it is not granted, with the lines to add.
    pub fn open(&self, name: &str) -> Result<Key, Failure> {
        host::key_open(name).map(Key).map_err(Failure::from)
    }

    /// The secret itself. Needs a grant of its own and every use is logged; prefer [`Placeholder`] and [`Key`].
    ///
    /// # Errors
    /// `denied` when it is not granted for this use.
    pub fn reveal(&self, name: &str) -> Result<Vec<u8>, Failure> {
        host::key_reveal(name).map_err(Failure::from)
    }

    /// HMAC (RFC 2104) under a key that the cloud gave at run time, of the host's hash. For the operator's secrets there is [`open`](Self::open).
    pub fn hmac(&self, hash: Hash, key: &[u8], data: &[u8]) -> Vec<u8> {
        let mut block = if key.len() > BLOCK {
            self.digest(hash, key)
        } else {
            key.to_vec()
        };
        block.resize(BLOCK, 0);
        let pad = |with: u8| block.iter().map(|byte| byte ^ with).collect::<Vec<u8>>();
        let inner = self.digest(hash, &[pad(0x36), data.to_vec()].concat());
        self.digest(hash, &[pad(0x5c), inner].concat())
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

    /// HMAC of the data under this key with a prefix or suffix, by the same rules as [`derive_as`](Self::derive_as).
    ///
    /// # Errors
    /// `denied` when this use is not granted.
    pub fn hmac_with(&self, hash: Hash, data: &[u8], how: &Derivation) -> Result<Vec<u8>, Failure> {
        self.0.hmac_with(hash, data, how).map_err(Failure::from)
    }

    /// A new key: HMAC of the data under this key with `prefix` put before it (AWS needs `AWS4` for the first step, nothing after).
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

    /// A new key, with all options of [`Derivation`]: a prefix of at most 16 letters and digits, the suffix `&`, hexadecimal text.
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
            KeyError::NotGranted(text) | KeyError::Unusable(text) => Self::denied(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;
    use crate::testing::FakeHost;
    use crate::types::FailureKind;

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

    /// RFC 2202, RFC 4231: test cases 2 and 6.
    #[test]
    fn keys_of_the_cloud_have_the_published_hmacs() {
        let _host = FakeHost::new();
        let hmac = |hash, key: &[u8], text: &str| {
            let mac = Context::new().keys().hmac(hash, key, text.as_bytes());
            mac.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        let text = "what do ya want for nothing?";
        assert_eq!(
            hmac(Hash::Sha1, b"Jefe", text),
            "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"
        );
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hmac(Hash::Sha256, b"Jefe", text), expected);
        let text = "Test Using Larger Than Block-Size Key - Hash Key First";
        let expected = "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54";
        assert_eq!(hmac(Hash::Sha256, &[0xaa; 131], text), expected);
    }

    #[test]
    fn a_secret_that_is_not_granted_is_denied() {
        let _host = FakeHost::new();
        let keys = Context::new().keys();
        assert!(
            matches!(keys.open("other"), Err(Failure { kind: FailureKind::Denied, message: text, .. }) if text.contains("other"))
        );
        assert!(matches!(
            keys.reveal("other"),
            Err(Failure {
                kind: FailureKind::Denied,
                ..
            })
        ));
        assert!(matches!(
            keys.placeholder("other"),
            Err(Failure {
                kind: FailureKind::Denied,
                ..
            })
        ));
        assert!(matches!(
            keys.basic("other", "other"),
            Err(Failure {
                kind: FailureKind::Denied,
                ..
            })
        ));
        assert_eq!(keys.digest(Hash::Sha1, b"").len(), 20);
    }

    #[test]
    fn test_placeholders_name_their_secret() {
        let host = FakeHost::new();
        host.secret("user", "a").secret("password", "b");
        let keys = Context::new().keys();
        let json = keys.placeholder_as("password", Encoding::Json).unwrap();
        assert_eq!(json.as_str(), "cloudwit-placeholder-password.json");
        assert_eq!(
            serde_json::to_string(&json).unwrap(),
            "\"cloudwit-placeholder-password.json\""
        );
        let basic = keys.basic("user", "password").unwrap();
        assert_eq!(String::from(basic), "cloudwit-placeholder-user.password.basic");
    }

    #[test]
    fn a_framed_key_signs_without_being_derived() {
        let host = FakeHost::new();
        host.secret("secret", "k");
        let secret = Context::new().keys().open("secret").unwrap();
        let how = |suffix: &str, as_hex| Derivation {
            prefix: Vec::new(),
            suffix: suffix.into(),
            as_hex,
        };
        let plain = secret.hmac_with(Hash::Sha1, b"data", &how("", false));
        assert_eq!(plain, secret.hmac(Hash::Sha1, b"data"));
        // HMAC-SHA1 of "data" under "k&", by Python's hmac.
        let framed = secret.hmac_with(Hash::Sha1, b"data", &how("&", true)).unwrap();
        assert_eq!(
            String::from_utf8(framed).unwrap(),
            "aa9f4e884810c00045170a5771be6eca38ebd4f4"
        );
        assert!(secret.hmac_with(Hash::Sha1, b"data", &how("x", false)).is_err());
    }

    #[test]
    fn a_derivation_that_no_scheme_needs_is_denied() {
        let host = FakeHost::new();
        host.secret("secret", "s");
        let secret = Context::new().keys().open("secret").unwrap();
        for (suffix, allowed) in [("&", true), ("\0", false), ("x", false)] {
            let how = Derivation {
                prefix: Vec::new(),
                suffix: suffix.into(),
                as_hex: false,
            };
            assert_eq!(secret.derive_as(Hash::Sha1, b"", &how).is_ok(), allowed, "{suffix:?}");
        }
    }
}
