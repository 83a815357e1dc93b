//! What a Service wants, under upstream's names.

use std::hash::{DefaultHasher, Hash, Hasher};

use cloudwit_guest_sdk::cidr;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::provider::default_balancer_name;
use serde_json::{Value, json};

use super::annotations::Asked;
use crate::config::{Config, given};

/// Of everything that belongs to the second family of a Service, and of each pool for IPv6.
const V6: &str = "-IPv6";

/// Tag of a public address: the Services that use it, between commas.
pub const SERVICES: &str = "k8s-azure-service";

/// Tag of a public address: whose cluster made it.
pub const CLUSTER: &str = "k8s-azure-cluster-name";

/// What a Service wants.
pub struct Wanted<'a> {
    pub service: &'a Service,
    pub asked: Asked<'a>,
    /// What the names of its frontends, rules and probes begin with.
    pub base: String,
    pub cluster: String,
    pub fronts: Vec<Front<'a>>,
    disable_outbound_snat: bool,
}

/// What it wants of one family.
pub struct Front<'a> {
    pub v6: bool,
    /// Name of its frontend where it shares none.
    pub name: String,
    pub pool: String,
    /// Name of its public address where it names none.
    pub address: String,
    /// The address that it asks for.
    pub ip: Option<&'a str>,
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
        let mut wrong = Vec::new();
        if service.ports.iter().any(|port| port.protocol == Protocol::Sctp) {
            wrong.push("there are no load balancers for SCTP".to_owned());
        }
        let v6: Vec<bool> = match service.ip_families.as_slice() {
            [] => vec![false],
            families => families.iter().map(|family| *family == IpFamily::Ipv6).collect(),
        };
        if asked.internal && v6.contains(&true) {
            wrong.push("internal load balancers have IPv4 addresses only; set ipFamilies to IPv4".into());
        }
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
            let subnet = asked.subnet.filter(|_| asked.internal);
            let subnet = subnet.map(|subnet| format!("-{subnet}")).unwrap_or_default();
            let spec = service.load_balancer_ip.as_deref().filter(|ip| !ip.is_empty());
            let prefix = asked.prefix[usize::from(both && v6)].map(|id| format!("-{}", crate::arm::ids::name(id)));
            let of_family = |source: &&String| !source.contains('/') || source.contains(':') == v6;
            Front {
                v6,
                name: format!("{base}{subnet}{suffix}"),
                pool: pool(cluster, v6),
                address: format!("{cluster}-{base}{}{suffix}", prefix.unwrap_or_default()),
                ip: asked.ip[usize::from(v6)].or(spec.filter(|ip| ip.contains(':') == v6)),
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

    /// Name of the rule, and probe, of a port.
    pub fn rule_name(&self, front: &Front<'_>, port: &ServicePort) -> String {
        let subnet = self.asked.subnet.filter(|_| self.asked.internal);
        let subnet = subnet.map(|subnet| format!("-{subnet}")).unwrap_or_default();
        let suffix = if self.fronts.len() > 1 && front.v6 { V6 } else { "" };
        format!("{}{subnet}-{}-{}{suffix}", self.base, words(port.protocol).0, port.port)
    }

    /// The probe of a port; none where nothing can be asked.
    pub fn probe(&self, port: &ServicePort) -> Option<Value> {
        let asked = &self.asked;
        let own = self
            .service
            .health_check_node_port
            .filter(|_| self.service.traffic_policy == TrafficPolicy::Local);
        let (protocol, to, path) = match own {
            Some(to) => ("Http", to, Some("/healthz")),
            None if port.protocol != Protocol::Tcp => return None,
            None => {
                let protocol = asked.probe.unwrap_or("Tcp");
                (
                    protocol,
                    port.node_port?,
                    (protocol != "Tcp").then_some(asked.probe_path),
                )
            }
        };
        let mut probe = json!({
            "protocol": protocol, "port": to, "intervalInSeconds": asked.probe_seconds, "probeThreshold": asked.probe_count,
        });
        if let Some(path) = path {
            probe["requestPath"] = path.into();
        }
        Some(probe)
    }

    /// The rule of a port, but for what it leads from and to.
    pub fn rule(&self, port: &ServicePort) -> Value {
        let affinity = match self.service.session_affinity_seconds {
            Some(_) => "SourceIP",
            None => "Default",
        };
        let mut rule = json!({
            "protocol": words(port.protocol).1, "frontendPort": port.port, "backendPort": port.port, "enableFloatingIP": true,
            "loadDistribution": affinity, "disableOutboundSnat": self.disable_outbound_snat,
        });
        if port.protocol == Protocol::Tcp {
            rule["enableTcpReset"] = self.asked.tcp_reset.into();
            rule["idleTimeoutInMinutes"] = self.asked.idle_minutes.into();
        }
        rule
    }
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
