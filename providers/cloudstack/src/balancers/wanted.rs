//! What a Service requests of its load balancer. Pure.

use cloudwit_guest_sdk::cidr;
use cloudwit_guest_sdk::ports::{NodePort, node_ports};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::provider::default_balancer_name;
use cloudwit_guest_sdk::targets;

use super::annotations::Asked;
use crate::machine_id;

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// How the names of its rules begin.
    pub name: String,
    /// The Service.
    pub uid: &'a str,
    /// How connections are spread.
    pub algorithm: &'static str,
    pub ports: Vec<Port>,
    /// Networks that the rules take traffic from, sorted.
    pub cidrs: Vec<String>,
    /// Networks that the firewall lets in, sorted; none for all.
    pub sources: Vec<String>,
    /// The address of `spec.loadBalancerIP`.
    pub ip: Option<&'a str>,
    /// Ids of the machines, sorted.
    pub machines: Vec<String>,
    pub asked: Asked<'a>,
}

/// One port, which is one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Name of its rule, which MUST NOT CHANGE: upstream's rules are found by it.
    pub rule: String,
    /// `tcp` or `udp`, the firewall's word.
    pub protocol: &'static str,
    /// The same, or `tcp-proxy`, the rule's word.
    pub rule_protocol: &'static str,
    /// At the load balancer.
    pub port: u16,
    /// At the machines.
    pub node_port: u16,
}

impl<'a> Wanted<'a> {
    /// By Service and targets.
    ///
    /// # Errors
    /// `invalid` for what CloudStack does not have, all at once.
    pub fn new(service: &'a Service, asked: Asked<'a>, targets: &[Target]) -> Result<Self, Failure> {
        let mut wrong = Vec::new();
        if !service.takes_ipv4() {
            wrong.push("load balancers have IPv4 addresses only; add IPv4 to ipFamilies".to_owned());
        }
        let name = default_balancer_name(service);
        let protocol = |port: &ServicePort| match (port.protocol, asked.proxy) {
            (Protocol::Tcp, false) => Some(("tcp", "tcp")),
            (Protocol::Tcp, true) => Some(("tcp", "tcp-proxy")),
            (Protocol::Udp, _) => Some(("udp", "udp")),
            (Protocol::Sctp, _) => None,
        };
        let ports = node_ports(service, protocol, |mistake| wrong.push(mistake)).into_iter();
        let ports = ports.map(
            |NodePort {
                 port,
                 protocol,
                 node_port,
             }| Port {
                rule: format!("{name}-{}-{}", protocol.1, port.port),
                protocol: protocol.0,
                rule_protocol: protocol.1,
                port: port.port,
                node_port,
            },
        );
        let ports: Vec<Port> = ports.collect();
        if !wrong.is_empty() {
            return Err(Failure::invalid(wrong.join("; ")));
        }
        Ok(Self {
            name,
            uid: &service.uid,
            algorithm: match service.session_affinity_seconds {
                Some(_) => "source",
                None => "roundrobin",
            },
            ports,
            cidrs: asked.cidrs.clone(),
            sources: sources(service)?,
            ip: service.fixed_ip(),
            machines: machines(targets),
            asked,
        })
    }

    /// Networks that the firewall lets in.
    pub fn open_to(&self) -> Vec<String> {
        match self.sources.as_slice() {
            [] => vec![cidr::ANY_IPV4.to_string()],
            sources => sources.to_vec(),
        }
    }
}

/// Those of the Service, of IPv4.
fn sources(service: &Service) -> Result<Vec<String>, Failure> {
    if service.source_ranges.is_empty() {
        return Ok(Vec::new());
    }
    let ranges = cidr::source_ranges(service)?;
    let mut sources: Vec<String> = ranges.iter().map(ToString::to_string).collect();
    sources.retain(|range| !range.contains(':'));
    if sources.is_empty() {
        let text = "loadBalancerSourceRanges has no IPv4 network, and load balancers have IPv4 addresses only";
        return Err(Failure::invalid(text));
    }
    sources.sort_unstable();
    sources.dedup();
    Ok(sources)
}

/// Machines of the targets.
pub fn machines(targets: &[Target]) -> Vec<String> {
    targets::ids(targets, |id| machine_id(id).map(str::to_ascii_lowercase))
}
