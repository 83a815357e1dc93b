//! The cloud config as upstream's provider reads it: YAML, or INI with the same keys in another spelling (`config_ini.rs`).
//!
//! Here is the text as types; what it means, with the defaults of `global` and all mistakes, is worked out in `settings.rs`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use cloudwit_guest_sdk::json::Json;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};

/// The whole text. Upstream: `pkg/common/config/types_yaml.go`, `pkg/cloudprovider/vsphere/config/types_yaml.go`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// Defaults for all vCenters; one vCenter where it names a `server`.
    pub global: Entry,
    /// vCenters by names of the operator's choice, usually their addresses.
    pub vcenter: BTreeMap<String, Option<Entry>>,
    /// Categories of tags.
    pub labels: Labels,
    /// Which addresses of a machine are its Node's.
    pub nodes: Nodes,
    /// The NSX manager.
    pub nsxt: Option<Section>,
    /// Load balancers.
    pub load_balancer: Option<Section>,
    /// Further classes of load balancers.
    pub load_balancer_class: Option<Section>,
    /// Routes.
    pub route: Option<Section>,
}

/// `global`, or one vCenter. Both have nearly the same keys.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Entry {
    /// Who logs in.
    pub user: Option<String>,
    /// With this password.
    pub password: Option<Hidden>,
    /// Name or address of the server; the vCenter's own name when left out.
    pub server: Option<String>,
    /// 443 when left out.
    pub port: Option<u16>,
    /// Not to check certificates; refused.
    pub insecure_flag: bool,
    /// Names or paths; all when left out.
    pub datacenters: Words,
    /// Attempts of a call whose answer was broken; 3 when left out.
    pub soap_roundtrip_count: u32,
    /// Authority of the certificate; stands in the grant here, as `ca`.
    pub ca_file: Option<String>,
    /// Thumbprint of the certificate; stands in the grant here, as `thumbprints`.
    pub thumbprint: Option<String>,
    /// Kubernetes Secret with the credentials: they are then secrets of the grants.
    pub secret_name: Option<String>,
    /// Its namespace.
    pub secret_namespace: Option<String>,
    /// Folder with the credentials: they are then secrets of the grants.
    pub secrets_directory: Option<String>,
    /// `ipv4`, `ipv6` or both; `ipv4` when left out.
    pub ip_family: Words,
    /// Whether upstream's own API is off.
    pub api_disable: Option<bool>,
    /// Where upstream's own API listens.
    pub api_binding: Option<String>,
    /// Ours, for upstream's environment variable `SKIP_NODE_DELETION`.
    pub skip_node_deletion: bool,
    /// Ours, for upstream's flag `--node-labels`.
    pub node_labels: Words,
}

/// Names of tag categories.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Labels {
    /// Category of the tags that are zones.
    pub zone: Option<String>,
    /// Category of the tags that are regions.
    pub region: Option<String>,
}

/// Which addresses of a machine are its Node's.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Nodes {
    /// Networks of internal addresses.
    pub internal_network_subnet_cidr: Words,
    /// Networks of external addresses.
    pub external_network_subnet_cidr: Words,
    /// vSphere network of internal addresses.
    pub internal_vm_network_name: Option<String>,
    /// vSphere network of external addresses.
    pub external_vm_network_name: Option<String>,
    /// Networks without internal addresses.
    pub exclude_internal_network_subnet_cidr: Words,
    /// Networks without external addresses.
    pub exclude_external_network_subnet_cidr: Words,
}

/// A text that is never shown.
#[derive(Clone, Deserialize)]
pub struct Hidden(
    /// The text.
    pub String,
);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

/// A section that is there, whatever it says.
#[derive(Debug)]
pub struct Section;

impl<'de> Deserialize<'de> for Section {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// A text with commas between its parts, as lists are written in the INI. Those of the YAML are made into such texts ([`joined_lists`]).
#[derive(Debug, Default, Deserialize)]
pub struct Words(String);

impl Words {
    /// Its parts, without blanks around them and without empty ones.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.split(',').map(str::trim).filter(|part| !part.is_empty())
    }
}

/// The tree with each list of texts as one text with commas.
pub fn joined_lists(tree: Json<'_>) -> Json<'_> {
    match tree {
        Json::List(items) if items.iter().all(|item| item.as_text().is_some()) => {
            let texts: Vec<&str> = items.iter().filter_map(Json::as_text).collect();
            Json::Text(Cow::Owned(texts.join(",")))
        }
        Json::Object(entries) => Json::Object(
            entries
                .into_iter()
                .map(|(key, value)| (key, joined_lists(value)))
                .collect(),
        ),
        other => other,
    }
}
