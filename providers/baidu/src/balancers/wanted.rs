//! What a Service requests of its load balancer. Pure.

use cloudwit_guest_sdk::cidr;
use cloudwit_guest_sdk::cidr::ANY_IPV4;
use cloudwit_guest_sdk::ports::{NodePort, node_ports};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::targets;

use super::annotations::Asked;
use super::seen::Listener;
use crate::machine_id;

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted<'a> {
    pub listeners: Vec<Listener>,
    /// Ids of the machines, sorted.
    pub machines: Vec<String>,
    pub asked: Asked<'a>,
}

impl<'a> Wanted<'a> {
    /// By Service and targets.
    ///
    /// # Errors
    /// `invalid` for what Baidu does not have, all at once.
    pub fn new(service: &Service, asked: Asked<'a>, targets: &[Target]) -> Result<Self, Failure> {
        let mut wrong = Vec::new();
        if !service.takes_ipv4() {
            wrong.push("load balancers have IPv4 addresses only; add IPv4 to ipFamilies".to_owned());
        }
        if !service.source_ranges.is_empty() && !cidr::source_ranges(service)?.contains(&ANY_IPV4) {
            let text = "listeners take traffic from everywhere: remove loadBalancerSourceRanges, and bind a security group to the BLB";
            wrong.push(text.to_owned());
        }
        let affinity = service.session_affinity_seconds.map_or("RoundRobin", |_| "Hash");
        let health = &asked.health;
        let ports = node_ports(service, protocol, |mistake| wrong.push(mistake)).into_iter();
        let listener = |NodePort {
                            port,
                            protocol,
                            node_port,
                        }: NodePort<'_, &'static str>| Listener {
            protocol,
            listener_port: port.port,
            backend_port: node_port,
            scheduler: asked.scheduler.unwrap_or(affinity).to_owned(),
            health_check_timeout_in_second: health.timeout,
            health_check_interval: health.interval,
            unhealthy_threshold: health.unhealthy,
            healthy_threshold: health.healthy,
            health_check_string: (protocol == "UDP").then(|| health.string.to_owned()),
        };
        let listeners = ports.map(listener).collect();
        match wrong.is_empty() {
            true => Ok(Self {
                listeners,
                machines: machines(targets),
                asked,
            }),
            false => Err(Failure::invalid(wrong.join("; "))),
        }
    }
}

/// As Baidu calls it; none for SCTP.
pub fn protocol(port: &ServicePort) -> Option<&'static str> {
    match port.protocol {
        Protocol::Tcp => Some("TCP"),
        Protocol::Udp => Some("UDP"),
        Protocol::Sctp => None,
    }
}

/// Machines of the targets.
pub fn machines(targets: &[Target]) -> Vec<String> {
    targets::ids(targets, |id| machine_id(id).map(str::to_owned))
}
