//! Keyring: HMAC, derived keys and signatures with the secrets of a provider.
//!
//! Secrets are read once when a provider is loaded, and reach the guest only where `reveal` is granted.
//!
//! Guest -> `keys` import -> [`Keyring::open`] -> [`Key`]. Placeholders come here twice: when one is requested
//! ([`Keyring::placeholder_use`]), and when a request with it leaves ([`Keyring::placeholder`]).
//! Each use of each secret has its own grant, and a refusal carries the line that grants it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use data_encoding::HEXLOWER;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaKeyPair};
use ring::{digest as ring_digest, hmac as ring_hmac};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use thiserror::Error;
use zeroize::Zeroizing;

use crate::grants::{GrantError, GrantProblem, SecretGrant, SecretUse, yaml};
use crate::net::destination::{Binding, Destination, Host};
use crate::secrets::secret::Secret;

/// A hash function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    /// For old signature schemes only.
    Sha1,
    /// SHA-256.
    Sha256,
}

impl Hash {
    fn hmac(self) -> ring_hmac::Algorithm {
        match self {
            Self::Sha1 => ring_hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => ring_hmac::HMAC_SHA256,
        }
    }

    fn digest(self) -> &'static ring_digest::Algorithm {
        match self {
            Self::Sha1 => &ring_digest::SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => &ring_digest::SHA256,
        }
    }
}

/// A signature scheme for RSA keys of 2048 to 4096 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signature {
    /// PKCS #1 1.5, as in JWT's RS256.
    RsaPkcs1Sha256,
    /// PSS, as in JWT's PS256.
    RsaPssSha256,
}

/// Longest prefix of a derivation, in bytes. The longest one that is known, `aliyun_v4`, has 9.
const PREFIX_LIMIT: usize = 16;

/// The one suffix that signature schemes use: Alibaba's, and OAuth 1.0's (RFC 5849, section 3.4.2) without a token.
pub(super) const SUFFIX: &[u8] = b"&";

/// How a derived key comes from the computed bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Derivation {
    /// Put before the key's bytes before it is used: at most 16 letters, digits, `_` and `-`.
    pub prefix: Vec<u8>,
    /// Put after them: `&` or nothing.
    pub suffix: Vec<u8>,
    /// Whether the new key is the lower-case hexadecimal text of the result.
    pub as_hex: bool,
}

impl Derivation {
    /// Refuses what no signature scheme needs.
    ///
    /// HMAC fills a key up with zero bytes to the block of its hash and hashes a longer one first. A prefix or suffix with zero bytes
    /// therefore gives the same key as without them exactly as long as all fits the block: the secret's length. Of those that are left, two
    /// different ones never give the same key, whatever the secret (unless it ends with a zero byte), so results cannot be compared.
    fn check(&self) -> Result<(), KeyError> {
        let word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
        let prefix = self.prefix.len() <= PREFIX_LIMIT && self.prefix.iter().all(word);
        let suffix = self.suffix.is_empty() || self.suffix == SUFFIX;
        if prefix && suffix {
            return Ok(());
        }
        Err(KeyError::Unusable(format!(
            "a key is derived with a prefix of at most {PREFIX_LIMIT} letters, digits, \"_\" and \"-\", and with the suffix \"&\" or none; \
             others could be used to find out how long a secret is"
        )))
    }
}

/// Why a secret cannot be used. The texts never contain it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    /// No secret of that name is granted. Carries the lines to add.
    #[error("{0}")]
    NotGranted(String),
    /// It is granted, but not for this use (carries the line to change), or it is not fit for it.
    #[error("{0}")]
    Unusable(String),
}

/// Why a placeholder is not filled.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{error}")]
pub(crate) struct Withheld {
    /// In words.
    pub error: KeyError,
    /// The entry for `grants.secrets` that would allow it.
    pub entry: String,
}

/// A secret with its grant.
#[derive(Debug)]
pub(super) struct Granted {
    grant: SecretGrant,
    bindings: Vec<Binding>,
    secret: Secret,
    /// Parsed on first use, since most secrets are no private keys.
    rsa: OnceLock<Option<Arc<RsaKeyPair>>>,
}

impl Granted {
    fn require(&self, wanted: SecretUse) -> Result<(), KeyError> {
        self.require_with(wanted, &[])
    }

    /// The same; the entry that is proposed has these hosts where there are none.
    fn require_with(&self, wanted: SecretUse, hosts: &[String]) -> Result<(), KeyError> {
        if self.grant.uses.contains(&wanted) {
            return Ok(());
        }
        let mut change = self.grant.clone();
        change.uses.push(wanted);
        if change.hosts.is_empty() {
            change.hosts = hosts.to_vec();
        }
        Err(KeyError::Unusable(format!(
            "secret {:?} is not granted for {}; to allow it, replace its entry in grants.secrets by: {}",
            self.grant.name,
            wanted.as_str(),
            yaml::secret_entry(&change)
        )))
    }

    pub(super) fn rsa(&self) -> Result<Arc<RsaKeyPair>, KeyError> {
        self.rsa
            .get_or_init(|| rsa_key(self.secret.expose()).map(Arc::new))
            .clone()
            .ok_or_else(|| {
                KeyError::Unusable(format!(
                    "secret {:?} (file {}) is not an RSA private key of 2048 to 4096 bits in PEM (PKCS #8 or PKCS #1)",
                    self.grant.name,
                    self.grant.file.display()
                ))
            })
    }
}

fn rsa_key(pem: &[u8]) -> Option<RsaKeyPair> {
    match PrivateKeyDer::from_pem_slice(pem).ok()? {
        PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()).ok(),
        PrivateKeyDer::Pkcs8(der) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).ok(),
        _ => None,
    }
}

/// The secrets granted to one provider.
#[derive(Debug, Default)]
pub struct Keyring(BTreeMap<String, Arc<Granted>>);

impl Keyring {
    /// Reads the files of all secrets; the error names every file that cannot be read or is empty.
    pub fn load(grants: &[SecretGrant]) -> Result<Self, GrantError> {
        let mut problems = Vec::new();
        let mut secrets = BTreeMap::new();
        for (at, grant) in grants.iter().enumerate() {
            match Secret::read(&grant.file) {
                Ok(secret) if secret.expose().is_empty() => problems.push(file_problem(at, grant, "is empty")),
                Ok(secret) => {
                    let bindings = grant.hosts.iter().filter_map(|host| Binding::parse(host)).collect();
                    let granted = Granted {
                        grant: grant.clone(),
                        bindings,
                        secret,
                        rsa: OnceLock::new(),
                    };
                    secrets.insert(grant.name.clone(), Arc::new(granted));
                }
                Err(error) => problems.push(file_problem(at, grant, &format!("cannot be read: {error}"))),
            }
        }
        if problems.is_empty() {
            Ok(Self(secrets))
        } else {
            Err(GrantError(problems))
        }
    }

    /// Names and contents of all secrets, for the digest by which a changed one is noticed.
    pub(crate) fn contents(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0
            .iter()
            .map(|(name, granted)| (name.as_str(), granted.secret.expose()))
    }

    /// A handle to the secret of that name.
    pub fn open(&self, name: &str) -> Result<Key, KeyError> {
        self.granted(name, SecretUse::Hmac)
            .map(|granted| Key(Material::Secret(Arc::clone(granted))))
    }

    /// The secret itself. Each use is logged.
    pub fn reveal(&self, name: &str) -> Result<Vec<u8>, KeyError> {
        let granted = self.granted(name, SecretUse::Reveal)?;
        granted.require(SecretUse::Reveal)?;
        tracing::warn!(
            secret = name,
            "secret revealed to the provider, as granted by its use \"reveal\""
        );
        Ok(granted.secret.expose().to_vec())
    }

    /// The secret, if it may be written into requests at all. `hosts` is what to propose as its `hosts` where there are none.
    pub(crate) fn placeholder_use(&self, name: &str, hosts: &[String]) -> Result<&Secret, KeyError> {
        let granted = self.0.get(name).ok_or_else(|| {
            not_granted(SecretGrant {
                hosts: hosts.to_vec(),
                ..suggestion(name, SecretUse::Placeholder)
            })
        })?;
        granted.require_with(SecretUse::Placeholder, hosts)?;
        Ok(&granted.secret)
    }

    /// The secret for a placeholder in a request to this destination.
    pub(crate) fn placeholder(&self, name: &str, to: &Destination) -> Result<&Secret, Withheld> {
        let granted = self.0.get(name).ok_or_else(|| {
            let entry = SecretGrant {
                hosts: vec![binding_text(to)],
                ..suggestion(name, SecretUse::Placeholder)
            };
            Withheld {
                entry: yaml::secret_entry(&entry),
                error: not_granted(entry),
            }
        })?;
        let bound = granted.bindings.iter().any(|binding| binding.matches(to));
        let allowed = granted.grant.uses.contains(&SecretUse::Placeholder);
        if bound && allowed {
            return Ok(&granted.secret);
        }
        let mut change = granted.grant.clone();
        if !allowed {
            change.uses.push(SecretUse::Placeholder);
        }
        if !bound {
            change.hosts.push(binding_text(to));
        }
        let entry = yaml::secret_entry(&change);
        let error = KeyError::Unusable(format!(
            "secret {name:?} is not granted as a placeholder in requests to {to}; to allow it, replace its entry in \
             grants.secrets by: {entry}"
        ));
        Err(Withheld { error, entry })
    }

    fn granted(&self, name: &str, wanted: SecretUse) -> Result<&Arc<Granted>, KeyError> {
        self.0.get(name).ok_or_else(|| not_granted(suggestion(name, wanted)))
    }
}

fn file_problem(at: usize, grant: &SecretGrant, wrong: &str) -> GrantProblem {
    GrantProblem {
        path: format!("secrets[{at}].file"),
        value: grant.file.display().to_string(),
        wrong: wrong.into(),
        fix: format!("put the secret {:?} there (mount it) or correct the path", grant.name),
    }
}

/// The entry that would grant one use. The file can only be guessed.
fn suggestion(name: &str, wanted: SecretUse) -> SecretGrant {
    SecretGrant {
        name: name.to_owned(),
        file: PathBuf::from("/etc/cloudwit/secrets").join(name),
        hosts: Vec::new(),
        uses: vec![wanted],
    }
}

fn not_granted(entry: SecretGrant) -> KeyError {
    if !crate::grants::is_secret_name(&entry.name) {
        return KeyError::NotGranted("the provider requested a secret by an invalid name".into());
    }
    KeyError::NotGranted(format!(
        "secret {:?} is not granted; to allow it, add to grants.secrets (with the file it is in): {}",
        entry.name,
        yaml::secret_entry(&entry)
    ))
}

fn binding_text(to: &Destination) -> String {
    match &to.host {
        Host::Name(name) if to.port == to.scheme.default_port() => name.clone(),
        host => format!("{host}:{}", to.port),
    }
}

/// A secret, or a key derived from one. Its bytes cannot be read.
#[derive(Debug, Clone)]
pub struct Key(pub(super) Material);

#[derive(Debug, Clone)]
pub(super) enum Material {
    Secret(Arc<Granted>),
    Derived(Secret),
}

impl Key {
    /// HMAC of the data. Needs the use `hmac`.
    pub fn hmac(&self, hash: Hash, data: &[u8]) -> Result<Vec<u8>, KeyError> {
        Ok(hmac(hash, self.computing_bytes()?, data).as_ref().to_vec())
    }

    /// A key from the HMAC of the data. Needs the use `hmac`.
    pub fn derive(&self, hash: Hash, data: &[u8], how: &Derivation) -> Result<Self, KeyError> {
        let derived = self.hmac_with(hash, data, how)?;
        Ok(Self(Material::Derived(Secret::new(derived))))
    }

    /// HMAC of the data under this key with prefix and suffix. Needs the use `hmac`.
    pub fn hmac_with(&self, hash: Hash, data: &[u8], how: &Derivation) -> Result<Vec<u8>, KeyError> {
        let bytes = self.computing_bytes()?;
        how.check()?;
        let mut key = Zeroizing::new(Vec::with_capacity(how.prefix.len() + bytes.len() + how.suffix.len()));
        key.extend_from_slice(&how.prefix);
        key.extend_from_slice(bytes);
        key.extend_from_slice(&how.suffix);
        let tag = hmac(hash, &key, data);
        Ok(if how.as_hex {
            HEXLOWER.encode(tag.as_ref()).into_bytes()
        } else {
            tag.as_ref().to_vec()
        })
    }

    /// Signature of the data. Needs the use `sign` and a PEM private key.
    pub fn sign(&self, scheme: Signature, data: &[u8]) -> Result<Vec<u8>, KeyError> {
        let Material::Secret(granted) = &self.0 else {
            return Err(KeyError::Unusable(
                "a derived key cannot sign; open the private key itself".into(),
            ));
        };
        granted.require(SecretUse::Sign)?;
        let pair = granted.rsa()?;
        let encoding: &dyn ring::signature::RsaEncoding = match scheme {
            Signature::RsaPkcs1Sha256 => &RSA_PKCS1_SHA256,
            Signature::RsaPssSha256 => &RSA_PSS_SHA256,
        };
        let mut signature = vec![0; pair.public().modulus_len()];
        pair.sign(encoding, &SystemRandom::new(), data, &mut signature)
            .map_err(|_| KeyError::Unusable(format!("signing with secret {:?} failed", granted.grant.name)))?;
        Ok(signature)
    }

    fn computing_bytes(&self) -> Result<&[u8], KeyError> {
        match &self.0 {
            Material::Secret(granted) => {
                granted.require(SecretUse::Hmac)?;
                Ok(granted.secret.expose())
            }
            Material::Derived(secret) => Ok(secret.expose()),
        }
    }
}

pub(super) fn hmac(hash: Hash, key: &[u8], data: &[u8]) -> ring_hmac::Tag {
    ring_hmac::sign(&ring_hmac::Key::new(hash.hmac(), key), data)
}

/// Hash of the data; no secret involved.
pub fn digest(hash: Hash, data: &[u8]) -> Vec<u8> {
    ring_digest::digest(hash.digest(), data).as_ref().to_vec()
}

#[cfg(test)]
mod tests;
