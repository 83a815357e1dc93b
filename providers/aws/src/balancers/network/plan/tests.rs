//! What is done to a network load balancer and its listeners.

use super::*;
use crate::balancers::network::target_groups::{GroupWanted, Health};

fn port(number: u16, protocol: &'static str) -> Port {
    Port {
        port: number,
        protocol,
        certificate: (protocol == "TLS").then(|| "arn:cert".into()),
        tls_policy: None,
        group: GroupWanted {
            name: "tg".into(),
            protocol: "TCP",
            port: 30080,
            health: Health {
                protocol: "TCP".into(),
                port: "traffic-port".into(),
                path: String::new(),
                healthy: 3,
                unhealthy: 3,
                timeout: None,
                interval: 30,
            },
        },
    }
}

fn wanted(ports: Vec<Port>) -> Wanted {
    Wanted {
        name: "lb".into(),
        internal: false,
        ports,
        attributes: vec![Pair::new("load_balancing.cross_zone.enabled", "false")],
        target_attributes: Vec::new(),
        tags: vec![Pair::new("owner", "us")],
    }
}

fn listener(number: u16, protocol: &str) -> Listener {
    Listener {
        arn: format!("arn:{number}"),
        port: number,
        protocol: protocol.into(),
        certificate: if protocol == "TLS" {
            "arn:cert".into()
        } else {
            String::new()
        },
        // What moto shows for every listener.
        tls_policy: "ELBSecurityPolicy-2016-08".into(),
        group: "arn:tg".into(),
    }
}

fn plan(ports: Vec<Port>, seen: &[Listener]) -> Vec<String> {
    let groups = vec!["arn:tg".to_owned(); ports.len()];
    listeners(&wanted(ports), "arn:lb", seen, &groups)
        .iter()
        .map(Step::text)
        .collect()
}

#[test]
fn correct_listeners_stay_whatever_tls_policy_tcp_shows() {
    let seen = [listener(80, "TCP"), listener(443, "TLS")];
    assert_eq!(
        plan(vec![port(80, "TCP"), port(443, "TLS")], &seen),
        Vec::<String>::new()
    );
}

#[test]
fn listener_certificate_policy_and_protocol_change_in_place() {
    let mut policy = port(443, "TLS");
    policy.tls_policy = Some("ELBSecurityPolicy-1".into());
    let mut certificate = port(443, "TLS");
    certificate.certificate = Some("arn:other".into());
    for (port, seen) in [
        (policy, listener(443, "TLS")),
        (certificate, listener(443, "TLS")),
        (port(443, "TCP"), listener(443, "TLS")),
        (port(443, "TLS"), listener(443, "TCP")),
        (
            port(80, "TCP"),
            Listener {
                group: "arn:old".into(),
                ..listener(80, "TCP")
            },
        ),
    ] {
        let steps = plan(vec![port], &[seen]);
        assert!(
            steps.len() == 1 && steps[0].starts_with("ModifyListener&ListenerArn="),
            "{steps:?}"
        );
    }
}

#[test]
fn a_port_that_becomes_udp_is_deleted_before_it_is_made_again() {
    let steps = plan(vec![port(53, "UDP")], &[listener(53, "TCP")]);
    assert_eq!(steps.len(), 2);
    assert!(
        steps[0].starts_with("DeleteListener") && steps[1].starts_with("CreateListener"),
        "{steps:?}"
    );
    assert!(steps[1].contains("Protocol=UDP&Port=53") && steps[1].contains("Tags.member.1.Key=owner"));
}

#[test]
fn only_what_differs_is_written() {
    let seen = Seen {
        arn: "arn:lb".into(),
        dns_name: "lb.test".into(),
        state: "active".into(),
        kind: "network".into(),
        internal: false,
        vpc: "vpc-1".into(),
        subnets: Vec::new(),
        groups: vec!["sg-1".into()],
    };
    let wanted = wanted(Vec::new());
    let (tags, attributes) = (wanted.tags.clone(), wanted.attributes.clone());
    assert_eq!(update(&wanted, &seen, &tags, &attributes, Some(&["sg-1".into()])), []);
    assert_eq!(update(&wanted, &seen, &tags, &attributes, None), []);
    let shared = [Pair::new("kubernetes.io/cluster/c", "shared")];
    let owned = [Pair::new("kubernetes.io/cluster/c", "owned")];
    assert_eq!(missing_tags(&owned, &shared), [], "what was shared stays shared");
    let steps = update(&wanted, &seen, &[], &[], Some(&["sg-2".into()]));
    let actions: Vec<&str> = steps.iter().map(|step| step.action).collect();
    assert_eq!(
        actions,
        ["AddTags", "ModifyLoadBalancerAttributes", "SetSecurityGroups"]
    );
    assert_eq!(target_attributes("arn:tg", &attributes, &attributes), None);
    assert!(target_attributes("arn:tg", &attributes, &[]).is_some());
}

#[test]
fn addresses_go_to_the_subnets_in_their_order() {
    let texts = |texts: [&str; 2]| texts.map(str::to_owned);
    let step = create(
        &wanted(Vec::new()),
        &texts(["s-1", "s-2"]),
        &texts(["eip-1", "eip-2"]),
        &[],
        &[],
    );
    assert_eq!(
        step.text(),
        "CreateLoadBalancer&Name=lb&Type=network&SubnetMappings.member.1.SubnetId=s-1&SubnetMappings.member.1.AllocationId=eip-1\
         &SubnetMappings.member.2.SubnetId=s-2&SubnetMappings.member.2.AllocationId=eip-2&Tags.member.1.Key=owner&Tags.member.1.Value=us"
    );
    let step = create(
        &wanted(Vec::new()),
        &texts(["s-1", "s-2"])[..1],
        &[],
        &texts(["10.0.0.9", ""])[..1],
        &["sg-1".into()],
    );
    assert!(
        step.text()
            .contains("PrivateIPv4Address=10.0.0.9&SecurityGroups.member.1=sg-1")
    );
}
