//! The security group that opens node ports to the load balancer: which rules and which ports it shall have. Pure.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::diff;
use serde_json::Value;

use crate::api::wire::{Fields, Object, Read};
use crate::balancers::change::Change;
use crate::balancers::wanted::Wanted;

/// A rule for traffic that comes in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// `tcp`, `udp` or `sctp`.
    pub protocol: String,
    /// Port.
    pub port: i64,
    /// From where, as a CIDR.
    pub from: String,
}

/// A group and its rules for traffic that comes in, with their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    /// Id.
    pub id: String,
    /// Rules; those that are not for one port of one protocol are foreign.
    pub rules: Vec<(String, Option<Rule>)>,
}

impl Group {
    /// Reads one of Neutron's.
    pub fn read(json: &Value) -> Read<Self> {
        let incoming = json
            .items("security_group_rules")
            .iter()
            .filter(|rule| rule.text("direction") == Some("ingress"));
        Ok(Self {
            id: json.need("id")?,
            rules: incoming
                .map(|rule| Ok((rule.need("id")?, Rule::read(rule))))
                .collect::<Read<_>>()?,
        })
    }
}

impl Rule {
    fn read(json: &Value) -> Option<Self> {
        let port = json.number("port_range_min")?;
        (json.number("port_range_max") == Some(port)).then_some(())?;
        Some(Self {
            protocol: json.text("protocol")?.into(),
            port,
            from: json.text("remote_ip_prefix")?.into(),
        })
    }

    fn create(&self, group: &str) -> Change {
        let body = Object::new()
            .text("security_group_id", group)
            .text("direction", "ingress")
            .text("ethertype", if self.from.contains(':') { "IPv6" } else { "IPv4" })
            .text("protocol", &self.protocol)
            .number("port_range_min", self.port)
            .number("port_range_max", self.port)
            .text("remote_ip_prefix", &self.from);
        let body = Object::new().object("security_group_rule", body);
        Change::network("POST", "security-group-rules", Some(body), "opening a node port")
    }
}

/// The rules for all node ports, and the port of the health checks, from these networks.
pub fn rules(service: &Service, health_port: Option<i64>, from: &[String]) -> Vec<Rule> {
    let protocol = |port: &ServicePort| match port.protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
        Protocol::Sctp => "sctp",
    };
    let mut ports = Vec::new();
    for port in &service.ports {
        if let Some(node_port) = port.node_port {
            ports.push((protocol(port), i64::from(node_port)));
        }
    }
    if let Some(port) = health_port {
        ports.push(("tcp", port));
    }
    let mut rules = Vec::new();
    for (protocol, port) in ports {
        for from in from {
            let rule = Rule {
                protocol: protocol.into(),
                port,
                from: from.clone(),
            };
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
    }
    rules
}

/// What makes the group's rules these: first what is missing, then what is too much.
pub fn rule_changes(group: &Group, wanted: &[Rule]) -> Vec<Change> {
    let is = |rule: &Rule, (_, there): &(String, Option<Rule>)| there.as_ref() == Some(rule);
    let rules = diff(wanted, &group.rules, is, |_, _| true);
    let creations = rules.create.iter().map(|rule| rule.create(&group.id));
    let deletions = rules.delete.iter().map(|(id, _)| {
        let path = format!("security-group-rules/{id}");
        Change::network("DELETE", &path, None, "closing a node port")
    });
    creations.chain(deletions).collect()
}

/// A port of a server, as far as its groups matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerPort {
    /// Id.
    pub id: String,
    /// The server.
    pub device_id: String,
    /// Addresses.
    pub ips: Vec<String>,
    /// Its groups.
    pub groups: Vec<String>,
    /// Whether it can have groups.
    pub secured: bool,
    /// Grows with each change.
    pub revision: Option<i64>,
}

impl ServerPort {
    /// Reads one of Neutron's.
    pub fn read(json: &Value) -> Read<Self> {
        Ok(Self {
            id: json.need("id")?,
            device_id: json.text_or_empty("device_id"),
            ips: json
                .items("fixed_ips")
                .iter()
                .filter_map(|ip| ip.text("ip_address").map(String::from))
                .collect(),
            groups: json.texts("security_groups"),
            // Without the extension every port can.
            secured: json
                .field("port_security_enabled")
                .is_none_or(|value| *value == Value::Bool(true)),
            revision: json.number("revision_number"),
        })
    }

    /// Puts the group on it; none when it is there or cannot be.
    pub fn with(&self, group: &str) -> Option<Change> {
        let mut groups: Vec<&str> = self.groups.iter().map(String::as_str).collect();
        if !self.secured || groups.contains(&group) {
            return None;
        }
        groups.push(group);
        Some(self.set(groups, "opening a node"))
    }

    /// Takes the group off it.
    pub fn without(&self, group: &str) -> Change {
        let mut groups: Vec<&str> = self.groups.iter().map(String::as_str).collect();
        groups.retain(|other| *other != group);
        self.set(groups, "closing a node")
    }

    fn set(&self, groups: Vec<&str>, doing: &'static str) -> Change {
        let body = Object::new().object("port", Object::new().texts("security_groups", groups));
        let change = Change::network("PUT", &format!("ports/{}", self.id), Some(body), doing);
        match self.revision {
            Some(revision) => change.at_revision(revision),
            None => change,
        }
    }
}

/// The addresses of all members.
pub fn member_addresses<'w>(wanted: &'w Wanted<'_>) -> Vec<&'w str> {
    let members = wanted.ports.iter().flat_map(|port| &port.members);
    let mut addresses: Vec<&str> = members.map(|member| member.address.as_str()).collect();
    addresses.sort();
    addresses.dedup();
    addresses
}

#[cfg(test)]
mod tests;
