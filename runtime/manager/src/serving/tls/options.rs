//! TLS versions, cipher suites and curves, by upstream's names.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, SupportedKxGroup, ring};
use rustls::{NamedGroup, SupportedCipherSuite, SupportedProtocolVersion, version};

use crate::flags::groups::serving::SecureServingArgs;
use crate::flags::values::go::entries;

/// Versions, suites and groups of a server.
#[derive(Debug, Clone)]
pub struct TlsOptions {
    /// The library's provider, cut down.
    pub crypto: Arc<CryptoProvider>,
    /// From the smallest on.
    pub versions: &'static [&'static SupportedProtocolVersion],
}

static FROM_12: [&SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];
static FROM_13: [&SupportedProtocolVersion; 1] = [&version::TLS13];

impl TlsOptions {
    /// The options, or a message for each flag that cannot be had.
    pub fn new(args: &SecureServingArgs) -> Result<Self, Vec<String>> {
        let (mut mistakes, prefix) = (Vec::new(), args.prefix);
        let versions: &'static [_] = match args.tls_min_version.as_str() {
            "" | "VersionTLS12" => &FROM_12,
            "VersionTLS13" => &FROM_13,
            other => {
                mistakes.push(format!(
                    "--{prefix}tls-min-version={other}: only VersionTLS12 and VersionTLS13 are served; older ones are broken"
                ));
                &FROM_12
            }
        };
        let mut crypto = ring::default_provider();
        crypto.cipher_suites = suites(&args.tls_cipher_suites, prefix, &mut mistakes);
        crypto.kx_groups = groups(&args.tls_curve_preferences, prefix, &mut mistakes);
        if mistakes.is_empty() {
            Ok(Self {
                crypto: Arc::new(crypto),
                versions,
            })
        } else {
            Err(mistakes)
        }
    }
}

/// The IANA name. The library names suites of TLS 1.3 with a prefix of its own.
fn name(suite: &SupportedCipherSuite) -> String {
    format!("{:?}", suite.suite()).replace("TLS13_", "TLS_")
}

fn suites(wanted: &[String], prefix: &str, mistakes: &mut Vec<String>) -> Vec<SupportedCipherSuite> {
    let (all, wanted) = (ring::ALL_CIPHER_SUITES, entries(wanted));
    for unknown in wanted
        .iter()
        .filter(|wanted| !all.iter().any(|suite| name(suite) == **wanted))
    {
        let known: Vec<String> = all.iter().map(name).collect();
        mistakes.push(format!(
            "--{prefix}tls-cipher-suites: {unknown:?} is not served; known: {}",
            known.join(", ")
        ));
    }
    all.iter()
        .filter(|suite| wanted.is_empty() || suite.tls13().is_some() || wanted.contains(&name(suite)))
        .copied()
        .collect()
}

fn groups(wanted: &[i32], prefix: &str, mistakes: &mut Vec<String>) -> Vec<&'static dyn SupportedKxGroup> {
    let all = ring::ALL_KX_GROUPS;
    if wanted.is_empty() {
        return all.to_vec();
    }
    let mut groups = Vec::new();
    for number in wanted {
        let known = all.iter().find(|group| i32::from(u16::from(group.name())) == *number);
        match known {
            Some(group) => groups.push(*group),
            None => mistakes.push(format!(
                "--{prefix}tls-curve-preferences: {number} is not served; known: {}",
                [NamedGroup::X25519, NamedGroup::secp256r1, NamedGroup::secp384r1]
                    .map(|group| format!("{} ({group:?})", u16::from(group)))
                    .join(", ")
            )),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::args::Args;

    fn of(flags: &[&str]) -> Result<TlsOptions, Vec<String>> {
        TlsOptions::new(&Args::parse_from([&["cloudwit"], flags].concat()).secure_serving)
    }

    #[test]
    fn suites_and_groups_are_picked_by_name_and_number() {
        let options = of(&[
            "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "--tls-curve-preferences=24,29",
            "--tls-min-version=VersionTLS13",
        ])
        .unwrap();
        let old: Vec<String> = options
            .crypto
            .cipher_suites
            .iter()
            .filter(|one| one.tls13().is_none())
            .map(name)
            .collect();
        assert_eq!(old, ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]);
        assert_eq!(options.crypto.cipher_suites.len(), 4, "those of TLS 1.3 stay");
        let groups: Vec<_> = options.crypto.kx_groups.iter().map(|group| group.name()).collect();
        assert_eq!(groups, [NamedGroup::secp384r1, NamedGroup::X25519]);
        assert_eq!(options.versions.len(), 1);
    }

    #[test]
    fn what_is_not_served_is_named_with_what_is() {
        let wrong = of(&[
            "--tls-cipher-suites=TLS_NULL,RC4",
            "--tls-curve-preferences=25",
            "--tls-min-version=VersionTLS10",
        ]);
        let wrong = wrong.unwrap_err();
        assert_eq!(wrong.len(), 4, "{wrong:?}");
        assert!(
            wrong[1].contains("\"TLS_NULL\" is not served; known: TLS_AES_256_GCM_SHA384"),
            "{wrong:?}"
        );
        assert!(wrong[3].contains("25 is not served; known: 29 (X25519)"), "{wrong:?}");
    }
}
