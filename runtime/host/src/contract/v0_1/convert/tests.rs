use cloudwit_model as model;
use cloudwit_model::{Endpoint, Ingress, IpFamily, IpMode, PortStatus, Protocol, Service, ServicePort, TrafficPolicy};

use super::*;
use crate::contract::v0_1::generated::cloudwit::provider::services;

pub(crate) fn full_service() -> Service {
    let port = |error: Option<&str>| PortStatus {
        port: 80,
        protocol: Protocol::Udp,
        error: error.map(Into::into),
    };
    Service {
        namespace: "default".into(),
        name: "web".into(),
        uid: "u".into(),
        annotations: [("a".into(), "1".into())].into(),
        labels: [("l".into(), "2".into())].into(),
        ports: vec![ServicePort {
            name: Some(String::new()),
            protocol: Protocol::Sctp,
            port: 80,
            node_port: Some(30080),
            target_port: Some("http".into()),
            app_protocol: None,
        }],
        load_balancer_class: Some("example.com/fast".into()),
        load_balancer_ip: Some("192.0.2.1".into()),
        source_ranges: vec!["10.0.0.0/8".into()],
        traffic_policy: TrafficPolicy::Local,
        session_affinity_seconds: Some(10),
        health_check_node_port: Some(31000),
        ip_families: vec![IpFamily::V6, IpFamily::V4],
        external_ips: vec!["198.51.100.1".into()],
        ingress: vec![
            Ingress {
                endpoint: Endpoint::Ip("2001:db8::1".parse().unwrap(), IpMode::Proxy),
                ports: vec![port(None)],
            },
            Ingress {
                endpoint: Endpoint::Hostname("lb.example".into()),
                ports: vec![port(Some("Broken"))],
            },
        ],
    }
}

#[test]
fn a_service_reaches_the_guest_whole() {
    let seen = service(&full_service());
    assert_eq!(
        (seen.namespace.as_str(), seen.name.as_str(), seen.uid.as_str()),
        ("default", "web", "u")
    );
    assert_eq!(
        (seen.annotations[0].key.as_str(), seen.labels[0].value.as_str()),
        ("a", "2")
    );
    let port = &seen.ports[0];
    assert_eq!(
        (port.name.as_ref(), port.protocol, port.port),
        (None, services::Protocol::Sctp, 80)
    );
    assert_eq!(
        (port.node_port, port.target_port.as_deref()),
        (Some(30080), Some("http"))
    );
    assert_eq!(seen.load_balancer_ip.as_deref(), Some("192.0.2.1"));
    assert_eq!((seen.source_ranges.len(), seen.external_ips.len()), (1, 1));
    assert_eq!(seen.traffic_policy, services::TrafficPolicy::Local);
    assert_eq!(
        (seen.session_affinity_seconds, seen.health_check_node_port),
        (Some(10), Some(31000))
    );
    assert_eq!(seen.ip_families, [services::IpFamily::Ipv6, services::IpFamily::Ipv4]);
    assert_eq!(seen.ingress.len(), 2);
    assert_eq!(
        (
            seen.extra.len(),
            seen.extra[0].key.as_str(),
            seen.extra[0].value.as_str()
        ),
        (1, "load-balancer-class", "example.com/fast")
    );
}

#[test]
fn empty_texts_reach_the_guest_as_none() {
    let node = model::NodeRef {
        name: "a".into(),
        provider_id: Some(String::new()),
        ..Default::default()
    };
    assert_eq!(node_ref(&node).provider_id, None);
}

#[test]
fn foreign_cluster_content_reaches_guest_unchanged() {
    let written = "x {{secret:password}} cloudwit-placeholder-0123456789abcdef0123456789abcdef";
    let seen = service(&Service {
        annotations: [("a".into(), written.into())].into(),
        load_balancer_ip: Some(written.into()),
        ..full_service()
    });
    assert_eq!(seen.annotations[0].value, written);
    assert_eq!(seen.load_balancer_ip.as_deref(), Some(written));
}
