//! The cloud config: the `[global]` section of upstream's `gce.conf`, in git-config syntax or as JSON with the same names.
//!
//! Every key of upstream is handled: honoured, ignored, or refused with an error that names the alternative. README.md has them as a table.

use std::fmt;

pub(crate) use cloudwit_guest_sdk::config::given;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::url::is_url;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::{auth, links};

/// Where Compute Engine is, unless `api-endpoint` is set.
const API: &str = "https://compute.googleapis.com/compute/v1";

/// The whole file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    /// `[global]`.
    pub global: Global,
}

/// `[global]`.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Global {
    /// Project of the machines; else the metadata server's.
    pub project_id: Option<String>,
    /// Project of the network (shared VPC); else that of the machines.
    pub network_project_id: Option<String>,
    /// Network: a name or a URL; else that of the machine that Cloudwit runs on.
    pub network_name: Option<String>,
    /// Subnetwork of internal load balancers: a name or a URL; else the one that is called like the network, as in networks in auto mode.
    pub subnetwork_name: Option<String>,
    /// `IPV4`, `IPV6` or `IPV4_IPV6`: which addresses of a Node come first.
    pub stack_type: Option<String>,
    /// Network tags of all Nodes; else found by the Nodes' names.
    pub node_tags: Vec<String>,
    /// What the names of all the cluster's machines begin with.
    pub node_instance_prefix: Option<String>,
    /// Whether the machines are in all zones of the region.
    pub regional: bool,
    /// The same, an older spelling.
    pub multizone: bool,
    /// A zone of the cluster; else that of the machine that Cloudwit runs on. Its region is the cluster's.
    pub local_zone: Option<String>,
    /// Another URL for Compute Engine, up to and with `/v1`.
    pub api_endpoint: Option<String>,
    /// Where to get access tokens by `token-body`; `nil`: no token at all.
    pub token_url: Option<String>,
    /// What is sent to `token-url`.
    pub token_body: Option<String>,
    /// Service account whose key is the secret `private-key`; else the metadata server's.
    pub client_email: Option<String>,
    /// Id of that key.
    pub private_key_id: Option<String>,
    /// Where that key gives access tokens.
    pub token_uri: Option<String>,
    /// Another URL for the metadata server.
    pub metadata_endpoint: Option<String>,
    /// Upstream's ConfigMap `kube-system/ingress-uid`: names what load balancers share.
    pub cluster_id: Option<String>,
    /// Another URL for Kubernetes Engine.
    pub container_api_endpoint: Option<String>,
    alpha_features: Vec<String>,
    secondary_range_name: IgnoredAny,
}

/// Values are not shown: `token-body` may be a secret.
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
    /// Compute Engine's URL, without a slash at the end.
    pub fn api(&self) -> String {
        given(&self.api_endpoint).unwrap_or(API).trim_end_matches('/').into()
    }

    /// Whether IPv6 addresses come first.
    pub fn ipv6_first(&self) -> bool {
        given(&self.stack_type).is_some_and(|stack| stack.eq_ignore_ascii_case("ipv6"))
    }

    /// Whether something is needed from the metadata server besides tokens.
    pub(crate) fn needs_place(&self) -> bool {
        let missing = |value: &Option<String>| given(value).is_none();
        missing(&self.project_id) || missing(&self.local_zone) || missing(&self.network_name)
    }

    fn validate(&self, problems: &mut Problems) {
        let urls = [
            ("api-endpoint", &self.api_endpoint),
            ("container-api-endpoint", &self.container_api_endpoint),
            ("token-uri", &self.token_uri),
            ("metadata-endpoint", &self.metadata_endpoint),
        ];
        for (key, value) in urls {
            if let Some(text) = given(value).filter(|text| !is_url(text)) {
                let text = format!("\"{text}\" is no URL; write it like https://compute.googleapis.com/compute/v1");
                problems.add(format!("global.{key}"), text);
            }
        }
        if let Some(zone) = given(&self.local_zone).filter(|zone| links::region_of(zone).is_none()) {
            let text = format!("\"{zone}\" is no zone; write it like us-central1-b");
            problems.add("global.local-zone", text);
        }
        let stacks = ["ipv4", "ipv6", "ipv4_ipv6"];
        if let Some(stack) = given(&self.stack_type).filter(|stack| !stacks.contains(&&*stack.to_ascii_lowercase())) {
            let text = format!("\"{stack}\" is none of IPV4, IPV6 and IPV4_IPV6");
            problems.add("global.stack-type", text);
        }
        if let Some(id) = given(&self.cluster_id).filter(|id| !is_name_part(id)) {
            let text = format!("\"{id}\" cannot be part of a name; write up to 20 small letters, digits and dashes");
            problems.add("global.cluster-id", text);
        }
        for tag in self.node_tags.iter().filter(|tag| !is_name(tag)) {
            let text = format!("\"{tag}\" is no network tag; write small letters, digits and dashes, a letter first");
            problems.add("global.node-tags", text);
        }
        if !self.alpha_features.is_empty() {
            let text = "alpha features are not supported and have no effect; remove this key";
            problems.warn("global.alpha-features", text);
        }
        auth::validate(self, problems);
    }
}

/// A name of Compute Engine (RFC 1035): small letters, digits, dashes.
fn is_name(text: &str) -> bool {
    let begins = text.starts_with(|first: char| first.is_ascii_lowercase());
    begins && text.len() <= 63 && !text.ends_with('-') && text.bytes().all(in_name)
}

fn is_name_part(text: &str) -> bool {
    text.len() <= 20 && text.bytes().all(in_name) && !text.ends_with('-')
}

fn in_name(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

#[cfg(test)]
mod tests;
