//! The cloud config as upstream's provider reads it: YAML, or INI with the same keys in another spelling (`ini.rs`).
//!
//! Here is the text as types; what it means, with the defaults of `global` and all mistakes, is worked out in `settings.rs`. Lists are texts with commas
//! here, as the INI has them.

pub mod credentials;
pub(crate) mod ini;
pub mod settings;

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
    /// The NSX manager, for load balancers and routes.
    pub nsxt: NsxManager,
    /// Load balancers of NSX.
    pub load_balancer: LoadBalancer,
    /// Further classes of load balancers, by names of the operator's choice.
    pub load_balancer_class: BTreeMap<String, LoadBalancerClass>,
    /// Routes of NSX.
    pub route: NsxRoute,
    /// Volumes. Cloudwit's own: upstream's driver has a separate file.
    pub volumes: Volumes,
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
    /// Authority of the certificate; belongs in the grant here, as `ca`.
    pub ca_file: Option<String>,
    /// Thumbprint of the certificate; belongs in the grant here, as `thumbprints`.
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
    /// Cloudwit's own, for upstream's environment variable `SKIP_NODE_DELETION`.
    pub skip_node_deletion: bool,
    /// Cloudwit's own, for upstream's flag `--node-labels`.
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

/// The NSX manager. Upstream: `pkg/nsxt/config/types_yaml.go`.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NsxManager {
    /// The identity.
    pub user: Option<String>,
    /// With this password.
    pub password: Option<String>,
    /// Name or address, with a port and a path where it has them.
    pub host: Option<String>,
    /// Not to check certificates; refused.
    pub insecure_flag: bool,
    /// Whether the user is one of VMware Identity Manager.
    pub remote_auth: bool,
    /// Refresh token of VMware Cloud.
    pub vmc_access_token: Option<String>,
    /// Where access tokens of VMware Cloud come from.
    pub vmc_auth_host: Option<String>,
    /// Certificate of a principal identity; belongs in the grant here.
    pub client_auth_cert_file: Option<String>,
    /// Its key; belongs in the grant here.
    pub client_auth_key_file: Option<String>,
    /// Authority of the certificate; belongs in the grant here, as `ca`.
    pub ca_file: Option<String>,
    /// Kubernetes Secret with the credentials: they are then secrets of the grants.
    pub secret_name: Option<String>,
    /// Its namespace.
    pub secret_namespace: Option<String>,
}

/// Values are not shown: some are secrets.
impl fmt::Debug for NsxManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NsxManager")
    }
}

/// Load balancers. Upstream: `pkg/cloudprovider/vsphere/loadbalancer/config/types_yaml.go`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LoadBalancer {
    /// Size of a load balancer service that is made.
    pub size: Option<String>,
    /// A load balancer service that is there.
    pub lb_service_id: Option<String>,
    /// The tier-1 gateway of load balancer services that are made.
    pub tier1_gateway_path: Option<String>,
    /// Whether members of pools see the addresses of clients.
    pub snat_disabled: bool,
    /// Further tags of everything that is made.
    pub tags: BTreeMap<String, String>,
    /// As in a class.
    pub ip_pool_name: Option<String>,
    /// As in a class.
    pub ip_pool_id: Option<String>,
    /// As in a class.
    pub tcp_app_profile_name: Option<String>,
    /// As in a class.
    pub tcp_app_profile_path: Option<String>,
    /// As in a class.
    pub udp_app_profile_name: Option<String>,
    /// As in a class.
    pub udp_app_profile_path: Option<String>,
}

/// A class of load balancers; what it leaves out is as in `loadBalancer`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LoadBalancerClass {
    /// Where addresses come from.
    pub ip_pool_name: Option<String>,
    /// The same by its id.
    pub ip_pool_id: Option<String>,
    /// Application profile of TCP ports.
    pub tcp_app_profile_name: Option<String>,
    /// The same by its path.
    pub tcp_app_profile_path: Option<String>,
    /// Application profile of UDP ports.
    pub udp_app_profile_name: Option<String>,
    /// The same by its path.
    pub udp_app_profile_path: Option<String>,
}

/// Routes. Upstream: `pkg/cloudprovider/vsphere/route/config/types_yaml.go`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NsxRoute {
    /// The tier-1 gateway that gets them.
    pub router_path: Option<String>,
}

/// Volumes. The first two are keys of upstream's driver (`[Global]` of its `csi-vsphere.conf`).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Volumes {
    /// The id that distinguishes the volumes of clusters in CNS; the cluster's name when left out.
    pub cluster_id: Option<String>,
    /// What vCenter shows as the kind of Kubernetes.
    pub cluster_distribution: Option<String>,
    /// For upstream's environment variable `MAX_VOLUMES_PER_NODE`; 59 when left out.
    pub max_volumes_per_node: Option<String>,
}

/// Sections in which numbers are texts: ids may look like numbers.
const TEXTS: [&str; 5] = ["nsxt", "loadBalancer", "loadBalancerClass", "route", "volumes"];

/// The parts of a list, without blanks around them and without empty ones.
pub fn words(list: Option<&String>) -> impl Iterator<Item = &str> {
    let parts = list.into_iter().flat_map(|list| list.split(','));
    parts.map(str::trim).filter(|part| !part.is_empty())
}

/// The tree in the form of the types above: lists of texts are texts, what is null is left out, and a vCenter or a class without keys is an empty one.
pub fn simplified(tree: Value) -> Value {
    let Value::Object(sections) = tree else { return tree };
    let one = |(name, section): (String, Value)| {
        let texts = TEXTS.contains(&name.as_str());
        let simple = match (name.as_str(), section) {
            (_, Value::Null) => return None,
            ("vcenter" | "loadBalancerClass", Value::Object(entries)) => entries
                .into_iter()
                .map(|(name, entry)| match entry {
                    Value::Null => (name, Value::Object(Map::new())),
                    entry => (name, flat(entry, texts)),
                })
                .collect(),
            (_, section) => flat(section, texts),
        };
        Some((name, simple))
    };
    sections.into_iter().filter_map(one).collect()
}

/// A section with texts for its lists and without nulls; with `texts`, for its numbers too.
fn flat(section: Value, texts: bool) -> Value {
    let Value::Object(entries) = section else {
        return section;
    };
    let one = |(key, value): (String, Value)| match value {
        Value::Null => None,
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let texts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            Some((key, texts.join(",").into()))
        }
        Value::Number(number) if texts => Some((key, number.to_string().into())),
        value if key == "tags" => Some((key, tags(value))),
        // Upstream's README spells it so.
        value if key == "ipPoolID" => Some(("ipPoolId".into(), value)),
        value => Some((key, value)),
    };
    entries.into_iter().filter_map(one).collect()
}

/// Tags as texts, also where they are written as JSON, as the INI has them.
fn tags(value: Value) -> Value {
    let written = value.as_str().and_then(|text| serde_json::from_str(text).ok());
    match written.unwrap_or(value) {
        Value::Object(tags) => flat(Value::Object(tags), true),
        other => other,
    }
}
