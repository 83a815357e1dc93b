//! Target groups: names, health checks, targets.

use cloudwit_guest_sdk::testing::FakeHost;

use super::*;
use crate::balancers::annotations::Kind;
use crate::balancers::testing::{port, service};

fn of(service: &Service) -> GroupWanted {
    let host = FakeHost::new();
    let settings = Settings::read(service, Kind::Network).unwrap();
    let port = &service.ports[0];
    wanted(
        host.context().keys(),
        "stage",
        service,
        port,
        &settings,
        &Config::default(),
    )
    .unwrap()
}

fn seen(wanted: &GroupWanted) -> GroupSeen {
    GroupSeen {
        arn: "arn:tg".into(),
        name: wanted.name.clone(),
        protocol: wanted.protocol.into(),
        port: wanted.port,
        health: wanted.health.clone(),
        balancers: Vec::new(),
    }
}

/// `printf 'stage''default''web''80''30080''TCP''instance''TCP''30' | sha1sum`, and with `HTTP` and `10`.
#[test]
fn names_are_upstreams() {
    assert_eq!(of(&service(&[("type", "nlb")])).name, "k8s-default-web-73ed25a959");
    let mut local = service(&[("type", "nlb")]);
    local.health_check_node_port = Some(32000);
    assert_eq!(of(&local).name, "k8s-default-web-b1ace4b5d9");
    let mut long = service(&[("type", "nlb")]);
    (long.namespace, long.name) = ("my-long-namespace".into(), "a.b".into());
    assert!(of(&long).name.starts_with("k8s-mylongna-ab-"), "{}", of(&long).name);
}

#[test]
fn a_groups_own_security_group_is_called_as_upstream_has_it() {
    let host = FakeHost::new();
    let name = security_group_name(host.context().keys(), "stage", &service(&[]));
    assert_eq!(name, "k8s-default-web-4cb0c27df1");
}

#[test]
fn health_checks_have_upstreams_defaults_and_annotations_win() {
    let tcp = of(&service(&[("type", "nlb")])).health;
    assert_eq!(
        (tcp.protocol.as_str(), tcp.port.as_str(), tcp.path.as_str()),
        ("TCP", "traffic-port", "")
    );
    assert_eq!(
        (tcp.healthy, tcp.unhealthy, tcp.timeout, tcp.interval),
        (3, 3, None, 30)
    );
    let mut service = service(&[("type", "nlb")]);
    service.health_check_node_port = Some(32000);
    let local = of(&service).health;
    assert_eq!(
        (local.protocol.as_str(), local.port.as_str(), local.path.as_str()),
        ("HTTP", "32000", "/healthz")
    );
    assert_eq!((local.healthy, local.unhealthy, local.interval), (2, 2, 10));
    let annotations = [
        ("healthcheck-protocol", "https"),
        ("healthcheck-port", "8443"),
        ("healthcheck-path", "/up"),
        ("healthcheck-healthy-threshold", "4"),
        ("healthcheck-unhealthy-threshold", "5"),
        ("healthcheck-timeout", "6"),
        ("healthcheck-interval", "20"),
    ];
    service.annotations = crate::balancers::testing::service(&annotations).annotations;
    let asked = of(&service).health;
    assert_eq!(
        (asked.protocol.as_str(), asked.port.as_str(), asked.path.as_str()),
        ("HTTPS", "8443", "/up")
    );
    assert_eq!(
        (asked.healthy, asked.unhealthy, asked.timeout, asked.interval),
        (4, 5, Some(6), 20)
    );
}

#[test]
fn immutable_setting_means_new_group_and_rest_is_changed() {
    let first = of(&service(&[("type", "nlb")]));
    let group = seen(&first);
    assert!(group.can_be(&first) && modify(&first, &group).is_none());
    for fixed in [("healthcheck-protocol", "http"), ("healthcheck-interval", "10")] {
        assert!(!group.can_be(&of(&service(&[("type", "nlb"), fixed]))), "{fixed:?}");
    }
    let changed = of(&service(&[("type", "nlb"), ("healthcheck-healthy-threshold", "5")]));
    assert!(group.can_be(&changed));
    assert_eq!(
        modify(&changed, &group).map(|step| step.text()).as_deref(),
        Some(
            "ModifyTargetGroup&TargetGroupArn=arn%3Atg&HealthCheckPort=traffic-port&HealthyThresholdCount=5&UnhealthyThresholdCount=3"
        )
    );
    let mut by_cloud = group.clone();
    by_cloud.health.timeout = Some(10);
    assert_eq!(modify(&first, &by_cloud), None, "the cloud's own choice is left to it");
}

#[test]
fn targets_leave_before_others_come_and_a_hundred_at_a_time() {
    let ids: Vec<String> = (0..150).map(|number| format!("i-{number:03}")).collect();
    let seen = [
        ("i-000".to_owned(), 30080),
        ("i-001".to_owned(), 30081),
        ("i-gone".to_owned(), 30080),
    ];
    let steps = targets("arn:tg", 30080, &ids, &seen);
    let actions: Vec<&str> = steps.iter().map(|step| step.action).collect();
    assert_eq!(actions, ["DeregisterTargets", "RegisterTargets", "RegisterTargets"]);
    assert_eq!(
        steps[0].text(),
        "DeregisterTargets&TargetGroupArn=arn%3Atg&Targets.member.1.Id=i-001&Targets.member.1.Port=30081&Targets.member.2.Id=i-gone\
         &Targets.member.2.Port=30080"
    );
    assert!(!steps[1].text().contains("Id=i-000&") && steps[1].text().contains("Targets.member.100.Id="));
    assert!(steps[2].text().contains("Targets.member.49.Id=i-149") && !steps[2].text().contains("member.50."));
    assert_eq!(targets("arn:tg", 30080, &ids[..1], &seen[..1]), []);
}

#[test]
fn tls_to_the_nodes_is_requested_by_the_backend_protocol() {
    let tls = [("type", "nlb"), ("ssl-cert", "arn:c"), ("backend-protocol", "ssl")];
    assert_eq!(of(&service(&tls)).protocol, "TLS");
    assert_eq!(of(&service(&tls[..2])).protocol, "TCP");
    let mut udp = service(&tls);
    udp.ports = vec![ServicePort {
        protocol: Protocol::Udp,
        ..port(53, 30053)
    }];
    assert_eq!(of(&udp).protocol, "UDP");
}

#[test]
fn shared_probe_mode_overrides_health_annotations() {
    let host = FakeHost::new();
    let mut config = Config::default();
    config.global.health_probe_mode = "Shared".into();
    let health = |service: &Service| {
        let settings = Settings::read(service, Kind::Network).unwrap();
        let keys = host.context().keys();
        wanted(keys, "stage", service, &service.ports[0], &settings, &config)
            .unwrap()
            .health
    };
    let mut service = service(&[
        ("type", "nlb"),
        ("healthcheck-protocol", "https"),
        ("healthcheck-port", "8443"),
        ("healthcheck-path", "/up"),
        ("healthcheck-interval", "20"),
        ("healthcheck-healthy-threshold", "4"),
    ]);
    let shared = health(&service);
    assert_eq!(
        (shared.protocol.as_str(), shared.port.as_str(), shared.path.as_str()),
        ("HTTP", "10256", "/healthz")
    );
    assert_eq!(
        (shared.interval, shared.healthy),
        (20, 4),
        "times are the Service's own"
    );
    service.health_check_node_port = Some(32000);
    let local = health(&service);
    assert_eq!(
        (local.protocol.as_str(), local.port.as_str(), local.path.as_str()),
        ("HTTPS", "8443", "/up")
    );
}
