use super::super::annotations;
use serde_json::json;

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

fn pairs(set: &[(&str, &str)]) -> Vec<Pair> {
    let pairs = set
        .iter()
        .map(|(key, value)| Pair::new(annotations::TABLE.key(key), *value));
    pairs.collect()
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
    let suffix = |front: usize| wanted.suffix(&wanted.fronts[front]);
    assert_eq!((suffix(0), suffix(1)), ("", "-IPv6"));
    assert_eq!(wanted.tag(), "default/web");
}

#[test]
fn long_names_of_frontends_end_with_a_character_that_azure_allows() {
    let base = "a".repeat(32);
    let of = |subnet: &str| front_name(&base, Some(subnet));
    let long = "s".repeat(42);
    assert_eq!(of(&long), format!("{base}-{long}"));
    assert_eq!(of(&format!("{long}s")), format!("{base}-{long}"));
    assert_eq!(
        of(&format!("{}-end", "s".repeat(41))),
        format!("{base}-{}_", "s".repeat(41))
    );
    assert_eq!(front_name(&base, None), base);
}

#[test]
fn sources_are_of_the_family_and_the_internet_where_there_are_none() {
    let config = config();
    assert_eq!(
        wanted(&service(|_| {}), &config).unwrap().fronts[0].sources,
        ["Internet"]
    );
    let named = service(|service| service.source_ranges = vec!["10.1.2.3/8".into(), "fd00::/8".into()]);
    assert_eq!(wanted(&named, &config).unwrap().fronts[0].sources, ["10.0.0.0/8"]);
}

#[test]
fn internal_ipv6_does_not_float_and_addresses_are_in_the_clouds_spelling() {
    let config = config();
    let both = service(|service| {
        service.ip_families = vec![IpFamily::Ipv4, IpFamily::Ipv6];
        service.annotations = pairs(&[("load-balancer-internal", "true"), ("load-balancer-ipv6", "FD00:0::7")]);
    });
    let shown = wanted(&both, &config).unwrap();
    let floating: Vec<bool> = shown.fronts.iter().map(|front| front.is_floating).collect();
    assert_eq!(floating, [true, false]);
    assert_eq!(shown.fronts[1].ip.as_deref(), Some("fd00::7"));
}

#[test]
fn what_azure_does_not_have_is_refused_all_at_once() {
    let refused = |change: &dyn Fn(&mut Service), annotations: &[(&str, &str)]| {
        let wrong = service(|service| {
            service.annotations = pairs(annotations);
            change(service);
        });
        let failure = wanted(&wrong, &Config::default()).err().unwrap();
        assert_eq!(failure.kind, FailureKind::Invalid);
        failure.message().to_owned()
    };
    let has = |text: &str, parts: &[&str]| {
        parts
            .iter()
            .for_each(|part| assert!(text.contains(part), "{part}: {text}"))
    };
    let sctp = |service: &mut Service| service.ports = vec![port(80, Protocol::Sctp)];
    let parts = ["SCTP", "subnetName", "vnetName", "securityGroupName"];
    has(&refused(&sctp, &[("load-balancer-internal", "true")]), &parts);
    let all = ["internal", "enable-high-availability-ports"].map(|key| format!("load-balancer-{key}"));
    let all = [(all[0].as_str(), "true"), (all[1].as_str(), "true")];
    let apart = ("disable-load-balancer-floating-ip", "true");
    let v6 = |service: &mut Service| service.ip_families = vec![IpFamily::Ipv6];
    has(
        &refused(&v6, &[all[0], all[1], ("pls-create", "true")]),
        &["floating IP", "private link services have IPv4"],
    );
    has(
        &refused(&|_| {}, &[all[0], all[1], apart]),
        &["high-availability ports need"],
    );
    let without_node_port = |service: &mut Service| service.ports[0].node_port = None;
    let deny = ("deny-all-except-load-balancer-source-ranges", "true");
    has(&refused(&without_node_port, &[apart, deny]), &["node ports", "cut off"]);
    has(
        &refused(&|_| {}, &[("pls-create", "true")]),
        &["needs an internal address"],
    );
}
