use super::*;
use crate::balancers::annotations;

pub(crate) fn service(ports: &[(Protocol, u16, u16)]) -> Service {
    let mut service = Service::new("default", "web", "1bf6e8a3-6f0a-4d3e-9a3c-000000000001");
    service.ports = ports
        .iter()
        .map(|(protocol, port, node_port)| ServicePort {
            name: None,
            protocol: *protocol,
            port: *port,
            node_port: Some(*node_port),
            target_port: None,
            app_protocol: None,
        })
        .collect();
    service.ip_families = vec![IpFamily::Ipv4];
    service
}

fn target(name: &str, ready: bool, address: Option<&str>) -> Target {
    let mut node = NodeRef::named(name);
    node.addresses = address
        .map(|ip| Address::new(AddressKind::InternalIp, ip))
        .into_iter()
        .collect();
    Target { node, ready }
}

fn vip(id: u64, address: &str, kind: &str) -> VirtualIp {
    VirtualIp {
        id,
        address: address.parse().unwrap(),
        kind: kind.into(),
    }
}

fn settings(service: &Service, config: &BalancerConfig) -> Result<Settings, Failure> {
    let cluster = ClusterInfo {
        name: "lab".into(),
        cidrs: Vec::new(),
    };
    let asked = annotations::read(service).unwrap();
    let source = Source::New {
        internal: asked.internal,
    };
    Settings::new(service, &cluster, asked, config, source)
}

#[test]
fn each_port_has_the_nodes_that_have_an_address() {
    let service = service(&[(Protocol::Tcp, 80, 30080), (Protocol::Udp, 53, 30053)]);
    let targets = [
        target("b", true, Some("10.0.0.2")),
        target("a", false, Some("10.0.0.1")),
        target("c", true, None),
    ];
    let wanted = ports(&service, &targets, 25).unwrap();
    assert_eq!(wanted.left_out, 0);
    let nodes = |port: u16| vec![("10.0.0.1".to_owned(), port), ("10.0.0.2".to_owned(), port)];
    assert_eq!(wanted.ports[0].nodes, nodes(30080));
    assert_eq!(
        (wanted.ports[1].protocol, &wanted.ports[1].nodes),
        ("UDP", &nodes(30053))
    );
}

#[test]
fn over_the_limit_ready_nodes_come_first_then_names() {
    let service = service(&[(Protocol::Tcp, 80, 30080)]);
    let targets = [
        target("d", true, Some("10.0.0.4")),
        target("a", false, Some("10.0.0.1")),
        target("c", true, Some("10.0.0.3")),
        target("b", true, Some("10.0.0.2")),
    ];
    let wanted = ports(&service, &targets, 2).unwrap();
    let addresses: Vec<&str> = wanted.ports[0]
        .nodes
        .iter()
        .map(|(address, _)| address.as_str())
        .collect();
    assert_eq!((wanted.left_out, addresses), (2, vec!["10.0.0.2", "10.0.0.3"]));
}

#[test]
fn what_cannot_be_had_is_refused() {
    let mut service = service(&[(Protocol::Sctp, 80, 30080)]);
    let failure = ports(&service, &[], 25).unwrap_err();
    assert!(
        failure.message().contains("no load balancers for SCTP"),
        "{}",
        failure.message()
    );
    service.ports[0].protocol = Protocol::Tcp;
    service.ports[0].node_port = None;
    let failure = ports(&service, &[], 25).unwrap_err();
    assert!(
        failure.message().contains("allocateLoadBalancerNodePorts"),
        "{}",
        failure.message()
    );
    service.annotations = vec![Pair::new(annotations::TABLE.key("internal"), "true")];
    service.ip_families = vec![IpFamily::Ipv6];
    let failure = settings(&service, &BalancerConfig::default()).unwrap_err();
    assert!(
        failure.message().contains("ServiceNet has no IPv6"),
        "{}",
        failure.message()
    );
}

#[test]
fn tcp_probe_needs_configuration_or_local_traffic_never_udp() {
    let mut service = service(&[(Protocol::Tcp, 80, 30080), (Protocol::Udp, 53, 30053)]);
    let ports = ports(&service, &[], 25).unwrap().ports;
    let none = settings(&service, &BalancerConfig::default()).unwrap();
    assert_eq!(none.monitor_of(&ports[0]), None);
    service.traffic_policy = TrafficPolicy::Local;
    let local = settings(&service, &BalancerConfig::default()).unwrap();
    let monitor = local.monitor_of(&ports[0]).unwrap();
    let numbers = (monitor.delay, monitor.timeout, monitor.attempts_before_deactivation);
    assert_eq!((monitor.kind.as_str(), numbers), ("CONNECT", (10, 5, 3)));
    assert_eq!(local.monitor_of(&ports[1]), None);
}

#[test]
fn load_balancer_ip_is_one_that_the_account_has() {
    let mut service = service(&[]);
    service.load_balancer_ip = Some("192.0.2.1".into());
    let listed = [Listed {
        id: 1,
        name: "other".into(),
        status: "ACTIVE".into(),
        virtual_ips: vec![vip(7, "192.0.2.1", "PUBLIC")],
    }];
    let shared = Source::Existing(vip(7, "192.0.2.1", "PUBLIC"));
    assert_eq!(Source::new(&service, false, &listed), Ok(shared));
    for (internal, listed) in [(true, &listed[..]), (false, &[])] {
        let failure = Source::new(&service, internal, listed).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Invalid);
    }
    service.load_balancer_ip = Some("web".into());
    assert!(Source::new(&service, false, &listed).is_err());
}

#[test]
fn virtual_ips_fit_by_kind_and_family() {
    let public = [vip(1, "192.0.2.1", "PUBLIC"), vip(2, "2001:db8::1", "PUBLIC")];
    let inside = [vip(3, "10.1.2.3", "SERVICENET")];
    let new = |internal| Source::New { internal };
    let (v4, v6) = ([IpFamily::Ipv4], [IpFamily::Ipv4, IpFamily::Ipv6]);
    assert!(new(false).fits(&public, &v4) && new(false).fits(&public, &v6));
    assert!(!new(false).fits(&public[..1], &v6) && !new(true).fits(&public, &v4));
    assert!(new(true).fits(&inside, &v4) && !new(false).fits(&inside, &v4));
    assert!(Source::Existing(public[0].clone()).fits(&public, &v4));
    assert!(!Source::Existing(public[0].clone()).fits(&inside, &v4));
    let reversed = [IpFamily::Ipv6, IpFamily::Ipv4];
    let shown: Vec<String> = addresses(&public, &reversed).iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["2001:db8::1", "192.0.2.1"]);
}
