//! A throw-away PKI: one authority for the API server, its clients and kubelets.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

/// The authority, and the folder with all files.
pub struct Pki {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Pki {
    /// Makes the authority, the API server's certificate for these names and addresses, the administrator's, and the key of service accounts.
    pub fn create(folder: &Path, server_names: &[&str]) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        let key = KeyPair::generate().context("making a key")?;
        let mut authority = CertificateParams::new(Vec::new()).context("describing the authority")?;
        authority.distinguished_name.push(DnType::CommonName, "cloudwit-real");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let certificate = authority.self_signed(&key).context("signing the authority")?;
        let pki = Self {
            folder: folder.to_owned(),
            issuer: Issuer::new(authority, key),
        };
        pki.write("ca.crt", &certificate.pem())?;
        pki.sign(
            "apiserver",
            "kube-apiserver",
            None,
            server_names,
            ExtendedKeyUsagePurpose::ServerAuth,
        )?;
        pki.client("admin", "admin", "system:masters")?;
        let service_accounts = KeyPair::generate().context("making a key")?;
        pki.write("service-account.key", &service_accounts.serialize_pem())?;
        pki.write("service-account.pub", &service_accounts.public_key_pem())?;
        Ok(pki)
    }

    /// A client's certificate and key, as files `NAME.crt` and `NAME.key`.
    pub fn client(&self, name: &str, user: &str, group: &str) -> Result<()> {
        self.sign(name, user, Some(group), &[], ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// Where a file is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn sign(
        &self,
        name: &str,
        user: &str,
        group: Option<&str>,
        names: &[&str],
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<()> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut leaf = CertificateParams::new(names).with_context(|| format!("describing the certificate {name}"))?;
        leaf.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            leaf.distinguished_name.push(DnType::OrganizationName, group);
        }
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = vec![usage];
        let key = KeyPair::generate().context("making a key")?;
        let certificate = leaf
            .signed_by(&key, &self.issuer)
            .with_context(|| format!("signing the certificate {name}"))?;
        self.write(&format!("{name}.crt"), &certificate.pem())?;
        self.write(&format!("{name}.key"), &key.serialize_pem())
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let file = self.path(name);
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))
    }
}
