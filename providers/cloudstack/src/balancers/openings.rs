//! What lets traffic in: rules of the firewall of an address, or of the ACL of a network in a VPC. Pure.

use super::seen::{Opening, Rule};
use super::wanted::Wanted;
use crate::api::{Call, wire};

/// ACLs of CloudStack itself, which cannot be changed.
pub const DEFAULT_ACLS: [&str; 2] = ["default_allow", "default_deny"];

/// The protocols and ports of a Service, each once.
fn ports(wanted: &Wanted<'_>) -> Vec<(&'static str, String)> {
    let mut ports: Vec<_> = wanted
        .ports
        .iter()
        .map(|port| (port.protocol, port.port.to_string()))
        .collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Changes of the firewall of an address: for each port one rule with the desired networks. What is in the way goes first: rules of one port
/// conflict with each other.
pub fn firewall(wanted: &Wanted<'_>, there: &[Opening], address: &str) -> Vec<Call> {
    let open_to = wanted.open_to();
    let mut calls = Vec::new();
    for (protocol, port) in ports(wanted) {
        let of_port = || there.iter().filter(|rule| rule.is_of(protocol, &port));
        let right = |rule: &&Opening| wire::networks(&rule.cidrlist) == open_to;
        let kept = of_port().find(right).map(|rule| &rule.id);
        let wrong: Vec<Call> = of_port()
            .filter(|rule| Some(&rule.id) != kept)
            .map(close_firewall)
            .collect();
        if kept.is_none() && wrong.is_empty() {
            let call = Call::new("createFirewallRule")
                .field("ipaddressid", address)
                .field("protocol", protocol)
                .field("startport", &port)
                .field("endport", &port);
            calls.push(call.list("cidrlist", &open_to));
        }
        calls.extend(wrong);
    }
    calls
}

/// Changes of an ACL: for each port one rule of Cloudwit's, unless upstream made one already. Those of others stay.
pub fn acl(wanted: &Wanted<'_>, there: &[Opening], acl: &str, network: &str) -> Vec<Call> {
    let open_to = wanted.open_to();
    let mut calls = Vec::new();
    for (protocol, port) in ports(wanted) {
        let right = |rule: &&Opening| wire::networks(&rule.cidrlist) == open_to;
        let own = || {
            there
                .iter()
                .filter(|rule| rule.is_of(protocol, &port) && is_own(rule, &wanted.name))
        };
        let kept = own().find(right).map(|rule| &rule.id);
        let upstreams = || {
            there
                .iter()
                .filter(|rule| rule.is_of(protocol, &port) && is_upstreams(rule))
        };
        if kept.is_none() && !upstreams().any(|rule| right(&rule)) {
            let call = Call::new("createNetworkACL")
                .field("aclid", acl)
                .field("networkid", network)
                .field("action", "Allow")
                .field("traffictype", "Ingress")
                .field("protocol", protocol)
                .field("startport", &port)
                .field("endport", &port)
                .field("reason", &wanted.name);
            calls.push(call.list("cidrlist", &open_to));
        }
        let wrong = own().filter(|rule| Some(&rule.id) != kept);
        calls.extend(wrong.map(close_acl));
    }
    calls
}

/// Rules of the firewall for the ports of these load balancer rules, but for the desired ones.
pub fn left_in_firewall(rules: &[&Rule], there: &[Opening], wanted: Option<&Wanted<'_>>) -> Vec<Call> {
    let left = there
        .iter()
        .filter(|rule| is_for(rule, rules) && !is_wanted(rule, wanted));
    left.map(close_firewall).collect()
}

/// The same of an ACL. `shared`: rules of other load balancers in the network, which need what upstream made for a port.
pub fn left_in_acl(
    name: &str,
    rules: &[&Rule],
    there: &[Opening],
    wanted: Option<&Wanted<'_>>,
    shared: &[Rule],
) -> Vec<Call> {
    let shared: Vec<&Rule> = shared.iter().collect();
    let goes = |rule: &&Opening| {
        is_for(rule, rules)
            && !is_wanted(rule, wanted)
            && (is_own(rule, name) || (is_upstreams(rule) && !is_for(rule, &shared)))
    };
    there.iter().filter(goes).map(close_acl).collect()
}

/// Whether upstream made one for a port of these rules, which others may need too.
pub fn has_upstreams(rules: &[&Rule], there: &[Opening]) -> bool {
    there.iter().any(|rule| is_for(rule, rules) && is_upstreams(rule))
}

fn is_for(rule: &Opening, rules: &[&Rule]) -> bool {
    rules.iter().any(|of| rule.is_of(of.transport(), &of.publicport))
}

fn is_wanted(rule: &Opening, wanted: Option<&Wanted<'_>>) -> bool {
    let ports = wanted.map(ports).unwrap_or_default();
    ports.iter().any(|(protocol, port)| rule.is_of(protocol, port))
}

/// Of an ACL: Cloudwit's have the load balancer's name.
fn is_own(rule: &Opening, name: &str) -> bool {
    rule.reason.as_deref() == Some(name)
}

/// Of an ACL: upstream admits all and sets no reason.
fn is_upstreams(rule: &Opening) -> bool {
    rule.reason.as_deref().unwrap_or_default().is_empty()
        && rule.action.eq_ignore_ascii_case("Allow")
        && rule.traffictype.eq_ignore_ascii_case("Ingress")
        && wire::networks(&rule.cidrlist) == ["0.0.0.0/0"]
}

fn close_firewall(rule: &Opening) -> Call {
    Call::new("deleteFirewallRule").field("id", &rule.id)
}

fn close_acl(rule: &Opening) -> Call {
    Call::new("deleteNetworkACL").field("id", &rule.id)
}
