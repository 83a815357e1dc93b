//! What a Service requests, for every feature of Octavia and every kind of port.

use super::*;
use crate::balancers::annotations::Checks;

const CHECKS: Checks = Checks {
    delay: 5,
    timeout: 3,
    max_retries: 1,
    max_retries_down: 3,
};

const ALL: Features = Features {
    tags: true,
    timeouts: true,
    flavors: true,
    allowed_cidrs: true,
    zones: true,
    http_monitor: true,
    http_monitor_on_udp: true,
};

fn port(protocol: Protocol, port: u16) -> ServicePort {
    ServicePort {
        name: None,
        protocol,
        port,
        node_port: Some(30_000 + port),
        target_port: None,
        app_protocol: None,
    }
}

fn service(ports: &[ServicePort]) -> Service {
    let mut service = Service::new("default", "web", "u-1");
    service.ports = ports.to_vec();
    service.ip_families = vec![IpFamily::Ipv4];
    service
}

fn wanted<'a>(service: &'a Service, asked: &'a Asked<'a>, features: Features) -> Result<Wanted<'a>, Failure> {
    Wanted::new(&Inputs {
        service,
        targets: &[],
        asked,
        features,
        name: "kube_service_c_default_web",
        member_subnet_id: None,
    })
}

fn mixed() -> Service {
    service(&[
        port(Protocol::Tcp, 443),
        port(Protocol::Udp, 443),
        port(Protocol::Sctp, 99),
    ])
}

/// Protocols of listeners and pools.
fn protocols(asked: &Asked<'_>) -> String {
    let service = mixed();
    let wanted = wanted(&service, asked, ALL).unwrap();
    let words = wanted
        .ports
        .iter()
        .map(|port| format!("{}>{}", port.protocol, port.pool_protocol));
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn only_tcp_ports_take_http_tls_or_proxy_protocol() {
    assert_eq!(protocols(&Asked::default()), "TCP>TCP UDP>UDP SCTP>SCTP");
    let forwarded = Asked {
        forwarded_for: true,
        ..Asked::default()
    };
    assert_eq!(protocols(&forwarded), "HTTP>HTTP UDP>UDP SCTP>SCTP");
    let tls = Asked {
        tls_container: Some("https://b/v1/secrets/s"),
        ..Asked::default()
    };
    assert_eq!(protocols(&tls), "TERMINATED_HTTPS>HTTP UDP>UDP SCTP>SCTP");
    let proxy = Asked {
        proxy_protocol: Some("PROXYV2"),
        ..tls
    };
    assert_eq!(protocols(&proxy), "TERMINATED_HTTPS>PROXYV2 UDP>UDP SCTP>SCTP");
}

/// Kinds of monitors and where members are checked.
fn monitors(asked: &Asked<'_>, policy: TrafficPolicy, features: Features) -> String {
    let mut service = mixed();
    service.traffic_policy = policy;
    service.health_check_node_port = Some(31_000);
    let mut target = Target {
        node: NodeRef::named("n"),
        ready: true,
    };
    target.node.addresses = vec![Address::new(AddressKind::InternalIp, "10.0.0.1")];
    let inputs = Inputs {
        service: &service,
        targets: &[&target],
        asked,
        features,
        name: "x",
        member_subnet_id: None,
    };
    let wanted = Wanted::new(&inputs).unwrap();
    let words = wanted.ports.iter().map(|port| {
        let kind = port.monitor.as_ref().map_or("-", |monitor| monitor.kind.as_str());
        let at = port.members.first().and_then(|member| member.monitor_port);
        format!("{kind}@{}", at.map_or("-".into(), |at| at.to_string()))
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn members_are_checked_by_protocol_or_by_the_nodes_health_port() {
    use TrafficPolicy::{Cluster, Local};
    let checked = Asked {
        checks: Some(CHECKS),
        ..Asked::default()
    };
    assert_eq!(monitors(&checked, Cluster, ALL), "TCP@- UDP-CONNECT@- SCTP@-");
    assert_eq!(monitors(&checked, Local, ALL), "HTTP@31000 HTTP@31000 HTTP@31000");
    let older = Features {
        http_monitor_on_udp: false,
        ..ALL
    };
    assert_eq!(monitors(&checked, Local, older), "HTTP@31000 UDP-CONNECT@- SCTP@-");
    let ovn = Features::of((2, 30), true);
    assert_eq!(monitors(&checked, Local, ovn), "TCP@- UDP-CONNECT@- SCTP@-");
    assert_eq!(monitors(&Asked::default(), Local, ALL), "-@- -@- -@-");
}

#[test]
fn what_octavia_is_too_old_for_is_left_to_it() {
    let (service, asked) = (mixed(), Asked::default());
    let old = &wanted(&service, &asked, Features::of((2, 0), false)).unwrap().ports[0];
    assert_eq!((old.timeouts, &old.allowed_cidrs, old.tagged), (None, &None, false));
    let new = &wanted(&service, &asked, ALL).unwrap().ports[0];
    assert_eq!((new.timeouts, new.tagged), (Some(asked.timeouts), true));
    assert_eq!(new.allowed_cidrs.as_deref(), Some(&["0.0.0.0/0".to_owned()][..]));
}

#[test]
fn clients_are_allowed_by_ranges_of_the_load_balancers_family() {
    let mut both = mixed();
    both.source_ranges = ["10.1.2.3/8", "fd00::/8", "10.0.0.0/8"].map(Into::into).to_vec();
    assert_eq!(allowed_cidrs(&both).unwrap(), ["10.0.0.0/8"]);
    both.ip_families = vec![IpFamily::Ipv6, IpFamily::Ipv4];
    assert_eq!(allowed_cidrs(&both).unwrap(), ["fd00::/8"]);
    both.source_ranges.clear();
    assert_eq!(allowed_cidrs(&both).unwrap(), ["::/0"]);
    both.source_ranges = vec!["10.0.0.0/8".into()];
    let wrong = allowed_cidrs(&both).unwrap_err();
    assert!(wrong.contains("IPv6"), "an empty list would let everybody in: {wrong}");
}

#[test]
fn all_that_octavia_cannot_do_is_reported_together() {
    let mut service = service(&[port(Protocol::Tcp, 80), port(Protocol::Tcp, 81)]);
    service.ports[0].node_port = None;
    service.ports[1].node_port = None;
    service.source_ranges = vec!["fd00::/8".into()];
    let failure = wanted(&service, &Asked::default(), ALL).unwrap_err();
    for part in ["port 80 has no node port", "port 81 has no node port", "IPv4"] {
        assert!(failure.message().contains(part), "{failure:?}");
    }
}

#[test]
fn session_affinity_is_by_the_clients_address() {
    let mut service = mixed();
    assert_eq!(
        wanted(&service, &Asked::default(), ALL).unwrap().ports[0].persistence,
        ""
    );
    service.session_affinity_seconds = Some(10_800);
    assert_eq!(
        wanted(&service, &Asked::default(), ALL).unwrap().ports[0].persistence,
        "SOURCE_IP"
    );
}
