//! The network security group: who may connect. A rule is for all addresses with the same protocol, ports and sources, so several Services share one.

use cloudwit_guest_sdk::prelude::*;
use md5::{Digest, Md5};
use serde_json::{Value, json};

use super::json::{items, items_mut, name, text};
use super::wanted::{Wanted, words};

const LIST: &str = "securityRules";

/// What the names of upstream's rules begin with.
const PREFIX: &str = "k8s-azure-lb_allow_";

/// Priorities that are given, from the first.
const PRIORITIES: std::ops::RangeInclusive<u64> = 500..=4096;

/// A rule as it is wanted, for one address.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    name: String,
    protocol: &'static str,
    sources: Vec<String>,
    ports: Vec<String>,
    to: String,
}

/// Port of an address that a Service has.
#[derive(Debug, PartialEq, Eq)]
pub struct Kept {
    pub protocol: String,
    pub port: u64,
    pub ip: String,
}

/// The rules of a Service, whose families have these addresses.
pub fn rules(wanted: &Wanted<'_>, ips: &[String]) -> Vec<Rule> {
    let mut rules = Vec::new();
    if !wanted.asked.with_rules {
        return rules;
    }
    for (front, to) in wanted.fronts.iter().zip(ips) {
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let of_protocol = wanted.service.ports.iter().filter(|port| port.protocol == protocol);
            let mut ports: Vec<String> = of_protocol.map(|port| port.port.to_string()).collect();
            ports.sort_unstable();
            ports.dedup();
            if ports.is_empty() {
                continue;
            }
            // A rule takes one service tag, or networks.
            let (networks, tags): (Vec<String>, Vec<String>) =
                front.sources.iter().cloned().partition(|source| source.contains('/'));
            let lists = tags.into_iter().map(|tag| vec![tag]).chain([networks]);
            for sources in lists.filter(|sources| !sources.is_empty()) {
                rules.push(Rule::new(front.v6, words(protocol).1, sources, ports.clone(), to));
            }
        }
    }
    rules
}

impl Rule {
    fn new(v6: bool, protocol: &'static str, sources: Vec<String>, ports: Vec<String>, to: &str) -> Self {
        let text = [protocol, &sources.join(","), &ports.join(",")].join("_");
        let hash = data_encoding::HEXLOWER.encode(&Md5::digest(text.as_bytes()));
        let family = if v6 { "IPv6" } else { "IPv4" };
        Self {
            name: format!("{PREFIX}{family}_{hash}"),
            protocol,
            sources,
            ports,
            to: to.into(),
        }
    }

    fn body(&self, priority: u64) -> Value {
        let mut properties = json!({
            "protocol": self.protocol, "access": "Allow", "direction": "Inbound", "priority": priority, "sourcePortRange": "*",
            "destinationPortRanges": self.ports, "destinationAddressPrefixes": [self.to],
        });
        match self.sources.as_slice() {
            [tag] if !tag.contains('/') => properties["sourceAddressPrefix"] = tag.as_str().into(),
            networks => properties["sourceAddressPrefixes"] = networks.into(),
        }
        json!({ "name": self.name, "properties": properties })
    }
}

/// A list that may be told as one value.
fn values<'a>(rule: &'a Value, list: &str, one: &str) -> Vec<&'a str> {
    let mut all: Vec<&str> = items(rule, list).iter().filter_map(Value::as_str).collect();
    all.extend(Some(text(rule, one)).filter(|one| !one.is_empty()));
    all
}

/// Makes the group have these rules, and no others of the Service's addresses but those that others need; whether that is a change.
///
/// # Errors
/// `exhausted` where no priority is free.
pub fn allow(group: &mut Value, rules: &[Rule], own: &[String], kept: &[Kept]) -> Result<bool, Failure> {
    let mut changed = false;
    let Some(list) = items_mut(group, LIST) else {
        return Err(Failure::other("the network security group is no object"));
    };
    for rule in list.iter_mut().filter(|rule| name(rule).starts_with(PREFIX)) {
        let ports = values(rule, "destinationPortRanges", "destinationPortRange");
        let protocol = text(rule, "protocol");
        let stays = |ip: &str| {
            let of_other = |kept: &Kept| {
                kept.ip == ip
                    && kept.protocol.eq_ignore_ascii_case(protocol)
                    && ports.iter().any(|port| port.parse() == Ok(kept.port))
            };
            let wanted = |one: &Rule| one.to == ip && one.name == name(rule);
            !own.iter().any(|own| own == ip) || rules.iter().any(wanted) || kept.iter().any(of_other)
        };
        let now = values(rule, "destinationAddressPrefixes", "destinationAddressPrefix");
        let mut left: Vec<String> = now.iter().filter(|ip| stays(ip)).map(|ip| (*ip).to_owned()).collect();
        let missing = rules
            .iter()
            .filter(|one| one.name == name(rule) && !left.contains(&one.to));
        let missing: Vec<String> = missing.map(|one| one.to.clone()).collect();
        if missing.is_empty() && left.len() == now.len() {
            continue;
        }
        left.extend(missing);
        left.sort_unstable();
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
        let taken = |priority: &u64| {
            let inbound = |one: &Value| !text(one, "direction").eq_ignore_ascii_case("Outbound");
            let mut all = list.iter().filter(|one| inbound(one));
            all.any(|one| one.pointer("/properties/priority").and_then(Value::as_u64) == Some(*priority))
        };
        let Some(priority) = PRIORITIES.clone().find(|priority| !taken(priority)) else {
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
