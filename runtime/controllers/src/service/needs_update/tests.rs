//! Rows of upstream's `TestNeedsUpdate`, and the rest of the table in `spec/service-controller.md`, section 4.

use super::*;
use k8s_openapi::api::core::v1::{ClientIPConfig, LoadBalancerStatus, ServiceStatus, SessionAffinityConfig};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use k8s_openapi::jiff::Timestamp;

fn port() -> ServicePort {
    ServicePort {
        name: Some("http".into()),
        port: 80,
        protocol: Some("TCP".into()),
        node_port: Some(30080),
        target_port: Some(IntOrString::Int(8080)),
        app_protocol: Some("http".into()),
    }
}

fn service() -> Service {
    let spec = ServiceSpec {
        type_: Some("LoadBalancer".into()),
        ports: Some(vec![port()]),
        session_affinity: Some("None".into()),
        ip_families: Some(vec!["IPv4".into()]),
        external_traffic_policy: Some("Cluster".into()),
        ..ServiceSpec::default()
    };
    let mut service = Service {
        spec: Some(spec),
        ..Service::default()
    };
    service.metadata.uid = Some("u1".into());
    service
}

fn changed(change: impl FnOnce(&mut Service, &mut ServiceSpec)) -> Option<ServiceChange> {
    let (old, mut new) = (service(), service());
    let mut spec = new.spec.take().unwrap();
    change(&mut new, &mut spec);
    new.spec = Some(spec);
    needs_update(&old, &new, &Classes::default())
}

fn port_changed(change: impl FnOnce(&mut ServicePort)) -> Option<ServiceChange> {
    changed(|_, spec| change(&mut spec.ports.as_mut().unwrap()[0]))
}

fn strings(values: &[&str]) -> Option<Vec<String>> {
    Some(values.iter().map(|value| (*value).to_owned()).collect())
}

#[test]
fn the_same_service_needs_no_update() {
    assert_eq!(changed(|_, _| {}), None);
    assert_eq!(
        port_changed(|port| port.app_protocol = Some("http".into())),
        None,
        "appProtocol the same"
    );
    assert_eq!(
        changed(|_, spec| spec.ip_families = strings(&["IPv4"])),
        None,
        "ipFamilies the same"
    );
}

#[test]
fn starting_or_stopping_to_want_a_load_balancer_is_a_change() {
    assert_eq!(
        changed(|_, spec| spec.type_ = Some("ClusterIP".into())),
        Some(ServiceChange::Type)
    );
    assert_eq!(
        changed(|_, spec| spec.load_balancer_class = Some("other".into())),
        Some(ServiceChange::Type)
    );
    let mut old = service();
    old.spec.as_mut().unwrap().type_ = Some("NodePort".into());
    assert_eq!(
        needs_update(&old, &service(), &Classes::default()),
        Some(ServiceChange::Type)
    );
    let mut new = old.clone();
    new.spec.as_mut().unwrap().ports = None;
    assert_eq!(
        needs_update(&old, &new, &Classes::default()),
        None,
        "a Service that never wanted one may change as it likes"
    );
}

#[test]
fn every_property_of_a_port_counts() {
    let expected = Some(ServiceChange::PortsOrAffinity);
    assert_eq!(
        changed(|_, spec| spec.ports = Some(vec![port(), port()])),
        expected,
        "number"
    );
    assert_eq!(port_changed(|port| port.name = Some("web".into())), expected, "name");
    assert_eq!(
        port_changed(|port| port.protocol = Some("UDP".into())),
        expected,
        "protocol"
    );
    assert_eq!(port_changed(|port| port.port = 81), expected, "port");
    assert_eq!(port_changed(|port| port.node_port = Some(30081)), expected, "nodePort");
    assert_eq!(
        port_changed(|port| port.target_port = Some(IntOrString::Int(8081))),
        expected,
        "targetPort number"
    );
    assert_eq!(
        port_changed(|port| port.target_port = Some(IntOrString::String("web".into()))),
        expected,
        "targetPort name"
    );
    assert_eq!(
        port_changed(|port| port.app_protocol = None),
        expected,
        "appProtocol unset"
    );
    assert_eq!(
        port_changed(|port| port.app_protocol = Some("https".into())),
        expected,
        "appProtocol changed"
    );
    let (mut old, mut new) = (service(), service());
    old.spec.as_mut().unwrap().ports.as_mut().unwrap()[0].app_protocol = None;
    assert_eq!(
        needs_update(&old, &new, &Classes::default()),
        expected,
        "appProtocol set"
    );
    let mut second = port();
    second.port = 443;
    old.spec.as_mut().unwrap().ports = Some(vec![port(), second.clone()]);
    new.spec.as_mut().unwrap().ports = Some(vec![second, port()]);
    assert_eq!(needs_update(&old, &new, &Classes::default()), expected, "order");
}

#[test]
fn every_other_field_of_the_table_counts() {
    let affinity = |seconds| SessionAffinityConfig {
        client_ip: Some(ClientIPConfig {
            timeout_seconds: Some(seconds),
        }),
    };
    for (actual, expected, why) in [
        (
            changed(|_, s| s.load_balancer_source_ranges = strings(&["10.0.0.0/8"])),
            ServiceChange::SourceRanges,
            "source ranges",
        ),
        (
            changed(|_, s| s.session_affinity = Some("ClientIP".into())),
            ServiceChange::PortsOrAffinity,
            "session affinity",
        ),
        (
            changed(|_, s| s.session_affinity_config = Some(affinity(60))),
            ServiceChange::AffinityConfig,
            "its timeout",
        ),
        (
            changed(|_, s| s.load_balancer_ip = Some("1.2.3.4".into())),
            ServiceChange::LoadBalancerIp,
            "loadBalancerIP",
        ),
        (
            changed(|_, s| s.external_ips = strings(&["1.2.3.4"])),
            ServiceChange::ExternalIps,
            "number of external IPs",
        ),
        (
            changed(|o, _| o.metadata.annotations = Some([("a".into(), "b".into())].into())),
            ServiceChange::Annotations,
            "annotation",
        ),
        (
            changed(|o, _| o.metadata.uid = Some("u2".into())),
            ServiceChange::Uid,
            "uid",
        ),
        (
            changed(|_, s| s.external_traffic_policy = Some("Local".into())),
            ServiceChange::TrafficPolicy,
            "traffic policy",
        ),
        (
            changed(|_, s| s.health_check_node_port = Some(31000)),
            ServiceChange::HealthCheckPort,
            "health check port",
        ),
        (
            changed(|_, s| s.ip_families = strings(&["IPv4", "IPv6"])),
            ServiceChange::IpFamilies,
            "one family to two",
        ),
    ] {
        assert_eq!(actual, Some(expected), "{why}");
    }
}

#[test]
fn values_and_list_order_count_as_upstream() {
    let (mut old, mut new) = (service(), service());
    old.spec.as_mut().unwrap().external_ips = strings(&["1.1.1.1", "2.2.2.2"]);
    new.spec.as_mut().unwrap().external_ips = strings(&["1.1.1.1", "3.3.3.3"]);
    assert_eq!(
        needs_update(&old, &new, &Classes::default()),
        Some(ServiceChange::ExternalIps),
        "value of an external IP"
    );
    new.spec.as_mut().unwrap().external_ips = strings(&["2.2.2.2", "1.1.1.1"]);
    assert_eq!(
        needs_update(&old, &new, &Classes::default()),
        Some(ServiceChange::ExternalIps),
        "order of external IPs"
    );

    let (mut old, mut new) = (service(), service());
    old.spec.as_mut().unwrap().load_balancer_source_ranges = strings(&["10.0.0.0/8", "11.0.0.0/8"]);
    new.spec.as_mut().unwrap().load_balancer_source_ranges = strings(&["11.0.0.0/8", "10.0.0.0/8"]);
    assert_eq!(
        needs_update(&old, &new, &Classes::default()),
        Some(ServiceChange::SourceRanges),
        "order of source ranges"
    );

    let (mut old, mut new) = (service(), service());
    old.spec.as_mut().unwrap().ip_families = strings(&["IPv4", "IPv6"]);
    assert_eq!(
        needs_update(&old, &new, &Classes::default()),
        Some(ServiceChange::IpFamilies),
        "two families to one"
    );
    new.spec.as_mut().unwrap().ip_families = strings(&["IPv6", "IPv4"]);
    assert_eq!(
        needs_update(&old, &new, &Classes::default()),
        None,
        "the content of ipFamilies is not compared"
    );
}

#[test]
fn missing_and_empty_are_the_same_unlike_upstream() {
    assert_eq!(changed(|_, spec| spec.load_balancer_source_ranges = Some(vec![])), None);
    assert_eq!(
        changed(|service, _| service.metadata.annotations = Some([].into())),
        None
    );
    assert_eq!(changed(|_, spec| spec.external_ips = Some(vec![])), None);
    assert_eq!(changed(|_, spec| spec.health_check_node_port = Some(0)), None);
    assert_eq!(changed(|_, spec| spec.load_balancer_ip = Some(String::new())), None);
}

#[test]
fn what_a_load_balancer_does_not_see_is_no_change() {
    assert_eq!(
        changed(|service, _| service.metadata.labels = Some([("a".into(), "b".into())].into())),
        None,
        "labels"
    );
    assert_eq!(
        changed(|service, _| service.metadata.finalizers = strings(&["x/y"])),
        None,
        "finalizers"
    );
    let dying = |service: &mut Service, _: &mut ServiceSpec| {
        service.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    };
    assert_eq!(changed(dying), None, "deletion timestamp");
    assert_eq!(
        changed(|_, spec| spec.selector = Some([("a".into(), "b".into())].into())),
        None,
        "selector"
    );
    assert_eq!(
        changed(|_, spec| spec.cluster_ip = Some("10.0.0.1".into())),
        None,
        "clusterIP"
    );
    assert_eq!(
        changed(|_, spec| spec.internal_traffic_policy = Some("Local".into())),
        None,
        "internalTrafficPolicy"
    );
    assert_eq!(
        changed(|_, spec| spec.ip_family_policy = Some("PreferDualStack".into())),
        None,
        "ipFamilyPolicy"
    );
    assert_eq!(
        changed(|_, spec| spec.allocate_load_balancer_node_ports = Some(false)),
        None,
        "node port allocation"
    );
    assert_eq!(
        changed(|_, spec| spec.publish_not_ready_addresses = Some(true)),
        None,
        "publishNotReadyAddresses"
    );
    assert_eq!(
        changed(|_, spec| spec.traffic_distribution = Some("PreferClose".into())),
        None,
        "trafficDistribution"
    );
    let status = ServiceStatus {
        load_balancer: Some(LoadBalancerStatus {
            ingress: Some(vec![Default::default()]),
        }),
        conditions: None,
    };
    assert_eq!(changed(|service, _| service.status = Some(status)), None, "status");
}
