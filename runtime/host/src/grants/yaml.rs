//! Grants as YAML, one line for each list entry, to paste from a refusal.

use std::fmt::Write as _;

use crate::grants::{DEFAULT_METHODS, HttpGrant, SecretGrant};
use crate::net::destination::Scheme;

/// An entry for the list `grants.http`. What has its default value is left out.
pub fn http_entry(grant: &HttpGrant) -> String {
    let default = HttpGrant::default();
    let mut entry = Entry::new();
    if grant.scheme == Scheme::Http {
        entry.field("scheme", "http");
    }
    entry.field("host", &scalar(&grant.host));
    if let Some(port) = grant.port.filter(|port| *port != grant.scheme.default_port()) {
        entry.field("port", &port.to_string());
    }
    if grant.methods != DEFAULT_METHODS {
        entry.field("methods", &list(&grant.methods));
    }
    if let Some(ca) = &grant.ca {
        entry.field("ca", &scalar(&ca.to_string_lossy()));
    }
    if !grant.thumbprints.is_empty() {
        entry.field("thumbprints", &list(&grant.thumbprints));
    }
    for (key, file) in [
        ("clientCertificate", &grant.client_certificate),
        ("clientKey", &grant.client_key),
    ] {
        if let Some(file) = file {
            entry.field(key, &scalar(&file.to_string_lossy()));
        }
    }
    if let Some(proxy) = &grant.proxy {
        entry.field("proxy", &scalar(proxy));
    }
    for (key, value) in [
        ("allowLoopback", grant.allow_loopback),
        ("allowLinkLocal", grant.allow_link_local),
    ] {
        if value {
            entry.field(key, "true");
        }
    }
    for (key, value, default) in [
        (
            "connectTimeoutSeconds",
            grant.connect_timeout_seconds,
            default.connect_timeout_seconds,
        ),
        (
            "responseTimeoutSeconds",
            grant.response_timeout_seconds,
            default.response_timeout_seconds,
        ),
    ] {
        if value != default {
            entry.field(key, &value.to_string());
        }
    }
    if grant.max_response_bytes != default.max_response_bytes {
        entry.field("maxResponseBytes", &grant.max_response_bytes.to_string());
    }
    if let Some(rate) = grant.requests_per_second {
        entry.field("requestsPerSecond", &rate.to_string());
    }
    if let Some(burst) = grant.burst {
        entry.field("burst", &burst.to_string());
    }
    entry.finish()
}

/// An entry for the list `grants.secrets`.
pub fn secret_entry(grant: &SecretGrant) -> String {
    let mut entry = Entry::new();
    entry.field("name", &scalar(&grant.name));
    if grant.volume_key().is_none() {
        entry.field("file", &scalar(&grant.file.to_string_lossy()));
    }
    if !grant.hosts.is_empty() {
        entry.field("hosts", &list(&grant.hosts));
    }
    let uses: Vec<String> = grant.uses.iter().map(|one| one.as_str().to_owned()).collect();
    entry.field("uses", &list(&uses));
    entry.finish()
}

struct Entry(String);

impl Entry {
    fn new() -> Self {
        Self("- {".into())
    }

    fn field(&mut self, key: &str, value: &str) {
        let comma = if self.0.ends_with('{') { "" } else { ", " };
        let _ = write!(self.0, "{comma}{key}: {value}");
    }

    fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

fn list(values: &[String]) -> String {
    format!(
        "[{}]",
        values.iter().map(|value| scalar(value)).collect::<Vec<_>>().join(", ")
    )
}

/// A text as YAML: plain where every reader takes it for a text, else in quotes.
fn scalar(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._/-".contains(&b))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text.to_ascii_lowercase().as_str());
    if plain {
        text.to_owned()
    } else {
        serde_json::Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::{Grants, SecretUse};

    #[test]
    fn what_is_printed_reads_back_as_the_same_grants() {
        let http = [
            HttpGrant {
                host: "api.example.com".into(),
                ..HttpGrant::default()
            },
            HttpGrant {
                host: "*.example.com".into(),
                methods: vec!["GET".into()],
                ..HttpGrant::default()
            },
            HttpGrant {
                scheme: Scheme::Http,
                host: "::1".into(),
                port: Some(8080),
                methods: vec!["M-SEARCH".into()],
                ca: Some("/etc/a b.pem".into()),
                thumbprints: vec!["AA:BB".into(), "00".into()],
                client_certificate: Some("/etc/client 1.pem".into()),
                client_key: Some("/etc/cloudwit/secrets/client.key".into()),
                proxy: Some("http://proxy:3128".into()),
                allow_loopback: true,
                allow_link_local: true,
                connect_timeout_seconds: 1,
                response_timeout_seconds: 2,
                max_response_bytes: 3,
                requests_per_second: Some(0.5),
                burst: Some(4),
            },
            HttpGrant {
                host: "no".into(),
                ..HttpGrant::default()
            },
        ];
        let of_volumes = SecretGrant {
            name: "volume/pass.phrase".into(),
            hosts: vec!["api.example.com".into()],
            uses: vec![SecretUse::Placeholder],
            ..SecretGrant::default()
        };
        let with_file = SecretGrant {
            name: "1.5".into(),
            file: "/run/x: y".into(),
            hosts: vec!["api.example.com:443".into()],
            uses: vec![
                SecretUse::Placeholder,
                SecretUse::Hmac,
                SecretUse::Sign,
                SecretUse::Reveal,
            ],
        };
        let secrets = [with_file, of_volumes];
        let lines = |entries: Vec<String>| entries.join("\n");
        let yaml = format!(
            "http:\n{}\nsecrets:\n{}\n",
            lines(http.iter().map(http_entry).collect()),
            lines(secrets.iter().map(secret_entry).collect())
        );
        let read: Grants = serde_saphyr::from_str(&yaml).unwrap();
        assert_eq!(read.http, http, "{yaml}");
        assert_eq!(read.secrets, secrets, "{yaml}");
    }
}
