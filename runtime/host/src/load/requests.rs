//! Grants that a provider requests and does not have. Pure.
//!
//! Each comes with the entry to add.
//!
//! Computed twice: when a provider is loaded at the start, for one warning, and at a swap, where a successor that lacks more than the running
//! provider is refused.

use std::fmt;
use std::path::PathBuf;

use crate::contract::adapter::{ClusterGrantView, Description, HttpGrantRequest, SecretGrantRequest};
use crate::grants::{Grants, HttpGrant, SecretGrant, SecretUse, yaml};
use crate::net::destination::{HostPattern, Scheme};

/// A grant that a provider requests and does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingGrant {
    /// Where the entry belongs: `grants.http`, `grants.secrets` or `grants.cluster`.
    pub list: &'static str,
    /// The entry to add, as a line of YAML.
    pub entry: String,
    /// What the provider needs it for, in its own words.
    pub reason: String,
    /// Whether the provider works without it.
    pub optional: bool,
}

impl fmt::Display for MissingGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            list, entry, reason, ..
        } = self;
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
    let secrets = description.secrets.iter().filter_map(|request| {
        let granted = grants.secrets.iter().find(|grant| grant.name == request.name);
        missing_secret(request, granted, &description.http)
    });
    let cluster = description.cluster.iter().filter_map(|request| {
        let (granted, view) = match request.view {
            ClusterGrantView::Nodes => (grants.cluster.nodes, "nodes"),
            ClusterGrantView::Services => (grants.cluster.services, "services"),
        };
        (!granted).then(|| MissingGrant {
            list: "grants.cluster",
            entry: format!("{view}: true"),
            reason: request.reason.clone(),
            optional: request.optional,
        })
    });
    http.chain(secrets).chain(cluster).collect()
}

/// A secret that is not granted, or not for all its uses.
fn missing_secret(
    request: &SecretGrantRequest,
    granted: Option<&SecretGrant>,
    http: &[HttpGrantRequest],
) -> Option<MissingGrant> {
    let has = |one: &SecretUse| granted.is_some_and(|grant| grant.uses.contains(one));
    if request.uses.iter().all(has) {
        return None;
    }
    // Hosts only matter for what is written into requests.
    let hosts = match request.uses.contains(&SecretUse::Placeholder) {
        true if request.hosts.is_empty() => http.iter().map(binding).collect(),
        true => request.hosts.clone(),
        false => Vec::new(),
    };
    // The operator chooses the path; this is the usual one. The entry of a secret of volumes is written without it.
    let file = || PathBuf::from("/etc/cloudwit/secrets").join(&request.name);
    Some(MissingGrant {
        list: "grants.secrets",
        entry: yaml::secret_entry(&SecretGrant {
            name: request.name.clone(),
            file: granted.map_or_else(file, |grant| grant.file.clone()),
            hosts,
            uses: request.uses.clone(),
        }),
        reason: request.reason.clone(),
        optional: request.optional,
    })
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
        optional: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::adapter::ClusterGrantRequest;

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
            secrets: vec![secret("token", "bearer token", &[SecretUse::Placeholder])],
            ..Description::default()
        };
        let grants: Grants = serde_saphyr::from_str(yaml).unwrap();
        missing_grants(&description, &grants)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    fn secret(name: &str, reason: &str, uses: &[SecretUse]) -> SecretGrantRequest {
        SecretGrantRequest {
            name: name.into(),
            reason: reason.into(),
            uses: uses.to_vec(),
            hosts: Vec::new(),
            optional: false,
        }
    }

    #[test]
    fn a_secret_is_proposed_for_its_uses_and_hosts() {
        let entry = |uses: &[SecretUse], hosts: &[&str], grants: &Grants| {
            let mut secret = secret("key", "signs", uses);
            secret.hosts = hosts.iter().map(ToString::to_string).collect();
            let description = Description {
                secrets: vec![secret],
                http: vec![request("api.example.com", None, &[])],
                ..Description::default()
            };
            missing_grants(&description, grants)
                .pop()
                .filter(|missing| missing.list == "grants.secrets")
                .map(|missing| missing.entry)
        };
        let none = Grants::default();
        let begin = "- {name: key, file: /etc/cloudwit/secrets/key,";
        let both = [SecretUse::Placeholder, SecretUse::Reveal];
        assert_eq!(
            entry(&[SecretUse::Hmac], &["a.example"], &none),
            Some(format!("{begin} uses: [hmac]}}"))
        );
        assert_eq!(
            entry(&both, &["a.example"], &none),
            Some(format!("{begin} hosts: [a.example], uses: [placeholder, reveal]}}"))
        );
        let of_volumes = Description {
            secrets: vec![secret("volume/passphrase", "of disks", &[SecretUse::Placeholder])],
            http: vec![request("api.example.com", None, &[])],
            ..Description::default()
        };
        let missing = missing_grants(&of_volumes, &none).pop().unwrap();
        assert_eq!(
            missing.to_string(),
            "to grants.secrets: - {name: volume/passphrase, hosts: [api.example.com], uses: [placeholder]} (of disks)"
        );
        let of_all = format!("{begin} hosts: [api.example.com], uses: [placeholder]}}");
        assert_eq!(entry(&[SecretUse::Placeholder], &[], &none), Some(of_all));

        let grants = "secrets: [{name: key, file: /k, hosts: [a.example], uses: [placeholder]}]";
        let grants: Grants = serde_saphyr::from_str(grants).unwrap();
        assert_eq!(entry(&[SecretUse::Placeholder], &[], &grants), None);
        assert_eq!(
            entry(&both, &["a.example"], &grants).unwrap(),
            "- {name: key, file: /k, hosts: [a.example], uses: [placeholder, reveal]}"
        );
    }

    #[test]
    fn cluster_views_are_missing_until_granted() {
        let wish = |view, optional| ClusterGrantRequest {
            view,
            reason: "shared routers".into(),
            optional,
        };
        let description = Description {
            cluster: vec![
                wish(ClusterGrantView::Nodes, false),
                wish(ClusterGrantView::Services, true),
            ],
            ..Description::default()
        };
        let missing = |grants: &str| missing_grants(&description, &serde_saphyr::from_str(grants).unwrap());
        let all = missing("{}");
        assert_eq!(all[0].to_string(), "to grants.cluster: nodes: true (shared routers)");
        assert_eq!([all[0].optional, all[1].optional], [false, true]);
        assert_eq!(missing("cluster: {nodes: true, services: true}"), []);
    }

    #[test]
    fn everything_missing_is_reported_with_the_lines_that_grant_it() {
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
    fn only_the_methods_that_are_missing_are_requested() {
        let grants = "{http: [{host: api.example.com, methods: [GET]}], secrets: [{name: token, uses: [placeholder]}]}";
        let missing = texts(vec![request("api.example.com", None, &["GET", "DELETE"])], grants);
        assert_eq!(
            missing,
            ["to grants.http: - {host: api.example.com, methods: [DELETE]} (the API)"]
        );
    }

    #[test]
    fn a_wider_grant_suffices_and_a_narrower_one_does_not() {
        let secret = "secrets: [{name: token, uses: [placeholder]}]";
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
