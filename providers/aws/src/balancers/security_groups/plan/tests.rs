//! Rules: what is added and what is taken away.

use super::*;
use crate::balancers::steps::Step;

fn group(id: &str, rules: Vec<Rule>) -> Group {
    Group {
        id: id.into(),
        name: id.into(),
        tags: Vec::new(),
        rules,
    }
}

fn range(protocol: &str, port: u16, cidr: &str) -> Rule {
    Rule::port(protocol, port, Source::range(cidr))
}

fn traffic() -> NodeTraffic {
    NodeTraffic {
        balancer: "lb".into(),
        protocol: "tcp",
        ports: vec![30080],
        health_ports: vec![30080],
        clients: vec!["192.0.2.0/24".into()],
        subnets: vec!["10.0.0.0/24".into()],
        shared_health_port: None,
    }
}

fn texts(steps: &[Step]) -> Vec<String> {
    steps.iter().map(Step::text).collect()
}

/// The group after these steps, as far as its rules were made here.
fn after(group: &Group, traffic: &NodeTraffic, open: bool) -> Group {
    let mut group = group.clone();
    for step in node_rules_network(&group.clone(), traffic, open) {
        let changed = rules_of(&step);
        if step.action.starts_with("Authorize") {
            group.rules.extend(changed);
        } else {
            group.rules.retain(|rule| !rule.is_in(&changed));
        }
    }
    group
}

/// Reads a step's rules back.
fn rules_of(step: &Step) -> Vec<Rule> {
    let body = step.form.encode();
    let fields: Vec<(String, String)> = body
        .split('&')
        .map(|field| field.split_once('=').unwrap())
        .map(|(name, value)| {
            (
                name.to_owned(),
                value.replace("%2F", "/").replace("%3D", "=").replace("%3A", ":"),
            )
        })
        .collect();
    let field = |number: usize, name: &str| {
        let name = format!("IpPermissions.{number}.{name}");
        fields
            .iter()
            .find(|(field, _)| *field == name)
            .map(|(_, value)| value.clone())
    };
    (1..)
        .map_while(|number| {
            let cidr = field(number, "IpRanges.1.CidrIp").or(field(number, "Ipv6Ranges.1.CidrIpv6"))?;
            let text = field(number, "IpRanges.1.Description").or(field(number, "Ipv6Ranges.1.Description"));
            Some(Rule {
                protocol: field(number, "IpProtocol")?,
                from: field(number, "FromPort")?.parse().unwrap(),
                to: field(number, "ToPort")?.parse().unwrap(),
                source: Source::range(&cidr),
                description: text.unwrap_or_default(),
            })
        })
        .collect()
}

#[test]
fn a_load_balancers_own_group_holds_exactly_its_rules() {
    let wanted = front_rules(
        [("tcp", 80), ("tcp", 443), ("tcp", 80)].into_iter(),
        &["192.0.2.0/24".into(), "2001:db8::/32".into()],
    );
    assert_eq!(
        wanted.len(),
        5,
        "two ports from two ranges and one rule for MTU: {wanted:?}"
    );
    let own = group("sg-lb", wanted.clone());
    assert_eq!(exact(&own, &wanted), []);
    let mut edited = own.clone();
    edited.rules.remove(0);
    edited.rules.push(range("tcp", 22, "0.0.0.0/0"));
    assert_eq!(
        texts(&exact(&edited, &wanted)),
        [
            "AuthorizeSecurityGroupIngress&GroupId=sg-lb&IpPermissions.1.IpProtocol=tcp&IpPermissions.1.FromPort=80\
             &IpPermissions.1.ToPort=80&IpPermissions.1.IpRanges.1.CidrIp=192.0.2.0%2F24",
            "RevokeSecurityGroupIngress&GroupId=sg-lb&IpPermissions.1.IpProtocol=tcp&IpPermissions.1.FromPort=22\
             &IpPermissions.1.ToPort=22&IpPermissions.1.IpRanges.1.CidrIp=0.0.0.0%2F0",
        ]
    );
}

#[test]
fn nodes_trust_balancers_group_only_where_it_has_instances() {
    let trust = Rule::all_from_group("sg-lb");
    let seen = [
        group("sg-new", vec![range("tcp", 22, "0.0.0.0/0")]),
        group("sg-kept", vec![trust.clone()]),
        group("sg-old", vec![trust.clone(), range("tcp", 22, "0.0.0.0/0")]),
        group("sg-lb", vec![trust]),
    ];
    let steps = node_rules_classic(&seen, &["sg-new".into(), "sg-kept".into()], "sg-lb");
    assert_eq!(
        texts(&steps),
        [
            "AuthorizeSecurityGroupIngress&GroupId=sg-new&IpPermissions.1.IpProtocol=-1&IpPermissions.1.Groups.1.GroupId=sg-lb",
            "RevokeSecurityGroupIngress&GroupId=sg-old&IpPermissions.1.IpProtocol=-1&IpPermissions.1.Groups.1.GroupId=sg-lb",
        ]
    );
    assert_eq!(distrust(&seen, "sg-lb").len(), 2, "not in itself");
}

#[test]
fn nlb_clients_and_health_checks_are_admitted_then_revoked() {
    let operators = range("tcp", 30080, "198.51.100.0/24");
    let nodes = group("sg", vec![operators.clone()]);
    let open = after(&nodes, &traffic(), true);
    let described: Vec<(&str, &str)> = open
        .rules
        .iter()
        .map(|rule| (rule.protocol.as_str(), rule.description.as_str()))
        .collect();
    assert_eq!(
        described,
        [
            ("tcp", ""),
            ("tcp", "kubernetes.io/rule/nlb/client=lb"),
            ("tcp", "kubernetes.io/rule/nlb/health=lb"),
            ("icmp", "kubernetes.io/rule/nlb/mtu")
        ]
    );
    assert_eq!(node_rules_network(&open, &traffic(), true), [], "once is enough");
    assert_eq!(
        after(&open, &traffic(), false).rules,
        [operators],
        "what the operator wrote stays"
    );
}

#[test]
fn health_checks_need_no_rule_when_all_may_connect() {
    let everybody = NodeTraffic {
        clients: vec!["0.0.0.0/0".into()],
        ..traffic()
    };
    let health = |traffic: &NodeTraffic| {
        let open = after(&group("sg", Vec::new()), traffic, true);
        open.rules
            .iter()
            .filter(|rule| rule.description.starts_with(HEALTH))
            .count()
    };
    assert_eq!(health(&everybody), 0);
    let udp = NodeTraffic {
        protocol: "udp",
        ..everybody.clone()
    };
    assert_eq!(health(&udp), 1, "health checks are TCP");
    let other = NodeTraffic {
        health_ports: vec![32000],
        ..everybody
    };
    assert_eq!(health(&other), 1);
}

#[test]
fn path_mtu_rules_stay_while_other_balancer_has_same_clients() {
    let other = NodeTraffic {
        balancer: "other".into(),
        ports: vec![30090],
        health_ports: vec![30090],
        ..traffic()
    };
    let both = after(&after(&group("sg", Vec::new()), &traffic(), true), &other, true);
    let mtu = |group: &Group| group.rules.iter().filter(|rule| rule.description == MTU).count();
    assert_eq!(mtu(&both), 1);
    let one = after(&both, &traffic(), false);
    assert_eq!((mtu(&one), node_rules_network(&one, &other, true)), (1, Vec::new()));
    assert_eq!(after(&one, &other, false).rules, []);
}

#[test]
fn shared_health_port_rule_goes_with_last_balancer() {
    let shared = |name: &str, port| NodeTraffic {
        balancer: name.into(),
        ports: vec![port],
        health_ports: vec![10256],
        shared_health_port: Some(10256),
        ..traffic()
    };
    let (first, second) = (shared("first", 30080), shared("second", 30090));
    let both = after(&after(&group("sg", Vec::new()), &first, true), &second, true);
    assert_eq!(node_rules_network(&both, &second, true), [], "one rule serves both");
    let one = after(&both, &first, false);
    assert_eq!(node_rules_network(&one, &second, true), [], "the second still has it");
    assert_eq!(after(&one, &second, false).rules, []);
}

#[test]
fn changed_ports_and_ranges_replace_the_old_rules() {
    let before = after(&group("sg", Vec::new()), &traffic(), true);
    let changed = NodeTraffic {
        ports: vec![30090],
        health_ports: vec![30090],
        clients: vec!["203.0.113.0/24".into(), "2001:db8::/32".into()],
        ..traffic()
    };
    let now = after(&before, &changed, true);
    assert_eq!(node_rules_network(&now, &changed, true), []);
    assert!(
        now.rules
            .iter()
            .all(|rule| rule.from == 30090 || rule.protocol == "icmp"),
        "{now:?}"
    );
    assert_eq!(now.rules.len(), 4, "two clients, one health check, one MTU: {now:?}");
}
