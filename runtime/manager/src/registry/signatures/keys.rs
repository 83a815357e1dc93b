//! Keys of signatures: ECDSA on P-256 with SHA-256, as cosign makes them by default.

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use sha2::{Digest as _, Sha256};

/// How a public key on P-256 begins in DER: the two object identifiers, and a bit string of 65 bytes (RFC 5480, 2).
const P256: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// What the PEM of an encrypted private key of cosign begins with, in its two generations.
const ENCRYPTED: [&str; 3] = [
    "ENCRYPTED SIGSTORE PRIVATE KEY",
    "ENCRYPTED COSIGN PRIVATE KEY",
    "ENCRYPTED PRIVATE KEY",
];

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(Vec<u8>);

impl PublicKey {
    /// Reads a PEM file with one public key.
    pub fn from_pem(pem: &[u8]) -> anyhow::Result<Self> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem)
            .ok()
            .context("is not a public key; it has to be a PEM file with BEGIN PUBLIC KEY, such as cosign.pub")?;
        match der.strip_prefix(&P256) {
            Some(point) if point.len() == 65 && point[0] == 4 => Ok(Self(point.to_vec())),
            _ => bail!(
                "is a public key of another kind; only ECDSA on P-256 is known, as `cosign generate-key-pair` makes them"
            ),
        }
    }

    /// Whether the key's owner signed this.
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &self.0)
            .verify(message, signature)
            .is_ok()
    }

    /// What bundles call the key: the SHA-256 of its DER, in base64, as cosign does.
    pub fn hint(&self) -> String {
        let digest = Sha256::new_with_prefix(P256).chain_update(&self.0).finalize();
        STANDARD.encode(digest)
    }
}

/// A private key. Has no `Debug`.
pub struct PrivateKey(EcdsaKeyPair);

impl PrivateKey {
    /// Reads a PEM file with one private key in PKCS #8. Messages contain nothing of it.
    pub fn from_pem(pem: &[u8]) -> anyhow::Result<Self> {
        let text = String::from_utf8_lossy(pem);
        if ENCRYPTED.iter().any(|begin| text.contains(begin)) {
            bail!(
                "is encrypted, which only cosign reads: sign with `cosign sign --key`, or give a key of `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`"
            );
        }
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem).ok().context(
            "is not a private key in PKCS #8 (BEGIN PRIVATE KEY); `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256` makes one, \
             `openssl pkcs8 -topk8 -nocrypt` changes an older form",
        )?;
        let pair = EcdsaKeyPair::from_pkcs8(
            &ECDSA_P256_SHA256_ASN1_SIGNING,
            der.secret_pkcs8_der(),
            &SystemRandom::new(),
        );
        pair.ok()
            .map(Self)
            .context("is a private key of another kind; only ECDSA on P-256 is known")
    }

    /// Signs this.
    pub fn sign(&self, message: &[u8]) -> anyhow::Result<Vec<u8>> {
        let signature = self.0.sign(&SystemRandom::new(), message);
        Ok(signature.ok().context("signing failed")?.as_ref().to_vec())
    }

    /// Its public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.public_key().as_ref().to_vec())
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Made with OpenSSL 3 for this test.
    pub const PRIVATE: &str = include_str!("../testdata/key.pem");
    /// Its public half, and a signature of `message` by it, in base64, both by OpenSSL.
    pub const PUBLIC: &str = include_str!("../testdata/key.pub");
    const SIGNATURE: &str = include_str!("../testdata/signature.base64");
    /// Another one.
    pub const OTHER_PUBLIC: &str = include_str!("../testdata/other.pub");

    #[test]
    fn signature_of_openssl_is_verified_and_ours_too() {
        let public = PublicKey::from_pem(PUBLIC.as_bytes()).unwrap();
        let other = PublicKey::from_pem(OTHER_PUBLIC.as_bytes()).unwrap();
        let signature = STANDARD.decode(SIGNATURE.trim()).unwrap();
        assert!(public.has_signed(b"message", &signature));
        assert!(!public.has_signed(b"messages", &signature) && !other.has_signed(b"message", &signature));
        let private = PrivateKey::from_pem(PRIVATE.as_bytes()).unwrap();
        assert_eq!(private.public(), public);
        assert!(public.has_signed(b"x", &private.sign(b"x").unwrap()));
    }

    #[test]
    fn other_keys_are_refused_with_what_to_give() {
        for (pem, says) in [
            ("", "BEGIN PUBLIC KEY"),
            (PRIVATE, "BEGIN PUBLIC KEY"),
            (include_str!("../testdata/rsa.pub"), "only ECDSA on P-256"),
        ] {
            let error = PublicKey::from_pem(pem.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        for (pem, says) in [
            (PUBLIC.to_owned(), "PKCS #8"),
            (
                "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n".to_owned(),
                "cosign sign",
            ),
            (PRIVATE.replace('M', "N"), "private key"),
        ] {
            let error = PrivateKey::from_pem(pem.as_bytes()).err().unwrap().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
