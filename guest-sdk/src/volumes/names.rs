//! Names of volumes in clouds that do not take every name.

use data_encoding::HEXLOWER;

use crate::keys::{Hash, Keys};

/// Letters and digits of a digest: 160 bits.
const DIGITS: usize = 40;

/// The requested name where the cloud `takes` it, else a digest of it behind `prefix`. It never changes for one name, so what was made is found by it again.
pub fn name_or_digest(keys: Keys, prefix: &str, name: &str, takes: impl FnOnce(&str) -> bool) -> String {
    if takes(name) {
        return name.into();
    }
    let mut digest = HEXLOWER.encode(&keys.digest(Hash::Sha256, name.as_bytes()));
    digest.truncate(DIGITS);
    format!("{prefix}{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakeHost;

    #[test]
    fn name_that_the_cloud_does_not_take_becomes_a_digest() {
        let host = FakeHost::new();
        let named = |name: &str| name_or_digest(host.context().keys(), "vol-", name, |name| name.len() < 64);
        assert_eq!(named("pvc-1"), "pvc-1");
        let long = "n".repeat(128);
        // sha256sum of 128 letters n.
        assert_eq!(named(&long), "vol-dd2411b970d6f3272b9824bdc649c6d76b895162");
        assert_ne!(named(&long), named(&"m".repeat(128)));
    }
}
