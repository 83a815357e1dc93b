//! The desired load balancer of a Service: what it requests, its ports and targets, in Octavia's terms. Pure.

use cloudwit_guest_sdk::cidr::source_ranges;
use cloudwit_guest_sdk::prelude::*;

use crate::balancers::annotations::Asked;
use crate::balancers::members;
use crate::balancers::names::part;
use crate::balancers::octavia::features::Features;
use crate::balancers::octavia::{Member, Monitor};

/// A load balancer as it shall be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Name, and tag of everything that is this Service's.
    pub name: &'a str,
    /// Subnet of members; Octavia's choice when there is none.
    pub member_subnet_id: Option<&'a str>,
    /// One for each port of the Service.
    pub ports: Vec<WantedPort<'a>>,
}

/// Listener, pool and monitor for a port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WantedPort<'a> {
    /// The port's place in the Service.
    pub index: usize,
    /// Protocol of the listener.
    pub protocol: &'static str,
    /// Port of the listener.
    pub port: i64,
    /// Connections at a time.
    pub connection_limit: i64,
    /// None: left to Octavia.
    pub timeouts: Option<[i64; 4]>,
    /// Whether `X-Forwarded-For` is added.
    pub forwarded_for: bool,
    /// Barbican URL, or empty.
    pub tls_container: &'a str,
    /// None: left to Octavia. Never empty: that would admit all clients.
    pub allowed_cidrs: Option<Vec<String>>,
    /// Whether the listener gets a tag.
    pub tagged: bool,
    /// Protocol of the pool.
    pub pool_protocol: &'static str,
    /// `lb_algorithm`.
    pub method: &'a str,
    /// `SOURCE_IP`, or empty.
    pub persistence: &'static str,
    /// Members, without ids.
    pub members: Vec<Member>,
    /// Monitor, without id.
    pub monitor: Option<Monitor>,
}

/// What a desired load balancer follows from.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The Service.
    pub service: &'a Service,
    /// Its targets, those of its node selector only.
    pub targets: &'a [&'a Target],
    /// What it requests.
    pub asked: &'a Asked<'a>,
    /// What Octavia can do.
    pub features: Features,
    /// The load balancer's name.
    pub name: &'a str,
    /// Subnet of members, where it is known.
    pub member_subnet_id: Option<&'a str>,
}

/// The family of virtual IP and members: the Service's first.
pub fn family(service: &Service) -> Option<IpFamily> {
    service.ip_families.first().copied()
}

impl<'a> Wanted<'a> {
    /// The load balancer for this Service.
    ///
    /// # Errors
    /// `invalid` with everything that Octavia cannot do.
    pub fn new(inputs: &Inputs<'a>) -> Result<Self, Failure> {
        let mut mistakes = Vec::new();
        let ranges = allowed_cidrs(inputs.service).unwrap_or_else(|mistake| {
            mistakes.push(mistake);
            Vec::new()
        });
        let mut ports = Vec::new();
        for (index, port) in inputs.service.ports.iter().enumerate() {
            match wanted_port(inputs, index, port, &ranges) {
                Ok(port) => ports.push(port),
                Err(mistake) => mistakes.push(mistake),
            }
        }
        if !mistakes.is_empty() {
            return Err(Failure::invalid(mistakes.join("; ")));
        }
        Ok(Self {
            name: inputs.name,
            member_subnet_id: inputs.member_subnet_id,
            ports,
        })
    }
}

/// Who may connect, of the family of the virtual IP: Octavia refuses others.
///
/// # Errors
/// When all ranges are of the other family. An empty list would admit all clients.
pub fn allowed_cidrs(service: &Service) -> Result<Vec<String>, String> {
    let ranges = source_ranges(service).map_err(|failure| failure.message().to_owned())?;
    let ipv4 = family(service) != Some(IpFamily::Ipv6);
    let mut fitting: Vec<String> = Vec::new();
    for range in ranges
        .iter()
        .filter(|range| range.addr().is_ipv4() == ipv4)
        .map(ToString::to_string)
    {
        if !fitting.contains(&range) {
            fitting.push(range);
        }
    }
    if fitting.is_empty() {
        let family = if ipv4 { "IPv4" } else { "IPv6" };
        return Err(format!(
            "no network of loadBalancerSourceRanges is of the load balancer's family, {family}"
        ));
    }
    Ok(fitting)
}

fn wanted_port<'a>(
    inputs: &Inputs<'a>,
    index: usize,
    port: &ServicePort,
    ranges: &[String],
) -> Result<WantedPort<'a>, String> {
    let Inputs {
        service,
        asked,
        features,
        ..
    } = inputs;
    let Some(node_port) = port.node_port else {
        let number = port.port.to_string();
        return Err(format!(
            "port {number} has no node port, which Octavia needs: set allocateLoadBalancerNodePorts to true"
        ));
    };
    let tcp = port.protocol == Protocol::Tcp;
    let tls = asked.tls_container.filter(|_| tcp);
    let http = asked.forwarded_for && tcp;
    let plain = match port.protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::Sctp => "SCTP",
    };
    let health_port = service.health_check_node_port.filter(|_| {
        let can = if tcp {
            features.http_monitor
        } else {
            features.http_monitor_on_udp
        };
        service.traffic_policy == TrafficPolicy::Local && asked.checks.is_some() && can
    });
    let monitor_port = health_port.map(i64::from);
    Ok(WantedPort {
        index,
        protocol: if tls.is_some() {
            "TERMINATED_HTTPS"
        } else if http {
            "HTTP"
        } else {
            plain
        },
        port: port.port.into(),
        connection_limit: asked.connection_limit,
        timeouts: features.timeouts.then_some(asked.timeouts),
        forwarded_for: http,
        tls_container: tls.unwrap_or_default(),
        allowed_cidrs: features.allowed_cidrs.then(|| ranges.to_vec()),
        tagged: features.tags,
        pool_protocol: match asked.proxy_protocol.filter(|_| tcp) {
            Some(proxy) => proxy,
            None if tls.is_some() || http => "HTTP",
            None => plain,
        },
        method: asked.method,
        persistence: if service.session_affinity_seconds.is_some() {
            "SOURCE_IP"
        } else {
            ""
        },
        members: members::wanted(inputs.targets, family(service), node_port, monitor_port),
        monitor: asked.checks.map(|checks| Monitor {
            id: String::new(),
            name: part("monitor", index, inputs.name),
            kind: match port.protocol {
                _ if health_port.is_some() => "HTTP",
                Protocol::Udp => "UDP-CONNECT",
                _ => plain,
            }
            .into(),
            numbers: [
                checks.delay,
                checks.timeout,
                checks.max_retries,
                checks.max_retries_down,
            ],
        }),
    })
}

#[cfg(test)]
mod tests;
