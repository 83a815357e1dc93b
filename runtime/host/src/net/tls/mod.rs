//! TLS of the HTTP clients: crypto provider, trusted servers, client certificate.

pub(crate) mod client_identity;
pub mod thumbprint;

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};

use crate::net::tls::thumbprint::{Pinned, Thumbprint};

/// The one crypto provider.
pub(crate) fn crypto() -> CryptoProvider {
    ring::default_provider()
}

/// TLS of every HTTP client of the process: with our one crypto provider, trusting the authorities of a PEM bundle, else Mozilla's. The error
/// says what is wrong with the bundle.
pub fn tls(ca: Option<&[u8]>) -> Result<ClientConfig, String> {
    trusting(ca, &[], None)
}

/// [`tls`], or trusting the certificates with these thumbprints where there are any. A server that requests a client certificate is presented this
/// one, else none.
pub(crate) fn trusting(
    ca: Option<&[u8]>,
    thumbprints: &[Thumbprint],
    identity: Option<CertifiedKey>,
) -> Result<ClientConfig, String> {
    let provider = Arc::new(crypto());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| format!("cannot be used: {error}"))?;
    let builder = if thumbprints.is_empty() {
        builder.with_root_certificates(roots(ca)?)
    } else {
        let pinned = Pinned::new(thumbprints.to_vec(), provider);
        builder.dangerous().with_custom_certificate_verifier(Arc::new(pinned))
    };
    let mut tls = match identity {
        Some(identity) => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity))),
        None => builder.with_no_client_auth(),
    };
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
}

pub(crate) fn roots(ca: Option<&[u8]>) -> Result<RootCertStore, String> {
    let Some(pem) = ca else {
        return Ok(RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
        });
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| format!("is not PEM: {error}"))?;
        roots
            .add(certificate)
            .map_err(|error| format!("contains a certificate that cannot be used: {error}"))?;
    }
    if roots.is_empty() {
        Err("contains no certificate".into())
    } else {
        Ok(roots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_authorities_are_built_in() {
        assert!(roots(None).unwrap().len() > 100);
    }
}
