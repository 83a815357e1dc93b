//! The cloud config as upstream's provider reads it: YAML, or INI with the same keys in another spelling (`config_ini.rs`).
//!
//! Here is the text as types; what it means, with the defaults of `global` and all mistakes, is worked out in `settings.rs`. Lists are texts with commas
//! here, as the INI has them.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value};

/// The whole text. Upstream: `pkg/common/config/types_yaml.go`, `pkg/cloudprovider/vsphere/config/types_yaml.go`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Config {
    /// Defaults for all vCenters; one vCenter where it names a `server`.
    pub global: Entry,
    /// vCenters by names of the operator's choice, usually their addresses.
    pub vcenter: BTreeMap<String, Entry>,
    /// Categories of tags.
    pub labels: Labels,
    /// Which addresses of a machine are its Node's.
    pub nodes: Nodes,
    /// The NSX manager; refused, whatever it says.
    pub nsxt: Option<String>,
    /// Load balancers; refused.
    pub load_balancer: Option<String>,
    /// Further classes of load balancers; refused.
    pub load_balancer_class: Option<String>,
    /// Routes; refused.
    pub route: Option<String>,
}

/// `global`, or one vCenter. Both have nearly the same keys.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Entry {
    /// Who logs in.
    pub user: Option<String>,
    /// With this password.
    pub password: Option<String>,
    /// Name or address of the server; the vCenter's own name when left out.
    pub server: Option<String>,
    /// 443 when left out.
    pub port: Option<u16>,
    /// Not to check certificates; refused.
    pub insecure_flag: bool,
    /// Names or paths; all when left out.
    pub datacenters: Option<String>,
    /// Attempts of a call whose answer was broken; 3 when left out.
    pub soap_roundtrip_count: Option<u32>,
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
    pub ip_family: Option<String>,
    /// Whether upstream's own API is off.
    pub api_disable: Option<bool>,
    /// Where upstream's own API listens.
    pub api_binding: Option<String>,
    /// Ours, for upstream's environment variable `SKIP_NODE_DELETION`.
    pub skip_node_deletion: bool,
    /// Ours, for upstream's flag `--node-labels`.
    pub node_labels: Option<String>,
}

/// Values are not shown: some are secrets.
impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entry")
    }
}

/// Names of tag categories.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Labels {
    /// Tags of this one are zones.
    pub zone: Option<String>,
    /// Tags of this one are regions.
    pub region: Option<String>,
}

/// Which addresses of a machine are its Node's.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Nodes {
    /// Networks of internal addresses.
    pub internal_network_subnet_cidr: Option<String>,
    /// Networks of external addresses.
    pub external_network_subnet_cidr: Option<String>,
    /// vSphere network of internal addresses.
    pub internal_vm_network_name: Option<String>,
    /// vSphere network of external addresses.
    pub external_vm_network_name: Option<String>,
    /// Networks without internal addresses.
    pub exclude_internal_network_subnet_cidr: Option<String>,
    /// Networks without external addresses.
    pub exclude_external_network_subnet_cidr: Option<String>,
}

/// Sections that are refused, whatever they say.
const REFUSED: [&str; 4] = ["nsxt", "loadBalancer", "loadBalancerClass", "route"];

/// The parts of a list, without blanks around them and without empty ones.
pub fn words(list: Option<&String>) -> impl Iterator<Item = &str> {
    let parts = list.into_iter().flat_map(|list| list.split(','));
    parts.map(str::trim).filter(|part| !part.is_empty())
}

/// The tree as the types above want it: lists of texts are texts, what is null is left out, a vCenter that says nothing is an empty one, and of what is
/// refused is only kept that it is there.
pub fn simplified(tree: Value) -> Value {
    let Value::Object(sections) = tree else { return tree };
    let one = |(name, section): (String, Value)| {
        let simple = match (name.as_str(), section) {
            (_, Value::Null) => return None,
            (refused, _) if REFUSED.contains(&refused) => "configured".into(),
            ("vcenter", Value::Object(vcenters)) => vcenters
                .into_iter()
                .map(|(name, vcenter)| match vcenter {
                    Value::Null => (name, Value::Object(Map::new())),
                    vcenter => (name, flat(vcenter)),
                })
                .collect(),
            (_, section) => flat(section),
        };
        Some((name, simple))
    };
    sections.into_iter().filter_map(one).collect()
}

/// A section with texts for its lists and without nulls.
fn flat(section: Value) -> Value {
    let Value::Object(entries) = section else {
        return section;
    };
    let one = |(key, value): (String, Value)| match value {
        Value::Null => None,
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let texts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            Some((key, texts.join(",").into()))
        }
        value => Some((key, value)),
    };
    entries.into_iter().filter_map(one).collect()
}
