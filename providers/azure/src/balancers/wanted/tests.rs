use super::super::annotations;
use super::*;

fn config() -> Config {
    serde_json::from_value(json!({ "vnetName": "vnet", "subnetName": "subnet", "securityGroupName": "nsg" })).unwrap()
}

fn service(change: impl FnOnce(&mut Service)) -> Service {
    let mut service = Service::new("default", "web", "1bf6e8a3-6f0a-4d3e-9a3c-000000000001");
    service.ports = vec![port(80, Protocol::Tcp), port(53, Protocol::Udp)];
    change(&mut service);
    service
}

fn port(port: u16, protocol: Protocol) -> ServicePort {
    ServicePort {
        name: None,
        protocol,
        port,
        node_port: Some(30_000 + port),
        target_port: None,
        app_protocol: None,
    }
}

fn wanted<'a>(service: &'a Service, config: &Config) -> Result<Wanted<'a>, Failure> {
    Wanted::new(service, annotations::read(service)?, &[], config, "kubernetes")
}

#[test]
fn names_are_upstreams() {
    let both = service(|service| service.ip_families = vec![IpFamily::Ipv4, IpFamily::Ipv6]);
    let wanted = wanted(&both, &config()).unwrap();
    let base = "a1bf6e8a36f0a4d3e9a3c00000000000";
    let shown: Vec<_> = wanted
        .fronts
        .iter()
        .map(|front| (front.name.clone(), front.pool.clone(), front.address.clone()))
        .collect();
    let (v4, v6) = (format!("kubernetes-{base}"), format!("kubernetes-{base}-IPv6"));
    assert_eq!(shown[0], (base.into(), "kubernetes".into(), v4));
    assert_eq!(shown[1], (format!("{base}-IPv6"), "kubernetes-IPv6".into(), v6));
    let rule = |front: usize, port: usize| wanted.rule_name(&wanted.fronts[front], &both.ports[port]);
    assert_eq!(
        (rule(0, 0), rule(1, 1)),
        (format!("{base}-TCP-80"), format!("{base}-UDP-53-IPv6"))
    );
    assert_eq!(wanted.tag(), "default/web");
}

#[test]
fn probes_follow_protocol_and_policy() {
    let cluster = service(|_| {});
    let config = config();
    let open = wanted(&cluster, &config).unwrap();
    let probe = open.probe(&cluster.ports[0]).unwrap();
    assert_eq!((&probe["protocol"], &probe["port"]), (&json!("Tcp"), &json!(30_080)));
    assert_eq!(open.probe(&cluster.ports[1]), None);
    assert_eq!(open.fronts[0].sources, ["Internet"]);
    let local = service(|service| {
        service.traffic_policy = TrafficPolicy::Local;
        service.health_check_node_port = Some(32_000);
        service.session_affinity_seconds = Some(10);
        service.source_ranges = vec!["10.1.2.3/8".into(), "fd00::/8".into()];
    });
    let wanted = wanted(&local, &config).unwrap();
    let probe = wanted.probe(&local.ports[1]).unwrap();
    assert_eq!(
        (&probe["port"], &probe["requestPath"]),
        (&json!(32_000), &json!("/healthz"))
    );
    assert_eq!(wanted.rule(&local.ports[0])["loadDistribution"], "SourceIP");
    assert_eq!(wanted.fronts[0].sources, ["10.0.0.0/8"], "of the family alone");
}

#[test]
fn what_azure_does_not_have_is_refused_all_at_once() {
    let wrong = service(|service| {
        service.ports = vec![port(80, Protocol::Sctp)];
        service.ip_families = vec![IpFamily::Ipv6];
        service.annotations = vec![Pair::new(annotations::TABLE.key("load-balancer-internal"), "true")];
    });
    let failure = wanted(&wrong, &Config::default()).err().unwrap();
    assert_eq!(failure.kind, FailureKind::Invalid);
    for part in ["SCTP", "IPv4", "subnetName", "vnetName", "securityGroupName"] {
        assert!(failure.message().contains(part), "{part}: {failure:?}");
    }
}
