//! What a provider would like to be granted and is not. Pure: its description and the grants in, the lines to add out.
//!
//! Asked twice: when a provider is loaded at the start, for one warning, and at a swap, where a successor that lacks more than the running
//! provider is refused.

use std::fmt;
use std::path::PathBuf;

use crate::contract::adapter::{Description, HttpWish};
use crate::grants::{Grants, HttpGrant, SecretGrant, SecretUse, yaml};
use crate::net::destination::{HostPattern, Scheme};

/// One wish that is not granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// Where the entry belongs: `grants.http` or `grants.secrets`.
    pub list: &'static str,
    /// The entry to add, as a line of YAML.
    pub entry: String,
    /// What the provider needs it for, in its own words.
    pub reason: String,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { list, entry, reason } = self;
        write!(f, "to {list}: {entry}")?;
        if reason.is_empty() {
            Ok(())
        } else {
            write!(f, " ({reason})")
        }
    }
}

/// All that the description wishes for and the grants do not give, in the order of the description.
pub fn lacking(description: &Description, grants: &Grants) -> Vec<Lack> {
    let http = description.http.iter().filter_map(|wish| http_lack(wish, &grants.http));
    let granted = |name: &str| grants.secrets.iter().any(|grant| grant.name == name);
    let secrets = description.secrets.iter().filter(|wish| !granted(&wish.name));
    http.chain(secrets.map(|wish| {
        let uses = uses(&wish.reason);
        // Hosts only matter for what is written into requests.
        let bound = uses.contains(&SecretUse::Placeholder);
        let hosts = description.http.iter().map(binding).filter(|_| bound).collect();
        Lack {
            list: "grants.secrets",
            entry: yaml::secret_entry(&SecretGrant {
                name: wish.name.clone(),
                // Where the file is is the operator's to know; this is the usual answer.
                file: PathBuf::from("/etc/cloudwit/secrets").join(&wish.name),
                hosts,
                uses,
            }),
            reason: wish.reason.clone(),
        }
    }))
    .collect()
}

/// What a provider does with a secret: the contract has no field for it, so providers say it at the end of their reason, as the grant has it
/// (`the host signs with it (uses: [hmac])`). Where they do not, it is written into requests.
fn uses(reason: &str) -> Vec<SecretUse> {
    let said = reason
        .trim_end()
        .strip_suffix("])")
        .and_then(|text| text.rsplit_once("(uses: ["));
    let known = |word: &str| {
        let all = [
            SecretUse::Placeholder,
            SecretUse::Hmac,
            SecretUse::Sign,
            SecretUse::Reveal,
        ];
        all.into_iter().find(|one| one.as_str() == word.trim())
    };
    let uses: Option<Vec<_>> = said.and_then(|(_, words)| words.split(',').map(known).collect());
    uses.unwrap_or_else(|| vec![SecretUse::Placeholder])
}

fn binding(wish: &HttpWish) -> String {
    match wish.port {
        Some(port) => format!("{}:{port}", wish.host),
        None => wish.host.clone(),
    }
}

/// A wish of which at least one method is not granted.
fn http_lack(wish: &HttpWish, grants: &[HttpGrant]) -> Option<Lack> {
    let scheme = if wish.scheme == "http" {
        Scheme::Http
    } else {
        Scheme::Https
    };
    let port = wish.port.unwrap_or_else(|| scheme.default_port());
    let host = HostPattern::parse(&wish.host);
    let covers = |grant: &&HttpGrant| {
        let pattern = HostPattern::parse(&grant.host);
        let same_host = pattern
            .zip(host.as_ref())
            .is_some_and(|(pattern, host)| pattern.covers(host));
        same_host && grant.scheme == scheme && grant.port() == port
    };
    let granted: Vec<&HttpGrant> = grants.iter().filter(covers).collect();
    let has = |method: &String| granted.iter().any(|grant| grant.methods.contains(method));
    let missing: Vec<String> = wish.methods.iter().filter(|method| !has(method)).cloned().collect();
    // A wish without methods is one for the host alone.
    if missing.is_empty() && !(wish.methods.is_empty() && granted.is_empty()) {
        return None;
    }
    let mut entry = HttpGrant {
        scheme,
        host: wish.host.clone(),
        port: wish.port,
        ..HttpGrant::default()
    };
    if !missing.is_empty() {
        entry.methods = missing;
    }
    Some(Lack {
        list: "grants.http",
        entry: yaml::http_entry(&entry),
        reason: wish.reason.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::adapter::SecretWish;

    fn wish(host: &str, port: Option<u16>, methods: &[&str]) -> HttpWish {
        HttpWish {
            scheme: "https".into(),
            host: host.into(),
            port,
            methods: methods.iter().map(ToString::to_string).collect(),
            reason: "the API".into(),
        }
    }

    fn texts(http: Vec<HttpWish>, yaml: &str) -> Vec<String> {
        let description = Description {
            http,
            secrets: vec![SecretWish {
                name: "token".into(),
                reason: "bearer token".into(),
            }],
            ..Description::default()
        };
        let grants: Grants = serde_saphyr::from_str(yaml).unwrap();
        lacking(&description, &grants).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_secret_is_proposed_for_the_use_that_the_provider_names() {
        let entry = |reason: &str| {
            let description = Description {
                http: vec![wish("api.example.com", None, &["POST"])],
                secrets: vec![SecretWish {
                    name: "key".into(),
                    reason: reason.into(),
                }],
                ..Description::default()
            };
            lacking(&description, &Grants::default()).pop().unwrap().entry
        };
        let begin = "- {name: key, file: /etc/cloudwit/secrets/key,";
        assert_eq!(entry("signs (uses: [hmac])"), format!("{begin} uses: [hmac]}}"));
        let both = format!("{begin} hosts: [api.example.com], uses: [placeholder, reveal]}}");
        assert_eq!(entry("sent and read (uses: [placeholder, reveal])"), both);
        let usual = format!("{begin} hosts: [api.example.com], uses: [placeholder]}}");
        assert_eq!(entry("for a use that is none (uses: [eat])"), usual);
        assert_eq!(entry("sent"), usual);
    }

    #[test]
    fn everything_missing_is_said_with_the_lines_that_grant_it() {
        let wishes = || vec![wish("api.example.com", Some(8443), &["GET", "POST"])];
        let missing = texts(wishes(), "{}");
        assert_eq!(
            missing,
            [
                "to grants.http: - {host: api.example.com, port: 8443, methods: [GET, POST]} (the API)",
                "to grants.secrets: - {name: token, file: /etc/cloudwit/secrets/token, hosts: [\"api.example.com:8443\"], \
                 uses: [placeholder]} (bearer token)"
            ]
        );
        let lines: Vec<&str> = missing
            .iter()
            .map(|line| line.split_once(": ").unwrap().1.rsplit_once(" (").unwrap().0)
            .collect();
        let pasted = format!("http:\n  {}\nsecrets:\n  {}\n", lines[0], lines[1]);
        assert_eq!(texts(wishes(), &pasted), Vec::<String>::new(), "{pasted}");
    }

    #[test]
    fn only_the_methods_that_are_missing_are_asked_for() {
        let grants = "{http: [{host: api.example.com, methods: [GET]}], secrets: [{name: token}]}";
        let missing = texts(vec![wish("api.example.com", None, &["GET", "DELETE"])], grants);
        assert_eq!(
            missing,
            ["to grants.http: - {host: api.example.com, methods: [DELETE]} (the API)"]
        );
    }

    #[test]
    fn a_wider_grant_suffices_and_a_narrower_one_does_not() {
        let secret = "secrets: [{name: token}]";
        for (granted, wanted, fits) in [
            ("'*.example.com'", "api.example.com", true),
            ("'*.example.com'", "*.eu.example.com", true),
            ("'*.example.com'", "*.example.com", true),
            ("'*.eu.example.com'", "*.example.com", false),
            ("api.example.com", "*.example.com", false),
            ("api.example.com", "API.example.com", true),
        ] {
            let yaml = format!("{{http: [{{host: {granted}}}], {secret}}}");
            let missing = texts(vec![wish(wanted, None, &["GET"])], &yaml);
            assert_eq!(missing.is_empty(), fits, "{granted} for {wanted}: {missing:?}");
        }
        let other_port = format!("{{http: [{{host: a.example.com, port: 8443}}], {secret}}}");
        assert_eq!(texts(vec![wish("a.example.com", None, &["GET"])], &other_port).len(), 1);
    }
}
