//! Rules and ports, from what Neutron shows.

use super::*;
use crate::recorded::file;

fn group() -> Group {
    let text = cloudwit_guest_sdk::testing::recorded(file!("security_groups"));
    Group::read(&serde_json::from_str::<Value>(text).unwrap().items("security_groups")[0]).unwrap()
}

fn service(ports: &[(Protocol, u16)]) -> Service {
    let mut service = Service::new("default", "web", "u-1");
    let port = |(protocol, node_port): &(Protocol, u16)| ServicePort {
        name: None,
        protocol: *protocol,
        port: 80,
        node_port: Some(*node_port),
        target_port: None,
        app_protocol: None,
    };
    service.ports = ports.iter().map(port).collect();
    service
}

fn changes(group: &Group, rules: &[Rule]) -> Vec<String> {
    rule_changes(group, rules).iter().map(ToString::to_string).collect()
}

#[test]
fn the_rule_that_is_there_is_left_alone() {
    let rules = rules(&service(&[(Protocol::Tcp, 30080)]), None, &["10.1.0.0/16".into()]);
    assert_eq!(changes(&group(), &rules), Vec::<String>::new());
}

#[test]
fn missing_rules_are_made_and_others_removed() {
    let rules = rules(&service(&[(Protocol::Udp, 30053)]), Some(31000), &["fd00::/64".into()]);
    let changes = changes(&group(), &rules);
    assert_eq!(changes.len(), 3, "{changes:?}");
    let id = &group().id;
    assert_eq!(
        changes[0],
        format!(
            "POST /v2.0/security-group-rules {{\"security_group_rule\":{{\"direction\":\"ingress\",\"ethertype\":\"IPv6\",\
             \"port_range_max\":30053,\"port_range_min\":30053,\"protocol\":\"udp\",\
             \"remote_ip_prefix\":\"fd00::/64\",\"security_group_id\":\"{id}\"}}}}"
        )
    );
    assert!(changes[1].contains("31000") && changes[2].starts_with("DELETE /v2.0/security-group-rules/"));
}

#[test]
fn two_ports_with_one_node_port_need_one_rule() {
    let twice = service(&[(Protocol::Tcp, 30080), (Protocol::Tcp, 30080)]);
    assert_eq!(rules(&twice, None, &["10.0.0.0/8".into()]).len(), 1);
}

#[test]
fn groups_of_others_stay_on_a_port() {
    let text = cloudwit_guest_sdk::testing::recorded(file!("ports_of_group"));
    let port = ServerPort::read(&serde_json::from_str::<Value>(text).unwrap().items("ports")[0]).unwrap();
    let id = group().id;
    assert!(port.secured && port.with(&id).is_none() && port.revision.is_some());
    let other = ServerPort {
        groups: vec!["a".into()],
        ..port.clone()
    };
    let added = other.with(&id).unwrap().to_string();
    assert!(
        added.ends_with(&format!("{{\"port\":{{\"security_groups\":[\"a\",\"{id}\"]}}}}")),
        "{added}"
    );
    let both = ServerPort {
        groups: vec!["a".into(), id.clone()],
        ..port.clone()
    };
    assert!(
        both.without(&id)
            .to_string()
            .ends_with("{\"port\":{\"security_groups\":[\"a\"]}}")
    );
    let open = ServerPort {
        secured: false,
        ..other
    };
    assert!(open.with(&id).is_none(), "a port without port security takes no groups");
}
