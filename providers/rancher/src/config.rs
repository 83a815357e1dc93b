//! Cloud config: the section and keys that upstream's controller has for git-config syntax. It took their values from its environment alone.

use std::fmt;

use cloudwit_guest_sdk::config::given;
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;

/// The secret of the grants: the access key, which is the user of Basic.
pub const ACCESS_KEY: &str = "access-key";

/// The secret of the grants: the secret key, which is the password of Basic.
pub const SECRET_KEY: &str = "secret-key";

/// The API that load balancers with port rules are in: go-rancher's client of version 2 uses it, whatever version the URL names.
const VERSION: &str = "/v2-beta";

/// The whole file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    /// `[Global]`.
    pub global: Global,
}

/// `[Global]`.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Global {
    cattle_url: Option<String>,
    cattle_access_key: Option<String>,
    cattle_secret_key: Option<String>,
}

/// Values are not shown: two may be secrets.
impl fmt::Debug for Global {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Global")
    }
}

impl Global {
    /// The API of the environment, without a slash at the end: of version 2, whatever version the URL names, and without the list of schemas that Rancher's
    /// agents have at its end.
    pub(crate) fn url(&self) -> String {
        let url = given(&self.cattle_url).unwrap_or_default().trim_end_matches('/');
        let url = url.strip_suffix("/schemas").unwrap_or(url);
        let path = url.find("://").and_then(|scheme| {
            let host = scheme + 3;
            url.get(host..)?.find('/').map(|slash| host + slash)
        });
        let (server, path) = url.split_at_checked(path.unwrap_or(url.len())).unwrap_or((url, ""));
        let rest = match path.strip_prefix("/v1") {
            _ if path.is_empty() => Some(""),
            Some(rest) if rest.is_empty() || rest.starts_with('/') => Some(rest),
            _ => None,
        };
        match rest {
            Some(rest) => format!("{server}{VERSION}{rest}"),
            None => url.to_owned(),
        }
    }

    pub(crate) fn validate(&self, problems: &mut Problems) {
        const EXAMPLE: &str = "https://rancher.example.com/v2-beta/projects/1a5";
        problems.needed_url("global.cattle-url", &self.cattle_url, "the environment's API", EXAMPLE);
        for (key, value, secret) in [
            ("global.cattle-access-key", &self.cattle_access_key, ACCESS_KEY),
            ("global.cattle-secret-key", &self.cattle_secret_key, SECRET_KEY),
        ] {
            problems.no_secret(key, value, secret, SecretUse::Placeholder);
        }
    }
}

#[cfg(test)]
mod tests;
