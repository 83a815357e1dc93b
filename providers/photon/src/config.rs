//! Cloud config: the section and keys of the in-tree provider that Kubernetes had until 1.15, and credentials. Names are in lower case, as git-config has them.

use cloudwit_guest_sdk::config::given;
use cloudwit_guest_sdk::prelude::*;
pub(crate) use cloudwit_guest_sdk::types::is_plain_id as is_id;
use cloudwit_guest_sdk::url::is_url;
use serde::Deserialize;

/// The secret of the grants: the user's password.
pub const PASSWORD: &str = "password";

/// Where the API is below the target, unless the operator configures another.
const ROOT: &str = "/v1";

/// The whole file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    /// `[Global]`.
    pub global: Global,
}

/// `[Global]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Global {
    target: Option<String>,
    ignorecertificate: bool,
    tenant: Option<String>,
    project: Option<String>,
    overrideip: bool,
    /// Of kubelets, whose own machine it is.
    vmid: Option<String>,
    /// Whether authentication is on.
    authentication: bool,
    api_root: Option<String>,
    lightwave: Option<String>,
    username: Option<String>,
}

impl Global {
    /// Where the cloud is, without a slash at the end.
    pub(crate) fn target(&self) -> &str {
        given(&self.target).unwrap_or_default().trim_end_matches('/')
    }

    /// Where the API is below the target: empty before Photon Platform 1.2.
    pub(crate) fn root(&self) -> &str {
        match given(&self.api_root) {
            Some(root) => root.trim_end_matches('/'),
            None => ROOT,
        }
    }

    /// Name of the tenant. Empty where the project is given by its id, as in files of Kubernetes 1.7 and later.
    pub(crate) fn tenant(&self) -> &str {
        given(&self.tenant).unwrap_or_default()
    }

    /// Name of the project; its id where there is no tenant.
    pub(crate) fn project(&self) -> &str {
        given(&self.project).unwrap_or_default()
    }

    /// Whether Nodes are named by their addresses.
    pub(crate) fn by_address(&self) -> bool {
        self.overrideip
    }

    /// Where tokens come from; none where the cloud has no authentication.
    pub(crate) fn lightwave(&self) -> Option<&str> {
        given(&self.lightwave).map(|url| url.trim_end_matches('/'))
    }

    pub(crate) fn username(&self) -> &str {
        given(&self.username).unwrap_or_default()
    }

    pub(crate) fn validate(&self, problems: &mut Problems) {
        let example = "https://photon.example.com";
        problems.needed_url("global.target", &self.target, "Photon Controller", example);
        match (self.tenant(), self.project()) {
            (_, "") => problems.add(
                "global.project",
                "this key is missing; write the id of the project, or its name and that of its tenant",
            ),
            ("", id) if !is_id(id) => problems.add(
                "global.tenant",
                format!("this key is missing, and \"{id}\" is no project's id; write the name of the tenant"),
            ),
            _ => {}
        }
        let vmid = given(&self.vmid).is_some();
        problems.no_effect("global.vmid", vmid, "machines are found by their Nodes");
        if self.authentication && self.lightwave().is_none() {
            let text =
                "needs lightwave, the URL where tokens come from, and username; the password is the secret password";
            problems.add("global.authentication", text);
        }
        problems.no_insecurity("global.ignorecertificate", self.ignorecertificate);
        if !self.root().is_empty() && !self.root().starts_with('/') {
            problems.add("global.api-root", "is no path; write /v1, or / where the API has none");
        }
        match (self.lightwave(), self.username()) {
            (Some(url), _) if !is_url(url) => {
                problems.add(
                    "global.lightwave",
                    format!("\"{url}\" is no URL; write it like https://lightwave.example.com"),
                );
            }
            (Some(_), "") => problems.add(
                "global.username",
                "this key is missing; write who asks Lightwave, such as cloudwit@example.com",
            ),
            (None, username) if !username.is_empty() => problems.add(
                "global.username",
                "has no effect without lightwave; write its URL, or remove this key",
            ),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
