//! What a Service requests of its load balancer. Pure.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::cidr;
use cloudwit_guest_sdk::ports::node_ports;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::targets;

use super::seen::Rule;

/// Longest name of a service in Rancher.
const NAME: usize = 63;

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Ports of the load balancer, and those of the machines behind them.
    pub ports: Vec<(u16, u16)>,
    /// Names of the external services, and the addresses of each: several where Nodes differ in signs alone that no such name has, none where the Node has none yet.
    pub backends: BTreeMap<String, Vec<String>>,
}

impl Wanted {
    /// By Service and targets.
    ///
    /// # Errors
    /// `invalid` for what Rancher does not have, all at once.
    pub fn new(service: &Service, targets: &[Target]) -> Result<Self, Failure> {
        let mut wrong = Vec::new();
        if service.fixed_ip().is_some() {
            wrong.push("load balancers have the addresses of their hosts; remove loadBalancerIP".to_owned());
        }
        if service.session_affinity_seconds.is_some() {
            wrong.push("load balancers have no affinity for TCP; set sessionAffinity to None".to_owned());
        }
        if !service.takes_ipv4() {
            wrong.push("load balancers have IPv4 addresses only; add IPv4 to ipFamilies".to_owned());
        }
        // Upstream's controller opens such a Service to all.
        if !service.source_ranges.is_empty() && !cidr::source_ranges(service)?.contains(&cidr::ANY_IPV4) {
            wrong.push("load balancers take traffic from everywhere; remove loadBalancerSourceRanges".to_owned());
        }
        let tcp = |port: &ServicePort| (port.protocol == Protocol::Tcp).then_some(());
        let ports = node_ports(service, tcp, |mistake| wrong.push(mistake));
        if !wrong.is_empty() {
            return Err(Failure::invalid(wrong.join("; ")));
        }
        Ok(Self {
            ports: ports.iter().map(|port| (port.port.port, port.node_port)).collect(),
            backends: backends(targets),
        })
    }

    /// Ports of the load balancer's containers, as upstream's controller writes them.
    pub fn published(&self) -> Vec<String> {
        let ports = self.ports.iter();
        ports.map(|(port, _)| format!("{port}:{port}/tcp")).collect()
    }

    /// One rule for each port and external service, sorted.
    pub fn rules(&self, services: &[String]) -> Vec<Rule> {
        let of_port = |&(port, node_port): &(u16, u16)| {
            services.iter().map(move |id| Rule {
                source_port: port,
                target_port: node_port,
                service_id: id.clone(),
                protocol: "tcp".to_owned(),
            })
        };
        let mut rules: Vec<Rule> = self.ports.iter().flat_map(of_port).collect();
        rules.sort_unstable();
        rules
    }
}

fn backends(targets: &[Target]) -> BTreeMap<String, Vec<String>> {
    let mut backends: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for target in targets {
        let name = service_name(&target.node.name);
        if name.is_empty() {
            continue;
        }
        let ip = targets::address(&target.node, Some(IpFamily::Ipv4));
        backends.entry(name).or_default().extend(ip.map(str::to_owned));
    }
    for ips in backends.values_mut() {
        ips.sort_unstable();
        ips.dedup();
    }
    backends
}

/// The name of a Node's external service, as upstream's controller makes it: what a name cannot have becomes a dash, of several in a row one stays, and none
/// at the ends.
pub fn service_name(node: &str) -> String {
    let dashed: String = node
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let parts: Vec<&str> = dashed.split('-').filter(|part| !part.is_empty()).collect();
    parts.join("-").chars().take(NAME).collect()
}
