//! Rows of upstream's `service/helpers/helper_test.go` (`docs/reference/upstream-tests.md`).

use super::*;
use k8s_openapi::api::core::v1::{LoadBalancerStatus, ServiceStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

fn service(kind: &str, policy: Option<&str>) -> Service {
    let spec = ServiceSpec {
        type_: (!kind.is_empty()).then(|| kind.to_owned()),
        external_traffic_policy: policy.map(str::to_owned),
        ..ServiceSpec::default()
    };
    Service {
        spec: Some(spec),
        ..Service::default()
    }
}

fn with_annotation(value: &str) -> Service {
    let annotations = [(SOURCE_RANGES_ANNOTATION.to_owned(), value.to_owned())].into();
    let metadata = ObjectMeta {
        annotations: Some(annotations),
        ..ObjectMeta::default()
    };
    Service {
        metadata,
        ..Service::default()
    }
}

fn with_field(values: &[&str]) -> Service {
    let mut service = service("LoadBalancer", None);
    service.spec.as_mut().unwrap().load_balancer_source_ranges = Some(values.iter().map(|v| (*v).to_owned()).collect());
    service
}

fn nets(texts: &[&str]) -> BTreeSet<IpNet> {
    texts
        .iter()
        .map(|text| text.parse::<IpNet>().unwrap().trunc())
        .collect()
}

#[test]
fn source_ranges_of_an_annotation_are_parsed_and_deduplicated() {
    for (annotation, expected) in [
        ("192.168.0.1/32", &["192.168.0.1/32"][..]),
        ("192.168.0.1/32,192.168.0.1/32", &["192.168.0.1/32"]),
        ("192.168.0.1/32,192.168.0.2/32", &["192.168.0.1/32", "192.168.0.2/32"]),
        (
            "  192.168.0.1/32 , 192.168.0.2/32  ",
            &["192.168.0.1/32", "192.168.0.2/32"],
        ),
        ("10.1.2.3/8,10.9.9.9/8", &["10.0.0.0/8"]),
        ("", &["0.0.0.0/0"]),
        ("   ", &["0.0.0.0/0"]),
    ] {
        assert_eq!(
            source_ranges(&with_annotation(annotation)).unwrap(),
            nets(expected),
            "{annotation:?}"
        );
    }
}

#[test]
fn source_ranges_of_the_field_are_parsed_and_deduplicated() {
    for (field, expected) in [
        (&["192.168.0.1/32"][..], &["192.168.0.1/32"][..]),
        (&["192.168.0.1/32", "192.168.0.1/32"], &["192.168.0.1/32"]),
        (
            &["192.168.0.1/32", "192.168.0.2/32"],
            &["192.168.0.1/32", "192.168.0.2/32"],
        ),
        (
            &[" 192.168.0.1/32 ", "192.168.0.2/32"],
            &["192.168.0.1/32", "192.168.0.2/32"],
        ),
        (&[], &["0.0.0.0/0"]),
    ] {
        assert_eq!(source_ranges(&with_field(field)).unwrap(), nets(expected), "{field:?}");
    }
    assert_eq!(source_ranges(&Service::default()).unwrap(), nets(&["0.0.0.0/0"]));
}

#[test]
fn a_bad_source_range_is_an_error_in_annotation_and_field() {
    for bad in [
        "10.0.0.1/33",
        "foo.bar",
        "10.0.0.1/32,*",
        "10.0.0.1/32,",
        "10.0.0.1/32, ",
        "10.0.0.1",
    ] {
        assert!(source_ranges(&with_annotation(bad)).is_err(), "{bad:?}");
        let items: Vec<&str> = bad.split(',').collect();
        assert!(source_ranges(&with_field(&items)).is_err(), "{bad:?}");
    }
}

#[test]
fn all_bad_source_ranges_are_named_at_once() {
    let error = source_ranges(&with_field(&["10.0.0.0/8", "x", "10.0.0.1"])).unwrap_err();
    assert_eq!(
        error,
        r#"spec.loadBalancerSourceRanges has entries that are not CIDRs: "x", "10.0.0.1"; write them like 10.0.0.0/24"#
    );
}

#[test]
fn the_field_wins_over_the_annotation() {
    let mut service = with_annotation("10.0.0.0/8");
    service.spec = with_field(&["192.168.0.0/16"]).spec;
    assert_eq!(source_ranges(&service).unwrap(), nets(&["192.168.0.0/16"]));
}

#[test]
fn allow_all_means_the_whole_of_ipv4() {
    for (ranges, expected) in [
        (&["192.168.0.1/32"][..], false),
        (&["192.168.0.1/32", "192.168.0.2/32"], false),
        (&["192.168.0.1/32", "10.0.0.0/8"], false),
        (&["::/0"], false),
        (&["0.0.0.0/0"], true),
        (&["192.168.0.0/0"], true),
        (&["192.168.0.1/32", "0.0.0.0/0"], true),
    ] {
        assert_eq!(allow_all(&nets(ranges)), expected, "{ranges:?}");
    }
}

#[test]
fn local_traffic_needs_node_port_and_local_policy() {
    for (kind, policy, expected) in [
        ("", None, false),
        ("ClusterIP", None, false),
        ("NodePort", None, false),
        ("NodePort", Some("Cluster"), false),
        ("NodePort", Some("Local"), true),
        ("LoadBalancer", Some("Cluster"), false),
        ("LoadBalancer", Some("Local"), true),
    ] {
        assert_eq!(
            requests_only_local_traffic(&service(kind, policy)),
            expected,
            "{kind} {policy:?}"
        );
    }
}

#[test]
fn only_a_load_balancer_with_policy_local_needs_a_health_check() {
    for (kind, policy, expected) in [
        ("ClusterIP", None, false),
        ("NodePort", None, false),
        ("NodePort", Some("Local"), false),
        ("LoadBalancer", Some("Cluster"), false),
        ("LoadBalancer", Some("Local"), true),
    ] {
        let mut service = service(kind, policy);
        assert_eq!(needs_health_check(&service), expected, "{kind} {policy:?}");
        assert_eq!(health_check_port(&service), None, "no port is allocated");
        service.spec.as_mut().unwrap().health_check_node_port = Some(31000);
        assert_eq!(health_check_port(&service), expected.then_some(31000));
    }
}

#[test]
fn the_cleanup_finalizer_is_found_by_its_exact_name() {
    for (finalizers, expected) in [
        (&[][..], false),
        (&["unrelated"], false),
        (&["service.kubernetes.io/load-balancer-cleanup"], true),
        (&["unrelated", "service.kubernetes.io/load-balancer-cleanup"], true),
    ] {
        let mut service = Service::default();
        service.metadata.finalizers = Some(finalizers.iter().map(|f| (*f).to_owned()).collect());
        assert_eq!(has_cleanup_finalizer(&service), expected, "{finalizers:?}");
    }
}

fn point(ip: &str, mode: Option<&str>, ports: &[(i32, &str)]) -> LoadBalancerIngress {
    let ports = ports.iter().map(|(port, protocol)| PortStatus {
        port: *port,
        protocol: (*protocol).to_owned(),
        ..PortStatus::default()
    });
    let ports: Vec<_> = ports.collect();
    LoadBalancerIngress {
        ip: Some(ip.to_owned()),
        ip_mode: mode.map(str::to_owned),
        ports: (!ports.is_empty()).then_some(ports),
        hostname: None,
    }
}

#[test]
fn statuses_are_compared_by_what_they_mean() {
    let plain = |ip| vec![point(ip, None, &[])];
    for (left, right, expected, why) in [
        (vec![], vec![], true, "both empty"),
        (plain("1.2.3.4"), plain("1.2.3.4"), true, "same IP"),
        (plain("1.2.3.4"), plain("1.2.3.5"), false, "other IP"),
        (plain("1.2.3.4"), vec![], false, "one is empty"),
        (
            plain("2001:db8::1"),
            plain("2001:db8:0:0::1"),
            true,
            "same IP in another spelling",
        ),
        (
            vec![point("1.2.3.4", Some("VIP"), &[])],
            vec![point("1.2.3.4", Some("VIP"), &[])],
            true,
            "same mode",
        ),
        (
            vec![point("1.2.3.4", Some("VIP"), &[])],
            plain("1.2.3.4"),
            true,
            "unset is what the API server stores: VIP",
        ),
        (
            vec![point("1.2.3.4", Some("Proxy"), &[])],
            plain("1.2.3.4"),
            false,
            "unset is not Proxy",
        ),
        (
            vec![point("1.2.3.4", Some("VIP"), &[])],
            vec![point("1.2.3.4", Some("Proxy"), &[])],
            false,
            "other mode",
        ),
        (
            vec![point("1.2.3.4", None, &[(80, "TCP")])],
            vec![point("1.2.3.4", None, &[(80, "TCP")])],
            true,
            "same ports",
        ),
        (
            vec![point("1.2.3.4", None, &[(80, "TCP")])],
            vec![point("1.2.3.4", None, &[(80, "UDP")])],
            false,
            "protocol",
        ),
        (
            vec![point("1.2.3.4", None, &[(80, "TCP")])],
            plain("1.2.3.4"),
            false,
            "right has no ports",
        ),
        (
            plain("1.2.3.4"),
            vec![point("1.2.3.4", None, &[(80, "TCP")])],
            false,
            "left has no ports",
        ),
    ] {
        assert_eq!(ingress_equal(&left, &right), expected, "{why}");
        assert_eq!(ingress_equal(&right, &left), expected, "{why}, the other way round");
    }
}

#[test]
fn missing_status_and_empty_ingress_are_the_same() {
    let mut service = Service::default();
    assert!(ingress(&service).is_empty());
    service.status = Some(ServiceStatus {
        load_balancer: Some(LoadBalancerStatus { ingress: Some(vec![]) }),
        ..Default::default()
    });
    assert!(ingress_equal(ingress(&service), ingress(&Service::default())));
}
