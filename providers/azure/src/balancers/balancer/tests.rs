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
    let config = json!({ "vnetName": "v", "securityGroupName": "g" });
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
    serve(balancer, &wanted, &addresses, &place)
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
