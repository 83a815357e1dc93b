//! Annotations: defaults, mistakes, and the table in README.md.

use cloudwit_guest_sdk::prelude::*;

use super::*;
use crate::balancers::annotations::settings::{HealthSettings, Settings};
use crate::balancers::testing::{port, service};

fn read(annotations: &[(&str, &str)]) -> Result<Settings, Failure> {
    let service = service(annotations);
    Settings::read(&service, Kind::of(&service))
}

fn mistakes(annotations: &[(&str, &str)]) -> String {
    match read(annotations) {
        Err(Failure {
            kind: FailureKind::Invalid,
            message: text,
            ..
        }) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_table_in_the_readme_is_the_one_in_the_code() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let table = ANNOTATIONS.markdown();
    assert!(readme.contains(&table), "README.md needs this table:\n{table}");
}

#[test]
fn without_annotations_everything_has_upstreams_default() {
    let settings = read(&[]).unwrap();
    assert!(!settings.internal && !settings.cross_zone && !settings.proxy_protocol && !settings.access_log.enabled);
    assert_eq!(
        (settings.draining, settings.idle_timeout, settings.backend),
        (None, 60, None)
    );
    assert_eq!(settings.health, HealthSettings::default());
    assert!(settings.certificate.is_none() && settings.tags.is_empty() && settings.subnets.is_empty());
}

#[test]
fn type_is_upstreams_word_and_anything_else_is_classic() {
    for (text, kind, warns) in [
        ("nlb", Kind::Network, false),
        ("nlb-ip", Kind::Elsewhere, false),
        ("external", Kind::Elsewhere, false),
        ("classic", Kind::Classic, false),
        ("", Kind::Classic, false),
        ("nbl", Kind::Classic, true),
        ("NLB", Kind::Classic, true),
        ("nlb ", Kind::Classic, true),
    ] {
        assert_eq!(Kind::of(&service(&[("type", text)])), kind, "{text:?}");
        let warned = !read(&[("type", text)]).unwrap().warnings.is_empty();
        assert_eq!(warned, warns, "{text:?}");
    }
}

#[test]
fn backend_protocol_in_capitals_is_tcp_with_a_warning() {
    let settings = read(&[("backend-protocol", "HTTP")]).unwrap();
    assert_eq!(
        (settings.backend, settings.backend_tls, settings.warnings.len()),
        (None, false, 1)
    );
    let settings = read(&[("backend-protocol", "SSL"), ("type", "nlb"), ("ssl-cert", "arn:a")]).unwrap();
    assert_eq!((settings.backend, settings.warnings.len()), (None, 1));
    // As upstream: the health check goes by the word in any case.
    assert!(read(&[("backend-protocol", "HTTPS")]).unwrap().backend_tls);
    let text = mistakes(&[("backend-protocol", "HTTP"), ("ssl-cert", "arn:a")]);
    assert!(text.contains("backend-protocol is \"HTTP\""), "{text}");
    assert!(
        read(&[("backend-protocol", "http"), ("ssl-cert", "arn:a")])
            .unwrap()
            .warnings
            .is_empty()
    );
}

#[test]
fn odd_tags_count_as_far_as_upstream_has_them() {
    let tags = |list: &str| {
        let settings = read(&[("additional-resource-tags", list)]).unwrap();
        let tags = settings.tags.iter().map(|tag| format!("{}={}", tag.key, tag.value));
        (tags.collect::<Vec<_>>().join(","), settings.warnings.concat())
    };
    let (counted, warning) = tags("=x,,a=b=c");
    assert_eq!(counted, "a=b");
    assert!(warning.ends_with(": =x, a=b=c"), "{warning}");
    assert_eq!(tags("a=1,b,c=,"), ("a=1,b=,c=".into(), String::new()));
    assert_eq!(tags("a=1,a=2").0, "a=2");
    assert_eq!(tags("=,=").0, "");
}

#[test]
fn advice_shows_grants_as_the_settings_take_them() {
    let markdown = ANNOTATIONS.markdown();
    assert!(markdown.contains("`cluster: {nodes: true}`") && !markdown.contains("[nodes]"));
}

#[test]
fn anything_but_false_and_nothing_is_internal() {
    for (text, internal) in [("", false), ("false", false), ("true", true), ("0.0.0.0/0", true)] {
        assert_eq!(read(&[("internal", text)]).unwrap().internal, internal, "{text:?}");
    }
}

#[test]
fn all_mistakes_of_a_service_are_reported_together() {
    let mut service = service(&[
        ("backend-protocol", "spdy"),
        ("ssl-cert", "arn:aws:acm:us-east-1:1:certificate/a"),
        ("connection-idle-timeout", "0"),
        ("cross-zone-load-balancing-enabled", "yes"),
        ("proxy-protocol", "443"),
        ("access-log-enabled", "true"),
        ("healthcheck-interval", "5"),
        ("healthcheck-path", "healthz"),
        ("healthcheck-port", "http"),
        ("target-group-attributes", "preserve_client_ip.enabled=true"),
    ]);
    service.session_affinity_seconds = Some(10_800);
    service.load_balancer_ip = Some("192.0.2.1".into());
    service.ports.push(ServicePort {
        protocol: Protocol::Udp,
        ..port(53, 30053)
    });
    let Err(Failure {
        kind: FailureKind::Invalid,
        message: text,
        ..
    }) = Settings::read(&service, Kind::Classic)
    else {
        panic!("it was taken");
    };
    for part in [
        "backend-protocol is \"spdy\"",
        "connection-idle-timeout is \"0\"",
        "cross-zone-load-balancing-enabled is \"yes\"",
        "proxy-protocol is \"443\", but has to be *",
        "access-log-s3-bucket-name is \"\"",
        "healthcheck-timeout is \"\", but has to be less than the interval, which is 5",
        "healthcheck-path is \"healthz\"",
        "healthcheck-port is \"http\"",
        "target-group-attributes is",
        "sessionAffinity",
        "192.0.2.1",
        "different protocols",
        "port 53 is not TCP",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn settings_of_other_kind_are_ignored_or_refused_as_upstream() {
    assert!(
        read(&[
            ("type", "nlb"),
            ("proxy-protocol", "true"),
            ("connection-idle-timeout", "x")
        ])
        .is_ok()
    );
    assert!(mistakes(&[("type", "nlb"), ("extra-security-groups", "sg-1")]).contains("extra-security-groups"));
    assert!(mistakes(&[("type", "nlb"), ("healthcheck-protocol", "ssl")]).contains("tcp or http or https"));
    let preserve = ("target-group-attributes", "preserve_client_ip.enabled=false");
    assert!(read(&[("type", "nlb"), preserve]).is_ok());
    let mut udp = service(&[("type", "nlb"), preserve]);
    udp.ports[0].protocol = Protocol::Udp;
    assert!(
        matches!(Settings::read(&udp, Kind::Network), Err(Failure { kind: FailureKind::Invalid, message: text, .. }) if text.contains("UDP"))
    );
    for wrong in [
        "stickiness.enabled=true",
        "proxy_protocol_v2.enabled=yes",
        "proxy_protocol_v2.enabled",
    ] {
        assert!(
            mistakes(&[("type", "nlb"), ("target-group-attributes", wrong)]).contains("proxy_protocol_v2"),
            "{wrong}"
        );
    }
    let addresses = [("type", "nlb"), ("subnets", "a,b"), ("eip-allocations", "eipalloc-1")];
    assert!(mistakes(&addresses).contains("one entry for each of the subnets"));
}

#[test]
fn tls_is_for_the_named_ports_or_for_all() {
    let speaks = |annotations: &[(&str, &str)]| {
        let settings = read(annotations).unwrap();
        [80, 443].map(|number| settings.speaks_tls(&port(number, 30000)))
    };
    let cert = ("ssl-cert", "arn:aws:acm:us-east-1:1:certificate/a");
    assert_eq!(
        speaks(&[("ssl-ports", "443")]),
        [false, false],
        "without a certificate there is none"
    );
    assert_eq!(speaks(&[cert]), [true, true]);
    assert_eq!(speaks(&[cert, ("ssl-ports", "*")]), [true, true]);
    assert_eq!(speaks(&[cert, ("ssl-ports", "443, other")]), [false, true]);
    assert_eq!(speaks(&[cert, ("ssl-ports", "P80")]), [true, false]);
}

#[test]
fn ports_are_needed_and_some_node_port_too() {
    let mut none = service(&[]);
    none.ports.clear();
    assert!(
        matches!(Settings::read(&none, Kind::Classic), Err(Failure { kind: FailureKind::Invalid, message: text, .. }) if text.contains("no ports"))
    );
    let mut unallocated = service(&[]);
    unallocated.ports[0].node_port = None;
    let refused = Settings::read(&unallocated, Kind::Classic);
    assert!(
        matches!(refused, Err(Failure { kind: FailureKind::Invalid, message: text, .. }) if text.contains("allocateLoadBalancerNodePorts"))
    );
    let mut sctp = service(&[("type", "nlb")]);
    sctp.ports[0].protocol = Protocol::Sctp;
    assert!(
        matches!(Settings::read(&sctp, Kind::Network), Err(Failure { kind: FailureKind::Invalid, message: text, .. }) if text.contains("TCP and UDP"))
    );
}
