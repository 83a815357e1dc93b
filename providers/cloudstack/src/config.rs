//! Cloud config: `cloud-config` of upstream's controller, in git-config syntax (`[Global]`, `api-url = ...`) or as JSON with the same names.

use std::fmt;

pub(crate) use cloudwit_guest_sdk::config::given;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::url::is_url;
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
        match given(&self.api_url) {
            None => problems.add(
                "global.api-url",
                format!("this key is missing; write the URL of the API, such as {EXAMPLE}"),
            ),
            Some(url) if !is_url(url) => {
                problems.add(
                    "global.api-url",
                    format!("\"{url}\" is no URL; write it like {EXAMPLE}"),
                );
            }
            Some(_) => {}
        }
        if given(&self.api_key).is_none() {
            problems.add("global.api-key", "this key is missing; write the user's API key");
        }
        if given(&self.secret_key).is_some() {
            problems.add(
                "global.secret-key",
                format!(
                    "the host signs with it: write it into a file that is granted as the secret {SECRET_KEY} with uses: [hmac], and remove this key"
                ),
            );
        }
        if self.ssl_no_verify {
            problems.add(
                "global.ssl-no-verify",
                "certificates are always checked; write the cloud's authority as `ca: FILE`, or the certificate's `thumbprints`, into the grant \
                 of its host and remove this key",
            );
        }
        if given(&self.zone).is_some() {
            problems.warn("global.zone", "has no effect: each Node gets the zone of its machine");
        }
    }
}

#[cfg(test)]
mod tests;
