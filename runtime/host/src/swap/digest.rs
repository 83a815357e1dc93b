//! Keyed digest over all settings of a provider, to detect changes without showing them.
//!
//! It becomes part of [`ProviderIdentity::digest`](cloudwit_model::ProviderIdentity), by which the deletion brake distinguishes two sources of
//! opinions apart. That one is seen by people, and a plain hash over a short secret could be guessed; so this is an HMAC under a key that is
//! made anew for each process.

use ring::hmac::{Context, HMAC_SHA256, Key};
use ring::rand::SystemRandom;

use crate::host::ProviderSettings;
use crate::secrets::keys::Keyring;

/// The key of one process.
pub(crate) struct DigestKey(Key);

impl DigestKey {
    /// A random key; none when the system gives no random numbers.
    pub fn generate() -> Option<Self> {
        Key::generate(HMAC_SHA256, &SystemRandom::new()).ok().map(Self)
    }

    /// The digest of these settings, and of the secrets and client certificates as they were read.
    pub fn digest<'a>(
        &self,
        settings: &ProviderSettings,
        keyring: &Keyring,
        identities: impl Iterator<Item = &'a [u8]>,
    ) -> [u8; 32] {
        let ProviderSettings {
            name,
            config_text,
            values,
            cluster_name,
            cluster_cidrs,
            grants,
            limits,
        } = settings;
        let mut parts = Parts(Context::with_key(&self.0));
        parts.one(name.as_bytes());
        parts.one(config_text.as_bytes());
        parts.many(
            values
                .iter()
                .flat_map(|(key, value)| [key.as_bytes(), value.as_bytes()]),
        );
        parts.one(cluster_name.as_bytes());
        parts.many(cluster_cidrs.iter().map(String::as_bytes));
        parts.one(format!("{grants:?}").as_bytes());
        parts.one(format!("{limits:?}").as_bytes());
        parts.many(keyring.contents().flat_map(|(name, secret)| [name.as_bytes(), secret]));
        parts.many(identities);
        let mut digest = [0; 32];
        digest.copy_from_slice(parts.0.sign().as_ref());
        digest
    }
}

/// Hashes each part with its length, so that no two lists of parts look alike.
struct Parts(Context);

impl Parts {
    fn one(&mut self, part: &[u8]) {
        self.0.update(&(part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    fn many<'a>(&mut self, parts: impl Iterator<Item = &'a [u8]>) {
        let mut count = 0_u64;
        parts.for_each(|part| {
            self.one(part);
            count += 1;
        });
        self.one(&count.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::grants::{Grants, SecretGrant, SecretUse};
    use crate::limits::Limits;

    fn settings() -> ProviderSettings {
        ProviderSettings {
            name: "sim".into(),
            config_text: "config".into(),
            values: vec![("a".into(), "bc".into())],
            cluster_name: "test".into(),
            cluster_cidrs: Vec::new(),
            grants: Grants::default(),
            limits: Limits::default(),
        }
    }

    #[test]
    fn every_setting_counts_and_parts_do_not_run_into_each_other() {
        let key = DigestKey::generate().unwrap();
        let digest = |change: &dyn Fn(&mut ProviderSettings)| {
            let mut settings = settings();
            change(&mut settings);
            key.digest(&settings, &Keyring::default(), std::iter::empty())
        };
        let changes: [&dyn Fn(&mut ProviderSettings); 8] = [
            &|_| {},
            &|settings| settings.config_text.push('!'),
            &|settings| settings.values = vec![("ab".into(), "c".into())],
            &|settings| settings.values.clear(),
            &|settings| settings.cluster_name = "other".into(),
            &|settings| settings.cluster_cidrs.push("10.0.0.0/8".into()),
            &|settings| settings.grants.cluster.nodes = true,
            &|settings| settings.limits.cpu_time = Duration::from_secs(1),
        ];
        let digests: std::collections::HashSet<_> = changes.map(digest).into();
        assert_eq!(digests.len(), changes.len());
        assert_eq!(digest(&|_| {}), digest(&|_| {}));
    }

    #[test]
    fn secret_counts_by_content_with_per_process_digest() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let grants = [SecretGrant {
            name: "token".into(),
            file: file.path().into(),
            hosts: Vec::new(),
            uses: vec![SecretUse::Hmac],
        }];
        let (key, other) = (DigestKey::generate().unwrap(), DigestKey::generate().unwrap());
        let digest = |key: &DigestKey, secret: &str| {
            std::fs::write(file.path(), secret).unwrap();
            key.digest(&settings(), &Keyring::load(&grants).unwrap(), std::iter::empty())
        };
        assert_ne!(digest(&key, "one"), digest(&key, "two"));
        assert_eq!(digest(&key, "one"), digest(&key, "one"));
        assert_ne!(digest(&key, "one"), digest(&other, "one"));
    }

    #[test]
    fn client_certificate_counts_by_content_and_grant() {
        let key = DigestKey::generate().unwrap();
        let digest = |identities: &[&[u8]]| key.digest(&settings(), &Keyring::default(), identities.iter().copied());
        let all = [
            digest(&[b"one", b""]),
            digest(&[b"two", b""]),
            digest(&[b"", b"one"]),
            digest(&[b"", b""]),
        ];
        let different: std::collections::HashSet<_> = all.into();
        assert_eq!(different.len(), all.len());
        assert_eq!(digest(&[b"one", b""]), all[0]);
    }
}
