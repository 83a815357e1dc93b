//! Cloud config: `cloud-config` of upstream's controller, in git-config syntax (`[Global]`, `api-url = ...`) or as JSON with the same names.

use std::fmt;

pub(crate) use cloudwit_guest_sdk::config::given;
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;

/// The secret of the grants: the user's secret key.
pub const SECRET_KEY: &str = "secret-key";

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
    /// URL of the API, which ends with `/client/api`.
    pub api_url: Option<String>,
    /// The user's API key. It is a part of each request, as a name is.
    pub api_key: Option<String>,
    /// Id of the project that machines and load balancers are in; those of the account without it.
    pub project_id: Option<String>,
    /// Region of all machines; that of each is its zone without it.
    pub region: Option<String>,
    secret_key: Option<String>,
    ssl_no_verify: bool,
    zone: Option<String>,
}

/// Values are not shown: one may be a secret.
impl fmt::Debug for Global {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Global")
    }
}

impl Config {
    /// What types cannot express.
    pub fn validate(&self, problems: &mut Problems) {
        self.global.validate(problems);
    }
}

impl Global {
    /// The API, without a slash at the end.
    pub(crate) fn url(&self) -> String {
        given(&self.api_url)
            .unwrap_or_default()
            .trim_end_matches('/')
            .to_owned()
    }

    fn validate(&self, problems: &mut Problems) {
        const EXAMPLE: &str = "https://cloud.example.com/client/api";
        problems.needed_url("global.api-url", &self.api_url, "the API", EXAMPLE);
        problems.needed("global.api-key", &self.api_key, "the user's API key");
        problems.no_secret("global.secret-key", &self.secret_key, SECRET_KEY, SecretUse::Hmac);
        problems.no_insecurity("global.ssl-no-verify", self.ssl_no_verify);
        let zone = given(&self.zone).is_some();
        problems.no_effect("global.zone", zone, "each Node gets the zone of its machine");
    }
}

#[cfg(test)]
mod tests;
