use super::*;
use serde_json::json;

fn service(spec: serde_json::Value) -> Service {
    let metadata =
        json!({ "name": "web", "namespace": "shop", "uid": "u1", "labels": { "l": "1" }, "annotations": { "a": "2" } });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
}

#[test]
fn every_field_arrives_as_in_the_contract() {
    let mut input = service(json!({
        "type": "LoadBalancer",
        "ports": [
            { "name": "http", "port": 80, "protocol": "TCP", "nodePort": 30080, "targetPort": 8080, "appProtocol": "http" },
            { "name": "dns", "port": 53, "protocol": "UDP", "targetPort": "dns" },
        ],
        "loadBalancerIP": "1.2.3.4",
        "loadBalancerSourceRanges": ["10.1.2.3/8", "10.0.0.0/8", "2001:db8::/32"],
        "externalTrafficPolicy": "Local",
        "healthCheckNodePort": 31000,
        "loadBalancerClass": "example.com/north",
        "sessionAffinity": "ClientIP",
        "sessionAffinityConfig": { "clientIP": { "timeoutSeconds": 60 } },
        "ipFamilies": ["IPv6", "IPv4"],
        "externalIPs": ["9.9.9.9"],
    }));
    input.status = serde_json::from_value(json!({ "loadBalancer": { "ingress": [
        { "ip": "1.2.3.4", "ipMode": "Proxy", "ports": [{ "port": 80, "protocol": "TCP", "error": "Busy" }] },
        { "hostname": "lb.example.com" },
        { "ip": "no ip" },
    ] } }))
    .unwrap();
    let port = |name: &str, protocol, port, node_port, target: &str, app: Option<&str>| model::ServicePort {
        name: Some(name.into()),
        protocol,
        port,
        node_port,
        target_port: Some(target.into()),
        app_protocol: app.map(str::to_owned),
    };
    let expected = model::Service {
        namespace: "shop".into(),
        name: "web".into(),
        uid: "u1".into(),
        annotations: [("a".into(), "2".into())].into(),
        labels: [("l".into(), "1".into())].into(),
        ports: vec![
            port("http", model::Protocol::Tcp, 80, Some(30080), "8080", Some("http")),
            port("dns", model::Protocol::Udp, 53, None, "dns", None),
        ],
        load_balancer_class: Some("example.com/north".into()),
        load_balancer_ip: Some("1.2.3.4".into()),
        source_ranges: vec!["10.0.0.0/8".into(), "2001:db8::/32".into()],
        traffic_policy: model::TrafficPolicy::Local,
        session_affinity_seconds: Some(60),
        health_check_node_port: Some(31000),
        ip_families: vec![model::IpFamily::V6, model::IpFamily::V4],
        external_ips: vec!["9.9.9.9".into()],
        ingress: vec![
            model::Ingress {
                endpoint: model::Endpoint::Ip("1.2.3.4".parse().unwrap(), model::IpMode::Proxy),
                ports: vec![model::PortStatus {
                    port: 80,
                    protocol: model::Protocol::Tcp,
                    error: Some("Busy".into()),
                }],
            },
            model::Ingress {
                endpoint: model::Endpoint::Hostname("lb.example.com".into()),
                ports: vec![],
            },
        ],
    };
    assert_eq!(service_view(&input).unwrap(), expected);
}

#[test]
fn what_is_not_set_stays_open() {
    let view = service_view(&service(
        json!({ "type": "LoadBalancer", "ports": [{ "port": 80 }], "sessionAffinity": "None" }),
    ))
    .unwrap();
    assert_eq!(view.source_ranges, Vec::<String>::new(), "everybody may connect");
    assert_eq!(view.session_affinity_seconds, None);
    assert_eq!(view.traffic_policy, model::TrafficPolicy::Cluster);
    assert_eq!(view.ports[0].protocol, model::Protocol::Tcp);
    let view = service_view(&service(
        json!({ "type": "LoadBalancer", "sessionAffinity": "ClientIP" }),
    ))
    .unwrap();
    assert_eq!(view.session_affinity_seconds, Some(10_800), "Kubernetes' default");
}

#[test]
fn written_range_never_opens_more_than_its_text() {
    let ranges = |families: &[&str], ranges: &[&str]| {
        let spec = json!({ "type": "LoadBalancer", "ipFamilies": families, "loadBalancerSourceRanges": ranges });
        service_view(&service(spec)).unwrap().source_ranges
    };
    assert_eq!(
        ranges(&["IPv4"], &["0.0.0.0/0"]),
        Vec::<String>::new(),
        "all of IPv4 is everybody on IPv4"
    );
    assert_eq!(
        ranges(&["IPv4", "IPv6"], &["0.0.0.0/0"]),
        ["0.0.0.0/0"],
        "but says nothing about IPv6"
    );
    assert_eq!(ranges(&["IPv4", "IPv6"], &[]), Vec::<String>::new());
}

#[test]
fn all_mistakes_are_named_at_once_and_do_not_hinder_a_delete() {
    let bad = service(json!({
        "type": "LoadBalancer",
        "ports": [{ "port": 80 }, { "port": 70000 }, { "port": 1, "protocol": "QUIC" }],
        "loadBalancerSourceRanges": ["x"],
    }));
    let error = service_view(&bad).unwrap_err();
    for part in ["port 70000", "protocol \"QUIC\"", "\"x\""] {
        assert!(error.contains(part), "{part} in {error}");
    }
    let view = lenient_service_view(&bad);
    assert_eq!((view.uid.as_str(), view.ports.len()), ("u1", 1));
}

#[test]
fn ingress_points_are_stored_with_their_mode() {
    let points = [
        model::Ingress {
            endpoint: model::Endpoint::Ip("1.2.3.4".parse().unwrap(), model::IpMode::Vip),
            ports: vec![],
        },
        model::Ingress {
            endpoint: model::Endpoint::Ip("2001:db8::1".parse().unwrap(), model::IpMode::Proxy),
            ports: vec![model::PortStatus {
                port: 53,
                protocol: model::Protocol::Udp,
                error: None,
            }],
        },
        model::Ingress {
            endpoint: model::Endpoint::Hostname("lb.example.com".into()),
            ports: vec![],
        },
    ];
    assert_eq!(
        json!(ingress_status(&points)),
        json!([
            { "ip": "1.2.3.4", "ipMode": "VIP" },
            { "ip": "2001:db8::1", "ipMode": "Proxy", "ports": [{ "port": 53, "protocol": "UDP" }] },
            { "hostname": "lb.example.com" },
        ])
    );
    let read_back: Vec<model::Ingress> = ingress_status(&points).iter().filter_map(ingress_view).collect();
    assert_eq!(read_back, points);
}
