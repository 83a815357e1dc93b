//! Which ingress rules a security group should have. Pure: groups in, steps out.
//!
//! Two kinds of groups. A load balancer's own group holds exactly what its Service requests ([`exact`]). The groups of the nodes belong to
//! the operator: there, only rules that are marked as Cloudwit's are added and removed ([`node_rules_classic`], [`node_rules_network`]).

use cloudwit_guest_sdk::reconcile::{Diff, diff};

use crate::balancers::security_groups::{Group, Rule, Source, authorize, revoke};
use crate::balancers::steps::Step;

/// How the texts of our rules in the nodes' groups begin (`clouds/aws.md`); `=` and the load balancer's name follow but for MTU.
pub const CLIENT: &str = "kubernetes.io/rule/nlb/client";
/// Rules that let health checks in.
pub const HEALTH: &str = "kubernetes.io/rule/nlb/health";
/// Rules that let ICMP "fragmentation needed" in; one for each client range, shared by all load balancers.
pub const MTU: &str = "kubernetes.io/rule/nlb/mtu";

/// The rules of a load balancer's own group: each port from each range, and path MTU discovery.
pub fn front_rules<'a>(ports: impl Iterator<Item = (&'a str, u16)>, ranges: &[String]) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    let mut add = |rule: Rule| {
        if !rule.is_in(&rules) {
            rules.push(rule);
        }
    };
    for (protocol, port) in ports {
        for range in ranges {
            add(Rule::port(protocol, port, Source::range(range)));
        }
    }
    for range in ranges.iter().filter(|range| !range.contains(':')) {
        add(Rule::mtu(Source::range(range)));
    }
    rules
}

/// Makes the group hold exactly these rules: first missing ones are added, then surplus ones removed, so that desired traffic is never blocked.
pub fn exact(group: &Group, wanted: &[Rule]) -> Vec<Step> {
    let Diff { create, delete, .. } = diff(wanted, &group.rules, Rule::same, |_, _| true);
    change(&group.id, &create, &delete)
}

/// The nodes' groups let everything in from the load balancer's group: `wanted` are the ids of the nodes' groups, `seen` what is observed
/// of them and of groups that trust the load balancer still.
pub fn node_rules_classic(seen: &[Group], wanted: &[String], balancer_group: &str) -> Vec<Step> {
    let rule = Rule::all_from_group(balancer_group);
    let mut steps = Vec::new();
    for group in seen {
        let has = rule.is_in(&group.rules);
        if wanted.contains(&group.id) && !has {
            steps.push(authorize(&group.id, &[&rule]));
        } else if !wanted.contains(&group.id) && has && group.id != balancer_group {
            steps.push(revoke(&group.id, &[&rule]));
        }
    }
    steps
}

/// Takes a group that will be deleted out of every rule of the others: the cloud deletes none that is still named.
pub fn distrust(seen: &[Group], group: &str) -> Vec<Step> {
    let source = Source::Group(group.into());
    let others = seen.iter().filter(|one| one.id != group);
    let revocation = |one: &Group| {
        let rules: Vec<&Rule> = one.rules.iter().filter(|rule| rule.source == source).collect();
        (!rules.is_empty()).then(|| revoke(&one.id, &rules))
    };
    others.filter_map(revocation).collect()
}

/// What a network load balancer needs of the nodes' groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeTraffic {
    /// The load balancer's name.
    pub balancer: String,
    /// `tcp` or `udp`.
    pub protocol: &'static str,
    /// Node ports that clients reach.
    pub ports: Vec<u16>,
    /// Ports of health checks.
    pub health_ports: Vec<u16>,
    /// Who may connect; clients keep their addresses all the way to the node.
    pub clients: Vec<String>,
    /// Ranges of the load balancer's subnets, where health checks come from.
    pub subnets: Vec<String>,
    /// The port that all load balancers check the nodes' health on, where the operator chose so.
    pub shared_health_port: Option<u16>,
}

/// Brings one of the nodes' groups to let this traffic in, or (`open` is false) to have nothing of it.
pub fn node_rules_network(group: &Group, traffic: &NodeTraffic, open: bool) -> Vec<Step> {
    let client = format!("{CLIENT}={}", traffic.balancer);
    let health = format!("{HEALTH}={}", traffic.balancer);
    let mut wanted: Vec<Rule> = Vec::new();
    if open {
        wanted.extend(rules(traffic.protocol, &traffic.ports, &traffic.clients, &client));
        // Health checks are clients like any other when every address may connect to the very ports that are checked.
        let everybody = traffic.protocol == "tcp" && traffic.clients.iter().any(|range| range == "0.0.0.0/0");
        let unchecked = traffic
            .health_ports
            .iter()
            .filter(|port| !(everybody && traffic.ports.contains(port)));
        let unchecked: Vec<u16> = unchecked.copied().collect();
        wanted.extend(rules("tcp", &unchecked, &traffic.subnets, &health));
    }
    let others = |rule: &&Rule| rule.description.starts_with(CLIENT) && rule.description != client;
    let shared = match group.rules.iter().any(|rule| others(&rule)) {
        true => traffic.shared_health_port,
        false => None,
    };
    let ours = |rule: &Rule| rule.description == client || rule.description == health || orphaned(rule, traffic);
    let stale = |rule: &&Rule| ours(rule) && !rule.is_in(&wanted) && shared.map(i32::from) != Some(rule.from);
    let mut extra: Vec<&Rule> = group.rules.iter().filter(stale).collect();
    let mut missing = diff(&wanted, &group.rules, Rule::same, |_, _| true).create;

    let kept = group
        .rules
        .iter()
        .filter(|rule| !extra.iter().any(|one| one.same(rule)));
    let after: Vec<&Rule> = kept
        .chain(missing.iter().copied())
        .filter(|rule| rule.description.starts_with(CLIENT))
        .collect();
    let mut mtu: Vec<Rule> = Vec::new();
    for rule in after {
        let mtu_rule = Rule::mtu(rule.source.clone()).described(MTU);
        if matches!(rule.source, Source::Ipv4(_)) && !mtu_rule.is_in(&mtu) {
            mtu.push(mtu_rule);
        }
    }
    let shown = group.rules.iter().filter(|rule| rule.description == MTU);
    extra.extend(shown.filter(|rule| !rule.is_in(&mtu)));
    missing.extend(mtu.iter().filter(|rule| !rule.is_in(&group.rules)));
    change(&group.id, &missing, &extra)
}

/// Health checks on the shared port need one rule for all load balancers, under the name of whichever came first; the last one that goes
/// takes it along.
fn orphaned(rule: &Rule, traffic: &NodeTraffic) -> bool {
    rule.description.starts_with(HEALTH) && traffic.shared_health_port.map(i32::from) == Some(rule.from)
}

fn rules<'a>(
    protocol: &'a str,
    ports: &'a [u16],
    ranges: &'a [String],
    text: &'a str,
) -> impl Iterator<Item = Rule> + 'a {
    ports.iter().flat_map(move |port| {
        ranges
            .iter()
            .map(move |range| Rule::port(protocol, *port, Source::range(range)).described(text))
    })
}

fn change(group: &str, missing: &[&Rule], extra: &[&Rule]) -> Vec<Step> {
    let mut steps = Vec::new();
    if !missing.is_empty() {
        steps.push(authorize(group, missing));
    }
    if !extra.is_empty() {
        steps.push(revoke(group, extra));
    }
    steps
}

#[cfg(test)]
mod tests;
