//! Client certificate of a grant: its two files, checked against each other.
//!
//! The certificate is presented in the TLS handshake, to servers that request one. The private key stays in this module and in rustls: neither
//! an error nor `Debug` contains a byte of it.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use zeroize::Zeroizing;

use crate::grants::{GrantProblem, HttpGrant};

/// Largest file of a certificate or key, in bytes. Both usually have a few thousand.
const LARGEST: u64 = 1 << 20;

/// Common part of the PEM labels of private keys of all kinds, encrypted ones too.
const KEY_LABEL: &[u8] = b"PRIVATE KEY-----";

/// Label of encrypted private keys of PKCS #8, and the header of those of OpenSSL's older format.
const ENCRYPTED: [&[u8]; 2] = [b"BEGIN ENCRYPTED PRIVATE KEY", b"Proc-Type: 4,ENCRYPTED"];

/// The files of a client certificate and its key, as they were read.
pub(crate) struct ClientIdentity {
    certificate: PathBuf,
    chain: Zeroizing<Vec<u8>>,
    key: PathBuf,
    secret: Zeroizing<Vec<u8>>,
    /// Place of the grant in the list.
    at: usize,
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientIdentity").field(&self.certificate).finish()
    }
}

impl ClientIdentity {
    /// Reads the files of the grant, which is entry number `at` of the list; none where it names none. Blocks.
    pub fn read(grant: &HttpGrant, at: usize) -> Result<Option<Self>, GrantProblem> {
        let (Some(certificate), Some(key)) = (&grant.client_certificate, &grant.client_key) else {
            return Ok(None);
        };
        let mut identity = Self {
            certificate: certificate.clone(),
            chain: Zeroizing::default(),
            key: key.clone(),
            secret: Zeroizing::default(),
            at,
        };
        let unreadable = |error: io::Error| format!("cannot be read: {error}");
        identity.chain = contents(certificate).map_err(|error| identity.certificate_problem(unreadable(error)))?;
        identity.secret = contents(key).map_err(|error| identity.key_problem(unreadable(error)))?;
        Ok(Some(identity))
    }

    /// Digest of both files' contents, by which renewed ones are noticed.
    pub fn digest(&self) -> [u8; 32] {
        let mut context = Context::new(&SHA256);
        for part in [self.chain.as_slice(), self.secret.as_slice()] {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
        let mut digest = [0; 32];
        digest.copy_from_slice(context.finish().as_ref());
        digest
    }

    /// What rustls presents; the problem says which of the files is wrong.
    pub fn certified(&self, provider: &CryptoProvider) -> Result<CertifiedKey, GrantProblem> {
        if has_private_key(&self.chain) {
            return Err(GrantProblem {
                fix: "leave only certificates there: they are kept with the configuration, and the private key in the file of clientKey".into(),
                ..self.certificate_problem("contains a private key".into())
            });
        }
        let chain = CertificateDer::pem_slice_iter(&self.chain)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| self.certificate_problem(format!("is not PEM: {error}")))?;
        if chain.is_empty() {
            return Err(self.certificate_problem("contains no certificate".into()));
        }
        // The parser's own errors repeat lines of the file, so they are not passed on.
        let key = PrivateKeyDer::from_pem_slice(&self.secret).map_err(|_| {
            let encrypted = ENCRYPTED.iter().any(|text| contains(&self.secret, text));
            let wrong = if encrypted {
                "contains an encrypted private key, which is not supported"
            } else {
                "contains no private key in PEM"
            };
            self.key_problem(wrong.into())
        })?;
        let key = provider.key_provider.load_private_key(key).map_err(|_| {
            self.key_problem(
                "contains a private key that cannot be used (RSA, ECDSA on P-256 or P-384, and Ed25519 can)".into(),
            )
        })?;
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(certified),
            Err(Error::InconsistentKeys(_)) => Err(GrantProblem {
                fix: "put the private key of the first certificate there; where both are being renewed, replace the other file too".into(),
                ..self.key_problem(format!(
                    "is not the key of the first certificate in {}",
                    self.certificate.display()
                ))
            }),
            Err(error) => {
                let wrong = format!("contains a certificate that cannot be used: {error}");
                Err(self.certificate_problem(wrong))
            }
        }
    }

    fn certificate_problem(&self, wrong: String) -> GrantProblem {
        GrantProblem {
            path: format!("http[{}].clientCertificate", self.at),
            value: self.certificate.display().to_string(),
            wrong,
            fix: "put a PEM file there with the client certificate, followed by its intermediate certificates, or correct the path".into(),
        }
    }

    fn key_problem(&self, wrong: String) -> GrantProblem {
        GrantProblem {
            path: format!("http[{}].clientKey", self.at),
            value: self.key.display().to_string(),
            wrong,
            fix: "put a PEM file there with the unencrypted private key of the client certificate, or correct the path"
                .into(),
        }
    }
}

/// Whether a PEM text contains a private key, be it encrypted.
pub fn has_private_key(pem: &[u8]) -> bool {
    contains(pem, KEY_LABEL)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn contents(file: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    let file = File::open(file)?;
    // With room from the start: a vector that grows leaves copies behind.
    let room = file.metadata()?.len().min(LARGEST) + 1;
    let mut content = Zeroizing::new(Vec::with_capacity(usize::try_from(room).unwrap_or_default()));
    file.take(LARGEST + 1).read_to_end(&mut content)?;
    if content.len() as u64 > LARGEST {
        return Err(io::Error::other(format!("it is larger than {LARGEST} bytes")));
    }
    Ok(content)
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
