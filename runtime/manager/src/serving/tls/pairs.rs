//! Served certificates: from files, followed when they change, or self-signed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use parking_lot::RwLock;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_parser::extensions::GeneralName;

use crate::flags::groups::serving::SecureServingArgs;
use crate::process::watched_files::read_file;

/// Upstream's names of the generated pairs in `--cert-dir` and `--webhook-cert-dir`.
const PAIR: &str = "cloud-controller-manager";
const WEBHOOK_PAIR: &str = "cloud-controller-manager-webhook";

/// Where a pair comes from, and for which names it is served.
#[derive(Debug, Clone)]
struct Source {
    certificate: PathBuf,
    key: PathBuf,
    /// None takes the names in the certificate.
    names: Option<Vec<String>>,
}

#[derive(Debug)]
struct Served {
    pair: Arc<CertifiedKey>,
    names: Vec<String>,
}

/// All pairs, the default one first; clones share them.
#[derive(Debug, Clone)]
pub struct Pairs {
    crypto: Arc<CryptoProvider>,
    sources: Arc<Vec<Source>>,
    generated: Option<Arc<CertifiedKey>>,
    served: Arc<RwLock<Vec<Served>>>,
}

impl Pairs {
    /// Reads or generates the pairs of the flags. Blocks.
    pub fn new(args: &SecureServingArgs, crypto: Arc<CryptoProvider>) -> anyhow::Result<Self> {
        let mut sources = Vec::new();
        let mut generated = None;
        match (&args.tls_cert_file, &args.tls_private_key_file) {
            (Some(certificate), Some(key)) => sources.push(Source {
                certificate: certificate.clone(),
                key: key.clone(),
                names: None,
            }),
            _ if args.cert_dir.is_empty() => generated = Some(Arc::new(generate(&crypto)?.2)),
            _ => sources.push(kept(args, &crypto)?),
        }
        sources.extend(args.tls_sni_cert_key.iter().map(|text| sni(text)));
        let pairs = Self {
            crypto,
            sources: Arc::new(sources),
            generated,
            served: Arc::default(),
        };
        pairs.reload()?;
        Ok(pairs)
    }

    /// The files to watch.
    pub fn files(&self) -> Vec<PathBuf> {
        let files = self
            .sources
            .iter()
            .flat_map(|source| [&source.certificate, &source.key]);
        files.cloned().collect()
    }

    /// Reads all files again, and blocks meanwhile; a pair that cannot be used leaves all as they were.
    pub fn reload(&self) -> anyhow::Result<()> {
        let mut served = Vec::new();
        if let Some(pair) = &self.generated {
            served.push(Served {
                pair: pair.clone(),
                names: Vec::new(),
            });
        }
        for source in self.sources.iter() {
            let pair = read(source, &self.crypto)?;
            let names = source.names.clone().unwrap_or_else(|| names_in(&pair));
            served.push(Served {
                pair: Arc::new(pair),
                names,
            });
        }
        *self.served.write() = served;
        Ok(())
    }

    fn pick(&self, name: Option<&str>) -> Option<Arc<CertifiedKey>> {
        let served = self.served.read();
        let exact =
            |served: &&Served| name.is_some_and(|name| served.names.iter().any(|one| one.eq_ignore_ascii_case(name)));
        let star = name
            .and_then(|name| name.split_once('.'))
            .map(|(_, parent)| format!("*.{parent}"));
        let wild = |served: &&Served| {
            star.as_ref()
                .is_some_and(|star| served.names.iter().any(|one| one.eq_ignore_ascii_case(star)))
        };
        let found = served
            .iter()
            .find(exact)
            .or_else(|| served.iter().find(wild))
            .or_else(|| served.first());
        found.map(|served| served.pair.clone())
    }
}

impl ResolvesServerCert for Pairs {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.pick(hello.server_name())
    }
}

/// `CERT,KEY[:NAMES]`; that there is a comma was checked with the flags.
fn sni(text: &str) -> Source {
    let (files, names) = text
        .split_once(':')
        .map_or((text, None), |(files, names)| (files, Some(names)));
    let (certificate, key) = files.split_once(',').unwrap_or((files, ""));
    Source {
        certificate: certificate.into(),
        key: key.into(),
        names: names.map(|names| names.split(',').map(|name| name.trim().to_owned()).collect()),
    }
}

fn read(source: &Source, crypto: &CryptoProvider) -> anyhow::Result<CertifiedKey> {
    let (certificate, key) = (source.certificate.display(), source.key.display());
    let chain: Vec<CertificateDer<'static>> = read_file(&source.certificate)
        .map_err(anyhow::Error::from)
        .and_then(|pem| {
            CertificateDer::pem_slice_iter(&pem)
                .collect::<Result<_, _>>()
                .map_err(|error| anyhow!("{error:?}"))
        })
        .with_context(|| format!("the certificate {certificate} cannot be used"))?;
    if chain.is_empty() {
        return Err(anyhow!("there is no certificate in {certificate}; it has to be PEM"));
    }
    // The error of the key's parser could carry parts of the key.
    let pem = read_file(&source.key).with_context(|| format!("the private key {key} cannot be read"))?;
    let private = PrivateKeyDer::from_pem_slice(&pem)
        .map_err(|_| anyhow!("there is no private key in {key}; it has to be PEM"))?;
    CertifiedKey::from_der(chain, private, crypto)
        .with_context(|| format!("the certificate {certificate} and the key {key} do not make a pair"))
}

/// The DNS names in a certificate.
fn names_in(pair: &CertifiedKey) -> Vec<String> {
    let parsed = pair
        .cert
        .first()
        .and_then(|leaf| x509_parser::parse_x509_certificate(leaf).ok());
    let Some((_, leaf)) = parsed else { return Vec::new() };
    let Ok(Some(names)) = leaf.subject_alternative_name() else {
        return Vec::new();
    };
    let dns = names.value.general_names.iter().filter_map(|name| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        _ => None,
    });
    dns.collect()
}

/// The generated pair that is kept in a folder, made there if it is missing.
fn kept(args: &SecureServingArgs, crypto: &CryptoProvider) -> anyhow::Result<Source> {
    let (folder, prefix) = (Path::new(&args.cert_dir), args.prefix);
    let pair = if prefix.is_empty() { PAIR } else { WEBHOOK_PAIR };
    let source = Source {
        certificate: folder.join(format!("{pair}.crt")),
        key: folder.join(format!("{pair}.key")),
        names: None,
    };
    if !(source.certificate.exists() && source.key.exists()) {
        let (certificate, key, _) = generate(crypto)?;
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&source.certificate, certificate))
            .and_then(|()| write_private(&source.key, &key))
            .with_context(|| {
                format!(
                    "--{prefix}cert-dir={}: the generated pair cannot be kept there",
                    folder.display()
                )
            })?;
    }
    Ok(source)
}

fn write_private(file: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = fs::File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(file)?.write_all(text.as_bytes())
}

/// A pair for localhost that is signed by itself: certificate and key as PEM, and both ready to serve.
fn generate(crypto: &CryptoProvider) -> anyhow::Result<(String, String, CertifiedKey)> {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).context("generating a certificate")?;
    let (pem, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let private =
        PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| anyhow!("the generated key cannot be read"))?;
    let pair = CertifiedKey::from_der(vec![made.cert.der().clone()], private, crypto)
        .context("using a generated certificate")?;
    Ok((pem, key, pair))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::args::Args;

    fn of(flags: &[String]) -> anyhow::Result<Pairs> {
        let line = std::iter::once("cloudwit".to_owned()).chain(flags.iter().cloned());
        Pairs::new(
            &Args::parse_from(line).secure_serving,
            Arc::new(rustls::crypto::ring::default_provider()),
        )
    }

    fn write(folder: &Path, name: &str) -> (String, CertificateDer<'static>) {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        let (cert, key) = (folder.join("cert"), folder.join("key"));
        fs::write(&cert, made.cert.pem()).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        (format!("{},{}", cert.display(), key.display()), made.cert.der().clone())
    }

    #[test]
    fn generated_pair_is_kept_with_owner_only_key() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let flag = [format!("--cert-dir={}", folder.path().join("new").display())];
        let (first, again) = (
            of(&flag).unwrap().pick(None).unwrap(),
            of(&flag).unwrap().pick(None).unwrap(),
        );
        assert_eq!(first.cert, again.cert);
        let key = fs::metadata(folder.path().join("new").join(format!("{PAIR}.key"))).unwrap();
        assert_eq!(key.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn pair_for_the_requested_name_is_served() {
        let folder = tempfile::tempdir().unwrap();
        let (files, der) = write(folder.path(), "a.example.com");
        for (flag, name, chosen) in [
            (files.clone(), "a.example.com", true),
            (files.clone(), "b.example.com", false),
            (format!("{files}:*.example.com"), "b.example.com", true),
        ] {
            let pairs = of(&[format!("--tls-sni-cert-key={flag}")]).unwrap();
            assert_eq!(pairs.pick(Some(name)).unwrap().cert[0] == der, chosen, "{flag} {name}");
        }
    }

    #[test]
    fn a_changed_pair_is_taken_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (files, first) = write(folder.path(), "a");
        let (cert, key) = files.split_once(',').unwrap();
        let pairs = of(&[
            format!("--tls-cert-file={cert}"),
            format!("--tls-private-key-file={key}"),
        ])
        .unwrap();
        assert_eq!(pairs.pick(None).unwrap().cert[0], first);
        let (_, second) = write(folder.path(), "a");
        pairs.reload().unwrap();
        assert_eq!(pairs.pick(None).unwrap().cert[0], second);
        fs::write(key, rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
        let error = format!("{:#}", pairs.reload().unwrap_err());
        assert!(error.contains("do not make a pair"), "{error}");
        assert_eq!(pairs.pick(None).unwrap().cert[0], second);
    }
}
