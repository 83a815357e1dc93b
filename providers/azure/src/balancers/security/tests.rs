use super::*;

fn rule(ports: &[&str], to: &str) -> Rule {
    let ports = ports.iter().map(|port| (*port).to_owned()).collect();
    Rule::new(false, "Tcp", vec!["Internet".into()], ports, to)
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
    let own = |ip: &str| [ip.to_owned()];
    assert!(allow(&mut group, &[rule(&["80"], "1.1.1.1")], &own("1.1.1.1"), &[]).unwrap());
    assert!(allow(&mut group, &[rule(&["80"], "2.2.2.2")], &own("2.2.2.2"), &[]).unwrap());
    assert!(!allow(&mut group, &[rule(&["80"], "2.2.2.2")], &own("2.2.2.2"), &[]).unwrap());
    assert_eq!(
        shown(&group),
        [(500, vec!["1.1.1.1"]), (501, vec!["1.1.1.1", "2.2.2.2"])]
    );
    // A port that another Service has at the same address stays.
    let kept = [Kept {
        protocol: "Tcp".into(),
        port: 80,
        ip: "1.1.1.1".into(),
    }];
    assert!(!allow(&mut group, &[], &own("1.1.1.1"), &kept).unwrap());
    assert!(allow(&mut group, &[], &own("1.1.1.1"), &[]).unwrap());
    assert!(allow(&mut group, &[], &own("2.2.2.2"), &[]).unwrap());
    assert_eq!(shown(&group), [(500, vec!["1.1.1.1"])], "what others made stays");
}

#[test]
fn names_are_upstreams_hashes() {
    // md5 of "Tcp_Internet_443,80".
    let rule = rule(&["443", "80"], "1.1.1.1");
    assert_eq!(rule.name, "k8s-azure-lb_allow_IPv4_556f7044ec033071ec0dfcf7cd85bc93");
}
