//! What a Service wants of its load balancer. Pure.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::annotations::Reader;
use cloudwit_guest_sdk::cidr;
use cloudwit_guest_sdk::ports::{NodePort, node_ports};
use cloudwit_guest_sdk::prelude::*;

use super::annotations::{self, TABLE};
use super::fields::{self, Field, GROUP, HTTP, HTTPS, LISTENER, NLB, Place, SSL, TCP, UDP, WEB};
use super::names::{Kind, Names};

/// Longest `persistence-timeout`, in seconds.
const PERSISTENCE: u32 = 3_600;

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
        let mut places = if kind == Kind::Nlb { GROUP } else { 0 };
        let ports = ports(service, kind, names, &mut reader, &mut places);
        let members = members(&mut reader, instances);
        let wanted = Self {
            service,
            ports,
            members,
            overrides: reader.boolean("force-override-listeners").unwrap_or_default(),
            tags: reader
                .map("additional-resource-tags")
                .unwrap_or_default()
                .into_iter()
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
            places,
            proxy: reader
                .text("proxy-protocol")
                .is_some_and(|value| value.eq_ignore_ascii_case("on")),
        };
        reader.finish().map(|()| wanted)
    }
}

impl Wanted<'_> {
    /// The Nodes' port of the server group of this name, if it is wanted.
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

fn is_open_to_all(service: &Service) -> Result<bool, Failure> {
    let ranges = if service.source_ranges.is_empty() {
        Vec::new()
    } else {
        cidr::source_ranges(service)?
    };
    Ok(ranges.iter().all(|range| range.prefix_len() == 0))
}

fn ports(service: &Service, kind: Kind, names: &Names, reader: &mut Reader<'_>, places: &mut Place) -> Vec<Port> {
    let protocols = protocols(kind, reader);
    let own = |port: &ServicePort| match port.protocol {
        Protocol::Tcp => Some("tcp"),
        Protocol::Udp => Some("udp"),
        Protocol::Sctp => None,
    };
    let mut ports = Vec::new();
    for NodePort {
        port,
        protocol: own,
        node_port,
    } in node_ports(service, own, |mistake| reader.mistake(mistake))
    {
        let (protocol, place) =
            protocols
                .get(&port.port)
                .filter(|_| own == "tcp")
                .copied()
                .unwrap_or(match (kind, own) {
                    (Kind::Clb, "tcp") => ("tcp", TCP),
                    (Kind::Clb, _) => ("udp", UDP),
                    (Kind::Nlb, "tcp") => ("TCP", LISTENER),
                    (Kind::Nlb, _) => ("UDP", LISTENER),
                });
        *places |= place;
        let mut of_listener = fields::read(reader, place);
        let mut of_group = if kind == Kind::Nlb {
            fields::read(reader, GROUP)
        } else {
            Vec::new()
        };
        if place & (HTTPS | SSL) != 0 && reader.text("cert-id").is_none() {
            reader.mistake(format!(
                "port {} needs a certificate: {}",
                port.port,
                TABLE.key("cert-id")
            ));
        }
        add_defaults(service, place, &mut of_listener, &mut of_group);
        ports.push(Port {
            port: port.port,
            protocol,
            node_port,
            listener: names.of_port(port.port, protocol),
            group: names.of_port(node_port, protocol),
            of_listener,
            of_group,
        });
    }
    ports
}

/// `protocol-port`: the protocol of each port that it names.
fn protocols(kind: Kind, reader: &mut Reader<'_>) -> BTreeMap<u16, (&'static str, Place)> {
    let (known, allowed): (&[(&'static str, Place)], _) = match kind {
        Kind::Clb => (
            &[("tcp", TCP), ("udp", UDP), ("http", HTTP), ("https", HTTPS)],
            "a list like https:443,http:80 of tcp, udp, http and https",
        ),
        Kind::Nlb => (
            &[("TCP", LISTENER), ("UDP", LISTENER), ("TCPSSL", SSL)],
            "a list like tcpssl:443,tcp:80 of tcp, udp and tcpssl",
        ),
    };
    let mut protocols = BTreeMap::new();
    for entry in reader.list("protocol-port").unwrap_or_default() {
        let found = entry.split_once(':').and_then(|(word, port)| {
            let protocol = known.iter().find(|(known, _)| known.eq_ignore_ascii_case(word))?;
            Some((port.parse().ok()?, *protocol))
        });
        match found {
            // UDP is what the port itself says.
            Some((_, ("udp" | "UDP", _))) => {}
            Some((port, protocol)) => drop(protocols.insert(port, protocol)),
            None => drop(reader.wrong::<()>("protocol-port", allowed)),
        }
    }
    protocols
}

/// What follows from the Service itself, where no annotation says otherwise.
fn add_defaults(service: &Service, place: Place, of_listener: &mut Vec<Field>, of_group: &mut Vec<Field>) {
    let add = |fields: &mut Vec<Field>, name: &'static str, value: String| {
        if fields.iter().all(|field| field.name != name) {
            fields.push(Field::one(name, value));
        }
    };
    let (affinity, nlb) = (service.session_affinity_seconds, place & NLB != 0);
    let scheduler = if affinity.is_some() && (nlb || place == UDP) {
        "sch"
    } else {
        "rr"
    };
    add(if nlb { of_group } else { of_listener }, "Scheduler", scheduler.into());
    if let (TCP, Some(seconds)) = (place, affinity) {
        add(of_listener, "PersistenceTimeout", seconds.min(PERSISTENCE).to_string());
    }
    let on_their_port = service
        .health_check_node_port
        .filter(|_| annotations::text(service, "health-check-type").is_none());
    if let Some(port) = on_their_port {
        // Which Nodes have Pods only kube-proxy tells.
        match place {
            TCP => {
                add(of_listener, "HealthCheckType", "http".into());
                add(of_listener, "HealthCheckConnectPort", port.to_string());
                add(of_listener, "HealthCheckURI", "/healthz".into());
            }
            HTTP | HTTPS => {
                add(of_listener, "HealthCheck", "on".into());
                add(of_listener, "HealthCheckConnectPort", port.to_string());
                add(of_listener, "HealthCheckURI", "/healthz".into());
            }
            LISTENER | SSL => {
                add(of_group, "HealthCheckConfig.HealthCheckType", "HTTP".into());
                add(of_group, "HealthCheckConfig.HealthCheckConnectPort", port.to_string());
                add(of_group, "HealthCheckConfig.HealthCheckUrl", "/healthz".into());
            }
            _ => {}
        }
    }
    if place & WEB != 0 {
        add(of_listener, "HealthCheck", "off".into());
        add(of_listener, "StickySession", "off".into());
    }
}
