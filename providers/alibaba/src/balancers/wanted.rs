//! What a Service requests of its load balancer. Pure.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::annotations::Reader;
use cloudwit_guest_sdk::cidr;
use cloudwit_guest_sdk::ports::node_ports;
use cloudwit_guest_sdk::prelude::*;

use super::annotations::{self, TABLE};
use super::fields::{self, Field, GROUP, HTTP, HTTPS, LISTENER, NLB, Place, SSL, TCP, UDP, WEB};
use super::names::{Kind, Names};

/// Longest `persistence-timeout`, in seconds.
const PERSISTENCE: u32 = 3_600;

/// Parameters of health checks: of listeners of a Classic Load Balancer, and kind, port and path of those of an NLB's server groups.
const CONNECT_PORT: &str = "HealthCheckConnectPort";
const URI: &str = "HealthCheckURI";
const PROBES: [&str; 3] = [
    "HealthCheckConfig.HealthCheckType",
    "HealthCheckConfig.HealthCheckConnectPort",
    "HealthCheckConfig.HealthCheckUrl",
];

/// All of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted<'a> {
    pub service: &'a Service,
    pub ports: Vec<Port>,
    pub members: Members,
    /// Whether listeners of a load balancer that is the user's are made too.
    pub overrides: bool,
    /// Further tags.
    pub tags: Vec<(String, String)>,
    /// Whether connections begin with the PROXY protocol.
    pub proxy: bool,
    /// Whether it has no public address.
    pub internal: bool,
    /// Zones that annotations give, of a Network Load Balancer.
    pub zones: Vec<Zone<'a>>,
    /// Where parameters of its listeners and server groups are.
    pub places: Place,
}

/// One port: a listener with its server group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    pub port: u16,
    /// `tcp`, `udp`, `http` or `https` of a Classic Load Balancer, `TCP`, `UDP` or `TCPSSL` of a Network Load Balancer.
    pub protocol: &'static str,
    pub node_port: u16,
    /// Name of the listener.
    pub listener: String,
    /// Name of the server group.
    pub group: String,
    /// Parameters of the listener.
    pub of_listener: Vec<Field>,
    /// Parameters of the server group.
    pub of_group: Vec<Field>,
}

/// A zone that a Network Load Balancer is in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Zone<'a> {
    pub zone: &'a str,
    pub vswitch: &'a str,
    /// Its private address there.
    pub address: Option<&'a str>,
    /// Elastic address there.
    pub elastic: Option<&'a str>,
}

/// The Nodes behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members {
    /// Ids of instances, sorted.
    pub instances: Vec<String>,
    pub weight: i64,
    /// Whether other weights are left as they are.
    pub keep_weights: bool,
}

impl<'a> Wanted<'a> {
    /// By Service and instances.
    ///
    /// # Errors
    /// `invalid` for what Alibaba Cloud or this provider does not have, all at once.
    pub fn new(service: &'a Service, names: &Names, instances: Vec<String>) -> Result<Self, Failure> {
        let kind = Kind::of(service);
        let mut reader = TABLE.read(service);
        annotations::refuse(&mut reader);
        if !is_open_to_all(service)? {
            reader.mistake(match kind {
                Kind::Clb => "loadBalancerSourceRanges are not there: write an access list's id into the annotation acl-id, with acl-status and acl-type",
                Kind::Nlb => "loadBalancerSourceRanges are not there: write security groups into the annotation security-group-ids",
            });
        }
        let (ports, places) = ports(service, kind, names, &mut reader);
        let tags = reader.map("additional-resource-tags").unwrap_or_default();
        let wanted = Self {
            service,
            ports,
            members: members(&mut reader, instances),
            overrides: reader.boolean("force-override-listeners").unwrap_or_default(),
            tags: tags
                .into_iter()
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
            places,
            proxy: annotations::is(service, "proxy-protocol", "on"),
            internal: reader
                .word("address-type", &[("internet", false), ("intranet", true)])
                .unwrap_or_default(),
            zones: match kind {
                Kind::Clb => Vec::new(),
                Kind::Nlb => zones(&mut reader),
            },
        };
        reader.finish().map(|()| wanted)
    }
}

impl Wanted<'_> {
    /// The Nodes' port of the server group of this name, if it is desired.
    pub fn port_of_group(&self, name: &str) -> Option<u16> {
        let port = self.ports.iter().find(|port| port.group == name);
        port.map(|port| port.node_port)
    }
}

/// How Nodes are weighted.
fn members(reader: &mut Reader<'_>, instances: Vec<String>) -> Members {
    Members {
        instances,
        weight: reader.integer("default-weight", 0..=100).unwrap_or_default(),
        keep_weights: reader
            .word("ignore-weight-update", &[("on", true), ("off", false)])
            .unwrap_or_default(),
    }
}

/// Only the Nodes, where nothing else is brought up to date.
///
/// # Errors
/// `invalid` for annotations about them.
pub fn only_members(service: &Service, instances: Vec<String>) -> Result<Members, Failure> {
    let mut reader = TABLE.read(service);
    let members = members(&mut reader, instances);
    reader.finish().map(|()| members)
}

/// `zone-maps`: `zone:vswitch:address:elastic address`, the last two of which may be missing.
fn zones<'a>(reader: &mut Reader<'a>) -> Vec<Zone<'a>> {
    let mut zones = Vec::new();
    for entry in reader.list("zone-maps").unwrap_or_default() {
        let parts: Vec<&str> = entry.split(':').collect();
        let part = |at: usize| parts.get(at).copied().filter(|part| !part.is_empty());
        match (part(0), part(1)) {
            (Some(zone), Some(vswitch)) if parts.len() <= 4 => zones.push(Zone {
                zone,
                vswitch,
                address: part(2),
                elastic: part(3),
            }),
            _ => drop(reader.wrong::<()>("zone-maps", "a list like cn-hangzhou-g:vsw-1,cn-hangzhou-h:vsw-2")),
        }
    }
    zones
}

fn is_open_to_all(service: &Service) -> Result<bool, Failure> {
    if service.source_ranges.is_empty() {
        return Ok(true);
    }
    let ranges = cidr::source_ranges(service)?;
    Ok(ranges.iter().all(|range| range.prefix_len() == 0))
}

/// Listeners with their server groups, and where parameters of them are.
fn ports(service: &Service, kind: Kind, names: &Names, reader: &mut Reader<'_>) -> (Vec<Port>, Place) {
    let asked = protocols(kind, reader);
    let of_group = if kind == Kind::Nlb { GROUP } else { 0 };
    let own = |port: &ServicePort| match port.protocol {
        Protocol::Tcp => Some("tcp"),
        Protocol::Udp => Some("udp"),
        Protocol::Sctp => None,
    };
    let (mut ports, mut places) = (Vec::new(), of_group);
    for found in node_ports(service, own, |mistake| reader.mistake(mistake)) {
        let (port, node_port) = (found.port.port, found.node_port);
        let asked = asked.get(&port).filter(|_| found.protocol == "tcp");
        let Some((protocol, place)) = asked.copied().or_else(|| protocol(kind, found.protocol)) else {
            continue;
        };
        places |= place;
        if place & (HTTPS | SSL) != 0 && reader.text("cert-id").is_none() {
            let key = TABLE.key("cert-id");
            reader.mistake(format!("port {port} needs a certificate: {key}"));
        }
        let mut port = Port {
            port,
            protocol,
            node_port,
            listener: names.of_port(port, protocol),
            group: names.of_port(node_port, protocol),
            of_listener: fields::read(reader, place),
            of_group: fields::read(reader, of_group),
        };
        add_defaults(service, place, &mut port);
        ports.push(port);
    }
    (ports, places)
}

/// A protocol of listeners by its word in annotations, and where parameters of such listeners are.
fn protocol(kind: Kind, word: &str) -> Option<(&'static str, Place)> {
    let known: &[(&str, Place)] = match kind {
        Kind::Clb => &[("tcp", TCP), ("udp", UDP), ("http", HTTP), ("https", HTTPS)],
        Kind::Nlb => &[("TCP", LISTENER), ("UDP", LISTENER), ("TCPSSL", SSL)],
    };
    known
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(word))
        .copied()
}

/// `protocol-port`: the protocol of each port that it names.
fn protocols(kind: Kind, reader: &mut Reader<'_>) -> BTreeMap<u16, (&'static str, Place)> {
    let allowed = match kind {
        Kind::Clb => "a list like https:443,http:80 of tcp, udp, http and https",
        Kind::Nlb => "a list like tcpssl:443,tcp:80 of tcp, udp and tcpssl",
    };
    let mut protocols = BTreeMap::new();
    for entry in reader.list("protocol-port").unwrap_or_default() {
        let parts = entry.split_once(':');
        match parts.and_then(|(word, port)| Some((port.parse().ok()?, protocol(kind, word)?))) {
            // UDP is the port's own protocol.
            Some((_, ("udp" | "UDP", _))) => {}
            Some((port, protocol)) => drop(protocols.insert(port, protocol)),
            None => drop(reader.wrong::<()>("protocol-port", allowed)),
        }
    }
    protocols
}

/// What follows from the Service itself, without an annotation.
fn add_defaults(service: &Service, place: Place, port: &mut Port) {
    let add = |fields: &mut Vec<Field>, name: &'static str, value: &str| {
        if fields.iter().all(|field| field.name != name) {
            fields.push(Field::one(name, value));
        }
    };
    let (affinity, nlb) = (service.session_affinity_seconds, place & NLB != 0);
    let by_source = affinity.is_some() && (nlb || place == UDP);
    let scheduled = if nlb { &mut port.of_group } else { &mut port.of_listener };
    add(scheduled, "Scheduler", if by_source { "sch" } else { "rr" });
    if let (TCP, Some(seconds)) = (place, affinity) {
        let seconds = seconds.min(PERSISTENCE).to_string();
        add(&mut port.of_listener, "PersistenceTimeout", &seconds);
    }
    let typed = annotations::text(service, "health-check-type").is_some();
    if let Some(node_port) = service.health_check_node_port.filter(|_| !typed && place != UDP) {
        // Which Nodes have Pods is only known to kube-proxy.
        let (fields, [kind, at, path], how) = match place {
            TCP => (&mut port.of_listener, ["HealthCheckType", CONNECT_PORT, URI], "http"),
            HTTP | HTTPS => (&mut port.of_listener, ["HealthCheck", CONNECT_PORT, URI], "on"),
            _ => (&mut port.of_group, PROBES, "HTTP"),
        };
        add(fields, kind, how);
        add(fields, at, &node_port.to_string());
        add(fields, path, "/healthz");
    }
    if place & WEB != 0 {
        add(&mut port.of_listener, "HealthCheck", "off");
        add(&mut port.of_listener, "StickySession", "off");
    }
}
