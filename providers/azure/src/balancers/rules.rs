//! Rules and probes for one frontend of a Service.

use cloudwit_guest_sdk::prelude::*;
use serde_json::{Value, json};

use super::annotations::{ProbeSettings, of_app_protocol};
use super::wanted::{Front, LONGEST_NAME, Wanted, shortened, words};

/// Name of the probe of all Services, as upstream names it.
pub const SHARED_PROBE: &str = "cluster-service-shared-health-probe";

/// Path on which Nodes report whether they have a Pod of the Service.
const HEALTHZ: &str = "/healthz";

/// A desired rule.
#[derive(Debug, PartialEq, Eq)]
pub struct WantedRule {
    pub name: String,
    /// All but frontend, pool and probe.
    pub properties: Value,
    pub probe: Option<WantedProbe>,
}

/// A desired probe. Several rules may have the same.
#[derive(Debug, PartialEq, Eq)]
pub struct WantedProbe {
    pub name: String,
    pub properties: Value,
}

/// The rules of a frontend: one for each port, or one for all.
pub fn of(wanted: &Wanted<'_>, front: &Front) -> Vec<WantedRule> {
    if wanted.asked.all_ports {
        return all_ports(wanted, front).into_iter().collect();
    }
    let settings = |port: &ServicePort| wanted.asked.port(port.port);
    let ports = wanted.service.ports.iter();
    ports
        .filter(|port| settings(port).is_none_or(|settings| settings.with_rule))
        .map(|port| WantedRule {
            name: name(wanted, front, port.protocol, port.port),
            properties: properties(wanted, front, port),
            probe: settings(port)
                .is_none_or(|settings| settings.with_probe)
                .then(|| probe(wanted, front, port))
                .flatten(),
        })
        .collect()
}

/// Name of the rule, and probe, of a port. A long name of a subnet in it is shortened, as upstream does.
fn name(wanted: &Wanted<'_>, front: &Front, protocol: Protocol, port: u16) -> String {
    let (base, end) = (&wanted.base, format!("-{}-{port}", words(protocol).0));
    let subnet = wanted.asked.subnet.filter(|_| wanted.asked.internal);
    let left = LONGEST_NAME.saturating_sub(base.len() + end.len() + 1);
    let subnet = subnet.map(|subnet| format!("-{}", shortened(subnet, left)));
    format!("{base}{}{end}{}", subnet.unwrap_or_default(), wanted.suffix(front))
}

/// The one rule for all ports, named like that of the first.
fn all_ports(wanted: &Wanted<'_>, front: &Front) -> Option<WantedRule> {
    let ports = &wanted.service.ports;
    let first = ports.first()?;
    let rule_name = name(wanted, front, first.protocol, first.port);
    let all = shared_probe(wanted).or_else(|| local_probe(wanted, front));
    let probe = all.or_else(|| {
        let own = ports.iter().find_map(|port| own_probe(wanted, front, port))?;
        let name = rule_name.clone();
        Some(WantedProbe { name, ..own })
    });
    Some(WantedRule {
        name: rule_name,
        properties: with_connections(
            wanted,
            json!({ "protocol": "All", "frontendPort": 0, "backendPort": 0, "enableFloatingIP": true }),
        ),
        probe,
    })
}

fn properties(wanted: &Wanted<'_>, front: &Front, port: &ServicePort) -> Value {
    let backend = if front.is_floating {
        Some(port.port)
    } else {
        port.node_port
    };
    let rule = json!({
        "protocol": words(port.protocol).1, "frontendPort": port.port, "backendPort": backend, "enableFloatingIP": front.is_floating,
    });
    with_connections(wanted, rule)
}

/// With what is the same for all ports.
fn with_connections(wanted: &Wanted<'_>, mut rule: Value) -> Value {
    let affinity = match wanted.service.session_affinity_seconds {
        Some(_) => "SourceIP",
        None => "Default",
    };
    rule["loadDistribution"] = affinity.into();
    rule["disableOutboundSnat"] = wanted.disable_outbound_snat.into();
    if rule["protocol"] != "Udp" {
        rule["enableTcpReset"] = wanted.asked.tcp_reset.into();
        rule["idleTimeoutInMinutes"] = wanted.asked.idle_minutes.into();
    }
    rule
}

/// The probe of a port; none where nothing can be probed. A port whose annotation names what is probed has its own also where Nodes report their Pods.
fn probe(wanted: &Wanted<'_>, front: &Front, port: &ServicePort) -> Option<WantedProbe> {
    if let Some(shared) = shared_probe(wanted) {
        return Some(shared);
    }
    let local = local_probe(wanted, front);
    let is_named = wanted
        .asked
        .port(port.port)
        .is_some_and(|settings| settings.probe_port.is_some());
    let own = (is_named || local.is_none()).then(|| own_probe(wanted, front, port));
    own.flatten().or(local)
}

/// The one of all Services, unless only Nodes with a Pod take traffic.
fn shared_probe(wanted: &Wanted<'_>) -> Option<WantedProbe> {
    const SETTINGS: ProbeSettings<'_> = ProbeSettings {
        protocol: None,
        path: HEALTHZ,
        seconds: 5,
        count: 2,
    };
    let is_local = wanted.service.traffic_policy == TrafficPolicy::Local;
    let (port, path) = wanted.shared_probe.as_ref().filter(|_| !is_local)?;
    Some(WantedProbe {
        name: SHARED_PROBE.into(),
        properties: body("Http", *port, path, &SETTINGS),
    })
}

/// The one of all ports where only Nodes with a Pod take traffic.
fn local_probe(wanted: &Wanted<'_>, front: &Front) -> Option<WantedProbe> {
    let service = wanted.service;
    // Probes too come with a header of the PROXY protocol, which kube-proxy does not read.
    let has_header = wanted.asked.link.as_ref().is_some_and(|link| link.proxy_protocol);
    let port = service
        .health_check_node_port
        .filter(|_| service.traffic_policy == TrafficPolicy::Local && !has_header)?;
    let settings = wanted
        .asked
        .port(port)
        .map_or(&wanted.asked.probe, |settings| &settings.probe);
    Some(WantedProbe {
        name: name(wanted, front, Protocol::Tcp, port),
        properties: body("Http", port, HEALTHZ, settings),
    })
}

/// The one of a port alone; there are none of UDP.
fn own_probe(wanted: &Wanted<'_>, front: &Front, port: &ServicePort) -> Option<WantedProbe> {
    let settings = wanted
        .asked
        .port(port.port)
        .filter(|_| port.protocol == Protocol::Tcp)?;
    let by_app = port.app_protocol.as_deref().map(of_app_protocol);
    let protocol = settings.probe.protocol.or(by_app).or(wanted.asked.probe.protocol);
    Some(WantedProbe {
        name: name(wanted, front, port.protocol, port.port),
        properties: body(
            protocol.unwrap_or("Tcp"),
            settings.probe_port.or(port.node_port)?,
            settings.probe.path,
            &settings.probe,
        ),
    })
}

fn body(protocol: &str, port: u16, path: &str, settings: &ProbeSettings<'_>) -> Value {
    let mut probe = json!({
        "protocol": protocol, "port": port, "intervalInSeconds": settings.seconds, "probeThreshold": settings.count,
    });
    if protocol != "Tcp" {
        probe["requestPath"] = path.into();
    }
    probe
}

#[cfg(test)]
mod tests;
