//! The cloud config: `cloud.conf` of upstream's provider, in git-config syntax (`[Global]`, `auth-url = ...`) or as JSON with the same names.
//!
//! Every key of upstream is handled: honoured, or refused with an error that names the alternative. README.md has them as a table.
//! Keys of other components that share the file (`[Metadata]`) are ignored.

use std::collections::BTreeMap;
use std::fmt;

pub(crate) use cloudwit_guest_sdk::config::given;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::url::is_url;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::auth;
use crate::balancers::config::{BalancerClass, BalancerConfig};
use crate::instances::addresses::AddressRules;
use crate::volumes::config::BlockStorage;

/// The whole file. Sections in lower case, as the reader of git-config makes them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    /// `[Global]`: Keystone's URL and the credentials.
    pub global: Global,
    /// `[Networking]`: which addresses Nodes get.
    pub networking: Networking,
    /// `[Route]`: the router.
    pub route: RouteConfig,
    /// `[LoadBalancer]`.
    pub loadbalancer: BalancerConfig,
    /// `[LoadBalancerClass "name"]`.
    pub loadbalancerclass: BTreeMap<String, BalancerClass>,
    /// `[Metadata]`: only for programs on the machines themselves.
    metadata: IgnoredAny,
    /// `[BlockStorage]`.
    pub blockstorage: BlockStorage,
}

/// `[Global]`.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Global {
    /// Keystone's URL, with or without `/v3`.
    pub auth_url: Option<String>,
    /// Name of the user; needs a domain.
    pub username: Option<String>,
    /// Id of the user.
    pub user_id: Option<String>,
    /// Password in plain text; the secret `password` where it is left out.
    pub password: Option<String>,
    /// Id of the project.
    pub tenant_id: Option<String>,
    /// Name of the project; needs a domain.
    pub tenant_name: Option<String>,
    /// Domain of user and project.
    pub domain_id: Option<String>,
    /// The same by name.
    pub domain_name: Option<String>,
    /// Domain of the project alone.
    pub tenant_domain_id: Option<String>,
    /// The same by name.
    pub tenant_domain_name: Option<String>,
    /// Domain of the user alone.
    pub user_domain_id: Option<String>,
    /// The same by name.
    pub user_domain_name: Option<String>,
    /// Region; may be left out where there is only one.
    pub region: Option<String>,
    /// Trust to act by.
    pub trust_id: Option<String>,
    /// Id of the user who acts by the trust.
    pub trustee_id: Option<String>,
    /// That user's password in plain text.
    pub trustee_password: Option<String>,
    /// Id of the application credential.
    pub application_credential_id: Option<String>,
    /// Its name; needs a user.
    pub application_credential_name: Option<String>,
    /// Its secret in plain text; the secret `application-credential-secret` where it is left out.
    pub application_credential_secret: Option<String>,
    /// A token that was obtained elsewhere.
    pub token: Option<String>,
    /// Interface of the endpoints: `public`, `internal` or `admin`.
    pub os_endpoint_type: Option<String>,
    /// Whether provider ids contain the region. Upstream's environment variable `OS_CCM_REGIONAL`.
    pub regional_provider_id: bool,
    /// Another URL for the metadata service of servers. Not in upstream.
    pub metadata_url: Option<String>,
    ca_file: Option<String>,
    cert_file: Option<String>,
    key_file: Option<String>,
    tls_insecure: bool,
    use_clouds: bool,
    clouds_file: Option<String>,
    cloud: Option<String>,
}

/// Values are not shown: some are secrets.
impl fmt::Debug for Global {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Global")
    }
}

/// `[Networking]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Networking {
    /// Whether IPv6 addresses are left out.
    pub ipv6_support_disabled: bool,
    /// Networks whose addresses are external.
    pub public_network_name: Vec<String>,
    /// Networks whose addresses are internal; all when empty.
    pub internal_network_name: Vec<String>,
    /// CIDRs, separated by commas: addresses in the first ones come first.
    pub address_sort_order: Option<String>,
}

/// `[Route]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct RouteConfig {
    /// The router that gets the routes; none without this.
    pub router_id: Option<String>,
    auto_config_security_group: bool,
}

impl Config {
    /// What types cannot express.
    pub fn validate(&self, problems: &mut Problems) {
        self.global.validate(problems);
        if let Err(wrong) = AddressRules::new(&self.networking) {
            problems.add("networking.address-sort-order", wrong);
        }
        if self.route.auto_config_security_group {
            problems.add(
                "route.auto-config-security-group",
                "no security group of Nodes is kept; allow the Pods' ranges in the Nodes' security group and remove this key",
            );
        }
        self.loadbalancer.validate(&self.loadbalancerclass, problems);
        self.blockstorage.validate(problems);
    }
}

impl Global {
    /// Keystone's version 3, without a slash at the end.
    pub(crate) fn keystone(&self) -> String {
        let url = given(&self.auth_url).unwrap_or_default().trim_end_matches('/');
        let url = url.strip_suffix("/v3").or(url.strip_suffix("/v2.0")).unwrap_or(url);
        format!("{}/v3", url.trim_end_matches('/'))
    }

    /// The grant request for Keystone. The other services' hosts are only in Keystone's catalog.
    pub(crate) fn wish(&self) -> Option<HttpWish> {
        let reason = match given(&self.ca_file) {
            Some(file) => {
                format!("Keystone (and every endpoint of its catalog); ca-file becomes the grant's ca: {file}")
            }
            None => "Keystone (and every endpoint of its catalog: `openstack catalog list`)".into(),
        };
        HttpWish::for_url(&self.keystone(), &["GET", "POST"], reason)
    }

    fn validate(&self, problems: &mut Problems) {
        let example = "https://keystone.example.com/v3";
        problems.needed_url("global.auth-url", &self.auth_url, "Keystone", example);
        if !matches!(
            given(&self.os_endpoint_type).map(endpoint_type),
            None | Some("public" | "internal" | "admin")
        ) {
            problems.add(
                "global.os-endpoint-type",
                format!(
                    "\"{}\" is none of public, internal and admin",
                    given(&self.os_endpoint_type).unwrap_or_default()
                ),
            );
        }
        if let Some(url) = given(&self.metadata_url).filter(|url| !is_url(url)) {
            problems.add(
                "global.metadata-url",
                format!("\"{url}\" is no URL; leave it out for http://169.254.169.254"),
            );
        }
        if self.regional_provider_id && given(&self.region).is_none() {
            problems.add(
                "global.regional-provider-id",
                "provider ids with a region need the key region",
            );
        }
        problems.no_insecurity("global.tls-insecure", self.tls_insecure);
        if given(&self.cert_file).is_some() || given(&self.key_file).is_some() {
            problems.add(
                "global.cert-file",
                "client certificates are not supported; use a password or an application credential",
            );
        }
        if self.use_clouds {
            let cloud = given(&self.cloud).or(given(&self.clouds_file)).unwrap_or("clouds.yaml");
            problems.add(
                "global.use-clouds",
                format!("a provider reads no files; write the values of \"{cloud}\" into [Global] and remove this key"),
            );
        }
        auth::validate(self, problems);
    }

    /// The interface of the endpoints.
    pub(crate) fn interface(&self) -> &str {
        given(&self.os_endpoint_type).map_or("public", endpoint_type)
    }
}

/// `publicURL` is an old spelling of `public`.
fn endpoint_type(text: &str) -> &str {
    text.strip_suffix("URL").unwrap_or(text)
}

#[cfg(test)]
mod tests;
