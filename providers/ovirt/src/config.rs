//! Cloud config: the sections and keys of the in-tree provider that Kubernetes had until 1.15, and `[zones]`.

use std::fmt;

use cloudwit_guest_sdk::config::given;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::url::is_url;
use serde::Deserialize;

/// The user where the key is left out, as the in-tree provider has it.
const USERNAME: &str = "admin@internal";

/// What the URL of the API ends with.
const API: &str = "/api";

/// The whole file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    /// `[connection]`.
    pub connection: Connection,
    /// `[filters]`.
    pub filters: Filters,
    /// `[zones]`.
    pub zones: Zones,
}

/// `[connection]`.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct Connection {
    uri: Option<String>,
    username: Option<String>,
    /// In plain text; with none the secret `password` is used.
    password: Option<String>,
    auth: Option<String>,
}

/// Values are not shown: one is a secret.
impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}

/// `[filters]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Filters {
    /// A search of oVirt; only what it finds can become a Node.
    pub vms: Option<String>,
}

/// `[zones]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Zones {
    disabled: bool,
    label_prefix: Option<String>,
    region: Option<String>,
}

/// User agent of all requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// A token of the engine's single sign-on.
    Sso,
    /// Name and password in every request.
    Basic,
}

impl Config {
    /// What types cannot express.
    pub fn validate(&self, problems: &mut Problems) {
        self.connection.validate(problems);
        self.zones.validate(problems);
        if given(&self.filters.vms).is_some_and(|search| search.contains("sortby") || search.contains("page ")) {
            let text = "a search with sortby or page; lists are sorted and read in pages already: leave these out";
            problems.add("filters.vms", text);
        }
    }
}

impl Connection {
    /// The API, without a slash at the end.
    pub(crate) fn url(&self) -> &str {
        given(&self.uri).unwrap_or_default().trim_end_matches('/')
    }

    /// Where tokens come from.
    pub(crate) fn token_url(&self) -> String {
        format!("{}/sso/oauth/token", self.url().trim_end_matches(API))
    }

    pub(crate) fn username(&self) -> &str {
        given(&self.username).unwrap_or(USERNAME)
    }

    pub(crate) fn password(&self) -> Option<&str> {
        given(&self.password)
    }

    pub(crate) fn auth(&self) -> Auth {
        match given(&self.auth) {
            Some("basic") => Auth::Basic,
            _ => Auth::Sso,
        }
    }

    /// The grant request for the engine.
    pub(crate) fn wish(&self) -> Option<HttpWish> {
        let methods: &[&str] = match self.auth() {
            Auth::Sso => &["GET", "POST"],
            Auth::Basic => &["GET"],
        };
        HttpWish::for_url(self.url(), methods, "oVirt's engine: machines, clusters and the token")
    }

    /// The secrets of the grants; none where the password is in the text.
    pub(crate) fn secrets(&self) -> &'static [&'static str] {
        match (self.password(), self.auth()) {
            (Some(_), _) => &[],
            (None, Auth::Sso) => &["password"],
            (None, Auth::Basic) => &["username", "password"],
        }
    }

    fn validate(&self, problems: &mut Problems) {
        const EXAMPLE: &str = "https://engine.example.com/ovirt-engine/api";
        match given(&self.uri) {
            None => problems.add(
                "connection.uri",
                format!("this key is missing; write the URL of the API, such as {EXAMPLE}"),
            ),
            Some(uri) if !is_url(uri) || uri.contains('@') || !self.url().ends_with(API) => problems.add(
                "connection.uri",
                format!("this is no URL of the API; write it like {EXAMPLE}"),
            ),
            Some(_) => {}
        }
        match given(&self.auth) {
            None | Some("sso" | "basic") => {}
            Some(other) => problems.add(
                "connection.auth",
                format!("\"{other}\" is unknown; write sso for tokens, or basic"),
            ),
        }
        if self.password().is_some() {
            let text = "the component can read this password: write it into a file that is granted as the secret password with \
                        uses: [placeholder], and remove this key";
            problems.warn("connection.password", text);
        } else if self.auth() == Auth::Basic && given(&self.username).is_some() {
            let text = "has no effect with auth = basic: the user is the secret username";
            problems.warn("connection.username", text);
        }
    }
}

impl Zones {
    /// Whether Nodes get zones and regions at all; those of the in-tree provider had none.
    pub(crate) fn enabled(&self) -> bool {
        !self.disabled
    }

    /// How an affinity label begins whose rest is the zone.
    pub(crate) fn label_prefix(&self) -> Option<&str> {
        given(&self.label_prefix).filter(|_| self.enabled())
    }

    /// The region of all machines.
    pub(crate) fn region(&self) -> Option<&str> {
        given(&self.region)
    }

    fn validate(&self, problems: &mut Problems) {
        if self.disabled && (given(&self.label_prefix).is_some() || given(&self.region).is_some()) {
            let text =
                "Nodes get neither zone nor region, so label-prefix and region have no effect; remove them or this key";
            problems.add("zones.disabled", text);
        }
    }
}

#[cfg(test)]
mod tests;
