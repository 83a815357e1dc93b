//! What a Service wants of its load balancer. Pure.

use cloudwit_guest_sdk::cidr;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::provider::default_balancer_name;

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
    /// `tcp` or `udp`, as the firewall knows it.
    pub protocol: &'static str,
    /// The same, or `tcp-proxy`, as the rule knows it.
    pub rule_protocol: &'static str,
    /// At the load balancer.
    pub port: u16,
    /// At the machines.
    pub node_port: u16,
}

/// The address of `spec.loadBalancerIP`.
pub fn fixed_ip(service: &Service) -> Option<&str> {
    service.load_balancer_ip.as_deref().filter(|ip| !ip.is_empty())
}

impl<'a> Wanted<'a> {
    /// By Service and targets.
    ///
    /// # Errors
    /// `invalid` for what CloudStack does not have, all at once.
    pub fn new(service: &'a Service, asked: Asked<'a>, targets: &[Target]) -> Result<Self, Failure> {
        let mut wrong = Vec::new();
        if !service.ip_families.is_empty() && !service.ip_families.contains(&IpFamily::Ipv4) {
            wrong.push("load balancers have IPv4 addresses only; add IPv4 to ipFamilies".to_owned());
        }
        let name = default_balancer_name(service);
        let mut ports = Vec::new();
        for port in &service.ports {
            let (protocol, rule_protocol) = match (port.protocol, asked.proxy) {
                (Protocol::Tcp, false) => ("tcp", "tcp"),
                (Protocol::Tcp, true) => ("tcp", "tcp-proxy"),
                (Protocol::Udp, _) => ("udp", "udp"),
                (Protocol::Sctp, _) => {
                    wrong.push("there are no load balancers for SCTP".into());
                    continue;
                }
            };
            let Some(node_port) = port.node_port else {
                wrong.push(format!(
                    "port {} has no node port; set allocateLoadBalancerNodePorts",
                    port.port
                ));
                continue;
            };
            ports.push(Port {
                rule: format!("{name}-{rule_protocol}-{}", port.port),
                protocol,
                rule_protocol,
                port: port.port,
                node_port,
            });
        }
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
            ip: fixed_ip(service),
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

/// Machines of the targets. A Node without provider id is not initialised.
pub fn machines(targets: &[Target]) -> Vec<String> {
    let ids = targets.iter().filter_map(|target| target.node.provider_id.as_deref());
    let mut machines: Vec<String> = ids.filter_map(machine_id).map(str::to_ascii_lowercase).collect();
    machines.sort_unstable();
    machines.dedup();
    machines
}
