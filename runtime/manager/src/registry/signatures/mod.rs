//! Verdict on the signatures of a manifest, by keys. Pure.

pub(crate) mod bundle;
pub mod keys;
pub(crate) mod simple_signing;

use anyhow::bail;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::registry::manifest::shortened;
use crate::registry::reference::ContentDigest;
use crate::registry::signatures::keys::PublicKey;

/// Signatures of one manifest that are checked.
pub const MOST: usize = 32;

/// Size of one, in bytes.
pub const LARGEST: u64 = 256 << 10;

/// A signature as a registry has it. Texts are base64, which a file of JSON keeps as they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SignatureFile {
    /// Text and signature of simple signing.
    Simple {
        /// The text.
        payload: String,
        /// The signature.
        signature: String,
    },
    /// A bundle.
    Bundle(String),
}

impl SignatureFile {
    /// Of simple signing, from the layer's content and its annotation.
    pub fn simple(payload: &[u8], signature: &str) -> Self {
        Self::Simple {
            payload: STANDARD.encode(payload),
            signature: signature.to_owned(),
        }
    }

    /// A bundle.
    pub fn bundle(content: &[u8]) -> Self {
        Self::Bundle(STANDARD.encode(content))
    }
}

/// What one signature is worth.
enum Worth {
    Good,
    /// By a known key, but for another manifest.
    Elsewhere(String),
    ByOthers,
}

/// Whether one of the keys has signed this manifest.
///
/// # Errors
///
/// When none has; says what there is instead.
pub fn check(files: &[SignatureFile], manifest: &[u8], keys: &[PublicKey]) -> anyhow::Result<()> {
    let digest = ContentDigest::of(manifest);
    let mut elsewhere = None;
    for file in files.iter().take(MOST) {
        match worth(file, manifest, &digest, keys) {
            Worth::Good => return Ok(()),
            Worth::Elsewhere(other) => elsewhere = Some(other),
            Worth::ByOthers => {}
        }
    }
    match (elsewhere, files.len()) {
        (Some(other), _) => bail!(
            "the signature is by a key of verify.keys, but for another manifest, {}; it was copied from there",
            shortened(&other)
        ),
        (None, 0) => bail!("it is not signed; sign it with `cloudwit provider sign` or `cosign sign --key`"),
        (None, count) => bail!(
            "it has {count} signatures, but none by a key of verify.keys; sign it with one of these, or add the signer's key"
        ),
    }
}

fn worth(file: &SignatureFile, manifest: &[u8], digest: &ContentDigest, keys: &[PublicKey]) -> Worth {
    let by_a_key = |message: &[u8], signature: &[u8]| keys.iter().any(|key| key.has_signed(message, signature));
    let (signed, about) = match file {
        SignatureFile::Simple { payload, signature } => {
            let (Ok(payload), Ok(signature)) = (STANDARD.decode(payload), STANDARD.decode(signature)) else {
                return Worth::ByOthers;
            };
            let about = simple_signing::signed_digest(&payload);
            (by_a_key(&payload, &signature), about.into_iter().collect::<Vec<_>>())
        }
        SignatureFile::Bundle(content) => {
            let Some(read) = STANDARD
                .decode(content)
                .ok()
                .and_then(|content| bundle::read(&content, digest))
            else {
                return Worth::ByOthers;
            };
            let message = read.message.as_deref().unwrap_or(manifest);
            let signed = read.signatures.iter().any(|signature| by_a_key(message, signature));
            (signed, read.about)
        }
    };
    if !signed || about.is_empty() {
        return Worth::ByOthers;
    }
    if about.contains(&digest.to_string()) {
        Worth::Good
    } else {
        Worth::Elsewhere(about.into_iter().next().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
