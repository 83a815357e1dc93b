//! Certificate pinning by thumbprint, as vSphere, OpenSSL and browsers print it.
//!
//! A grant with `thumbprints` trusts exactly the certificates that it names, without an authority: neither the name in the certificate
//! nor its dates count, since the operator has said which certificate is meant. That the server has the key that belongs to it is checked
//! in the handshake as always.

use std::fmt;
use std::sync::Arc;

use data_encoding::HEXLOWER_PERMISSIVE;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use thiserror::Error as ThisError;

/// What is wrong with a text that is no thumbprint, and how to put it right.
pub(crate) const NO_THUMBPRINT: (&str, &str) = (
    "is not a valid thumbprint",
    "write the 32 bytes of SHA-256 or the 20 of SHA-1 in hexadecimal digits, such as 1A:2B:...",
);

/// The hash of a certificate in its binary form (DER).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Thumbprint {
    /// 20 bytes; what older vCenters print. Only as good as SHA-1: prefer the other.
    Sha1([u8; 20]),
    /// 32 bytes.
    Sha256([u8; 32]),
}

impl Thumbprint {
    /// Reads hexadecimal digits, in whatever case, with or without colons, dashes or blanks between the bytes. None when these are neither
    /// 20 nor 32 bytes.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.replace([':', '-', ' '], "");
        let bytes = HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok()?;
        match bytes.len() {
            20 => bytes.try_into().ok().map(Self::Sha1),
            32 => bytes.try_into().ok().map(Self::Sha256),
            _ => None,
        }
    }

    fn is_of(&self, certificate: &[u8]) -> bool {
        match self {
            Self::Sha1(hash) => digest(&SHA1_FOR_LEGACY_USE_ONLY, certificate).as_ref() == hash,
            Self::Sha256(hash) => digest(&SHA256, certificate).as_ref() == hash,
        }
    }
}

/// The server has another certificate than those that are trusted.
#[derive(Debug, ThisError)]
#[error("its thumbprint (SHA-256) is {0}, which is none of those trusted here")]
struct OtherCertificate(String);

/// Trusts the certificates with these thumbprints, and no others.
pub(crate) struct Pinned {
    thumbprints: Vec<Thumbprint>,
    provider: Arc<CryptoProvider>,
}

impl Pinned {
    /// `provider` checks that the server has the key of its certificate.
    pub fn new(thumbprints: Vec<Thumbprint>, provider: Arc<CryptoProvider>) -> Self {
        Self { thumbprints, provider }
    }
}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pinned").field(&self.thumbprints).finish()
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.thumbprints.iter().any(|thumbprint| thumbprint.is_of(end_entity)) {
            return Ok(ServerCertVerified::assertion());
        }
        let hash = digest(&SHA256, end_entity);
        let text: Vec<String> = hash.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
        let why = OtherCertificate(text.join(":"));
        Err(CertificateError::Other(OtherError(Arc::new(why))).into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thumbprints_parse_as_vsphere_openssl_and_browser_print() {
        let sha1 = "AA:BB:CC:DD:EE:FF:00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD";
        let Some(Thumbprint::Sha1(bytes)) = Thumbprint::parse(sha1) else {
            panic!("{sha1}")
        };
        assert_eq!((bytes[0], bytes[6], bytes[19]), (0xaa, 0, 0xdd));
        for same in [
            sha1.to_lowercase(),
            sha1.replace(':', ""),
            sha1.replace(':', " "),
            sha1.replace(':', "-"),
        ] {
            assert_eq!(Thumbprint::parse(&same), Some(Thumbprint::Sha1(bytes)), "{same}");
        }
        assert_eq!(Thumbprint::parse(&"0f".repeat(32)), Some(Thumbprint::Sha256([15; 32])));
        for wrong in ["", "AA:BB", "0f0", &"0f".repeat(16), &"zz".repeat(20), &"é".repeat(20)] {
            assert_eq!(Thumbprint::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_thumbprint_is_the_hash_of_the_whole_certificate() {
        // echo -n abc | sha1sum; sha256sum
        let sha1 = Thumbprint::parse("a9993e364706816aba3e25717850c26c9cd0d89d").unwrap();
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let sha256 = Thumbprint::parse(sha256).unwrap();
        assert!(sha1.is_of(b"abc") && sha256.is_of(b"abc"));
        assert!(!sha1.is_of(b"abd") && !sha256.is_of(b"abd"));
    }
}
