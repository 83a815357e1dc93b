//! The network security group: who may connect. A rule is for all destinations with the same protocol, ports and sources, so several Services share one.

use std::collections::BTreeSet;

use cloudwit_guest_sdk::prelude::*;
use md5::{Digest, Md5};
use serde_json::{Value, json};

use super::json::{items, items_mut, name, text};
use super::wanted::{Front, Wanted, words};

const LIST: &str = "securityRules";

/// What the names of upstream's rules begin with.
const PREFIX: &str = "k8s-azure-lb_";

/// Priorities that are given: to rules that allow from the first, to those that deny from the one before the last, as upstream does.
const PRIORITIES: std::ops::RangeInclusive<u64> = 500..=4096;

/// Protocol of rules for all protocols.
const ANY: &str = "*";

/// A desired rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    name: String,
    /// Destinations, in order: the address of the load balancer, or those of the Nodes.
    to: Vec<String>,
    is_for_nodes: bool,
    denies: bool,
    /// All but priority, direction and destinations.
    properties: Value,
}

/// Port that another Service has.
#[derive(Debug, PartialEq, Eq)]
pub struct Kept {
    pub protocol: String,
    pub port: u64,
    /// None: of the Nodes.
    pub ip: Option<String>,
}

/// Owners of the destinations of rules.
#[derive(Debug, Default)]
pub struct Owners {
    /// Addresses of the Service.
    pub own: BTreeSet<String>,
    /// Addresses of the Nodes.
    pub nodes: BTreeSet<String>,
    /// Protocol and port of the Service's rules that lead to the Nodes.
    pub node_ports: Vec<(String, u64)>,
    pub kept: Vec<Kept>,
}

/// The rules of a Service, whose families have these addresses.
pub fn rules(wanted: &Wanted<'_>, ips: &[String]) -> Vec<Rule> {
    let mut rules = Vec::new();
    if !wanted.asked.with_rules {
        return rules;
    }
    // Networks of one family exclude those of the other too.
    let mut sources = wanted.fronts.iter().flat_map(|front| &front.sources);
    let denies = wanted.asked.deny_others && sources.any(|source| source.contains('/'));
    for (front, ip) in wanted.fronts.iter().zip(ips) {
        let to = if front.is_floating {
            vec![ip.clone()]
        } else {
            front.nodes.clone()
        };
        if to.is_empty() {
            continue;
        }
        // A rule takes one service tag, or networks.
        let (networks, tags): (Vec<String>, Vec<String>) =
            front.sources.iter().cloned().partition(|source| source.contains('/'));
        let lists = tags.into_iter().map(|tag| vec![tag]).chain([networks]);
        let lists: Vec<Vec<String>> = lists.filter(|sources| !sources.is_empty()).collect();
        for protocol in [Protocol::Tcp, Protocol::Udp, Protocol::Sctp] {
            let ports = ports(wanted, front, protocol);
            for sources in lists.iter().filter(|_| !ports.is_empty()) {
                rules.push(Rule::allowing(front, protocol, sources, &ports, &to));
            }
        }
        if denies {
            rules.push(Rule::denying(front, &to));
        }
    }
    rules
}

/// Ports that packets are for.
fn ports(wanted: &Wanted<'_>, front: &Front, protocol: Protocol) -> Vec<String> {
    let of_protocol = wanted.service.ports.iter().filter(|port| port.protocol == protocol);
    let numbers = of_protocol.filter_map(|port| match front.is_floating {
        true => Some(port.port),
        false => port.node_port,
    });
    let mut ports: Vec<String> = numbers.map(|number| number.to_string()).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

fn family(front: &Front) -> &'static str {
    if front.v6 { "IPv6" } else { "IPv4" }
}

impl Rule {
    fn allowing(front: &Front, protocol: Protocol, sources: &[String], ports: &[String], to: &[String]) -> Self {
        // Security rules have no word for SCTP.
        let protocol = if protocol == Protocol::Sctp {
            ANY
        } else {
            words(protocol).1
        };
        let text = [protocol, &sources.join(","), &ports.join(",")].join("_");
        let hash = data_encoding::HEXLOWER.encode(&Md5::digest(text.as_bytes()));
        let mut properties =
            json!({ "protocol": protocol, "access": "Allow", "sourcePortRange": "*", "destinationPortRanges": ports });
        match sources {
            [tag] if !tag.contains('/') => properties["sourceAddressPrefix"] = tag.as_str().into(),
            networks => properties["sourceAddressPrefixes"] = networks.into(),
        }
        Self {
            name: format!("{PREFIX}allow_{}_{hash}", family(front)),
            to: to.to_vec(),
            is_for_nodes: !front.is_floating,
            denies: false,
            properties,
        }
    }

    /// For what the rules that allow leave: traffic of the virtual network, which is open by default.
    fn denying(front: &Front, to: &[String]) -> Self {
        Self {
            name: format!("{PREFIX}deny-all_{}", family(front)),
            to: to.to_vec(),
            is_for_nodes: !front.is_floating,
            denies: true,
            properties: json!({
                "protocol": ANY, "access": "Deny", "sourceAddressPrefix": "*", "sourcePortRange": "*", "destinationPortRange": "*",
            }),
        }
    }

    fn body(&self, priority: u64) -> Value {
        let mut properties = self.properties.clone();
        properties["direction"] = "Inbound".into();
        properties["priority"] = priority.into();
        properties["destinationAddressPrefixes"] = self.to.as_slice().into();
        json!({ "name": self.name, "properties": properties })
    }
}

/// A list that may be given as one value.
fn values<'a>(rule: &'a Value, list: &str, one: &str) -> Vec<&'a str> {
    let mut all: Vec<&str> = items(rule, list).iter().filter_map(Value::as_str).collect();
    all.extend(Some(text(rule, one)).filter(|one| !one.is_empty()));
    all
}

impl Owners {
    /// Destinations that a rule of the group is to have; `wanted` is the one of the Service with its name.
    fn left(&self, rule: &Value, wanted: Option<&Rule>) -> Vec<String> {
        let ports = values(rule, "destinationPortRanges", "destinationPortRange");
        let protocol = text(rule, "protocol");
        let denies = text(rule, "access").eq_ignore_ascii_case("Deny");
        let now = values(rule, "destinationAddressPrefixes", "destinationAddressPrefix");
        // Rules for Nodes have node ports of one Service: addresses that are no Node's any more are removed.
        let has = |other: &str, number: u64| {
            other.eq_ignore_ascii_case(protocol) && ports.iter().any(|port| port.parse() == Ok(number))
        };
        let mut node_ports = self.node_ports.iter();
        let for_nodes = wanted.is_some_and(|wanted| wanted.is_for_nodes)
            || now.iter().any(|ip| self.nodes.contains(*ip))
            || node_ports.any(|(protocol, number)| has(protocol, *number));
        let of_other = |ip: &str| {
            let mut kept = self.kept.iter();
            kept.any(|kept| {
                let is_to = kept
                    .ip
                    .as_deref()
                    .map_or_else(|| self.nodes.contains(ip), |kept| kept == ip);
                is_to && (denies || has(&kept.protocol, kept.port))
            })
        };
        let stays = |ip: &&&str| !(for_nodes || self.own.contains(**ip)) || of_other(ip);
        let mut left: Vec<String> = now.iter().filter(stays).map(|ip| (*ip).to_owned()).collect();
        left.extend(wanted.into_iter().flat_map(|wanted| wanted.to.iter().cloned()));
        left.sort_unstable();
        left.dedup();
        left
    }
}

/// Makes the group have these rules, and no others of the Service's addresses but those that others need; whether that is a change.
///
/// # Errors
/// `exhausted` where no priority is free.
pub fn allow(group: &mut Value, rules: &[Rule], owners: &Owners) -> Result<bool, Failure> {
    let mut changed = false;
    let Some(list) = items_mut(group, LIST) else {
        return Err(Failure::other("the network security group is no object"));
    };
    for rule in list.iter_mut().filter(|rule| name(rule).starts_with(PREFIX)) {
        let wanted = rules.iter().find(|one| one.name == name(rule));
        let left = owners.left(rule, wanted);
        let mut now = values(rule, "destinationAddressPrefixes", "destinationAddressPrefix");
        now.sort_unstable();
        if now.iter().eq(left.iter()) {
            continue;
        }
        changed = true;
        if let Some(properties) = rule.get_mut("properties").and_then(Value::as_object_mut) {
            properties.remove("destinationAddressPrefix");
            properties.insert("destinationAddressPrefixes".into(), left.into());
        }
    }
    let without_destination = |rule: &Value| {
        name(rule).starts_with(PREFIX)
            && rule.pointer("/properties/destinationAddressPrefixes") == Some(&json!([]))
            && text(rule, "destinationAddressPrefix").is_empty()
            && items(rule, "destinationApplicationSecurityGroups").is_empty()
    };
    list.retain(|rule| !without_destination(rule));
    for rule in rules {
        if list.iter().any(|one| name(one) == rule.name) {
            continue;
        }
        let free = |priority: &u64| {
            let inbound = |one: &Value| !text(one, "direction").eq_ignore_ascii_case("Outbound");
            let mut all = list.iter().filter(|one| inbound(one));
            !all.any(|one| one.pointer("/properties/priority").and_then(Value::as_u64) == Some(*priority))
        };
        let found = if rule.denies {
            PRIORITIES.rev().skip(1).find(free)
        } else {
            PRIORITIES.clone().find(free)
        };
        let Some(priority) = found else {
            let text = "no priority of the network security group is free; remove rules of it";
            return Err(Failure::exhausted(text));
        };
        list.push(rule.body(priority));
        changed = true;
    }
    Ok(changed)
}

#[cfg(test)]
mod tests;
