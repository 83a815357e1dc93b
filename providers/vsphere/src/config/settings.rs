//! What the cloud config means: each vCenter with the defaults of `global`, which addresses count, where zones come from. All mistakes are found
//! in one go, and what this provider does not have is refused with a message.

use cloudwit_guest_sdk::cidr;
use cloudwit_guest_sdk::prelude::*;
use ipnet::IpNet;

use crate::config::credentials::Credentials;
use crate::config::{Config, Entry, words};
use crate::instances::addresses::{AddressRules, Family, Side};
use crate::nsx::settings::NsxSettings;

/// Attempts of a call whose answer was broken (upstream's `DefaultRoundTripperCount`).
const ATTEMPTS: u32 = 3;

/// More attempts than this only make an outage worse.
const MOST_ATTEMPTS: u32 = 20;

/// The longest id of a cluster that CNS takes (upstream's `pkg/common/config`).
const LONGEST_CLUSTER_ID: usize = 64;

/// Disks of a machine beside the one it starts from: four SCSI controllers with 15 each (upstream's default).
const USUAL_VOLUMES: u32 = 59;

/// The same from vSphere 8 on, with 64 on each controller (upstream's `maxAllowedBlockVolumesPerNodeInvSphere8`).
const MOST_VOLUMES: u32 = 255;

/// What the operator requests.
#[derive(Debug)]
pub struct Settings {
    /// At least one.
    pub vcenters: Vec<VCenterSettings>,
    /// None where no categories are named: zone and region are not known then.
    pub categories: Option<Categories>,
    /// Which addresses of a machine are its Node's.
    pub addresses: AddressRules,
    /// Machines that are gone are reported as a failure.
    pub skip_node_deletion: bool,
    /// For every Node.
    pub node_labels: Vec<Pair>,
    /// None where neither load balancers nor routes are configured.
    pub nsx: Option<NsxSettings>,
    /// Volumes.
    pub volumes: VolumeSettings,
}

/// What counts for volumes.
#[derive(Debug)]
pub struct VolumeSettings {
    /// The id that distinguishes the volumes of clusters in CNS; none for the cluster's name.
    pub cluster_id: Option<String>,
    /// What vCenter shows as the kind of Kubernetes.
    pub distribution: Option<String>,
    /// How many fit a machine.
    pub limit: u32,
}

/// One vCenter.
#[derive(Debug)]
pub struct VCenterSettings {
    /// As the operator calls it; also the key of what is kept about it.
    pub name: String,
    /// Host name or IP address, without brackets.
    pub server: String,
    /// Usually 443.
    pub port: u16,
    /// How to log in.
    pub credentials: Credentials,
    /// Names or paths of datacenters; empty for all.
    pub datacenters: Vec<String>,
    /// Families of addresses in the order of importance; never empty.
    pub families: Vec<Family>,
    /// How often a call is tried whose answer is broken.
    pub attempts: u32,
    /// What the grant needs for the server's certificate to be trusted, where the config names something.
    pub trust: Option<String>,
}

/// Tag categories.
#[derive(Debug, Clone)]
pub struct Categories {
    /// Tags of this one are zones.
    pub zone: String,
    /// Tags of this one are regions.
    pub region: String,
}

impl VCenterSettings {
    /// `https://server:port`.
    pub fn url(&self) -> String {
        let (open, close) = if self.server.contains(':') {
            ("[", "]")
        } else {
            ("", "")
        };
        format!("https://{open}{}{close}:{}", self.server, self.port)
    }
}

impl Settings {
    /// Works the config out. Counts only if `problems` got nothing.
    pub fn of(config: &Config, problems: &mut Problems) -> Self {
        refuse_globals(config, problems);
        let vcenters = vcenters(config, problems);
        let nodes = &config.nodes;
        Self {
            vcenters,
            categories: categories(config, problems),
            addresses: AddressRules {
                internal: Side {
                    subnets: cidrs(
                        "nodes.internalNetworkSubnetCidr",
                        nodes.internal_network_subnet_cidr.as_ref(),
                        problems,
                    ),
                    excluded: cidrs(
                        "nodes.excludeInternalNetworkSubnetCidr",
                        nodes.exclude_internal_network_subnet_cidr.as_ref(),
                        problems,
                    ),
                    network: text(nodes.internal_vm_network_name.as_ref()),
                },
                external: Side {
                    subnets: cidrs(
                        "nodes.externalNetworkSubnetCidr",
                        nodes.external_network_subnet_cidr.as_ref(),
                        problems,
                    ),
                    excluded: cidrs(
                        "nodes.excludeExternalNetworkSubnetCidr",
                        nodes.exclude_external_network_subnet_cidr.as_ref(),
                        problems,
                    ),
                    network: text(nodes.external_vm_network_name.as_ref()),
                },
            },
            skip_node_deletion: config.global.skip_node_deletion,
            node_labels: node_labels(config.global.node_labels.as_ref(), problems),
            nsx: NsxSettings::of(config, problems),
            volumes: volumes(config, problems),
        }
    }
}

/// An empty text counts as none (upstream).
fn text(text: Option<&String>) -> Option<String> {
    text.map(|text| text.trim())
        .filter(|text| !text.is_empty())
        .map(String::from)
}

fn refuse_globals(config: &Config, problems: &mut Problems) {
    const NO_API: &str = "there is no API of the controller's own here; take this key out";
    if config.global.api_disable == Some(false) {
        problems.add("global.apiDisable", NO_API);
    }
    if config.global.api_binding.is_some() {
        problems.add("global.apiBinding", NO_API);
    }
    for (name, entry) in &config.vcenter {
        for (key, written) in [
            ("secretsDirectory", entry.secrets_directory.is_some()),
            ("apiDisable", entry.api_disable.is_some()),
            ("apiBinding", entry.api_binding.is_some()),
            ("skipNodeDeletion", entry.skip_node_deletion),
            ("nodeLabels", entry.node_labels.is_some()),
        ] {
            if written {
                problems.add(format!("vcenter.{name}.{key}"), "this key belongs into global");
            }
        }
    }
}

fn vcenters(config: &Config, problems: &mut Problems) -> Vec<VCenterSettings> {
    let (global, none) = (&config.global, Entry::default());
    let mut vcenters: Vec<VCenterSettings> = Vec::new();
    if let Some(server) = text(global.server.as_ref()).filter(|server| !config.vcenter.contains_key(server)) {
        vcenters.extend(vcenter("global", &server, &none, global, problems));
    }
    for (name, entry) in &config.vcenter {
        let at = format!("vcenter.{name}");
        vcenters.extend(vcenter(&at, name, entry, global, problems));
    }
    if vcenters.is_empty() && problems.is_empty() {
        problems.add(
            "global.server",
            "no vCenter is named; write its name or address here, or under vcenter",
        );
    }
    vcenters
}

/// One vCenter. `at` is where its keys are, `entry` its own keys.
fn vcenter(at: &str, name: &str, entry: &Entry, global: &Entry, problems: &mut Problems) -> Option<VCenterSettings> {
    let key = |key: &str| format!("{at}.{key}");
    let server = text(entry.server.as_ref()).unwrap_or_else(|| name.trim().into());
    let server = server.trim_start_matches('[').trim_end_matches(']').to_owned();
    let bad = |c: char| c.is_whitespace() || matches!(c, '/' | '@' | '?' | '#');
    let port_inside = server.contains(':') && server.parse::<std::net::Ipv6Addr>().is_err();
    if server.is_empty() || server.contains(bad) || port_inside {
        problems.add(
            key("server"),
            format!("\"{server}\" is no server; write its name or IP address alone, and its port under port"),
        );
        return None;
    }
    let port = entry.port.or(global.port).filter(|port| *port != 0).unwrap_or(443);
    if entry.insecure_flag || global.insecure_flag {
        problems.add(
            if entry.insecure_flag { key("insecureFlag") } else { "global.insecureFlag".into() },
            "the server's certificate is always checked; take this key out and write `thumbprints: [...]` of the certificate, or `ca: FILE` of its \
             authority, into the grant of this host",
        );
    }
    let attempts = [entry.soap_roundtrip_count, global.soap_roundtrip_count];
    let attempts = attempts
        .into_iter()
        .flatten()
        .find(|count| *count > 0)
        .unwrap_or(ATTEMPTS);
    if attempts > MOST_ATTEMPTS {
        problems.add(
            key("soapRoundtripCount"),
            format!("{attempts} is too many; write 1 to {MOST_ATTEMPTS}"),
        );
    }
    let first = |own: &Option<String>, all: &Option<String>| -> Vec<String> {
        let own = own.as_ref().filter(|own| words(Some(own)).next().is_some());
        words(own.or(all.as_ref())).map(String::from).collect()
    };
    Some(VCenterSettings {
        name: name.into(),
        credentials: credentials(at, &server, entry, global, problems),
        server,
        port,
        datacenters: first(&entry.datacenters, &global.datacenters),
        families: families(&key("ipFamily"), &first(&entry.ip_family, &global.ip_family), problems),
        attempts,
        trust: trust(entry, global),
    })
}

/// As upstream decides: a Secret that is named wins, else what is in the text, the vCenter's own first. Without either they are secrets.
fn credentials(at: &str, server: &str, entry: &Entry, global: &Entry, problems: &mut Problems) -> Credentials {
    let user = text(entry.user.as_ref()).or_else(|| text(global.user.as_ref()));
    let password = text(entry.password.as_ref()).or_else(|| text(global.password.as_ref()));
    let secret = [&entry.secret_name, &global.secret_name, &global.secrets_directory];
    let secret = secret.into_iter().any(|name| text(name.as_ref()).is_some());
    match (user, password) {
        (Some(user), Some(password)) if !secret => Credentials::text(user, password),
        (Some(_), None) if !secret => {
            let message = "this is missing; write it beside user, or take user out and grant both as secrets";
            problems.add(format!("{at}.password"), message);
            Credentials::secrets(server)
        }
        (None, Some(_)) if !secret => {
            let message = "this is missing; write it beside password, or take password out and grant both as secrets";
            problems.add(format!("{at}.user"), message);
            Credentials::secrets(server)
        }
        _ => Credentials::secrets(server),
    }
}

fn trust(entry: &Entry, global: &Entry) -> Option<String> {
    let of = |own: &Option<String>, all: &Option<String>| text(own.as_ref()).or_else(|| text(all.as_ref()));
    if let Some(thumbprint) = of(&entry.thumbprint, &global.thumbprint) {
        return Some(format!("thumbprints: [\"{thumbprint}\"]"));
    }
    of(&entry.ca_file, &global.ca_file).map(|file| format!("ca: {file}"))
}

fn families(at: &str, names: &[String], problems: &mut Problems) -> Vec<Family> {
    let mut families = Vec::new();
    for name in names {
        let family = match name.to_ascii_lowercase().as_str() {
            "ipv4" => Family::V4,
            "ipv6" => Family::V6,
            _ => {
                problems.add(at, format!("\"{name}\" is no IP family; write ipv4, ipv6 or both"));
                continue;
            }
        };
        if !families.contains(&family) {
            families.push(family);
        }
    }
    if families.is_empty() {
        families.push(Family::V4);
    }
    families
}

fn cidrs(at: &str, list: Option<&String>, problems: &mut Problems) -> Vec<IpNet> {
    let mut cidrs = Vec::new();
    for word in words(list) {
        match cidr::parse(word) {
            Ok(cidr) => cidrs.push(cidr),
            Err(_) => problems.add(at, format!("\"{word}\" is no network; write it like 10.0.0.0/8")),
        }
    }
    cidrs
}

/// Upstream reads no zones where one of the two is missing, without an error.
fn categories(config: &Config, problems: &mut Problems) -> Option<Categories> {
    match (text(config.labels.zone.as_ref()), text(config.labels.region.as_ref())) {
        (Some(zone), Some(region)) => return Some(Categories { zone, region }),
        (None, None) => {}
        (zone, _) => problems.add(
            if zone.is_some() { "labels.region" } else { "labels.zone" },
            "this is missing; zones are known only where the categories of zones and of regions are both named",
        ),
    }
    None
}

fn volumes(config: &Config, problems: &mut Problems) -> VolumeSettings {
    let volumes = &config.volumes;
    let cluster_id = text(volumes.cluster_id.as_ref());
    if cluster_id.as_ref().is_some_and(|id| id.len() > LONGEST_CLUSTER_ID) {
        let message = format!("this is longer than {LONGEST_CLUSTER_ID} bytes");
        problems.add("volumes.clusterId", message);
    }
    let limit = text(volumes.max_volumes_per_node.as_ref());
    let number = |limit: &String| limit.parse().ok().filter(|limit| (1..=MOST_VOLUMES).contains(limit));
    if let Some(wrong) = limit.as_ref().filter(|limit| number(limit).is_none()) {
        let message = format!("\"{wrong}\" is no number of volumes; write 1 to {MOST_VOLUMES}");
        problems.add("volumes.maxVolumesPerNode", message);
    }
    VolumeSettings {
        cluster_id,
        distribution: text(volumes.cluster_distribution.as_ref()),
        limit: limit.as_ref().and_then(number).unwrap_or(USUAL_VOLUMES),
    }
}

fn node_labels(list: Option<&String>, problems: &mut Problems) -> Vec<Pair> {
    let mut labels = Vec::new();
    for word in words(list) {
        match word.split_once('=') {
            Some((key, value)) if !key.is_empty() => labels.push(Pair::new(key, value)),
            _ => problems.add(
                "global.nodeLabels",
                format!("\"{word}\" is no label; write it like key=value"),
            ),
        }
    }
    labels
}

#[cfg(test)]
mod tests;
