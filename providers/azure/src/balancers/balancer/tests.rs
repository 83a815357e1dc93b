use super::super::annotations;
use super::*;
use crate::config::Config;

const BASE: &str = "a1bf6e8a36f0a4d3e9a3c00000000000";

fn service(number: u8, port: u16) -> Service {
    let mut service = Service::new("default", "web", format!("{number}bf6e8a3-6f0a-4d3e-9a3c-000000000001"));
    service.ip_families = vec![IpFamily::Ipv4, IpFamily::Ipv6];
    service.ports = vec![ServicePort {
        name: None,
        protocol: Protocol::Tcp,
        port,
        node_port: Some(30_000 + port),
        target_port: None,
        app_protocol: None,
    }];
    service
}

fn put_in(balancer: &mut Value, service: &Service) -> Result<bool, Failure> {
    put_in_with(
        balancer,
        service,
        json!({ "vnetName": "v", "subnetName": "x", "securityGroupName": "g" }),
    )
}

fn put_in_with(balancer: &mut Value, service: &Service, config: Value) -> Result<bool, Failure> {
    let config: Config = serde_json::from_value(config).unwrap();
    let targets = [Target {
        node: NodeRef {
            addresses: vec![
                Address::new(AddressKind::InternalIp, "10.0.0.4"),
                Address::new(AddressKind::InternalIp, "fd00::4"),
            ],
            ..NodeRef::named("one")
        },
        ready: true,
    }];
    let wanted = Wanted::new(service, annotations::read(service)?, &targets, &config, "kubernetes")?;
    let place = Place {
        path: "/subscriptions/s/lb".into(),
        network: "/subscriptions/s/v".into(),
        subnet: "/subscriptions/s/v/subnets/x".into(),
    };
    let addresses = ["/subscriptions/s/ip4".to_owned(), "/subscriptions/s/ip6".to_owned()];
    let addresses = if wanted.asked.internal { &[][..] } else { &addresses };
    serve(balancer, &wanted, addresses, &place).map(|(changed, _)| changed)
}

fn names<'a>(balancer: &'a Value, list: &str) -> Vec<&'a str> {
    items(balancer, list).iter().map(name).collect()
}

#[test]
fn both_families_are_served_and_left_without_a_trace() {
    let mut balancer = empty("westeurope");
    let service = service(1, 80);
    assert!(put_in(&mut balancer, &service).unwrap());
    let whole = balancer.clone();
    assert!(
        !put_in(&mut balancer, &service).unwrap(),
        "the second time nothing changes"
    );
    assert_eq!(balancer, whole);
    let v6 = format!("{BASE}-IPv6");
    assert_eq!(names(&balancer, FRONTS), [BASE, &v6]);
    assert_eq!(names(&balancer, POOLS), ["kubernetes", "kubernetes-IPv6"]);
    let rules = [format!("{BASE}-TCP-80"), format!("{BASE}-TCP-80-IPv6")];
    assert_eq!(names(&balancer, RULES), rules);
    assert_eq!(names(&balancer, PROBES), rules);
    assert!(leave(&mut balancer, BASE) && is_bare(&mut balancer));
    assert_eq!((names(&balancer, RULES).len(), names(&balancer, PROBES).len()), (0, 0));
    assert!(!leave(&mut balancer, BASE));
}

#[test]
fn ids_in_another_case_and_what_others_have_are_no_change() {
    let mut balancer = empty("westeurope");
    let service = service(1, 80);
    put_in(&mut balancer, &service).unwrap();
    let foreign =
        json!({ "name": "outbound", "properties": { "publicIPAddress": { "id": "/subscriptions/s/other" } } });
    items_mut(&mut balancer, FRONTS).unwrap().push(foreign);
    let text = balancer
        .to_string()
        .replace("/subscriptions/s/ip4", "/subscriptions/S/IP4");
    let mut balancer: Value = serde_json::from_str(&text).unwrap();
    assert!(!put_in(&mut balancer, &service).unwrap());
    assert!(leave(&mut balancer, BASE));
    assert_eq!(names(&balancer, FRONTS), ["outbound"]);
    assert!(!is_bare(&mut balancer));
}

#[test]
fn shared_frontend_goes_with_last_user_and_port_has_one_owner() {
    let mut balancer = empty("westeurope");
    put_in(&mut balancer, &service(1, 80)).unwrap();
    let clash = put_in(&mut balancer.clone(), &service(2, 80)).unwrap_err();
    assert_eq!(clash.kind, FailureKind::AlreadyExists);
    assert!(put_in(&mut balancer, &service(2, 81)).unwrap());
    assert_eq!(names(&balancer, FRONTS).len(), 2);
    leave(&mut balancer, BASE);
    assert_eq!((names(&balancer, FRONTS).len(), names(&balancer, RULES).len()), (2, 2));
    leave(&mut balancer, &BASE.replacen("a1", "a2", 1));
    assert!(is_bare(&mut balancer));
}

#[test]
fn pool_of_interfaces_is_untouched_and_reports_it() {
    let pool = json!({ "name": "Kubernetes", "properties": { "backendIPConfigurations": [{ "id": "/x" }] } });
    let mut balancer = json!({ "properties": { "backendAddressPools": [pool] } });
    let before = balancer.clone();
    let failure = fill_pool(&mut balancer, "kubernetes", &[], "/v").unwrap_err();
    assert!(failure.message().contains("nodeIP"), "{failure:?}");
    assert_eq!(balancer, before);
}

fn annotated(mut service: Service, annotations: &[(&str, &str)]) -> Service {
    let pairs = annotations
        .iter()
        .map(|(key, value)| Pair::new(annotations::TABLE.key(key), *value));
    service.annotations = pairs.collect();
    service
}

#[test]
fn port_without_rule_keeps_the_frontend_and_one_without_probe_loses_it() {
    let mut balancer = empty("westeurope");
    put_in(&mut balancer, &service(1, 80)).unwrap();
    let no_probe = annotated(
        service(1, 80),
        &[("service.beta.kubernetes.io/port_80_no_probe_rule", "true")],
    );
    assert!(put_in(&mut balancer, &no_probe).unwrap());
    assert!(!put_in(&mut balancer, &no_probe).unwrap());
    assert_eq!((names(&balancer, RULES).len(), names(&balancer, PROBES).len()), (2, 0));
    assert!(
        items(&balancer, RULES)
            .iter()
            .all(|rule| reference(rule, "probe").is_empty())
    );
    let no_rule = annotated(
        service(1, 80),
        &[("service.beta.kubernetes.io/port_80_no_lb_rule", "true")],
    );
    assert!(put_in(&mut balancer, &no_rule).unwrap());
    assert!(!put_in(&mut balancer, &no_rule).unwrap());
    assert_eq!((names(&balancer, RULES).len(), names(&balancer, FRONTS).len()), (0, 2));
    assert!(leave(&mut balancer, BASE) && is_bare(&mut balancer));
}

#[test]
fn probe_of_all_services_goes_with_the_last_rule() {
    let mut balancer = empty("westeurope");
    let shared =
        || json!({ "vnetName": "v", "securityGroupName": "g", "clusterServiceLoadBalancerHealthProbeMode": "shared" });
    put_in_with(&mut balancer, &service(1, 80), shared()).unwrap();
    put_in_with(&mut balancer, &service(2, 81), shared()).unwrap();
    assert_eq!(names(&balancer, PROBES), [SHARED_PROBE]);
    assert!(!put_in_with(&mut balancer, &service(1, 80), shared()).unwrap());
    leave(&mut balancer, BASE);
    assert_eq!(names(&balancer, PROBES), [SHARED_PROBE]);
    // The other one gets probes of its own.
    put_in(&mut balancer, &service(2, 81)).unwrap();
    assert_eq!(names(&balancer, PROBES).len(), 2);
    assert!(!names(&balancer, PROBES).contains(&SHARED_PROBE));
}

#[test]
fn internal_frontends_have_an_address_of_each_family() {
    let mut balancer = empty("westeurope");
    let service = annotated(
        service(1, 80),
        &[("load-balancer-internal", "true"), ("load-balancer-ipv6", "fd00::7")],
    );
    put_in(&mut balancer, &service).unwrap();
    assert!(!put_in(&mut balancer, &service).unwrap());
    let fronts: Vec<&Value> = all_fronts(&balancer).iter().map(|front| &front["properties"]).collect();
    let subnet = json!({ "id": "/subscriptions/s/v/subnets/x" });
    assert_eq!(
        fronts[0],
        &json!({ "subnet": subnet, "privateIPAllocationMethod": "Dynamic" })
    );
    let v6 = json!({
        "subnet": subnet, "privateIPAllocationMethod": "Static", "privateIPAddress": "fd00::7", "privateIPAddressVersion": "IPv6",
    });
    assert_eq!(fronts[1], &v6);
    assert_eq!(in_pool(&balancer, "kubernetes-IPv6"), ["fd00::4"]);
}

#[test]
fn rule_for_all_ports_has_its_frontend_alone() {
    let mut balancer = empty("westeurope");
    let fixed = [("load-balancer-internal", "true"), ("load-balancer-ipv4", "10.0.0.9")];
    let all = [
        fixed[0],
        fixed[1],
        ("load-balancer-enable-high-availability-ports", "true"),
    ];
    let one_family = |number, port, set| {
        let mut service = annotated(service(number, port), set);
        service.ip_families.pop();
        service
    };
    put_in(&mut balancer, &one_family(1, 80, &all)).unwrap();
    assert_eq!(names(&balancer, RULES), [format!("{BASE}-TCP-80")]);
    let clash = put_in(&mut balancer.clone(), &one_family(2, 81, &fixed)).unwrap_err();
    assert_eq!(clash.kind, FailureKind::AlreadyExists);
    let mut balancer = empty("westeurope");
    put_in(&mut balancer, &one_family(1, 80, &fixed)).unwrap();
    let clash = put_in(&mut balancer, &one_family(2, 81, &all)).unwrap_err();
    assert_eq!(clash.kind, FailureKind::AlreadyExists);
}

#[test]
fn private_links_are_at_private_addresses_and_without_floating_ip() {
    let linked = |service: &Service| {
        let mut balancer = empty("westeurope");
        put_in(&mut balancer, service).unwrap();
        may_be_linked(&balancer, &all_fronts(&balancer)[0])
    };
    assert!(!linked(&service(1, 80)));
    assert!(linked(&annotated(
        service(1, 80),
        &[("load-balancer-internal", "true")]
    )));
    assert!(linked(&annotated(
        service(1, 80),
        &[("disable-load-balancer-floating-ip", "true")]
    )));
}
