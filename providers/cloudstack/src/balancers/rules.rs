//! Load balancer rules and their machines: what differs from the desired state. Pure.

use super::seen::Rule;
use super::wanted::{Port, Wanted};
use crate::api::{Call, wire};

/// Most machines in one call.
const MACHINES: usize = 500;

/// What has to be done about the rules.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Differences<'a> {
    /// Not desired, or not to be changed into the desired one.
    pub delete: Vec<&'a Rule>,
    pub create: Vec<&'a Port>,
    pub update: Vec<&'a Rule>,
    /// Rules that stay, changed or not.
    pub keep: Vec<&'a Rule>,
}

/// The rules of a load balancer among all whose names contain its name.
pub fn of_balancer(rules: Vec<Rule>, name: &str) -> Vec<Rule> {
    let start = format!("{name}-");
    rules.into_iter().filter(|rule| rule.name.starts_with(&start)).collect()
}

/// Whether a rule takes traffic from other networks than the desired ones. Without any it takes it from everywhere.
pub fn other_networks(rule: &Rule, wanted: &Wanted<'_>) -> bool {
    let mut found = wire::networks(&rule.cidrlist);
    if found.is_empty() {
        found.push("0.0.0.0/0".into());
    }
    found != wanted.cidrs
}

/// Compares. `renews_networks`: whether the cloud can change the networks of a rule (4.22 and later).
pub fn compare<'a>(wanted: &'a Wanted<'_>, rules: &'a [Rule], address: &str, renews_networks: bool) -> Differences<'a> {
    let mut found = Differences::default();
    for rule in rules {
        let port = wanted.ports.iter().find(|port| port.rule == rule.name);
        // One that is revoked is deleted again: its job may be lost.
        let stays = port.is_some_and(|port| {
            rule.state != "Revoke"
                && rule.publicipid == address
                && rule.publicport == port.port.to_string()
                && rule.privateport == port.node_port.to_string()
                && (renews_networks || !other_networks(rule, wanted))
        });
        match port {
            Some(port) if stays => {
                let same = rule.algorithm == wanted.algorithm && rule.protocol == port.rule_protocol;
                if !same || other_networks(rule, wanted) {
                    found.update.push(rule);
                }
                found.keep.push(rule);
            }
            _ => found.delete.push(rule),
        }
    }
    let there = |port: &&Port| !rules.iter().any(|rule| rule.name == port.rule);
    found.create = wanted.ports.iter().filter(there).collect();
    found
}

/// Creates the rule of a port.
pub fn create(wanted: &Wanted<'_>, port: &Port, address: &str, network: &str) -> Call {
    Call::new("createLoadBalancerRule")
        .field("name", &port.rule)
        .field("algorithm", wanted.algorithm)
        .field("protocol", port.rule_protocol)
        .field("publicport", port.port)
        .field("privateport", port.node_port)
        .field("publicipid", address)
        .field("networkid", network)
        .list("cidrlist", &wanted.cidrs)
        // The firewall's rules are made by themselves.
        .field("openfirewall", "false")
}

/// Changes a rule.
pub fn update(wanted: &Wanted<'_>, rule: &Rule, renews_networks: bool) -> Call {
    let call = Call::new("updateLoadBalancerRule")
        .field("id", &rule.id)
        .field("algorithm", wanted.algorithm);
    let port = wanted.ports.iter().find(|port| port.rule == rule.name);
    let call = call.opt("protocol", port.map(|port| port.rule_protocol));
    match renews_networks {
        true => call.list("cidrlist", &wanted.cidrs),
        false => call,
    }
}

/// Deletes a rule.
pub fn delete(rule: &Rule) -> Call {
    Call::new("deleteLoadBalancerRule").field("id", &rule.id)
}

/// Brings the machines of a rule from the observed ones to the desired ones; both are sorted.
pub fn members(rule: &Rule, there: &[String], wanted: &[String]) -> Vec<Call> {
    let but = |some: &[String], others: &[String]| -> Vec<String> {
        some.iter()
            .filter(|id| others.binary_search(id).is_err())
            .cloned()
            .collect()
    };
    let call = |command, ids: &[String]| Call::new(command).field("id", &rule.id).list("virtualmachineids", ids);
    let (add, remove) = (but(wanted, there), but(there, wanted));
    let added = add.chunks(MACHINES).map(|ids| call("assignToLoadBalancerRule", ids));
    let removed = remove
        .chunks(MACHINES)
        .map(|ids| call("removeFromLoadBalancerRule", ids));
    added.chain(removed).collect()
}
