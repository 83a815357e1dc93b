use std::time::Duration;

use cloudwit_model::{Address, Endpoint, Ingress, PortStatus, Service, ServicePort};

use super::*;

fn full_service() -> Service {
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
        load_balancer_class: None,
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
}

#[test]
fn an_ingress_comes_back_as_it_went() {
    let sent = full_service().ingress;
    let back = balancer(load_balancers::Balancer {
        ingress: service(&full_service()).ingress,
        annotations: Vec::new(),
    });
    assert_eq!(back.unwrap().ingress, sent);
}

#[test]
fn an_ingress_without_a_mode_is_a_virtual_ip() {
    let endpoint = services::Endpoint::Ip(("192.0.2.1".into(), None));
    let found = ingress(services::Ingress {
        endpoint,
        ports: Vec::new(),
    })
    .unwrap();
    assert_eq!(found.endpoint, Endpoint::Ip("192.0.2.1".parse().unwrap(), IpMode::Vip));
}

#[test]
fn addresses_of_every_kind_come_back_as_they_went() {
    for kind in [
        AddressKind::Hostname,
        AddressKind::InternalIP,
        AddressKind::ExternalIP,
        AddressKind::InternalDNS,
        AddressKind::ExternalDNS,
    ] {
        let sent = Address::new(kind, "192.0.2.7");
        assert_eq!(address("node", address_to_guest(&sent)), Ok(sent));
    }
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
fn a_token_that_is_too_long_makes_the_failure_nonsense() {
    let pending = |token: String| {
        types::Failure::Pending(types::Pending {
            after_ms: 5000,
            token,
            message: "m".into(),
        })
    };
    let after = Duration::from_secs(5);
    assert_eq!(
        failure(pending("t".into())),
        Ok(Failure::Pending {
            after,
            token: "t".into(),
            message: "m".into()
        })
    );
    assert!(failure(pending("t".repeat(5000))).unwrap_err().0.contains("5000 bytes"));
}

#[test]
fn a_route_has_an_id_and_a_range_and_comes_back_as_it_went() {
    let sent = model::Route {
        id: "r".into(),
        destination: "10.1.0.0/24".into(),
        node: Some("a".into()),
        next_hops: vec![Address::new(AddressKind::InternalIP, "10.0.0.1")],
        blackhole: true,
    };
    assert_eq!(routes(vec![route_to_guest(&sent)]), Ok(vec![sent.clone()]));
    let nameless = routes::Route {
        id: String::new(),
        ..route_to_guest(&sent)
    };
    assert_eq!(routes(vec![nameless]).unwrap_err().0, "the id of a route is empty");
}

#[test]
fn labels_and_annotations_need_keys() {
    let pair = |key: &str| types::Pair {
        key: key.into(),
        value: "v".into(),
    };
    let machine = |key: &str| types::Instance {
        provider_id: "test://a".into(),
        instance_type: None,
        zone: None,
        region: None,
        addresses: Vec::new(),
        labels: vec![pair(key)],
    };
    assert_eq!(instance("a", machine("k")).unwrap().labels["k"], "v");
    assert_eq!(
        instance("a", machine("")).unwrap_err().0,
        "the key of a label of node \"a\" is empty"
    );
    let change = load_balancers::AnnotationChange {
        key: String::new(),
        value: None,
    };
    assert!(annotation_changes(vec![change]).is_err());
}

#[test]
fn a_description_needs_name_version_and_prefixes_that_are_not_empty() {
    let description = |name: &str, version: &str, prefix: &str| {
        super::description(info::Description {
            name: name.into(),
            version: version.into(),
            provider_id_prefixes: vec![prefix.into()],
            http: Vec::new(),
            secrets: Vec::new(),
        })
    };
    assert!(description("sim", "1.0.0", "sim://").is_ok());
    for (name, version, prefix) in [("", "1", "p"), ("n", "", "p"), ("n", "1", "")] {
        assert!(description(name, version, prefix).is_err());
    }
}

#[test]
fn what_others_wrote_into_the_cluster_reaches_the_guest_as_it_is() {
    let written = "x {{secret:password}} cloudwit-placeholder-0123456789abcdef0123456789abcdef";
    let seen = service(&Service {
        annotations: [("a".into(), written.into())].into(),
        load_balancer_ip: Some(written.into()),
        ..full_service()
    });
    assert_eq!(seen.annotations[0].value, written);
    assert_eq!(seen.load_balancer_ip.as_deref(), Some(written));
}
