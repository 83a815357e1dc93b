use super::super::annotations;
use super::*;

fn service(change: impl FnOnce(&mut Service)) -> Service {
    let mut service = Service::new("default", "web", "1bf6e8a3-6f0a-4d3e-9a3c-000000000001");
    service.ports = vec![port(443, Protocol::Tcp), port(80, Protocol::Tcp)];
    change(&mut service);
    service
}

fn port(port: u16, protocol: Protocol) -> ServicePort {
    ServicePort {
        name: None,
        protocol,
        port,
        node_port: None,
        target_port: None,
        app_protocol: None,
    }
}

fn wanted<'a>(service: &'a Service, targets: &'a [Target]) -> Result<Wanted<'a>, Failure> {
    Wanted::new(service, annotations::read(service)?, targets)
}

#[test]
fn ports_are_one_range_and_machines_come_from_provider_ids() {
    let service = service(|service| service.session_affinity_seconds = Some(10));
    let target = |id: Option<&str>| Target {
        node: NodeRef {
            provider_id: id.map(str::to_owned),
            ..NodeRef::named("n")
        },
        ready: true,
    };
    let targets = [
        target(Some("gce://p/us-central1-b/n.c.p.internal")),
        target(None),
        target(Some("aws:///z/i")),
    ];
    let wanted = wanted(&service, &targets).unwrap();
    assert_eq!(
        (&*wanted.name, &*wanted.port_range(), wanted.affinity()),
        ("a1bf6e8a36f0a4d3e9a3c00000000000", "80-443", "CLIENT_IP")
    );
    let paths: Vec<String> = wanted.machines.iter().map(Member::path).collect();
    assert_eq!(paths, ["projects/p/zones/us-central1-b/instances/n"]);
    assert_eq!(wanted.sources, ["0.0.0.0/0"]);
    assert_eq!(wanted.check("id"), ("k8s-id-node".into(), 10256, "/healthz"));
}

#[test]
fn a_local_service_has_a_check_of_its_own() {
    let service = service(|service| {
        service.traffic_policy = TrafficPolicy::Local;
        service.health_check_node_port = Some(32_000);
        service.source_ranges = vec!["10.0.0.0/8".into(), "fd00::/64".into()];
    });
    let wanted = wanted(&service, &[]).unwrap();
    assert_eq!(
        wanted.check("id"),
        ("a1bf6e8a36f0a4d3e9a3c00000000000".into(), 32_000, "/healthz")
    );
    assert_eq!(wanted.sources, ["10.0.0.0/8"]);
}

#[test]
fn what_compute_engine_does_not_have_is_refused_all_at_once() {
    let service = service(|service| {
        service.ports = vec![port(80, Protocol::Sctp), port(81, Protocol::Udp)];
        service.ip_families = vec![IpFamily::Ipv6];
    });
    let failure = wanted(&service, &[]).err().unwrap();
    assert_eq!(failure.kind, FailureKind::Invalid);
    for part in ["the same protocol", "SCTP", "IPv4"] {
        assert!(failure.message().contains(part), "{failure:?}");
    }
}
