//! Verifier of client certificates.

use std::sync::Arc;

use anyhow::{Context, anyhow};
use parking_lot::RwLock;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};

/// Requests a certificate, if there is an authority to verify it, and takes any whose key the client has.
#[derive(Debug)]
pub struct AnyClient {
    /// Checks signatures.
    pub crypto: Arc<CryptoProvider>,
    /// Whose authorities count.
    pub asked_by: [Trust; 2],
}

impl ClientCertVerifier for AnyClient {
    fn offer_client_auth(&self) -> bool {
        self.asked_by.iter().any(Trust::has_authorities)
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.crypto.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.crypto.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.crypto.signature_verification_algorithms.supported_schemes()
    }
}

/// Authorities whose certificates count; clones share them, none means that no certificate counts.
#[derive(Debug, Clone, Default)]
pub struct Trust(Arc<RwLock<Option<Arc<dyn ClientCertVerifier>>>>);

/// Common name and organisations of a client certificate: user and groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The common name.
    pub name: String,
    /// The organisations.
    pub groups: Vec<String>,
}

impl Trust {
    /// Takes these authorities, as PEM, instead of those before.
    pub fn set(&self, pem: &[u8]) -> anyhow::Result<()> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots
                .add(certificate.map_err(|error| anyhow!("{error:?}"))?)
                .context("an authority cannot be used")?;
        }
        let crypto = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), crypto)
            .build()
            .context("there is no authority in it")?;
        *self.0.write() = Some(verifier);
        Ok(())
    }

    /// Whether a certificate could count.
    pub fn has_authorities(&self) -> bool {
        self.0.read().is_some()
    }

    /// Who the certificate says the client is; None when there are no authorities. The first certificate is the client's own.
    pub fn subject(&self, chain: &[CertificateDer<'_>]) -> Option<Result<Subject, String>> {
        let verifier = self.0.read().clone()?;
        let (own, others) = chain.split_first()?;
        let verified = verifier.verify_client_cert(own, others, UnixTime::now());
        Some(verified.map_err(|error| error.to_string()).and_then(|_| subject(own)))
    }
}

fn subject(certificate: &CertificateDer<'_>) -> Result<Subject, String> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).map_err(|error| error.to_string())?;
    let subject = parsed.subject();
    let name = subject.iter_common_name().filter_map(|name| name.as_str().ok()).last();
    let groups = subject
        .iter_organization()
        .filter_map(|group| group.as_str().ok().map(str::to_owned));
    match name.filter(|name| !name.is_empty()) {
        Some(name) => Ok(Subject {
            name: name.to_owned(),
            groups: groups.collect(),
        }),
        None => Err("the certificate has no common name".into()),
    }
}

#[cfg(test)]
pub mod tests {
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

    use super::*;

    /// An authority, as PEM, and a certificate that it signed.
    pub fn signed(name: &str, group: &str) -> (String, CertificateDer<'static>) {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = authority.self_signed(&key).unwrap().pem();
        let mut client = CertificateParams::default();
        client.distinguished_name.remove(DnType::CommonName);
        client.distinguished_name.push(DnType::CommonName, name);
        client.distinguished_name.push(DnType::OrganizationName, group);
        client.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let leaf = client
            .signed_by(&KeyPair::generate().unwrap(), &Issuer::new(authority, key))
            .unwrap();
        (pem, leaf.der().clone())
    }

    #[test]
    fn only_certificates_of_the_authority_count() {
        let ((pem, good), (_, other)) = (signed("ann", "admins"), signed("eve", "system:masters"));
        let trust = Trust::default();
        let server = AnyClient {
            crypto: Arc::new(rustls::crypto::ring::default_provider()),
            asked_by: [Trust::default(), trust.clone()],
        };
        assert!(!server.offer_client_auth(), "nobody is asked for what cannot count");
        assert_eq!(
            trust.subject(std::slice::from_ref(&good)),
            None,
            "nobody is trusted before there is an authority"
        );
        trust.set(pem.as_bytes()).unwrap();
        assert!(server.offer_client_auth() && !server.client_auth_mandatory());
        let ann = Subject {
            name: "ann".into(),
            groups: vec!["admins".into()],
        };
        assert_eq!(trust.subject(std::slice::from_ref(&good)), Some(Ok(ann.clone())));
        assert!(trust.subject(&[other]).unwrap().is_err());
        assert_eq!(trust.subject(&[]), None);
        assert!(trust.set(b"nothing").is_err());
        assert_eq!(
            trust.subject(&[good]),
            Some(Ok(ann)),
            "what cannot be used changes nothing"
        );
    }
}
