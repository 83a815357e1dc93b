//! What a Service requests, in the words of Compute Engine.

use cloudwit_guest_sdk::cidr;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::provider::default_balancer_name;

use super::annotations::Asked;
use super::names;
use crate::PROVIDER_ID_PREFIX;
use crate::instances::{self, instance_name};

/// Where a load balancer's probes come from.
pub const PROBES: [&str; 4] = ["130.211.0.0/22", "35.191.0.0/16", "209.85.152.0/22", "209.85.204.0/22"];

/// What a Service requests.
pub struct Wanted<'a> {
    pub service: &'a Service,
    pub asked: Asked<'a>,
    /// Of the load balancer, and most that belongs to it.
    pub name: String,
    /// `TCP` or `UDP`.
    pub protocol: &'static str,
    /// In order.
    pub ports: Vec<u16>,
    /// The address that the Service requests.
    pub ip: Option<&'a str>,
    pub sources: Vec<String>,
    /// Machines of the targets.
    pub machines: Vec<Member<'a>>,
}

/// A machine behind a load balancer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member<'a> {
    pub zone: &'a str,
    pub name: &'a str,
    pub project: &'a str,
}

impl Member<'_> {
    /// Its path.
    pub fn path(&self) -> String {
        format!("projects/{}/zones/{}/instances/{}", self.project, self.zone, self.name)
    }
}

impl<'a> Wanted<'a> {
    /// By Service and targets.
    ///
    /// # Errors
    /// `invalid` for what Compute Engine does not have, all at once.
    pub fn new(service: &'a Service, asked: Asked<'a>, targets: &'a [Target]) -> Result<Self, Failure> {
        let mut wrong = Vec::new();
        let protocol = service.ports.first().map_or(Protocol::Tcp, |port| port.protocol);
        if service.ports.iter().any(|port| port.protocol != protocol) {
            wrong.push("all ports have to have the same protocol");
        }
        let protocol = match protocol {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
            Protocol::Sctp => {
                wrong.push("there are no load balancers for SCTP");
                ""
            }
        };
        if service.ip_families.first() == Some(&IpFamily::Ipv6) {
            wrong.push("load balancers have IPv4 addresses only; put IPv4 first in ipFamilies");
        }
        if !wrong.is_empty() {
            return Err(Failure::invalid(wrong.join("; ")));
        }
        let mut ports: Vec<u16> = service.ports.iter().map(|port| port.port).collect();
        ports.sort_unstable();
        ports.dedup();
        let sources = cidr::source_ranges(service)?;
        let sources = sources.iter().filter(|range| range.addr().is_ipv4());
        let mut machines: Vec<Member<'a>> = targets.iter().filter_map(member).collect();
        machines.sort_unstable();
        machines.dedup();
        Ok(Self {
            name: default_balancer_name(service),
            asked,
            protocol,
            ports,
            ip: service.load_balancer_ip.as_deref().filter(|ip| !ip.is_empty()),
            sources: sources.map(ToString::to_string).collect(),
            machines,
            service,
        })
    }

    /// From the lowest to the highest: a forwarding rule has one range.
    pub fn port_range(&self) -> String {
        let (first, last) = (self.ports.first(), self.ports.last());
        format!(
            "{}-{}",
            first.copied().unwrap_or_default(),
            last.copied().unwrap_or_default()
        )
    }

    /// As firewall rules name them, which take a hundred: those in a row are one range.
    pub fn ranges(&self) -> Vec<String> {
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        for port in &self.ports {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == *port => *last = *port,
                _ => ranges.push((*port, *port)),
            }
        }
        let shown = ranges.iter().map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
        shown.collect()
    }

    /// As resources name it.
    pub fn affinity(&self) -> &'static str {
        if self.service.session_affinity_seconds.is_some() {
            "CLIENT_IP"
        } else {
            "NONE"
        }
    }

    /// Port and path of the check of its own, where only Nodes with a Pod take traffic.
    pub fn own_check(&self) -> Option<u16> {
        self.service
            .health_check_node_port
            .filter(|_| self.service.traffic_policy == TrafficPolicy::Local)
    }

    /// Name, port and path of its health check.
    pub fn check(&self, cluster_id: &str) -> (String, u16, &'static str) {
        match self.own_check() {
            Some(port) => (self.name.clone(), port, NODE_PATH),
            None => (names::node_check(cluster_id), names::NODE_CHECK.0, names::NODE_CHECK.1),
        }
    }
}

/// kube-proxy's path for a single Service.
const NODE_PATH: &str = "/healthz";

/// A target whose Node has no provider id yet is none.
fn member(target: &Target) -> Option<Member<'_>> {
    let id = target.node.provider_id.as_deref()?.strip_prefix(PROVIDER_ID_PREFIX)?;
    let (project, zone, name) = instances::parts(id)?;
    let name = instance_name(name);
    Some(Member { zone, name, project })
}

#[cfg(test)]
mod tests;
