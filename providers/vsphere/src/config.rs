//! The cloud config as upstream's provider reads it: YAML, or INI with the same keys in another spelling (`config_ini.rs`).
//!
//! Here is the text as types; what it means, with the defaults of `global` and all mistakes, is worked out in `settings.rs`. Lists are texts with commas
//! here, as the INI has them.

use std::borrow::Cow;

use cloudwit_guest_sdk::json::Json;
use std::collections::BTreeMap;

cloudwit_guest_sdk::section! {
    /// The whole text. Upstream: `pkg/common/config/types_yaml.go`, `pkg/cloudprovider/vsphere/config/types_yaml.go`.
    pub struct Config {
        /// Defaults for all vCenters; one vCenter where it names a `server`.
        pub global: Entry = "global",
        /// vCenters by names of the operator's choice, usually their addresses.
        pub vcenter: BTreeMap<String, Entry> = "vcenter",
        /// Categories of tags.
        pub labels: Labels = "labels",
        /// Which addresses of a machine are its Node's.
        pub nodes: Nodes = "nodes",
        /// The NSX manager; refused, whatever it says.
        pub nsxt: Option<String> = "nsxt",
        /// Load balancers; refused.
        pub load_balancer: Option<String> = "loadBalancer",
        /// Further classes of load balancers; refused.
        pub load_balancer_class: Option<String> = "loadBalancerClass",
        /// Routes; refused.
        pub route: Option<String> = "route",
    }

    /// `global`, or one vCenter. Both have nearly the same keys.
    pub struct Entry {
        /// Who logs in.
        pub user: Option<String> = "user",
        /// With this password.
        pub password: Option<String> = "password",
        /// Name or address of the server; the vCenter's own name when left out.
        pub server: Option<String> = "server",
        /// 443 when left out.
        pub port: Option<u16> = "port",
        /// Not to check certificates; refused.
        pub insecure_flag: bool = "insecureFlag",
        /// Names or paths; all when left out.
        pub datacenters: Option<String> = "datacenters",
        /// Attempts of a call whose answer was broken; 3 when left out.
        pub soap_roundtrip_count: Option<u32> = "soapRoundtripCount",
        /// Authority of the certificate; stands in the grant here, as `ca`.
        pub ca_file: Option<String> = "caFile",
        /// Thumbprint of the certificate; stands in the grant here, as `thumbprints`.
        pub thumbprint: Option<String> = "thumbprint",
        /// Kubernetes Secret with the credentials: they are then secrets of the grants.
        pub secret_name: Option<String> = "secretName",
        /// Its namespace.
        pub secret_namespace: Option<String> = "secretNamespace",
        /// Folder with the credentials: they are then secrets of the grants.
        pub secrets_directory: Option<String> = "secretsDirectory",
        /// `ipv4`, `ipv6` or both; `ipv4` when left out.
        pub ip_family: Option<String> = "ipFamily",
        /// Whether upstream's own API is off.
        pub api_disable: Option<bool> = "apiDisable",
        /// Where upstream's own API listens.
        pub api_binding: Option<String> = "apiBinding",
        /// Ours, for upstream's environment variable `SKIP_NODE_DELETION`.
        pub skip_node_deletion: bool = "skipNodeDeletion",
        /// Ours, for upstream's flag `--node-labels`.
        pub node_labels: Option<String> = "nodeLabels",
    }

    /// Names of tag categories.
    pub struct Labels {
        /// Tags of this one are zones.
        pub zone: Option<String> = "zone",
        /// Tags of this one are regions.
        pub region: Option<String> = "region",
    }

    /// Which addresses of a machine are its Node's.
    pub struct Nodes {
        /// Networks of internal addresses.
        pub internal_network_subnet_cidr: Option<String> = "internalNetworkSubnetCidr",
        /// Networks of external addresses.
        pub external_network_subnet_cidr: Option<String> = "externalNetworkSubnetCidr",
        /// vSphere network of internal addresses.
        pub internal_vm_network_name: Option<String> = "internalVmNetworkName",
        /// vSphere network of external addresses.
        pub external_vm_network_name: Option<String> = "externalVmNetworkName",
        /// Networks without internal addresses.
        pub exclude_internal_network_subnet_cidr: Option<String> = "excludeInternalNetworkSubnetCidr",
        /// Networks without external addresses.
        pub exclude_external_network_subnet_cidr: Option<String> = "excludeExternalNetworkSubnetCidr",
    }
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
pub fn simplified(tree: Json<'static>) -> Json<'static> {
    let Json::Object(sections) = tree else { return tree };
    let one = |(name, section): (Cow<'static, str>, Json<'static>)| {
        let simple = match (name.as_ref(), section) {
            (_, Json::Null) => return None,
            (refused, _) if REFUSED.contains(&refused) => Json::Text(Cow::Borrowed("configured")),
            ("vcenter", Json::Object(vcenters)) => {
                let vcenters = vcenters.into_iter().map(|(name, vcenter)| match vcenter {
                    Json::Null => (name, Json::Object(Vec::new())),
                    vcenter => (name, flat(vcenter)),
                });
                Json::Object(vcenters.collect())
            }
            (_, section) => flat(section),
        };
        Some((name, simple))
    };
    Json::Object(sections.into_iter().filter_map(one).collect())
}

/// A section with texts for its lists and without nulls.
fn flat(section: Json<'static>) -> Json<'static> {
    let Json::Object(entries) = section else { return section };
    let one = |(key, value): (Cow<'static, str>, Json<'static>)| match value {
        Json::Null => None,
        Json::List(items) if items.iter().all(|item| item.as_text().is_some()) => {
            let texts: Vec<&str> = items.iter().filter_map(Json::as_text).collect();
            Some((key, Json::Text(Cow::Owned(texts.join(",")))))
        }
        value => Some((key, value)),
    };
    Json::Object(entries.into_iter().filter_map(one).collect())
}
