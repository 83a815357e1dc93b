use cloudwit_guest_sdk::testing::{FakeHost, assert_readme};
use serde_json::{Value, json};

use super::annotations::TABLE;
use super::fields::{Field, GROUP, HTTP, Wish, unused};
use super::groups::{Member, MemberChanges};
use super::names::{Names, OWNER_TAG};
use super::wanted::{Members, only_members};
use super::*;
use crate::testing::{actions, host, parameter, provider, said};

const UID: &str = "1bf6e8a3-6f0a-4d3e-9a3c-000000000001";
const NAME: &str = "a1bf6e8a36f0a4d3e9a3c00000000000";

fn service(annotations: &[(&str, &str)]) -> Service {
    let mut service = Service::new("default", "web", UID);
    service.ports = vec![ServicePort {
        name: None,
        protocol: Protocol::Tcp,
        port: 80,
        node_port: Some(30_080),
        target_port: None,
        app_protocol: None,
    }];
    service.annotations = annotations
        .iter()
        .map(|(key, value)| Pair::new(TABLE.key(key), *value))
        .collect();
    service
}

fn nlb(annotations: &[(&str, &str)]) -> Service {
    Service {
        extra: vec![Pair::new("load-balancer-class", "alibabacloud.com/nlb")],
        ..service(annotations)
    }
}

fn wanted(service: &Service) -> Result<Wanted<'_>, Failure> {
    Wanted::new(service, &Names::new(service, "c1"), vec!["i-1".into()])
}

fn value(fields: &[Field], name: &str) -> Option<String> {
    fields
        .iter()
        .find(|field| field.name == name)
        .map(|field| match &field.value {
            Wish::One(value) => value.clone(),
            Wish::Many(values) => values.join("+"),
        })
}

#[test]
fn the_readme_has_the_annotations() {
    assert_readme(include_str!("../../README.md"), &TABLE);
}

#[test]
fn names_are_upstreams() {
    let classic = Names::new(&service(&[]), "c1");
    assert_eq!(
        (classic.balancer.as_str(), classic.of_port(80, "tcp").as_str()),
        (NAME, "k8s/80/web/default/c1")
    );
    for (name, own) in [
        ("k8s/80/web/default/c1", true),
        ("k8s/30080/web/default/c1", true),
        ("k8s/80/web/default/c2", false),
        ("k8s/80/other-web/default/c1", false),
        ("k8s/80/x/web/default/c1", false),
        ("web", false),
    ] {
        assert_eq!(classic.is_own(name), own, "{name}");
    }
    let network = Names::new(&nlb(&[]), "c1");
    assert_eq!(network.of_port(443, "TCPSSL"), "k8s.443.TCPSSL.web.default.c1");
    for (name, own) in [
        ("k8s.80_90.TCP.web.default.c1", true),
        ("k8s.80.TCP.a.web.default.c1", false),
        ("k8s.80.TCP.web.default.c2", false),
    ] {
        assert_eq!(network.is_own(name), own, "{name}");
    }
    assert_eq!(
        network.tags(),
        [(OWNER_TAG.into(), NAME.into()), ("ack.aliyun.com".into(), "c1".into())]
    );
}

#[test]
fn annotations_of_the_former_prefix_count_where_no_others_are() {
    let mut old = service(&[("scheduler", "wlc")]);
    for key in ["scheduler", "idle-timeout"] {
        old.annotations.push(Pair::new(
            format!("service.beta.kubernetes.io/alicloud-loadbalancer-{key}"),
            "9",
        ));
    }
    let read = with_present_names(&old);
    assert_eq!(annotations::text(&read, "scheduler"), Some("wlc"));
    assert_eq!(annotations::text(&read, "idle-timeout"), Some("9"));
}

#[test]
fn parameters_are_those_of_the_ports_protocol() {
    let all = [
        ("protocol-port", "https:80"),
        ("cert-id", "cert-1"),
        ("health-check-flag", "on"),
        ("health-check-interval", "7"),
        ("sticky-session", "on"),
        ("sticky-session-type", "insert"),
        ("cookie-timeout", "60"),
        ("persistence-timeout", "9"),
        ("acl-id", "b,a"),
    ];
    let https = service(&all);
    let port = wanted(&https).unwrap().ports.remove(0);
    assert_eq!(
        (port.protocol, port.listener.as_str(), port.group.as_str()),
        ("https", "k8s/80/web/default/c1", "k8s/30080/web/default/c1")
    );
    for (name, expected) in [
        ("ServerCertificateId", Some("cert-1")),
        ("HealthCheck", Some("on")),
        ("HealthCheckInterval", Some("7")),
        ("StickySession", Some("on")),
        ("Scheduler", Some("rr")),
        ("PersistenceTimeout", None),
        ("AclId", Some("a,b")),
    ] {
        assert_eq!(value(&port.of_listener, name).as_deref(), expected, "{name}");
    }
    let tls = nlb(&[
        ("protocol-port", "tcpssl:80"),
        ("cert-id", "1,2"),
        ("health-check-flag", "off"),
        ("connection-drain", "on"),
    ]);
    let port = wanted(&tls).unwrap().ports.remove(0);
    assert_eq!(
        (port.protocol, port.group.as_str()),
        ("TCPSSL", "k8s.30080.TCPSSL.web.default.c1")
    );
    assert_eq!(value(&port.of_listener, "CertificateIds").as_deref(), Some("1+2"));
    assert_eq!(
        value(&port.of_group, "HealthCheckConfig.HealthCheckEnabled").as_deref(),
        Some("false")
    );
    assert_eq!(value(&port.of_group, "ConnectionDrainEnabled").as_deref(), Some("true"));
    assert!(unused(HTTP).any(|key| key == "alpn") && !unused(GROUP).any(|key| key == "scheduler"));
}

#[test]
fn affinity_and_local_traffic_have_their_parameters() {
    let mut local = service(&[]);
    local.session_affinity_seconds = Some(10_800);
    local.health_check_node_port = Some(31_000);
    let port = wanted(&local).unwrap().ports.remove(0);
    for (name, expected) in [
        ("PersistenceTimeout", "3600"),
        ("HealthCheckType", "http"),
        ("HealthCheckConnectPort", "31000"),
        ("HealthCheckURI", "/healthz"),
    ] {
        assert_eq!(value(&port.of_listener, name).as_deref(), Some(expected), "{name}");
    }
    local.extra = nlb(&[]).extra;
    let port = wanted(&local).unwrap().ports.remove(0);
    assert_eq!(value(&port.of_group, "Scheduler").as_deref(), Some("sch"));
    assert_eq!(
        value(&port.of_group, "HealthCheckConfig.HealthCheckConnectPort").as_deref(),
        Some("31000")
    );
}

#[test]
fn mistakes_are_told_all_at_once_and_each_once() {
    let mut odd = service(&[
        ("scheduler", "rr"),
        ("idle-timeout", "0"),
        ("weight", "60"),
        ("protocol-port", "http:80,https:443,ftp:21"),
        ("default-weight", "101"),
    ]);
    odd.ports.push(ServicePort {
        port: 443,
        node_port: None,
        ..odd.ports[0].clone()
    });
    odd.ports.push(ServicePort {
        port: 8443,
        protocol: Protocol::Sctp,
        ..odd.ports[0].clone()
    });
    odd.source_ranges = vec!["10.0.0.0/8".into()];
    let failure = wanted(&odd).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Invalid);
    for part in [
        "idle-timeout is \"0\"",
        "weight is not there yet",
        "tcp, udp, http and https",
        "default-weight",
        "port 443 has no node port",
        "SCTP",
        "acl-id",
    ] {
        assert_eq!(failure.message.matches(part).count(), 1, "{part}: {}", failure.message);
    }
    let mut open = service(&[]);
    open.source_ranges = vec!["0.0.0.0/0".into()];
    assert!(wanted(&open).is_ok());
    let eni = Service {
        annotations: vec![Pair::new("service.beta.kubernetes.io/backend-type", "eni")],
        ..service(&[])
    };
    assert!(wanted(&eni).is_err());
    assert!(
        wanted(&service(&[("protocol-port", "https:80")]))
            .unwrap_err()
            .message
            .contains("needs a certificate")
    );
}

#[test]
fn values_are_compared_as_the_cloud_shows_them() {
    let seen = json!({ "A": 7, "B": true, "C": "On", "D": ["y", "x"], "E": { "F": "g" } });
    let one = |name, value: &str| Field::one(name, value).is_in(&seen);
    assert!(one("A", "7") && one("B", "true") && one("C", "on") && one("E.F", "g"));
    assert!(!one("A", "8") && !one("Z", "") && !one("E.G", "g"));
    let many = |values: &[&str]| {
        Field {
            name: "D",
            value: Wish::Many(values.iter().map(|value| (*value).to_owned()).collect()),
        }
        .is_in(&seen)
    };
    assert!(many(&["x", "y"]) && !many(&["x"]));
}

#[test]
fn members_are_compared_by_instance_port_and_weight() {
    let member = |instance: &str, port, weight| Member {
        instance: instance.into(),
        port,
        weight,
    };
    let mut wanted = only_members(&service(&[]), vec!["i-1".into(), "i-2".into(), "i-3".into()]).unwrap();
    let seen = [
        member("i-1", 30_080, 100),
        member("i-2", 30_080, 50),
        member("i-2", 30_081, 100),
        member("i-4", 30_080, 100),
    ];
    let changes = MemberChanges::between(&wanted, 30_080, &seen);
    assert_eq!(changes.add, [member("i-3", 30_080, 100)]);
    assert_eq!(changes.remove, [member("i-2", 30_081, 100), member("i-4", 30_080, 100)]);
    assert_eq!(changes.weigh, [member("i-2", 30_080, 100)]);
    wanted = Members {
        keep_weights: true,
        ..wanted
    };
    assert_eq!(MemberChanges::between(&wanted, 30_080, &seen).weigh, []);
}

/// A cloud with this Classic Load Balancer and nothing in it.
fn with_balancer(balancer: Value) -> FakeHost {
    host(move |action, request| match action {
        "DescribeLoadBalancers" => {
            let asked = parameter(request, "LoadBalancerId")
                .or(parameter(request, "Tag.1.Value"))
                .or(parameter(request, "LoadBalancerName"));
            let fits = asked.is_some_and(|asked| balancer.to_string().contains(&asked));
            let found: Vec<&Value> = [&balancer].into_iter().filter(|_| fits).collect();
            said(json!({ "TotalCount": found.len(), "LoadBalancers": { "LoadBalancer": found } }))
        }
        "DescribeLoadBalancerListeners" => said(json!({ "TotalCount": 0 })),
        "DescribeVServerGroups" => said(json!({ "VServerGroups": { "VServerGroup": [] } })),
        _ => said(json!({})),
    })
}

fn balancer(name: &str, owner: Option<&str>) -> Value {
    let tags: Vec<Value> = owner
        .into_iter()
        .map(|owner| json!({ "TagKey": OWNER_TAG, "TagValue": owner }))
        .collect();
    json!({
        "LoadBalancerId": "lb-1", "LoadBalancerName": name, "Address": "47.0.0.1", "DeleteProtection": "on", "LoadBalancerStatus": "active",
        "Tags": { "Tag": tags },
    })
}

fn found(host: &FakeHost, service: &Service) -> Result<Option<bool>, Failure> {
    let provider = provider(host);
    let found = Task::new(&provider, service).find()?;
    Ok(found.map(|found| found.is_users))
}

#[test]
fn one_is_the_services_by_tag_name_or_annotation_alone() {
    let labelled = |service: Service| Service {
        labels: vec![Pair::new("service.k8s.alibaba/loadbalancer-id", "lb-1")],
        ..service
    };
    for (balancer, service, expected) in [
        (balancer("x", Some(NAME)), service(&[]), Some(false)),
        (balancer("x", Some(NAME)), labelled(service(&[])), Some(false)),
        (balancer(NAME, None), service(&[]), Some(false)),
        // A label may be that of a load balancer that was the user's.
        (balancer("mine", None), labelled(service(&[])), None),
        (balancer(NAME, Some("another")), service(&[]), None),
        (balancer("mine", None), service(&[("id", "lb-1")]), Some(true)),
        (balancer("x", Some(NAME)), service(&[("id", "lb-1")]), Some(false)),
    ] {
        let host = with_balancer(balancer.clone());
        assert_eq!(found(&host, &service), Ok(expected), "{balancer} {:?}", service.labels);
    }
    let host = with_balancer(balancer("x", Some("another")));
    let robbed = found(&host, &service(&[("id", "lb-1")])).unwrap_err();
    assert!(robbed.message.contains("another Service's"), "{robbed:?}");
    assert_eq!(
        found(&host, &service(&[("id", "lb-2")])).unwrap_err().kind,
        FailureKind::NotFound
    );
}

#[test]
fn a_protected_one_is_deleted_and_one_of_the_users_is_not() {
    let host = with_balancer(balancer(NAME, Some(NAME)));
    // It is never gone here, so the rounds end.
    provider(&host).delete(&service(&[]), None).unwrap_err();
    assert_eq!(
        actions(&host)[1..3],
        ["SetLoadBalancerDeleteProtection", "DeleteLoadBalancer"]
    );
    drop(host);
    let host = with_balancer(balancer("mine", None));
    provider(&host).delete(&service(&[("id", "lb-1")]), None).unwrap();
    assert!(actions(&host).iter().all(|action| action.starts_with("Describe")));
    drop(host);
    let host = with_balancer(balancer("x", Some("another")));
    provider(&host).delete(&service(&[("id", "lb-1")]), None).unwrap();
    assert_eq!(host.requests().len(), 1, "it was never this Service's");
}

#[test]
fn a_dry_run_changes_nothing() {
    let host = host(|action, _| match action {
        "DescribeLoadBalancers" => said(json!({ "TotalCount": 0 })),
        other => panic!("{other} in a dry run"),
    });
    host.dry_run();
    let failure = provider(&host).ensure(&service(&[]), &[], None).unwrap_err();
    assert!(
        failure.message.contains("would change") && failure.message.contains("CreateLoadBalancer"),
        "{failure:?}"
    );
}

#[test]
fn an_nlb_in_one_zone_is_refused_before_it_is_made() {
    let host = host(|_, _| said(json!({ "TotalCount": 0 })));
    host.config(r#"{"Global": {"accessKeyID": "LTAIk", "region": "cn-test", "vpcid": "vpc-1", "vswitchid": "vsw-1", "zoneid": "a"}}"#);
    let failure = provider(&host).ensure(&nlb(&[]), &[], None).unwrap_err();
    assert!(
        failure.kind == FailureKind::FailedPrecondition && failure.message.contains("zone-maps"),
        "{failure:?}"
    );
    let failure = provider(&host)
        .ensure(&nlb(&[("zone-maps", "a")]), &[], None)
        .unwrap_err();
    assert_eq!(failure.kind, FailureKind::Invalid);
}
