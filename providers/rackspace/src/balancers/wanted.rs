//! What a Service requests: load balancers, one for each port, and the settings that all of them have. Pure.

use std::collections::BTreeSet;
use std::net::IpAddr;

use cloudwit_guest_sdk::ports::node_ports;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::targets::address;

use super::access::{self, Rule};
use super::annotations::Asked;
use super::clb::{Clb, Listed, Monitor, Phase, VirtualIp};
use crate::config::BalancerConfig;

/// A port of the Service, which becomes a load balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedPort {
    /// Port of the virtual IPs.
    pub port: u16,
    /// `TCP` or `UDP`.
    pub protocol: &'static str,
    /// Address and node port of each node, sorted.
    pub nodes: Vec<(String, u16)>,
}

impl WantedPort {
    /// Whether this is its load balancer.
    pub fn is(&self, clb: &Clb) -> bool {
        clb.port == self.port && clb.protocol == self.protocol
    }
}

/// The ports, and how many targets do not fit behind a load balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedPorts {
    /// In the order of the Service.
    pub ports: Vec<WantedPort>,
    /// Targets over the limit.
    pub left_out: usize,
}

/// Where the address comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A new one of each family: from the Internet, or (`internal`) from ServiceNet.
    New {
        /// Whether it is one of ServiceNet.
        internal: bool,
    },
    /// One that the account has: `spec.loadBalancerIP`.
    Existing(VirtualIp),
}

impl Source {
    /// That of a Service, whose `loadBalancerIP` is looked up among the load balancers of the account.
    ///
    /// # Errors
    /// `invalid` when the address is none of the account's, or not of the requested kind.
    pub fn new(service: &Service, internal: bool, listed: &[Listed]) -> Result<Self, Failure> {
        let Some(text) = service.fixed_ip() else {
            return Ok(Self::New { internal });
        };
        let invalid = |why: &str| Failure::invalid(format!("loadBalancerIP {text} {why}"));
        let address: IpAddr = text.parse().map_err(|_| invalid("is no address"))?;
        let is_gone = |one: &Listed| matches!(Phase::of(&one.status), Phase::Deleting | Phase::Deleted);
        let living = listed.iter().filter(|one| !is_gone(one));
        let mut vips = living.flat_map(|one| &one.virtual_ips);
        let vip = vips.find(|vip| vip.address == address).ok_or_else(|| {
            invalid("is no virtual IP of this account; Rackspace gives out addresses by itself, and one that a load balancer has can be shared")
        })?;
        match (vip.kind == kind(internal)) || !internal {
            true => Ok(Self::Existing(vip.clone())),
            false => Err(invalid("is no address of ServiceNet, which the annotation asks for")),
        }
    }

    /// Whether these virtual IPs are the desired ones, for these families.
    pub fn fits(&self, vips: &[VirtualIp], families: &[IpFamily]) -> bool {
        match self {
            Self::Existing(wanted) => vips
                .iter()
                .any(|vip| vip.id == wanted.id && vip.address == wanted.address),
            Self::New { internal } => {
                let all = vips.iter().all(|vip| vip.kind == kind(*internal));
                let has = |family: &IpFamily| vips.iter().any(|vip| is_of(vip.address, *family));
                all && families.iter().all(has)
            }
        }
    }
}

/// What all load balancers of a Service have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Name of each, by which they are found again.
    pub name: String,
    /// For display: the Service as `namespace/name`.
    pub service: String,
    /// For display: the cluster.
    pub cluster: String,
    /// Where the address comes from.
    pub source: Source,
    /// Families of the addresses, the Service's first one first.
    pub families: Vec<IpFamily>,
    /// Addresses that the Service shows, which it keeps if it can.
    pub published: Vec<IpAddr>,
    /// CLB's name of it.
    pub algorithm: &'static str,
    /// Seconds.
    pub timeout: i64,
    /// Whether a client stays with a node.
    pub sticky: bool,
    /// Who may connect.
    pub access: Vec<Rule>,
    /// Of TCP ports: UDP cannot be probed.
    pub monitor: Option<Monitor>,
}

impl Settings {
    /// Those of a Service.
    ///
    /// # Errors
    /// `invalid` with what cannot be had.
    pub fn new(
        service: &Service,
        cluster: &ClusterInfo,
        asked: Asked,
        config: &BalancerConfig,
        source: Source,
    ) -> Result<Self, Failure> {
        let mut families = families(service);
        if asked.internal {
            // ServiceNet has IPv4 only.
            families.retain(|family| *family == IpFamily::Ipv4);
        }
        if families.is_empty() {
            return Err(Failure::invalid(
                "ServiceNet has no IPv6 addresses, and the Service has no IPv4",
            ));
        }
        let probed = config.create_monitor || service.traffic_policy == TrafficPolicy::Local;
        Ok(Self {
            name: cloudwit_guest_sdk::names::default_load_balancer_name(&service.uid),
            service: format!("{}/{}", service.namespace, service.name),
            cluster: cluster.name.clone(),
            source,
            published: published(service),
            algorithm: asked.algorithm,
            timeout: asked.timeout,
            sticky: service.session_affinity_seconds.is_some(),
            access: access::wanted(service, &families)?,
            monitor: probed.then(|| config.monitor()),
            families,
        })
    }

    /// Whether the Service shows an address of this one.
    pub fn shows(&self, clb: &Clb) -> bool {
        let mut vips = clb.virtual_ips.iter();
        vips.any(|vip| self.published.contains(&vip.address))
    }

    /// The monitor of a port.
    pub fn monitor_of(&self, port: &WantedPort) -> Option<&Monitor> {
        self.monitor.as_ref().filter(|_| port.protocol == "TCP")
    }
}

/// The Service's ports with at most so many targets behind each: ready ones first, then by name.
///
/// # Errors
/// `invalid` when CLB cannot do a port.
pub fn ports(service: &Service, targets: &[Target], limit: usize) -> Result<WantedPorts, Failure> {
    let family = families(service).first().copied();
    let mut reachable: Vec<(&Target, &str)> = targets
        .iter()
        .filter_map(|target| Some((target, address(&target.node, family)?)))
        .collect();
    reachable.sort_by_key(|(target, _)| (!target.ready, target.node.name.as_str()));
    let left_out = reachable.len().saturating_sub(limit);
    reachable.truncate(limit);
    let (mut ports, mut wrong) = (Vec::with_capacity(service.ports.len()), Vec::new());
    let protocol = |port: &ServicePort| match port.protocol {
        Protocol::Tcp => Some("TCP"),
        Protocol::Udp => Some("UDP"),
        Protocol::Sctp => None,
    };
    for found in node_ports(service, protocol, |mistake| wrong.push(mistake)) {
        let node = |(_, address): &(&Target, &str)| ((*address).to_owned(), found.node_port);
        let nodes: BTreeSet<(String, u16)> = reachable.iter().map(node).collect();
        ports.push(WantedPort {
            port: found.port.port,
            protocol: found.protocol,
            nodes: nodes.into_iter().collect(),
        });
    }
    match wrong.is_empty() {
        true => Ok(WantedPorts { ports, left_out }),
        false => Err(Failure::invalid(wrong.join("; "))),
    }
}

/// Families of the Service, the first one first; IPv4 when it names none.
pub fn families(service: &Service) -> Vec<IpFamily> {
    match service.ip_families.is_empty() {
        true => vec![IpFamily::Ipv4],
        false => service.ip_families.clone(),
    }
}

/// The addresses of these families, in their order.
pub fn addresses(vips: &[VirtualIp], families: &[IpFamily]) -> Vec<IpAddr> {
    let of = |family: &IpFamily| vips.iter().map(|vip| vip.address).find(|ip| is_of(*ip, *family));
    families.iter().filter_map(of).collect()
}

/// CLB's name of the kind of an address.
pub fn kind(internal: bool) -> &'static str {
    if internal { "SERVICENET" } else { "PUBLIC" }
}

fn is_of(address: IpAddr, family: IpFamily) -> bool {
    address.is_ipv4() == (family == IpFamily::Ipv4)
}

fn published(service: &Service) -> Vec<IpAddr> {
    let ip = |ingress: &Ingress| match &ingress.endpoint {
        Endpoint::Ip((text, _)) => text.parse().ok(),
        Endpoint::Hostname(_) => None,
    };
    service.ingress.iter().filter_map(ip).collect()
}

#[cfg(test)]
mod tests;
