//! What a Service requests, under upstream's names.

use std::hash::{DefaultHasher, Hash, Hasher};

use cloudwit_guest_sdk::cidr;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::provider::default_balancer_name;

use super::annotations::Asked;
use crate::config::{Config, given};

/// Of everything that belongs to the second family of a Service, and of each pool for IPv6.
const V6: &str = "-IPv6";

/// Longest name of a frontend or rule without the suffix of its family: 80 characters with it.
pub const LONGEST_NAME: usize = 75;

/// Tag of a public address: the Services that use it, between commas.
pub const SERVICES: &str = "k8s-azure-service";

/// Tag of a public address: whose cluster made it.
pub const CLUSTER: &str = "k8s-azure-cluster-name";

/// What a Service requests.
pub struct Wanted<'a> {
    pub service: &'a Service,
    pub asked: Asked<'a>,
    /// What the names of its frontends, rules and probes begin with.
    pub base: String,
    pub cluster: String,
    pub fronts: Vec<Front>,
    pub disable_outbound_snat: bool,
    /// Port and path of the probe of all Services, where the cluster has one.
    pub shared_probe: Option<(u16, String)>,
}

/// What it requests for one family.
pub struct Front {
    pub v6: bool,
    /// Name of its frontend where it shares none.
    pub name: String,
    pub pool: String,
    /// Name of its public address where it names none.
    pub address: String,
    /// The address that the Service requests.
    pub ip: Option<String>,
    /// Whether packets keep the address of the frontend; else they are for the node port.
    pub is_floating: bool,
    /// Internal addresses of the targets, in order.
    pub nodes: Vec<String>,
    /// Who may connect: networks and service tags, in order; only the virtual network where it is empty.
    pub sources: Vec<String>,
}

/// `TCP` as names have it, `Tcp` as properties do.
pub fn words(protocol: Protocol) -> (&'static str, &'static str) {
    match protocol {
        Protocol::Tcp => ("TCP", "Tcp"),
        Protocol::Udp => ("UDP", "Udp"),
        Protocol::Sctp => ("SCTP", "Sctp"),
    }
}

/// Internal addresses of the targets, of one family, in order.
pub fn nodes_of(targets: &[Target], v6: bool) -> Vec<String> {
    let addresses = targets.iter().filter_map(|target| {
        let internal = target.node.addresses.iter();
        let mut internal = internal.filter(|address| address.kind == AddressKind::InternalIp);
        internal.find(|address| address.value.contains(':') == v6)
    });
    let mut nodes: Vec<String> = addresses.map(|address| address.value.clone()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

impl<'a> Wanted<'a> {
    /// By Service and targets.
    ///
    /// # Errors
    /// `invalid` for what Azure does not have, all at once.
    pub fn new(
        service: &'a Service,
        asked: Asked<'a>,
        targets: &[Target],
        config: &Config,
        cluster: &str,
    ) -> Result<Self, Failure> {
        let v6: Vec<bool> = match service.ip_families.as_slice() {
            [] => vec![false],
            families => families.iter().map(|family| *family == IpFamily::Ipv6).collect(),
        };
        let mut wrong = impossible(service, &asked);
        if asked.internal && asked.subnet.or(given(&config.subnet_name)).is_none() {
            wrong.push("an internal load balancer needs subnetName in the cloud config".into());
        }
        if given(&config.vnet_name).is_none() {
            wrong.push("load balancers need vnetName in the cloud config".into());
        }
        if asked.with_rules && given(&config.security_group_name).is_none() {
            wrong.push("load balancers need securityGroupName in the cloud config".into());
        }
        if !wrong.is_empty() {
            return Err(Failure::invalid(wrong.join("; ")));
        }
        let base = default_balancer_name(service);
        let both = v6.len() > 1;
        let sources = sources(service, &asked)?;
        let front = |v6: bool| {
            let suffix = if both && v6 { V6 } else { "" };
            let spec = service.load_balancer_ip.as_deref().filter(|ip| !ip.is_empty());
            let prefix = asked.prefix[usize::from(both && v6)].map(|id| format!("-{}", crate::arm::ids::name(id)));
            let of_family = |source: &&String| !source.contains('/') || source.contains(':') == v6;
            Front {
                v6,
                name: front_name(&base, asked.subnet.filter(|_| asked.internal)) + suffix,
                pool: pool(cluster, v6),
                address: format!("{cluster}-{base}{}{suffix}", prefix.unwrap_or_default()),
                ip: asked.ip[usize::from(v6)]
                    .or(spec.filter(|ip| ip.contains(':') == v6))
                    .map(as_written),
                is_floating: !is_for_nodes(&asked, v6),
                nodes: nodes_of(targets, v6),
                sources: sources.iter().filter(of_family).cloned().collect(),
            }
        };
        let fronts = v6.into_iter().map(front).collect();
        Ok(Self {
            service,
            base,
            cluster: cluster.into(),
            fronts,
            disable_outbound_snat: config.disable_outbound_snat,
            shared_probe: config.shared_probe(),
            asked,
        })
    }

    /// A hash of the Nodes: it differs when they do.
    pub fn nodes(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let all = self.fronts.iter().map(|front| &front.nodes);
        all.for_each(|nodes| nodes.hash(&mut hasher));
        hasher.finish()
    }

    /// As the tags of public addresses name it.
    pub fn tag(&self) -> String {
        tag(self.service)
    }

    /// What names of this frontend end with: those of the second family differ.
    pub fn suffix(&self, front: &Front) -> &'static str {
        if self.fronts.len() > 1 && front.v6 { V6 } else { "" }
    }
}

/// Whether a Service has IPv6 addresses.
pub fn has_v6(service: &Service) -> bool {
    service.ip_families.contains(&IpFamily::Ipv6)
}

/// Whether packets are for the Nodes instead of the load balancer's address: with that annotation, and for all internal IPv6 addresses, of which Azure has no
/// floating ones. A Service with both families requests it for IPv6.
pub fn is_for_nodes(asked: &Asked<'_>, v6: bool) -> bool {
    !asked.floating || (asked.internal && v6)
}

/// What Azure, or the combination of settings, does not allow.
fn impossible(service: &Service, asked: &Asked<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    if !asked.all_ports && service.ports.iter().any(|port| port.protocol == Protocol::Sctp) {
        wrong.push("load balancers take SCTP only with high-availability ports".to_owned());
    }
    let for_nodes = is_for_nodes(asked, has_v6(service));
    if asked.all_ports && for_nodes {
        wrong.push(
            "high-availability ports need IPv4 addresses and floating IP; remove one of the annotations, or IPv6"
                .into(),
        );
    }
    if for_nodes && service.ports.iter().any(|port| port.node_port.is_none()) {
        wrong.push("rules without floating IP need node ports; remove allocateLoadBalancerNodePorts: false".into());
    }
    if for_nodes && asked.deny_others {
        wrong.push("without floating IP the rule that denies all other sources would cut off the Nodes; remove one of the annotations, or IPv6".into());
    }
    if asked.link.is_some() {
        if asked.floating && !asked.internal {
            wrong.push("a private link service needs an internal address, or rules without floating IP; set one of the annotations".into());
        }
        if service.ip_families == [IpFamily::Ipv6] {
            wrong.push("private link services have IPv4 addresses only; add IPv4 to ipFamilies".into());
        }
    }
    wrong
}

/// Name of a frontend but for the suffix of its family: shortened as upstream does, with an end that Azure allows.
fn front_name(base: &str, subnet: Option<&str>) -> String {
    let Some(subnet) = subnet else { return base.to_owned() };
    let whole = format!("{base}-{subnet}");
    let mut short = shortened(&whole, LONGEST_NAME);
    if short.len() < whole.len() && !short.ends_with(|last: char| last.is_alphabetic() || last == '_') {
        short.pop();
        short.push('_');
    }
    short
}

/// The first characters of a name, this many at most.
pub fn shortened(name: &str, longest: usize) -> String {
    name.chars().take(longest).collect()
}

/// An address in its shortest spelling, which is the cloud's.
fn as_written(ip: &str) -> String {
    ip.parse::<std::net::IpAddr>()
        .map_or_else(|_| ip.to_owned(), |ip| ip.to_string())
}

/// Name of the pool of all Nodes.
pub fn pool(cluster: &str, v6: bool) -> String {
    format!("{cluster}{}", if v6 { V6 } else { "" })
}

/// A Service as the tags of public addresses name it.
pub fn tag(service: &Service) -> String {
    format!("{}/{}", service.namespace, service.name)
}

/// The whole Internet where the Service names no sources, and it is reached from there.
fn sources(service: &Service, asked: &Asked<'_>) -> Result<Vec<String>, Failure> {
    let mut sources: Vec<String> = match &asked.ranges {
        Some(ranges) => ranges.clone(),
        None if service.source_ranges.is_empty() => Vec::new(),
        None => cidr::source_ranges(service)?.iter().map(ToString::to_string).collect(),
    };
    sources.extend(asked.service_tags.iter().map(|tag| (*tag).to_owned()));
    if sources.is_empty() && !asked.internal {
        sources.push("Internet".into());
    }
    sources.sort_unstable();
    sources.dedup();
    Ok(sources)
}

#[cfg(test)]
mod tests;
