//! A certificate authority of a test's own, for servers on this machine and for their clients.

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};

/// The authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate that it has issued.
pub struct Issued {
    /// In PEM.
    pub certificate: String,
    /// Its private key, in PEM.
    pub key: String,
    /// The certificate in DER.
    pub der: Vec<u8>,
}

impl Authority {
    /// A new one.
    ///
    /// # Errors
    ///
    /// When no key can be made.
    pub fn new() -> Result<Self> {
        let mut params = CertificateParams::new(Vec::<String>::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Ok(Self(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?))
    }

    /// Its certificate in PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for a server at `127.0.0.1` and `localhost`.
    ///
    /// # Errors
    ///
    /// When no key can be made.
    pub fn server(&self) -> Result<Issued> {
        let names = ["127.0.0.1", "localhost"].map(str::to_owned);
        self.issue(CertificateParams::new(names)?, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A certificate for a client with this common name.
    ///
    /// # Errors
    ///
    /// When no key can be made.
    pub fn client(&self, name: &str) -> Result<Issued> {
        let mut params = CertificateParams::new(Vec::<String>::new())?;
        params.distinguished_name.push(DnType::CommonName, name);
        self.issue(params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn issue(&self, mut params: CertificateParams, usage: ExtendedKeyUsagePurpose) -> Result<Issued> {
        let key = KeyPair::generate()?;
        params.extended_key_usages = vec![usage];
        let certificate = params.signed_by(&key, &self.0)?;
        Ok(Issued {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            der: certificate.der().to_vec(),
        })
    }
}
