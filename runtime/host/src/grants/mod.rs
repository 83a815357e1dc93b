//! Grants of one provider: HTTP destinations, secrets, cluster views, state.
//!
//! This is the text of the configuration file and nothing more: [`Grants::validate`] finds all its mistakes, `egress::plan` decides by
//! it, [`crate::secrets::keys`] and [`crate::state`] keep to it. Whatever is not written here is refused, and the refusal prints the lines that
//! would have to be written.

pub(crate) mod check;
pub(crate) mod yaml;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cloudwit_model::VOLUME_SECRET;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::net::destination::Scheme;

/// All that one provider may do. Nothing by default.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Grants {
    /// Where its requests may go. When several entries fit a request, the one with the most `allow` flags is taken.
    pub http: Vec<HttpGrant>,
    /// Its secrets, and what may be done with each.
    pub secrets: Vec<SecretGrant>,
    /// What it may see of the cluster.
    pub cluster: ClusterGrant,
    /// Space for what outlives a call.
    pub state: StateGrant,
}

/// One HTTP destination.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
#[schemars(extend("required" = ["host"]))]
pub struct HttpGrant {
    /// Scheme of the requests.
    pub scheme: Scheme,
    /// A name, an IP address, or `*.example.com` for every name below `example.com`.
    pub host: String,
    /// Port. 443, or 80 for http, when left out.
    #[schemars(range(min = 1, max = 65_535))]
    pub port: Option<u16>,
    /// Methods, in upper case.
    pub methods: Vec<String>,
    /// PEM file of the authorities that are trusted here, and no others. The public ones when left out.
    pub ca: Option<PathBuf>,
    /// In place of `ca`: thumbprints (SHA-256 or SHA-1, hexadecimal) of certificates. Servers with one of these are trusted and no others,
    /// whatever authority, name or date stands in them.
    pub thumbprints: Vec<String>,
    /// PEM file of the client certificate that is presented to servers that request one, followed by its intermediate certificates. With `clientKey`.
    pub client_certificate: Option<PathBuf>,
    /// PEM file of its private key, unencrypted, and not the file of the certificate. The provider never sees it.
    pub client_key: Option<PathBuf>,
    /// URL of a forward proxy, `http://HOST:PORT` or `https://HOST:PORT`. The proxy looks names up then, so of the destination only a literal address
    /// can be checked; the address of the proxy itself is the operator's choice and is not checked.
    pub proxy: Option<String>,
    /// Allow addresses of this machine (127.0.0.0/8, ::1).
    pub allow_loopback: bool,
    /// Allow link-local addresses (169.254.0.0/16, fe80::/10) and the metadata services of clouds, wherever these live.
    pub allow_link_local: bool,
    /// Longest wait for a connection, in seconds; a provider may set less.
    #[schemars(range(min = 1, max = u32::MAX))]
    pub connect_timeout_seconds: u32,
    /// Longest wait for the head of a response, and for each further piece of it, in seconds; a provider may set less.
    #[schemars(range(min = 1, max = u32::MAX))]
    pub response_timeout_seconds: u32,
    /// Largest response body, in bytes.
    #[schemars(range(min = 1))]
    pub max_response_bytes: u64,
    /// Requests in a second, over all calls, for each API host (scheme, host and port), 0.001 to 10000. No limit when left out. When several
    /// entries fit an API host, the smallest counts.
    pub requests_per_second: Option<f64>,
    /// Requests that may leave at once after a rest. `requestsPerSecond`, rounded up, when left out.
    #[schemars(range(min = 1, max = 10_000))]
    pub burst: Option<u32>,
}

/// Methods that are granted when none are named.
pub const DEFAULT_METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

impl Default for HttpGrant {
    fn default() -> Self {
        Self {
            scheme: Scheme::Https,
            host: String::new(),
            port: None,
            methods: DEFAULT_METHODS.map(String::from).to_vec(),
            ca: None,
            thumbprints: Vec::new(),
            client_certificate: None,
            client_key: None,
            proxy: None,
            allow_loopback: false,
            allow_link_local: false,
            connect_timeout_seconds: 10,
            response_timeout_seconds: 60,
            max_response_bytes: 64 << 20,
            requests_per_second: None,
            burst: None,
        }
    }
}

impl HttpGrant {
    /// The port that is meant.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or_else(|| self.scheme.default_port())
    }

    /// [`Self::burst`], or what it is when left out.
    pub fn burst(&self) -> u32 {
        // A float becomes the nearest u32; the check of the grants keeps it small.
        self.burst
            .unwrap_or_else(|| self.requests_per_second.unwrap_or(1.0).ceil() as u32)
    }

    /// [`Self::connect_timeout_seconds`].
    pub fn connect_timeout(&self) -> Duration {
        Duration::from_secs(self.connect_timeout_seconds.into())
    }

    /// [`Self::response_timeout_seconds`].
    pub fn response_timeout(&self) -> Duration {
        Duration::from_secs(self.response_timeout_seconds.into())
    }
}

/// A way to use a secret; each has to be granted.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum SecretUse {
    /// The host writes it into requests to the hosts it is bound to.
    Placeholder,
    /// The host computes HMACs and derived keys with it.
    Hmac,
    /// The host signs with it (a PEM private key).
    Sign,
    /// The provider may read it. Logged each time.
    Reveal,
}

impl SecretUse {
    /// As it is written in the grants.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Placeholder => "placeholder",
            Self::Hmac => "hmac",
            Self::Sign => "sign",
            Self::Reveal => "reveal",
        }
    }
}

/// One secret.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
#[schemars(extend("required" = ["name", "uses"]))]
pub struct SecretGrant {
    /// The name by which the provider requests it. `volume/KEY` stands for the key KEY of the Secret that comes with a request about a volume.
    pub name: String,
    /// The file it is in. One line break at its end is not part of it. A secret `volume/KEY` has none, every other one needs it.
    #[serde(skip_serializing_if = "is_no_file")]
    pub file: PathBuf,
    /// `host` or `host:port`, wildcards as in `http`: where its placeholder is filled in. Each has to be granted under `http`.
    pub hosts: Vec<String>,
    /// What may be done with it: be filled into requests, key an HMAC, sign, be read by the provider.
    pub uses: Vec<SecretUse>,
}

fn is_no_file(file: &Path) -> bool {
    file.as_os_str().is_empty()
}

impl SecretGrant {
    /// The key of the request's secret that it is about, where it is about one of those.
    pub fn volume_key(&self) -> Option<&str> {
        self.name.strip_prefix(VOLUME_SECRET)
    }
}

/// Read-only views of the cluster.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ClusterGrant {
    /// All Nodes.
    pub nodes: bool,
    /// All Services of type `LoadBalancer`.
    pub services: bool,
}

/// Space for state.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct StateGrant {
    /// For all entries together, in bytes.
    pub max_bytes: u64,
}

impl Default for StateGrant {
    fn default() -> Self {
        Self { max_bytes: 1 << 20 }
    }
}

/// One mistake in the grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantProblem {
    /// Where, below `grants`: `http[0].host`.
    pub path: String,
    /// What is written there; empty when nothing is, or when it might be a secret.
    pub value: String,
    /// What is wrong with it.
    pub wrong: String,
    /// How to put it right.
    pub fix: String,
}

impl GrantProblem {
    /// The mistake without its path.
    pub fn what(&self) -> String {
        let Self { value, wrong, fix, .. } = self;
        if value.is_empty() {
            format!("{wrong}; {fix}")
        } else {
            format!("{value:?} {wrong}; {fix}")
        }
    }
}

impl fmt::Display for GrantProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.what())
    }
}

/// The grants cannot be put into force. Carries all reasons.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", list(.0))]
pub struct GrantError(pub Vec<GrantProblem>);

fn list(problems: &[GrantProblem]) -> String {
    problems
        .iter()
        .map(|problem| format!("grants.{problem}"))
        .collect::<Vec<_>>()
        .join("\n")
}

impl Grants {
    /// Finds all mistakes, without looking at any file.
    pub fn validate(&self) -> Result<(), Vec<GrantProblem>> {
        let problems = check::problems(self);
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

/// Whether a secret may be called so: letters, digits, `.`, `_` and `-`, as keys of a Kubernetes Secret; `volume/` before them for one that comes with
/// requests about volumes.
pub fn is_secret_name(name: &str) -> bool {
    let key = name.strip_prefix(VOLUME_SECRET).unwrap_or(name);
    name.len() <= 128 && !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}
