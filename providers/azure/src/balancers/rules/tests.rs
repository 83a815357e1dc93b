use super::super::annotations;
use super::*;
use crate::config::Config;

const BASE: &str = "a1bf6e8a36f0a4d3e9a3c00000000000";
const INTERNAL: (&str, &str) = ("load-balancer-internal", "true");
const APART: (&str, &str) = ("disable-load-balancer-floating-ip", "true");
const ALL: (&str, &str) = ("load-balancer-enable-high-availability-ports", "true");

fn port(name: &str, port: u16, protocol: Protocol) -> ServicePort {
    ServicePort {
        name: Some(name.into()),
        protocol,
        port,
        node_port: Some(30_000 + port),
        target_port: None,
        app_protocol: None,
    }
}

/// TCP 80 and 443, UDP 53.
fn service(annotations: &[(&str, &str)]) -> Service {
    let pairs = annotations
        .iter()
        .map(|(key, value)| Pair::new(annotations::TABLE.key(key), *value));
    Service {
        ports: vec![
            port("web", 80, Protocol::Tcp),
            port("secure", 443, Protocol::Tcp),
            port("dns", 53, Protocol::Udp),
        ],
        annotations: pairs.collect(),
        ..Service::new("default", "web", "1bf6e8a3-6f0a-4d3e-9a3c-000000000001")
    }
}

/// An annotation of a port.
fn of_port(port: u16, key: &str) -> String {
    format!("service.beta.kubernetes.io/port_{port}_{key}")
}

fn local(service: &mut Service) {
    service.traffic_policy = TrafficPolicy::Local;
    service.health_check_node_port = Some(32_000);
}

/// The rules of each frontend.
fn rules_with(service: &Service, more: &Value) -> Vec<Vec<WantedRule>> {
    let mut config = json!({ "vnetName": "vnet", "subnetName": "subnet", "securityGroupName": "nsg" });
    config
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let config: Config = serde_json::from_value(config).unwrap();
    let asked = annotations::read(service).unwrap();
    let wanted = Wanted::new(service, asked, &[], &config, "kubernetes").unwrap();
    wanted.fronts.iter().map(|front| of(&wanted, front)).collect()
}

fn rules(service: &Service) -> Vec<WantedRule> {
    rules_with(service, &json!({})).remove(0)
}

/// Names of rules, and of their probes.
fn names<'a>(rules: &'a [WantedRule]) -> Vec<(&'a str, Option<&'a str>)> {
    let short = |name: &'a str| name.trim_start_matches(BASE).trim_start_matches('-');
    let one = |rule: &'a WantedRule| (short(&rule.name), rule.probe.as_ref().map(|probe| short(&probe.name)));
    rules.iter().map(one).collect()
}

fn probe(rule: &WantedRule) -> &Value {
    &rule.probe.as_ref().unwrap().properties
}

#[test]
fn each_port_has_a_rule_and_tcp_a_probe_of_its_own() {
    let rules = rules(&service(&[]));
    let expected = [
        ("TCP-80", Some("TCP-80")),
        ("TCP-443", Some("TCP-443")),
        ("UDP-53", None),
    ];
    assert_eq!(names(&rules), expected);
    let tcp = json!({
        "protocol": "Tcp", "frontendPort": 80, "backendPort": 80, "enableFloatingIP": true, "loadDistribution": "Default",
        "disableOutboundSnat": false, "enableTcpReset": true, "idleTimeoutInMinutes": 4,
    });
    assert_eq!(rules[0].properties, tcp);
    let plain = json!({ "protocol": "Tcp", "port": 30_080, "intervalInSeconds": 5, "probeThreshold": 2 });
    assert_eq!(probe(&rules[0]), &plain);
}

#[test]
fn nodes_that_report_their_pods_have_one_probe_for_all_ports() {
    let interval = of_port(32_000, "health-probe_interval");
    let mut service = service(&[(&interval, "7")]);
    local(&mut service);
    service.session_affinity_seconds = Some(10);
    let rules = rules(&service);
    let shared = Some("TCP-32000");
    assert_eq!(
        names(&rules),
        [("TCP-80", shared), ("TCP-443", shared), ("UDP-53", shared)]
    );
    let expected = json!({ "protocol": "Http", "port": 32_000, "requestPath": "/healthz", "intervalInSeconds": 7, "probeThreshold": 2 });
    assert_eq!(probe(&rules[2]), &expected);
    assert_eq!(rules[0].properties["loadDistribution"], "SourceIP");
}

#[test]
fn a_single_port_is_set_apart() {
    let keys = ["protocol", "port", "interval", "num-of-probe", "request-path"]
        .map(|key| of_port(80, &format!("health-probe_{key}")));
    let (no_rule, no_probe) = (of_port(53, "no_lb_rule"), of_port(443, "no_probe_rule"));
    let mut service = service(&[
        ("load-balancer-health-probe-protocol", "https"),
        ("load-balancer-health-probe-request-path", "/all"),
        (&keys[0], "http"),
        (&keys[1], "secure"),
        (&keys[2], "10"),
        (&keys[3], "3"),
        (&keys[4], "/one"),
        (&no_rule, "true"),
        (&no_probe, "true"),
    ]);
    let rules_of = rules(&service);
    assert_eq!(names(&rules_of), [("TCP-80", Some("TCP-80")), ("TCP-443", None)]);
    let expected = json!({ "protocol": "Http", "port": 30_443, "requestPath": "/one", "intervalInSeconds": 10, "probeThreshold": 3 });
    assert_eq!(probe(&rules_of[0]), &expected);
    // A port that names what is probed keeps its own probe where Nodes report their Pods.
    local(&mut service);
    assert_eq!(names(&rules(&service)), [("TCP-80", Some("TCP-80")), ("TCP-443", None)]);
}

#[test]
fn protocol_of_the_port_comes_before_that_of_the_application_and_of_all() {
    let own = of_port(443, "health-probe_protocol");
    let mut service = service(&[("load-balancer-health-probe-protocol", "https"), (&own, "tcp")]);
    service.ports[0].app_protocol = Some("HTTP".into());
    service.ports[1].app_protocol = Some("https".into());
    service.ports.push(port("grpc", 90, Protocol::Tcp));
    service.ports[3].app_protocol = Some("kubernetes.io/h2c".into());
    service.ports.push(port("more", 91, Protocol::Tcp));
    let rules = rules(&service);
    let protocols: Vec<_> = [0, 1, 3, 4].iter().map(|at| &probe(&rules[*at])["protocol"]).collect();
    assert_eq!(protocols, ["Http", "Tcp", "Tcp", "Https"]);
}

#[test]
fn rules_without_floating_ip_and_internal_ipv6_lead_to_node_ports() {
    let to = |rule: &WantedRule| {
        (
            rule.properties["backendPort"].clone(),
            rule.properties["enableFloatingIP"].clone(),
        )
    };
    assert_eq!(to(&rules(&service(&[APART]))[0]), (json!(30_080), json!(false)));
    let mut both = service(&[INTERNAL]);
    both.ip_families = vec![IpFamily::Ipv4, IpFamily::Ipv6];
    let rules = rules_with(&both, &json!({}));
    assert_eq!(to(&rules[0][0]), (json!(80), json!(true)));
    assert_eq!(to(&rules[1][0]), (json!(30_080), json!(false)));
    assert_eq!(names(&rules[1])[0], ("TCP-80-IPv6", Some("TCP-80-IPv6")));
}

#[test]
fn one_rule_is_for_all_ports_of_an_internal_address() {
    let mut service = service(&[INTERNAL, ALL]);
    service.ports.rotate_right(1);
    service.ports.push(port("sctp", 70, Protocol::Sctp));
    let all = rules(&service);
    assert_eq!(names(&all), [("UDP-53", Some("UDP-53"))]);
    let expected = json!({
        "protocol": "All", "frontendPort": 0, "backendPort": 0, "enableFloatingIP": true, "loadDistribution": "Default",
        "disableOutboundSnat": false, "enableTcpReset": true, "idleTimeoutInMinutes": 4,
    });
    assert_eq!(all[0].properties, expected);
    assert_eq!(probe(&all[0])["port"], 30_080, "the first port that can be probed");
    local(&mut service);
    assert_eq!(names(&rules(&service)), [("UDP-53", Some("TCP-32000"))]);
    // Public addresses have none.
    service.annotations.remove(0);
    service.ports.pop();
    assert_eq!(rules(&service).len(), 3);
}

#[test]
fn all_services_share_a_probe_unless_nodes_report_their_pods() {
    let shared = json!({ "clusterServiceLoadBalancerHealthProbeMode": "Shared" });
    let no_probe = of_port(443, "no_probe_rule");
    let mut service = service(&[(&no_probe, "true")]);
    let rules = rules_with(&service, &shared).remove(0);
    let one = Some(SHARED_PROBE);
    assert_eq!(names(&rules), [("TCP-80", one), ("TCP-443", None), ("UDP-53", one)]);
    let expected = json!({ "protocol": "Http", "port": 10_256, "requestPath": "/healthz", "intervalInSeconds": 5, "probeThreshold": 2 });
    assert_eq!(probe(&rules[0]), &expected);
    let other = json!({
        "clusterServiceLoadBalancerHealthProbeMode": "shared", "clusterServiceSharedLoadBalancerHealthProbePort": 9000,
        "clusterServiceSharedLoadBalancerHealthProbePath": "/live",
    });
    let rules = rules_with(&service, &other).remove(0);
    assert_eq!(
        (&probe(&rules[0])["port"], &probe(&rules[0])["requestPath"]),
        (&json!(9000), &json!("/live"))
    );
    local(&mut service);
    assert_eq!(names(&rules_with(&service, &shared)[0])[0].1, Some("TCP-32000"));
}

#[test]
fn pods_behind_the_proxy_protocol_are_probed_themselves() {
    let mut service = service(&[INTERNAL, ("pls-create", "true"), ("pls-proxy-protocol", "true")]);
    local(&mut service);
    assert_eq!(names(&rules(&service))[0].1, Some("TCP-80"));
}

#[test]
fn long_names_of_subnets_are_shortened_as_upstream_does() {
    let subnet = "snet-kubernetes-internal-westeurope-001-production";
    let mut service = service(&[INTERNAL, ("load-balancer-internal-subnet", subnet)]);
    service.ip_families = vec![IpFamily::Ipv4, IpFamily::Ipv6];
    let rules = rules_with(&service, &json!({}));
    let expected = format!("{BASE}-snet-kubernetes-internal-westeurope-TCP-80-IPv6");
    assert_eq!((rules[1][0].name.as_str(), expected.len()), (expected.as_str(), 80));
}
