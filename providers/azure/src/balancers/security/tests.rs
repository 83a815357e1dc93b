use super::super::annotations;
use super::*;
use crate::config::Config;

const NODES: [&str; 2] = ["10.0.0.4", "10.0.0.5"];

fn service(pairs: &[(&str, &str)], ports: &[u16]) -> Service {
    let port = |port: &u16| ServicePort {
        name: None,
        protocol: Protocol::Tcp,
        port: *port,
        node_port: Some(30_000 + port),
        target_port: None,
        app_protocol: None,
    };
    let pairs = pairs
        .iter()
        .map(|(key, value)| Pair::new(annotations::TABLE.key(key), *value));
    Service {
        ports: ports.iter().map(port).collect(),
        annotations: pairs.collect(),
        ..Service::new("default", "web", "1bf6e8a3-6f0a-4d3e-9a3c-000000000001")
    }
}

/// The rules of a Service at this address, with two Nodes.
fn rules_at(service: &Service, ip: &str) -> Vec<Rule> {
    let config = json!({ "vnetName": "v", "subnetName": "s", "securityGroupName": "g" });
    let config: Config = serde_json::from_value(config).unwrap();
    let target = |ip: &str| Target {
        node: NodeRef {
            addresses: vec![Address::new(AddressKind::InternalIp, ip)],
            ..NodeRef::named(ip)
        },
        ready: true,
    };
    let asked = annotations::read(service).unwrap();
    let wanted = Wanted::new(service, asked, &NODES.map(target), &config, "kubernetes").unwrap();
    rules(&wanted, &[ip.to_owned(), "fd00::1".to_owned()])
}

fn own(ip: &str) -> Owners {
    Owners {
        own: [ip.to_owned()].into(),
        nodes: NODES.map(str::to_owned).into(),
        ..Owners::default()
    }
}

fn kept(port: u64, ip: Option<&str>) -> Kept {
    Kept {
        protocol: "Tcp".into(),
        port,
        ip: ip.map(str::to_owned),
    }
}

fn group() -> Value {
    let by_hand = json!({ "name": "by-hand", "properties": { "priority": 500, "direction": "Inbound", "destinationAddressPrefix": "1.1.1.1" } });
    json!({ "properties": { "securityRules": [by_hand] } })
}

fn shown(group: &Value) -> Vec<(u64, Vec<&str>)> {
    let rules = items(group, LIST).iter();
    let priority = |rule: &Value| rule.pointer("/properties/priority").and_then(Value::as_u64).unwrap();
    rules
        .map(|rule| {
            let to = values(rule, "destinationAddressPrefixes", "destinationAddressPrefix");
            (priority(rule), to)
        })
        .collect()
}

#[test]
fn one_rule_is_for_all_addresses_and_goes_with_the_last() {
    let mut group = group();
    let web = service(&[], &[80]);
    assert!(allow(&mut group, &rules_at(&web, "1.1.1.1"), &own("1.1.1.1")).unwrap());
    assert!(allow(&mut group, &rules_at(&web, "2.2.2.2"), &own("2.2.2.2")).unwrap());
    assert!(!allow(&mut group, &rules_at(&web, "2.2.2.2"), &own("2.2.2.2")).unwrap());
    assert_eq!(
        shown(&group),
        [(500, vec!["1.1.1.1"]), (501, vec!["1.1.1.1", "2.2.2.2"])]
    );
    // A port that another Service has at the same address stays.
    let mut owners = own("1.1.1.1");
    owners.kept.push(kept(80, Some("1.1.1.1")));
    assert!(!allow(&mut group, &[], &owners).unwrap());
    assert!(allow(&mut group, &[], &own("1.1.1.1")).unwrap());
    assert!(allow(&mut group, &[], &own("2.2.2.2")).unwrap());
    assert_eq!(shown(&group), [(500, vec!["1.1.1.1"])], "what others made stays");
}

#[test]
fn names_are_upstreams_hashes() {
    // md5 of "Tcp_Internet_443,80".
    let rules = rules_at(&service(&[], &[443, 80]), "1.1.1.1");
    assert_eq!(
        rules[0].name,
        "k8s-azure-lb_allow_IPv4_556f7044ec033071ec0dfcf7cd85bc93"
    );
}

#[test]
fn rules_without_floating_ip_follow_the_nodes() {
    let apart = service(&[("disable-load-balancer-floating-ip", "true")], &[80]);
    let rules = rules_at(&apart, "1.1.1.1");
    assert_eq!(rules[0].properties["destinationPortRanges"], json!(["30080"]));
    let mut group = group();
    assert!(allow(&mut group, &rules, &own("1.1.1.1")).unwrap());
    assert_eq!(shown(&group)[1].1, NODES);
    // One that is gone, and one that another Service still has in a rule with the same name.
    let list = items_mut(&mut group, LIST).unwrap();
    list[1]["properties"]["destinationAddressPrefixes"] = json!(["10.0.0.3", "10.0.0.4", "2.2.2.2"]);
    let mut owners = own("1.1.1.1");
    owners.kept.push(kept(30_080, Some("2.2.2.2")));
    assert!(allow(&mut group, &rules, &owners).unwrap());
    assert_eq!(shown(&group)[1].1, ["10.0.0.4", "10.0.0.5", "2.2.2.2"]);
    // It floats again: its node port closes, and that of another Service does not.
    let list = items_mut(&mut group, LIST).unwrap();
    list[1]["properties"]["destinationAddressPrefixes"] = json!(NODES);
    let mut other = list[1].clone();
    other["name"] = "k8s-azure-lb_allow_IPv4_other".into();
    other["properties"]["destinationPortRanges"] = json!(["30081"]);
    list.push(other);
    let mut owners = own("1.1.1.1");
    owners.kept.push(kept(30_081, None));
    let floating = rules_at(&service(&[], &[80]), "1.1.1.1");
    assert!(allow(&mut group, &floating, &owners).unwrap());
    let to: Vec<_> = shown(&group).into_iter().map(|(_, to)| to).collect();
    assert_eq!(to, [vec!["1.1.1.1"], NODES.to_vec(), vec!["1.1.1.1"]]);
    // With the last Node gone, the rule is known by its node ports.
    let mut owners = Owners::default();
    owners.node_ports.push(("Tcp".into(), 30_081));
    assert!(allow(&mut group, &[], &owners).unwrap());
    assert_eq!(shown(&group).len(), 2);
}

#[test]
fn all_other_sources_are_denied_from_the_last_priority() {
    let deny = ("deny-all-except-load-balancer-source-ranges", "true");
    let open = rules_at(&service(&[deny], &[80]), "1.1.1.1");
    assert_eq!(open.len(), 1, "without networks there is nothing else to deny");
    let mut closed = service(&[deny], &[80]);
    closed.source_ranges = vec!["10.0.0.0/8".into()];
    closed.ip_families = vec![IpFamily::Ipv4, IpFamily::Ipv6];
    let rules = rules_at(&closed, "1.1.1.1");
    let names: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(
        &names[1..],
        ["k8s-azure-lb_deny-all_IPv4", "k8s-azure-lb_deny-all_IPv6"]
    );
    let mut group = group();
    assert!(allow(&mut group, &rules, &own("1.1.1.1")).unwrap());
    let denied = &items(&group, LIST)[2]["properties"];
    assert_eq!((&denied["priority"], &denied["access"]), (&json!(4095), &json!("Deny")));
    assert_eq!(denied["destinationAddressPrefixes"], json!(["1.1.1.1"]));
    assert_eq!(shown(&group)[3].0, 4094);
    // At a shared address it stays for the other Service.
    let mut owners = own("1.1.1.1");
    owners.kept.push(kept(81, Some("1.1.1.1")));
    assert!(allow(&mut group, &[], &owners).unwrap());
    assert_eq!(shown(&group)[1], (4095, vec!["1.1.1.1"]));
    let mut owners = own("1.1.1.1");
    owners.own.insert("fd00::1".into());
    assert!(allow(&mut group, &[], &owners).unwrap());
    assert_eq!(shown(&group).len(), 1);
}
