//! Keyring: HMAC, derived keys and signatures with the secrets of a provider.
//!
//! Secrets are read once when a provider is loaded, and reach the guest only where `reveal` is granted. Those of volumes come with each request instead
//! ([`Keyring::with_volume_secrets`]) and are in the keyring of its calls alone.
//!
//! Guest -> `keys` import -> [`Keyring::open`] -> [`Key`]. Placeholders come here twice: when one is requested
//! ([`Keyring::placeholder_use`]), and when a request with it leaves ([`Keyring::placeholder`]).
//! Each use of each secret has its own grant, and a refusal carries the line that grants it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use data_encoding::HEXLOWER;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaKeyPair};
use ring::{digest as ring_digest, hmac as ring_hmac};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use zeroize::Zeroizing;

use crate::grants::{GrantError, GrantProblem, SecretGrant, SecretUse, yaml};
use crate::net::destination::{Binding, Destination};
use crate::secrets::refused::{binding_text, not_granted, not_in_request, suggestion};
use crate::secrets::secret::Secret;

pub use crate::secrets::refused::KeyError;
pub(crate) use crate::secrets::refused::Withheld;

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

/// What may be done with a secret.
#[derive(Debug, Clone)]
struct Rule {
    grant: SecretGrant,
    bindings: Vec<Binding>,
}

impl Rule {
    fn new(grant: &SecretGrant) -> Self {
        Self {
            grant: grant.clone(),
            bindings: grant.hosts.iter().filter_map(|host| Binding::parse(host)).collect(),
        }
    }
}

/// A secret with its grant.
#[derive(Debug)]
pub(super) struct Granted {
    rule: Rule,
    secret: Secret,
    /// Parsed on first use, since most secrets are no private keys.
    rsa: OnceLock<Option<Arc<RsaKeyPair>>>,
}

impl Granted {
    fn new(rule: Rule, secret: Secret) -> Arc<Self> {
        let rsa = OnceLock::new();
        Arc::new(Self { rule, secret, rsa })
    }

    fn require(&self, wanted: SecretUse) -> Result<(), KeyError> {
        self.require_with(wanted, &[])
    }

    /// The same; the entry that is proposed has these hosts where there are none.
    fn require_with(&self, wanted: SecretUse, hosts: &[String]) -> Result<(), KeyError> {
        if self.rule.grant.uses.contains(&wanted) {
            return Ok(());
        }
        let mut change = self.rule.grant.clone();
        change.uses.push(wanted);
        if change.hosts.is_empty() {
            change.hosts = hosts.to_vec();
        }
        Err(KeyError::Unusable(format!(
            "secret {:?} is not granted for {}; to allow it, replace its entry in grants.secrets by: {}",
            self.rule.grant.name,
            wanted.as_str(),
            yaml::secret_entry(&change)
        )))
    }

    pub(super) fn rsa(&self) -> Result<Arc<RsaKeyPair>, KeyError> {
        self.rsa
            .get_or_init(|| rsa_key(self.secret.expose()).map(Arc::new))
            .clone()
            .ok_or_else(|| {
                let SecretGrant { name, file, .. } = &self.rule.grant;
                let file = match self.rule.grant.volume_key() {
                    Some(_) => String::new(),
                    None => format!(" (file {})", file.display()),
                };
                KeyError::Unusable(format!(
                    "secret {name:?}{file} is not an RSA private key of 2048 to 4096 bits in PEM (PKCS #8 or PKCS #1)"
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
pub struct Keyring {
    secrets: BTreeMap<String, Arc<Granted>>,
    /// What may be done with secrets of volumes, by their names.
    of_volumes: Arc<BTreeMap<String, Rule>>,
}

impl Keyring {
    /// Reads the files of all secrets; the error names every file that cannot be read or is empty. Secrets of volumes have none.
    pub fn load(grants: &[SecretGrant]) -> Result<Self, GrantError> {
        let mut problems = Vec::new();
        let (mut secrets, mut of_volumes) = (BTreeMap::new(), BTreeMap::new());
        for (at, grant) in grants.iter().enumerate() {
            let (name, rule) = (grant.name.clone(), Rule::new(grant));
            if grant.volume_key().is_some() {
                of_volumes.insert(name, rule);
                continue;
            }
            match Secret::read(&grant.file) {
                Ok(secret) if secret.expose().is_empty() => problems.push(file_problem(at, grant, "is empty")),
                Ok(secret) => {
                    secrets.insert(name, Granted::new(rule, secret));
                }
                Err(error) => problems.push(file_problem(at, grant, &format!("cannot be read: {error}"))),
            }
        }
        if problems.is_empty() {
            let of_volumes = Arc::new(of_volumes);
            Ok(Self { secrets, of_volumes })
        } else {
            Err(GrantError(problems))
        }
    }

    /// The same with the secrets of a request about volumes, as far as they are granted and not empty: by `volume/` and their keys.
    pub(crate) fn with_volume_secrets<'a>(&self, named: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut secrets = self.secrets.clone();
        for (name, value) in named.into_iter().filter(|(_, value)| !value.is_empty()) {
            if let Some(rule) = self.of_volumes.get(name) {
                let secret = Secret::new(value.as_bytes().to_vec());
                secrets.insert(name.to_owned(), Granted::new(rule.clone(), secret));
            }
        }
        let of_volumes = Arc::clone(&self.of_volumes);
        Self { secrets, of_volumes }
    }

    /// Names and contents of all secrets, for the digest by which a changed one is noticed.
    pub(crate) fn contents(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.secrets
            .iter()
            .map(|(name, granted)| (name.as_str(), granted.secret.expose()))
    }

    /// A handle to the secret of that name.
    pub fn open(&self, name: &str) -> Result<Key, KeyError> {
        self.granted(&suggestion(name, SecretUse::Hmac))
            .map(|granted| Key(Material::Secret(Arc::clone(granted))))
    }

    /// The secret itself. Each use is logged.
    pub fn reveal(&self, name: &str) -> Result<Vec<u8>, KeyError> {
        let granted = self.granted(&suggestion(name, SecretUse::Reveal))?;
        granted.require(SecretUse::Reveal)?;
        tracing::warn!(
            secret = name,
            "secret revealed to the provider, as granted by its use \"reveal\""
        );
        Ok(granted.secret.expose().to_vec())
    }

    /// The secret, if it may be written into requests at all. `hosts` is what to propose as its `hosts` where there are none.
    pub(crate) fn placeholder_use(&self, name: &str, hosts: &[String]) -> Result<&Secret, KeyError> {
        let granted = self.granted(&SecretGrant {
            hosts: hosts.to_vec(),
            ..suggestion(name, SecretUse::Placeholder)
        })?;
        granted.require_with(SecretUse::Placeholder, hosts)?;
        Ok(&granted.secret)
    }

    /// The secret for a placeholder in a request to this destination.
    pub(crate) fn placeholder(&self, name: &str, to: &Destination) -> Result<&Secret, Withheld> {
        let proposed = SecretGrant {
            hosts: vec![binding_text(to)],
            ..suggestion(name, SecretUse::Placeholder)
        };
        let granted = self.granted(&proposed).map_err(|error| Withheld {
            entry: yaml::secret_entry(&proposed),
            error,
        })?;
        let Rule { grant, bindings } = &granted.rule;
        let bound = bindings.iter().any(|binding| binding.matches(to));
        let allowed = grant.uses.contains(&SecretUse::Placeholder);
        if bound && allowed {
            return Ok(&granted.secret);
        }
        let mut change = grant.clone();
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

    /// The secret of that name, or the entry to add.
    fn granted(&self, proposed: &SecretGrant) -> Result<&Arc<Granted>, KeyError> {
        let missing = || match self.of_volumes.get(&proposed.name) {
            Some(rule) => not_in_request(rule.grant.volume_key().unwrap_or_default()),
            None => not_granted(proposed),
        };
        self.secrets.get(&proposed.name).ok_or_else(missing)
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
            .map_err(|_| KeyError::Unusable(format!("signing with secret {:?} failed", granted.rule.grant.name)))?;
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
