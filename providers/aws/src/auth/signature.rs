//! Signature Version 4: what is signed, and the signature.
//!
//! ```text
//!   method, path, query, headers, digest of the body -> canonical request -> digest
//!   "AWS4" + secret -> date -> region -> service -> "aws4_request"        -> key       } signature
//!   algorithm, time, scope, digest of the canonical request               -> text      }
//! ```
//!
//! The secret is a handle of the host ([`SigningKey::Host`]) or, for temporary credentials, a text that the cloud returned
//! ([`SigningKey::Held`]). Deriving the key takes four calls into the host, microseconds against a request's milliseconds: it is not kept.

use cloudwit_guest_sdk::keys::{Hash, Key, Keys};
use cloudwit_guest_sdk::prelude::*;
use data_encoding::HEXLOWER;
use hmac_sha256::HMAC;

/// The only algorithm there is.
pub const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Ends every scope and every chain of keys.
const TERMINATOR: &str = "aws4_request";

/// What signatures are made with.
#[derive(Debug)]
pub enum SigningKey<'a> {
    /// A secret that stays in the host.
    Host(Key),
    /// The secret of temporary credentials.
    Held(&'a HeldSecret),
}

/// A secret text that does not show itself.
#[derive(Clone, PartialEq, Eq)]
pub struct HeldSecret(pub String);

impl std::fmt::Debug for HeldSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(secret)")
    }
}

/// When, where and for what a signature counts.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// `20150830T123600Z`.
    pub time: &'a str,
    /// Region.
    pub region: &'a str,
    /// The service's signing name.
    pub service: &'a str,
}

impl Scope<'_> {
    fn date(&self) -> &str {
        self.time.get(..8).unwrap_or(self.time)
    }

    /// `20150830/us-east-1/iam/aws4_request`.
    pub fn text(&self) -> String {
        [self.date(), self.region, self.service, TERMINATOR].join("/")
    }
}

/// A request as far as it is signed. The query has to be encoded and sorted already; ours is always empty.
#[derive(Debug)]
pub struct Signable<'a> {
    /// Method.
    pub method: &'a str,
    /// Path, `/` at least.
    pub path: &'a str,
    /// Query.
    pub query: &'a str,
    /// Headers with lower-case names, in any order; `host` and `x-amz-date` among them.
    pub headers: Vec<(&'a str, &'a str)>,
    /// Body.
    pub body: &'a [u8],
}

impl Signable<'_> {
    /// The names of the signed headers, as the header `Authorization` lists them.
    fn signed_headers(&self) -> String {
        let mut names: Vec<&str> = self.headers.iter().map(|(name, _)| *name).collect();
        names.sort();
        names.join(";")
    }

    /// The request in the one form that both sides write alike.
    fn canonical(&self, keys: Keys) -> String {
        let mut headers: Vec<(&str, &str)> = self.headers.clone();
        headers.sort();
        let mut text = format!("{}\n{}\n{}\n", self.method, self.path, self.query);
        for (name, value) in headers {
            text.push_str(name);
            text.push(':');
            for (index, word) in value.split_ascii_whitespace().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                text.push_str(word);
            }
            text.push('\n');
        }
        text.push('\n');
        text.push_str(&self.signed_headers());
        text.push('\n');
        text.push_str(&digest(keys, self.body));
        text
    }
}

fn digest(keys: Keys, data: &[u8]) -> String {
    HEXLOWER.encode(&keys.digest(Hash::Sha256, data))
}

/// The signature of the request, as hexadecimal text.
///
/// # Errors
/// `denied` when the secret is not granted for `hmac`.
pub fn signature(keys: Keys, key: SigningKey<'_>, scope: Scope<'_>, request: &Signable<'_>) -> Result<String, Failure> {
    let canonical = digest(keys, request.canonical(keys).as_bytes());
    let text = [ALGORITHM, scope.time, &scope.text(), &canonical].join("\n");
    Ok(HEXLOWER.encode(&sign(key, scope, text.as_bytes())?))
}

fn sign(key: SigningKey<'_>, scope: Scope<'_>, text: &[u8]) -> Result<Vec<u8>, Failure> {
    let steps = [scope.date(), scope.region, scope.service, TERMINATOR];
    match key {
        SigningKey::Host(secret) => {
            let mut key = secret;
            for (index, step) in steps.into_iter().enumerate() {
                let prefix = if index == 0 { "AWS4" } else { "" };
                key = key.derive(Hash::Sha256, prefix, step.as_bytes())?;
            }
            key.hmac(Hash::Sha256, text)
        }
        SigningKey::Held(secret) => {
            let mut key = format!("AWS4{}", secret.0).into_bytes();
            for step in steps {
                key = HMAC::mac(step, key).to_vec();
            }
            Ok(HMAC::mac(text, key).to_vec())
        }
    }
}

/// The header `Authorization`. `access_key_id` may be a placeholder: it is no part of what is signed.
///
/// # Errors
/// As [`signature`].
pub fn authorization(
    keys: Keys,
    access_key_id: &str,
    key: SigningKey<'_>,
    scope: Scope<'_>,
    request: &Signable<'_>,
) -> Result<String, Failure> {
    let signature = signature(keys, key, scope, request)?;
    Ok(format!(
        "{ALGORITHM} Credential={access_key_id}/{}, SignedHeaders={}, Signature={signature}",
        scope.text(),
        request.signed_headers()
    ))
}

#[cfg(test)]
mod tests;
