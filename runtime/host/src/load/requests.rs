//! Grants that a provider requests and does not have. Pure.
//!
//! Each comes with the entry to add.
//!
//! Asked twice: when a provider is loaded at the start, for one warning, and at a swap, where a successor that lacks more than the running
//! provider is refused.

use std::fmt;
use std::path::PathBuf;

use crate::contract::adapter::{Description, HttpGrantRequest};
use crate::grants::{Grants, HttpGrant, SecretGrant, SecretUse, yaml};
use crate::net::destination::{HostPattern, Scheme};

/// A grant that a provider requests and does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingGrant {
    /// Where the entry belongs: `grants.http` or `grants.secrets`.
    pub list: &'static str,
    /// The entry to add, as a line of YAML.
    pub entry: String,
    /// What the provider needs it for, in its own words.
    pub reason: String,
}

impl fmt::Display for MissingGrant {
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

/// All that the description requests and the grants do not give, in the order of the description.
pub fn missing_grants(description: &Description, grants: &Grants) -> Vec<MissingGrant> {
    let http = description
        .http
        .iter()
        .filter_map(|request| missing_http(request, &grants.http));
    let granted = |name: &str| grants.secrets.iter().any(|grant| grant.name == name);
    let secrets = description.secrets.iter().filter(|request| !granted(&request.name));
    http.chain(secrets.map(|request| {
        let uses = uses(&request.reason);
        // Hosts only matter for what is written into requests.
        let bound = uses.contains(&SecretUse::Placeholder);
        let hosts = description.http.iter().map(binding).filter(|_| bound).collect();
        MissingGrant {
            list: "grants.secrets",
            entry: yaml::secret_entry(&SecretGrant {
                name: request.name.clone(),
                // Where the file is is the operator's to know; this is the usual answer.
                file: PathBuf::from("/etc/cloudwit/secrets").join(&request.name),
                hosts,
                uses,
            }),
            reason: request.reason.clone(),
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

fn binding(request: &HttpGrantRequest) -> String {
    match request.port {
        Some(port) => format!("{}:{port}", request.host),
        None => request.host.clone(),
    }
}

/// A request of which at least one method is not granted.
fn missing_http(request: &HttpGrantRequest, grants: &[HttpGrant]) -> Option<MissingGrant> {
    let scheme = if request.scheme == "http" {
        Scheme::Http
    } else {
        Scheme::Https
    };
    let port = request.port.unwrap_or_else(|| scheme.default_port());
    let host = HostPattern::parse(&request.host);
    let covers = |grant: &&HttpGrant| {
        let pattern = HostPattern::parse(&grant.host);
        let same_host = pattern
            .zip(host.as_ref())
            .is_some_and(|(pattern, host)| pattern.covers(host));
        same_host && grant.scheme == scheme && grant.port() == port
    };
    let granted: Vec<&HttpGrant> = grants.iter().filter(covers).collect();
    let has = |method: &String| granted.iter().any(|grant| grant.methods.contains(method));
    let missing: Vec<String> = request.methods.iter().filter(|method| !has(method)).cloned().collect();
    // A request without methods is one for the host alone.
    if missing.is_empty() && !(request.methods.is_empty() && granted.is_empty()) {
        return None;
    }
    let mut entry = HttpGrant {
        scheme,
        host: request.host.clone(),
        port: request.port,
        ..HttpGrant::default()
    };
    if !missing.is_empty() {
        entry.methods = missing;
    }
    Some(MissingGrant {
        list: "grants.http",
        entry: yaml::http_entry(&entry),
        reason: request.reason.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::adapter::SecretGrantRequest;

    fn request(host: &str, port: Option<u16>, methods: &[&str]) -> HttpGrantRequest {
        HttpGrantRequest {
            scheme: "https".into(),
            host: host.into(),
            port,
            methods: methods.iter().map(ToString::to_string).collect(),
            reason: "the API".into(),
        }
    }

    fn texts(http: Vec<HttpGrantRequest>, yaml: &str) -> Vec<String> {
        let description = Description {
            http,
            secrets: vec![SecretGrantRequest {
                name: "token".into(),
                reason: "bearer token".into(),
            }],
            ..Description::default()
        };
        let grants: Grants = serde_saphyr::from_str(yaml).unwrap();
        missing_grants(&description, &grants)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_secret_is_proposed_for_the_use_that_the_provider_names() {
        let entry = |reason: &str| {
            let description = Description {
                http: vec![request("api.example.com", None, &["POST"])],
                secrets: vec![SecretGrantRequest {
                    name: "key".into(),
                    reason: reason.into(),
                }],
                ..Description::default()
            };
            missing_grants(&description, &Grants::default()).pop().unwrap().entry
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
        let requested = || vec![request("api.example.com", Some(8443), &["GET", "POST"])];
        let missing = texts(requested(), "{}");
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
        assert_eq!(texts(requested(), &pasted), Vec::<String>::new(), "{pasted}");
    }

    #[test]
    fn only_the_methods_that_are_missing_are_asked_for() {
        let grants = "{http: [{host: api.example.com, methods: [GET]}], secrets: [{name: token}]}";
        let missing = texts(vec![request("api.example.com", None, &["GET", "DELETE"])], grants);
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
            let missing = texts(vec![request(wanted, None, &["GET"])], &yaml);
            assert_eq!(missing.is_empty(), fits, "{granted} for {wanted}: {missing:?}");
        }
        let other_port = format!("{{http: [{{host: a.example.com, port: 8443}}], {secret}}}");
        assert_eq!(
            texts(vec![request("a.example.com", None, &["GET"])], &other_port).len(),
            1
        );
    }
}
