//! Cloud config with the sections and keys of the in-tree provider that Kubernetes had until 1.9.

use std::fmt;

pub(crate) use cloudwit_guest_sdk::config::given;
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;
use serde::de::IgnoredAny;

mod balancers;

pub use balancers::BalancerConfig;

/// Identity of the United States; that of the United Kingdom begins with `https://lon.`.
const IDENTITY: &str = "https://identity.api.rackspacecloud.com/v2.0";

/// The end of the names of all of Rackspace's API hosts.
const DOMAIN: &str = ".api.rackspacecloud.com";

/// The whole file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    /// `[Global]`.
    pub global: Global,
    /// `[LoadBalancer]`.
    pub loadbalancer: BalancerConfig,
}

/// `[Global]`: the URL of identity, the credentials, and the region.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Global {
    /// Identity's URL, with or without `/v2.0`; Rackspace's own where it is left out.
    pub auth_url: Option<String>,
    /// Name of the user.
    pub username: Option<String>,
    /// Password in plain text; with neither this nor `api-key` the secret `api-key` is used.
    pub password: Option<String>,
    /// API key in plain text.
    pub api_key: Option<String>,
    /// Id of the account.
    pub tenant_id: Option<String>,
    /// Name of the account.
    pub tenant_name: Option<String>,
    /// Such as `DFW`.
    pub region: Option<String>,
    /// Whether the secret is a password and no API key.
    pub use_password: bool,
    user_id: Option<String>,
    domain_id: Option<IgnoredAny>,
    domain_name: Option<IgnoredAny>,
}

/// Values are not shown: some are secrets.
impl fmt::Debug for Global {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Global")
    }
}

impl Config {
    /// The grant request for Cloud Load Balancers, unless there shall be none.
    pub(crate) fn balancers_wish(&self) -> Option<HttpWish> {
        self.loadbalancer.is_enabled().then(|| self.global.balancers_wish())?
    }

    /// What types cannot express.
    pub fn validate(&self, problems: &mut Problems) {
        self.global.validate(problems);
        self.loadbalancer.validate(problems);
    }
}

impl Global {
    /// Identity's version 2, without a slash at the end.
    pub(crate) fn identity(&self) -> String {
        let url = given(&self.auth_url).unwrap_or(IDENTITY).trim_end_matches('/');
        let url = url.strip_suffix("/v2.0").unwrap_or(url);
        format!("{}/v2.0", url.trim_end_matches('/'))
    }

    /// The grant request for identity.
    pub(crate) fn identity_wish(&self) -> Option<HttpWish> {
        HttpWish::for_url(&self.identity(), &["POST"], "identity: the token and the endpoints")
    }

    /// The grant request for Cloud Servers, where its name follows from the region.
    pub(crate) fn servers_wish(&self) -> Option<HttpWish> {
        self.wish("servers", &["GET"], "Cloud Servers: the machines behind Nodes")
    }

    /// The grant request for Cloud Load Balancers, likewise.
    pub(crate) fn balancers_wish(&self) -> Option<HttpWish> {
        let reason = "Cloud Load Balancers: load balancers of Services";
        self.wish("loadbalancers", &["GET", "POST", "PUT", "DELETE"], reason)
    }

    fn wish(&self, service: &str, methods: &[&str], reason: &str) -> Option<HttpWish> {
        let own = self.identity().contains(DOMAIN);
        let region = given(&self.region)
            .filter(|region| own && is_region(region))?
            .to_ascii_lowercase();
        HttpWish::for_url(&format!("https://{region}.{service}{DOMAIN}"), methods, reason)
    }

    /// The secret of the grants that is used; none where it is in the text.
    pub(crate) fn secret(&self) -> Option<&'static str> {
        match given(&self.api_key).or(given(&self.password)) {
            Some(_) => None,
            None if self.use_password => Some("password"),
            None => Some("api-key"),
        }
    }

    fn validate(&self, problems: &mut Problems) {
        problems.url("global.auth-url", &self.auth_url, IDENTITY);
        let also = match given(&self.user_id) {
            Some(_) => "the name of the user; identity v2 knows no user-id",
            None => "the name of the user",
        };
        problems.needed("global.username", &self.username, also);
        if given(&self.api_key).is_some() && given(&self.password).is_some() {
            problems.add("global.password", "stands beside api-key; write one of them");
        }
        let region = problems.needed("global.region", &self.region, "the region, such as DFW");
        if let Some(region) = region.filter(|region| !is_region(region)) {
            let text = format!("\"{region}\" is no region; they look like DFW, IAD or LON");
            problems.add("global.region", text);
        }
        let domain = self.domain_id.is_some() || self.domain_name.is_some();
        problems.no_effect("global.domain-id", domain, "identity v2 has no domains");
    }
}

fn is_region(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests;
