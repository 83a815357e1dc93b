//! Every annotation, where its default comes from, and what is refused.

use super::*;

const PREFIX: &str = "loadbalancer.openstack.org/";

fn service(annotations: &[(&str, &str)]) -> Service {
    let mut service = Service::new("default", "web", "u-1");
    service.annotations = annotations
        .iter()
        .map(|(key, value)| {
            Pair::new(
                if key.contains('/') {
                    (*key).into()
                } else {
                    format!("{PREFIX}{key}")
                },
                *value,
            )
        })
        .collect();
    service
}

fn class() -> BTreeMap<String, BalancerClass> {
    let class = BalancerClass {
        floating_network_id: Some("class-network".into()),
        floating_subnet: Some("class-*".into()),
        subnet_id: Some("class-vip".into()),
        member_subnet_id: Some("class-members".into()),
        ..BalancerClass::default()
    };
    [("dmz".to_owned(), class)].into_iter().collect()
}

/// What the mistakes are, one for each line.
fn mistakes(annotations: &[(&str, &str)], config: &BalancerConfig) -> String {
    let failure = read(&service(annotations), config, &class()).unwrap_err();
    assert!(failure.kind == FailureKind::Invalid, "{failure:?}");
    failure.message().replace(PREFIX, "")
}

#[test]
fn without_annotations_and_config_defaults_are_upstreams() {
    let (service, config, classes) = (service(&[]), BalancerConfig::default(), BTreeMap::new());
    let asked = read(&service, &config, &classes).unwrap();
    let expected = Asked {
        connection_limit: -1,
        method: "ROUND_ROBIN",
        timeouts: [50_000, 5_000, 50_000, 0],
        ..Asked::default()
    };
    assert_eq!(asked, expected);
}

#[test]
fn annotations_win_over_config() {
    let service = service(&[
        ("service.beta.kubernetes.io/openstack-internal-load-balancer", "false"),
        ("subnet-id", "vip"),
        ("network-id", "net"),
        ("port-id", "port"),
        ("member-subnet-id", "members"),
        ("connection-limit", "100"),
        ("keep-floatingip", "true"),
        ("proxy-protocol", "v2"),
        ("lb-method", "SOURCE_IP"),
        ("timeout-client-data", "1"),
        ("timeout-member-connect", "2"),
        ("timeout-member-data", "3"),
        ("timeout-tcp-inspect", "4"),
        ("enable-health-monitor", "true"),
        ("health-monitor-delay", "9"),
        ("health-monitor-max-retries", "5"),
        ("flavor-id", "f"),
        ("availability-zone", "zone 1"),
        ("default-tls-container-ref", "https://barbican/v1/containers/c-1"),
        ("hostname", "www.example.com"),
        ("node-selector", "role=edge, fast"),
        ("load-balancer-id", "lb-1"),
        ("floating-network-id", "public"),
        ("floating-subnet-tags", "a,b"),
    ]);
    let config = BalancerConfig {
        internal_lb: true,
        subnet_id: Some("no".into()),
        lb_method: Some("LEAST_CONNECTIONS".into()),
        monitor_timeout: Some("1m".into()),
        monitor_max_retries_down: Some(4),
        floating_subnet: Some("config-*".into()),
        node_selector: Some("role=core".into()),
        ..BalancerConfig::default()
    };
    let classes = BTreeMap::new();
    let asked = read(&service, &config, &classes).unwrap();
    let expected = Asked {
        internal: false,
        floating: FloatingSource {
            network_id: Some("public"),
            subnet_tags: Some("a,b"),
            ..FloatingSource::default()
        },
        keep_floating_ip: true,
        vip: VipSource {
            port_id: Some("port"),
            subnet_id: Some("vip"),
            network_id: Some("net"),
        },
        member_subnet_id: Some("members"),
        connection_limit: 100,
        proxy_protocol: Some("PROXYV2"),
        forwarded_for: false,
        method: "SOURCE_IP",
        timeouts: [1, 2, 3, 4],
        checks: Some(Checks {
            delay: 9,
            timeout: 60,
            max_retries: 5,
            max_retries_down: 4,
        }),
        flavor_id: Some("f"),
        availability_zone: Some("zone 1"),
        tls_container: Some("https://barbican/v1/containers/c-1"),
        hostname: Some("www.example.com"),
        node_selector: vec![("role", "edge"), ("fast", "")],
        balancer_id: Some("lb-1"),
    };
    assert_eq!(asked, expected);
}

#[test]
fn a_class_wins_over_annotations_but_for_members() {
    let (service, config, classes) = (
        service(&[
            ("class", "dmz"),
            ("floating-network-id", "own"),
            ("floating-subnet", "own-*"),
            ("subnet-id", "own-vip"),
            ("network-id", "own-network"),
            ("member-subnet-id", "own-members"),
        ]),
        BalancerConfig::default(),
        class(),
    );
    let asked = read(&service, &config, &classes).unwrap();
    assert_eq!(
        (asked.floating.network_id, asked.floating.subnet),
        (Some("class-network"), Some("class-*"))
    );
    assert_eq!(
        (asked.vip.subnet_id, asked.vip.network_id),
        (Some("class-vip"), Some("own-network"))
    );
    assert_eq!(asked.member_subnet_id, Some("own-members"));
}

#[test]
fn the_config_is_used_where_nothing_is_annotated() {
    let config = BalancerConfig {
        internal_lb: true,
        create_monitor: true,
        monitor_delay: Some("1m30s".into()),
        node_selector: Some("role=core,,x".into()),
        floating_subnet_id: Some("s".into()),
        ..BalancerConfig::default()
    };
    let (service, classes) = (service(&[]), BTreeMap::new());
    let asked = read(&service, &config, &classes).unwrap();
    assert!(asked.internal);
    let checks = asked.checks.unwrap();
    assert_eq!(
        (
            checks.delay,
            checks.timeout,
            checks.max_retries,
            checks.max_retries_down
        ),
        (90, 3, 1, 3)
    );
    assert_eq!(asked.node_selector, [("role", "core"), ("x", "")]);
    assert_eq!(asked.floating.subnet_id, Some("s"));
}

#[test]
fn all_mistakes_are_reported_together() {
    let wrong = mistakes(
        &[
            ("class", "dmx"),
            ("connection-limit", "many"),
            ("proxy-protocol", "v3"),
            ("lb-method", "RANDOM"),
            ("timeout-client-data", "-1"),
            ("health-monitor-max-retries", "11"),
            ("default-tls-container-ref", "my-certificate"),
            ("floating-subnet", "~("),
            ("keep-floatingip", "yes"),
        ],
        &BalancerConfig::default(),
    );
    let expected = "floating-subnet: the regular expression \"(\" is malformed: found open group without closing ')'; \
        class is \"dmx\", but has to be the name of a [LoadBalancerClass] of the cloud config, which has dmz";
    for part in expected.split("; ").chain([
        "connection-limit is \"many\", but has to be a whole number from -1 to 2147483647",
        "proxy-protocol is \"v3\"",
        "lb-method is \"RANDOM\", but has to be ROUND_ROBIN or LEAST_CONNECTIONS or SOURCE_IP or SOURCE_IP_PORT",
        "timeout-client-data is \"-1\"",
        "health-monitor-max-retries is \"11\", but has to be a whole number from 1 to 10",
        "default-tls-container-ref is \"my-certificate\"",
        "keep-floatingip is \"yes\", but has to be true or false",
    ]) {
        assert!(wrong.contains(part), "{part}\nis not in\n{wrong}");
    }
}

#[test]
fn what_excludes_each_other_is_refused() {
    let both = [("x-forwarded-for", "true"), ("proxy-protocol", "true")];
    assert!(mistakes(&both, &BalancerConfig::default()).contains("exclude each other"));
    let ovn = BalancerConfig {
        lb_provider: Some("ovn".into()),
        ..BalancerConfig::default()
    };
    assert!(mistakes(&[("proxy-protocol", "v1")], &ovn).contains("OVN"));
}

#[test]
fn wrong_annotation_does_not_hide_its_balancer() {
    let service = service(&[
        ("load-balancer-id", "lb-1"),
        ("keep-floatingip", "maybe"),
        ("connection-limit", "x"),
    ]);
    let config = BalancerConfig::default();
    let asked = read_leniently(&service, &config);
    assert_eq!((asked.balancer_id, asked.keep_floating_ip), (Some("lb-1"), false));
}

#[test]
fn references_to_barbican_end_in_a_container_or_a_secret() {
    assert_eq!(barbican_path("https://b:9311/v1/secrets/s-1"), Some("secrets/s-1"));
    assert_eq!(
        barbican_path("https://b/key-manager/v1/containers/c-1"),
        Some("containers/c-1")
    );
    for wrong in ["https://b/v1/containers/", "https://b/v1/secrets/a/b", "c-1"] {
        assert_eq!(barbican_path(wrong), None, "{wrong}");
    }
}

#[test]
fn the_readme_has_the_table_of_annotations() {
    let readme = include_str!("../../../README.md");
    let table = TABLE.markdown();
    assert!(readme.contains(&table), "put this into README.md:\n{table}");
}
