//! Answers of guests: conversion, limits, secrets.
//!
//! Over 400 lines: each kind of answer is checked in each way, on the same samples.

use std::time::Duration;

use cloudwit_model as model;
use cloudwit_model::{Address, AddressKind, Endpoint, Evidence, Failure, IpMode, Presence};
use proptest::prelude::*;

use super::*;
use crate::call::answer::limits;
use crate::call::answer::{Checked, Screen};
use crate::call::walk::Walk;
use crate::contract::adapter;
use crate::contract::v0_1::convert::tests::full_service;
use crate::contract::v0_1::convert::{address_to_guest, route_to_guest, service};
use crate::contract::v0_1::description::*;
use crate::contract::v0_1::generated::cloudwit::provider::{common, services};
use crate::contract::v0_1::generated::exports::cloudwit::provider::{info, load_balancers, routes};
use crate::grants::SecretUse;
use crate::secrets::redact::Redactor;

pub(crate) const SECRET: &str = "canary-7391-secret";

pub(crate) fn redactor() -> Redactor {
    Redactor::new([("token", SECRET.as_bytes())])
}

/// Runs something that pauses.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

fn node(name: &str) -> model::NodeRef {
    model::NodeRef {
        name: name.into(),
        ..Default::default()
    }
}

fn machine() -> common::Instance {
    common::Instance {
        provider_id: "test://a".into(),
        instance_type: None,
        zone: None,
        region: None,
        addresses: Vec::new(),
        labels: Vec::new(),
        extra: Vec::new(),
    }
}

pub(crate) fn pair(key: &str, value: &str) -> common::Pair {
    common::Pair {
        key: key.into(),
        value: value.into(),
    }
}

fn ip(value: &str) -> common::Address {
    common::Address {
        kind: common::AddressKind::InternalIp,
        value: value.into(),
    }
}

#[test]
fn extra_facts_of_a_machine_are_bounded_and_ignored() {
    let with = |extra: Vec<common::Pair>| common::Instance { extra, ..machine() };
    let full = vec![pair("k", &"v".repeat(100)); limits::EXTRA];
    assert_eq!(answered(with(full.clone())), answered(machine()));
    let odd = [
        [full, vec![pair("k", "v")]].concat(),
        vec![pair("", "v")],
        vec![pair(&"k".repeat(limits::KEY + 1), "v")],
        vec![pair("k", &"v".repeat(limits::EXTRA_VALUE + 1))],
        vec![pair("k", SECRET)],
    ];
    for extra in odd {
        assert!(problem(with(extra)).contains("extra fact"));
    }
}

fn looked_up(answers: Vec<Result<common::Presence, common::Failure>>) -> Vec<Result<Presence, Failure>> {
    let nodes: Vec<_> = (0..answers.len()).map(|number| node(&format!("n{number}"))).collect();
    run(lookup(Screen(&redactor()), &mut Walk::default(), &nodes, answers)).unwrap()
}

/// The answer about one machine.
fn answered(instance: common::Instance) -> Result<Presence, Failure> {
    looked_up(vec![Ok(common::Presence::Running(instance))]).remove(0)
}

fn problem(instance: common::Instance) -> String {
    match answered(instance) {
        Err(Failure::InvalidResponse(problem)) => problem,
        other => panic!("not invalid: {other:?}"),
    }
}

#[test]
fn odd_machines_cost_their_own_nodes_alone() {
    let odd = |change: fn(&mut common::Instance)| {
        let mut odd = machine();
        change(&mut odd);
        Ok(common::Presence::Running(odd))
    };
    let pending = common::FailureKind::Pending("t".repeat(5000));
    let found = looked_up(vec![
        odd(|_| ()),
        odd(|odd| odd.provider_id.clear()),
        odd(|odd| odd.addresses.push(ip("203.0.113.300"))),
        odd(|odd| odd.labels.push(pair("", "v"))),
        Err(failed(pending, "")),
        Err(failed(common::FailureKind::Denied, "no")),
        Ok(common::Presence::Absent(common::Evidence::ById)),
    ]);
    assert!(found[0].is_ok() && found[6] == Ok(Presence::Absent(Evidence::ById)));
    assert_eq!(found[5], Err(Failure::Denied("no".into())));
    for (at, problem) in [
        (1, "the provider id of node \"n1\" is empty"),
        (
            2,
            "the InternalIP of node \"n2\" is \"203.0.113.300\", which is not an IP address",
        ),
        (3, "the key of a label of node \"n3\" is empty"),
        (4, "the token of a pending answer has 5000 bytes, at most 4096 are kept"),
    ] {
        assert_eq!(found[at], Err(Failure::InvalidResponse(problem.into())));
    }
}

#[test]
fn lists_and_texts_of_a_machine_end_at_their_limits() {
    let with = |change: &dyn Fn(&mut common::Instance)| {
        let mut changed = machine();
        change(&mut changed);
        changed
    };
    let addresses = |count| with(&|one| one.addresses = vec![ip("10.0.0.1"); count]);
    assert!(answered(addresses(limits::ADDRESSES)).is_ok());
    assert!(problem(addresses(limits::ADDRESSES + 1)).contains("1025 entries, at most 1024"));
    let labels = |count| with(&|one| one.labels = (0..count).map(|key| pair(&format!("k{key}"), "v")).collect());
    assert!(answered(labels(limits::LABELS)).is_ok());
    assert!(problem(labels(limits::LABELS + 1)).contains("labels of node \"n0\" has 129 entries"));
    let id = |bytes| with(&|one| one.provider_id = "i".repeat(bytes));
    assert!(answered(id(limits::ID)).is_ok());
    assert!(problem(id(limits::ID + 1)).contains("the provider id of node \"n0\" has 1025 bytes"));
    let zone = |bytes| with(&|one| one.zone = Some("z".repeat(bytes)));
    assert!(answered(zone(limits::LABEL_VALUE)).is_ok());
    assert!(problem(zone(limits::LABEL_VALUE + 1)).contains("the zone of node \"n0\" has 254 bytes"));
    let key = with(&|one| one.labels = vec![pair(&"k".repeat(limits::KEY + 1), "v")]);
    assert!(problem(key).contains("the key of a label of node \"n0\" has 318 bytes"));
    let value = with(&|one| one.labels = vec![pair("k", &"v".repeat(limits::LABEL_VALUE + 1))]);
    assert!(problem(value).contains("the label \"k\" of node \"n0\" has 254 bytes"));
    let full = with(&|one| {
        one.labels = (0..limits::LABELS)
            .map(|key| pair(&format!("{key:0317}"), &"v".repeat(253)))
            .collect();
    });
    assert!(problem(full).contains("bytes of text, at most 65536 are allowed"));
}

#[test]
fn a_secret_in_any_name_of_a_machine_makes_the_answer_invalid() {
    let spots: [fn(&mut common::Instance); 7] = [
        |one| one.provider_id = format!("test://{SECRET}"),
        |one| one.instance_type = Some(SECRET.into()),
        |one| one.zone = Some(SECRET.into()),
        |one| one.region = Some(SECRET.into()),
        |one| one.labels = vec![pair(SECRET, "v")],
        |one| one.labels = vec![pair("k", SECRET)],
        |one| {
            one.addresses = vec![common::Address {
                kind: common::AddressKind::Hostname,
                value: SECRET.into(),
            }];
        },
    ];
    for spot in spots {
        let mut with_secret = machine();
        spot(&mut with_secret);
        let problem = problem(with_secret);
        assert!(
            problem.contains("contains the secret \"token\"") && !problem.contains("canary"),
            "{problem}"
        );
    }
    let mut quoted = machine();
    quoted.addresses.push(ip(SECRET));
    assert!(problem(quoted).contains("is \"[secret token]\", which is not an IP address"));
}

/// A failure as a guest says it.
fn failed(kind: common::FailureKind, message: impl Into<String>) -> common::Failure {
    common::Failure {
        kind,
        code: None,
        message: message.into(),
        retry_after: None,
    }
}

#[test]
fn a_secret_in_a_failure_is_hidden_and_its_text_cut() {
    use common::FailureKind as Guest;
    let redactor = redactor();
    for kind in [
        Guest::NotFound,
        Guest::AlreadyExists,
        Guest::Pending(String::new()),
        Guest::RateLimited,
        Guest::Denied,
        Guest::Invalid,
        Guest::Conflict,
        Guest::Exhausted,
        Guest::OutOfRange,
        Guest::FailedPrecondition,
        Guest::Aborted,
        Guest::Unavailable,
        Guest::ImplementedElsewhere,
        Guest::Other,
    ] {
        let text = format!("{SECRET} {}", "x".repeat(1 << 20));
        let code = format!("{SECRET}{}", "C".repeat(1 << 20));
        let failed = common::Failure {
            code: Some(code),
            ..failed(kind, text)
        };
        let shown = failure(Screen(&redactor), failed).unwrap().to_string();
        assert_eq!(shown.matches("[secret token]").count(), 2, "{shown}");
        assert!(!shown.contains("canary"), "{shown}");
        assert!(shown.len() < limits::MESSAGE + limits::WORD + 40);
    }
}

#[test]
fn pause_of_a_failure_is_bounded_and_has_a_default() {
    use common::FailureKind as Guest;
    let retry = |kind: Guest, retry_after| {
        let failed = common::Failure {
            retry_after,
            ..failed(kind, "m")
        };
        failure(Screen(&redactor()), failed).unwrap().retry()
    };
    let after = |seconds| model::Retry::After(Duration::from_secs(seconds));
    assert_eq!(retry(Guest::Pending("t".into()), None), after(5));
    assert_eq!(retry(Guest::Pending("t".into()), Some(u32::MAX)), after(3600));
    assert_eq!(retry(Guest::RateLimited, None), after(10));
    assert_eq!(retry(Guest::RateLimited, Some(7000)), after(7));
    assert_eq!(retry(Guest::Unavailable, Some(7000)), model::Retry::Backoff);
}

fn balanced(found: load_balancers::Balancer) -> Checked<model::Balancer> {
    run(balancer(Screen(&redactor()), &mut Walk::default(), found))
}

fn at(endpoint: services::Endpoint) -> services::Ingress {
    services::Ingress {
        endpoint,
        ports: Vec::new(),
    }
}

#[test]
fn an_ingress_comes_back_as_it_went() {
    let sent = full_service().ingress;
    let back = balanced(load_balancers::Balancer {
        ingress: service(&full_service()).ingress,
        annotations: Vec::new(),
        remaining: None,
    });
    assert_eq!(back.unwrap().ingress, sent);
}

#[test]
fn an_ingress_without_a_mode_is_a_virtual_ip() {
    let found = ingress(
        Screen(&redactor()),
        at(services::Endpoint::Ip(("192.0.2.1".into(), None))),
    )
    .unwrap();
    assert_eq!(found.endpoint, Endpoint::Ip("192.0.2.1".parse().unwrap(), IpMode::Vip));
}

#[test]
fn load_balancers_end_at_their_limits_and_contain_no_secret() {
    let named = |name: &str| at(services::Endpoint::Hostname(name.into()));
    let port = |error: &str| services::PortStatus {
        port: 80,
        protocol: services::Protocol::Tcp,
        error: Some(error.into()),
    };
    let with_ports = |ports| services::Ingress { ports, ..named("a") };
    let change = |key: &str, value: &str| load_balancers::AnnotationChange {
        key: key.into(),
        value: Some(value.into()),
    };
    let lists = |ingress, annotations| {
        balanced(load_balancers::Balancer {
            ingress,
            annotations,
            remaining: None,
        })
    };
    let most = lists(
        vec![with_ports(vec![port("E"); limits::PORTS]); limits::INGRESSES],
        vec![change("k", &"v".repeat(limits::ANNOTATION_VALUE)); limits::ANNOTATIONS],
    );
    assert!(most.is_ok());
    for (ingress, annotations) in [
        (vec![named("a"); limits::INGRESSES + 1], vec![]),
        (vec![named(&"a".repeat(limits::HOST_NAME + 1))], vec![]),
        (vec![with_ports(vec![port("E"); limits::PORTS + 1])], vec![]),
        (
            vec![with_ports(vec![port(&"E".repeat(limits::PORT_ERROR + 1))])],
            vec![],
        ),
        (vec![], vec![change("k", "v"); limits::ANNOTATIONS + 1]),
        (vec![], vec![change("k", &"v".repeat(limits::ANNOTATION_VALUE + 1))]),
        (vec![], vec![change(&"k".repeat(limits::KEY + 1), "v")]),
        (vec![], vec![change("", "v")]),
        (vec![named(SECRET)], vec![]),
        (vec![with_ports(vec![port(SECRET)])], vec![]),
        (vec![], vec![change(SECRET, "v")]),
        (vec![], vec![change("k", SECRET)]),
    ] {
        let problem = lists(ingress, annotations).unwrap_err().0;
        assert!(!problem.contains("canary"), "{problem}");
    }
    let redactor = redactor();
    let name = |name: &str| balancer_name(Screen(&redactor), name.to_owned());
    assert!(name("a").is_ok() && name("").is_err() && name(SECRET).is_err());
    assert!(name(&"a".repeat(limits::BALANCER_NAME + 1)).is_err());
}

#[test]
fn addresses_of_every_kind_come_back_as_they_went() {
    for kind in [
        AddressKind::Hostname,
        AddressKind::InternalIP,
        AddressKind::ExternalIP,
        AddressKind::InternalDNS,
        AddressKind::ExternalDNS,
    ] {
        let sent = Address::new(kind, "192.0.2.7");
        let back = address(Screen(&redactor()), format_args!("node"), address_to_guest(&sent));
        assert_eq!(back, Ok(sent));
    }
}

#[test]
fn remaining_work_keeps_token_and_pending_pauses() {
    let with = |token: &str, retry_after| {
        let found = balanced(load_balancers::Balancer {
            ingress: vec![at(services::Endpoint::Hostname("a".into()))],
            annotations: Vec::new(),
            remaining: Some(load_balancers::RemainingWork {
                token: token.into(),
                message: format!("waits for {SECRET}"),
                retry_after,
            }),
        });
        found.map(|balancer| balancer.remaining.unwrap())
    };
    let work = with(SECRET, None).unwrap();
    assert_eq!((work.token.as_str(), work.after), (SECRET, Duration::from_secs(5)));
    assert_eq!(work.message, "waits for [secret token]");
    assert_eq!(with("t", Some(1)).unwrap().after, Duration::from_millis(100));
    assert_eq!(with("t", Some(u32::MAX)).unwrap().after, Duration::from_secs(3600));
    assert!(with(&"t".repeat(limits::TOKEN + 1), None).is_err());
}

#[test]
fn a_pending_answer_keeps_its_token() {
    let pending = common::Failure {
        code: Some("PENDING_CREATE".into()),
        retry_after: Some(7000),
        ..failed(common::FailureKind::Pending(SECRET.into()), "m")
    };
    let expected = Failure::Pending {
        after: Duration::from_secs(7),
        token: SECRET.into(),
        message: "m (PENDING_CREATE)".into(),
    };
    assert_eq!(failure(Screen(&redactor()), pending), Ok(expected));
}

fn listed(found: Vec<routes::Route>) -> Checked<adapter::Listed<model::Route>> {
    run(super::routes(Screen(&redactor()), &mut Walk::default(), found))
}

fn good_route() -> model::Route {
    model::Route {
        id: "r".into(),
        destination: "10.1.0.0/24".into(),
        node: Some("a".into()),
        next_hops: vec![Address::new(AddressKind::InternalIP, "10.0.0.1")],
        blackhole: true,
    }
}

#[test]
fn odd_routes_are_left_out_and_the_others_used() {
    let good = || route_to_guest(&good_route());
    let odd: [fn(&mut routes::Route); 7] = [
        |odd| odd.destination = "10.0.0.0".into(),
        |odd| odd.id.clear(),
        |odd| odd.id = SECRET.into(),
        |odd| odd.id = "i".repeat(limits::ID + 1),
        |odd| odd.node = Some("n".repeat(limits::HOST_NAME + 1)),
        |odd| odd.next_hops = vec![ip("none")],
        |odd| odd.next_hops = vec![ip("10.0.0.1"); limits::NEXT_HOPS + 1],
    ];
    let mut all = vec![good()];
    for change in odd {
        let mut odd = good();
        change(&mut odd);
        all.extend([odd, good()]);
    }
    let listed = listed(all).unwrap();
    assert_eq!(listed.items, vec![good_route(); 8]);
    assert_eq!(listed.left_out, 7);
    assert_eq!(
        listed.first_problem.unwrap(),
        "the destination of route \"r\" is \"10.0.0.0\", which is not a CIDR"
    );
}

#[test]
fn a_list_of_routes_ends_at_its_limit_and_is_walked_with_pauses() {
    let many = |count| vec![route_to_guest(&good_route()); count];
    assert!(
        listed(many(limits::ROUTES + 1))
            .unwrap_err()
            .0
            .contains("100001 entries")
    );
    let (redactor, mut walk) = (redactor(), Walk::default());
    let listed = run(super::routes(Screen(&redactor), &mut walk, many(limits::ROUTES))).unwrap();
    assert_eq!((listed.items.len(), listed.left_out), (limits::ROUTES, 0));
    assert!(walk.pauses >= limits::ROUTES * 64 / (64 << 10), "{}", walk.pauses);
}

#[test]
fn results_of_route_changes_are_checked_one_by_one() {
    let pending = || failed(common::FailureKind::Pending("t".repeat(limits::TOKEN + 1)), "");
    let found = routes::Outcome {
        created: vec![Ok(()), Err(pending())],
        deleted: vec![Err(failed(common::FailureKind::Other, SECRET))],
    };
    let found = run(outcome(Screen(&redactor()), &mut Walk::default(), (2, 1), found)).unwrap();
    assert!(matches!(found.created[..], [Ok(()), Err(Failure::InvalidResponse(_))]));
    assert_eq!(found.deleted, [Err(Failure::Other("[secret token]".into()))]);
}

fn described() -> info::Description {
    info::Description {
        name: "sim".into(),
        version: "1".into(),
        provider_id_prefixes: vec!["sim://".into()],
        http: vec![info::HttpWish {
            scheme: "https".into(),
            host: "api.example.com".into(),
            port: None,
            methods: vec!["GET".into()],
            reason: "the API".into(),
        }],
        secrets: vec![info::SecretWish {
            name: "token".into(),
            reason: "it".into(),
            uses: vec![info::SecretUse::Placeholder, info::SecretUse::Sign],
            hosts: vec!["api.example.com:8443".into()],
            optional: true,
        }],
        cluster: vec![info::ClusterWish {
            view: info::ClusterView::Services,
            reason: "all".into(),
            optional: false,
        }],
        lookup_batch: None,
        extra: vec![pair("new", "fact")],
    }
}

#[test]
fn tagging_label_is_one_of_another_cloud_controller() {
    let redactor = redactor();
    let of = |value: &str| {
        let mut found = described();
        found.extra.push(pair("tagging-label", value));
        description(Screen(&redactor), found).map(|read| read.tagging_label)
    };
    let upstream = "k8s.io/cloud-provider-aws";
    assert_eq!(of(upstream).unwrap().as_deref(), Some(upstream));
    let none = description(Screen(&redactor), described()).unwrap();
    assert_eq!(none.tagging_label, None);
    let long = format!("k8s.io/cloud-provider-{}", "a".repeat(49));
    for bad in [
        "",
        "k8s.io/",
        "k8s.io/cloud-provider-",
        "k8s.io/cloud-provider-a/b",
        "k8s.io/cloud-provider-A",
        "kubernetes.io/hostname",
        "cloudwit.dev/provider",
        "example.com/pool",
        &long,
    ] {
        assert!(of(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn disabled_interfaces_are_names_joined_by_commas() {
    let redactor = redactor();
    let of = |value: &str| {
        let mut found = described();
        found.extra.push(pair("disabled-interfaces", value));
        description(Screen(&redactor), found).map(|read| read.disabled_interfaces)
    };
    assert_eq!(of("load-balancers,routes").unwrap(), ["load-balancers", "routes"]);
    let none = description(Screen(&redactor), described()).unwrap();
    assert!(none.disabled_interfaces.is_empty());
    let many = ["routes"; limits::DISABLED_INTERFACES + 1].join(",");
    for bad in ["", "routes,", "Routes", "load balancers", "a/b", &many] {
        assert!(of(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn finalizers_of_services_are_those_of_others() {
    let redactor = redactor();
    let of = |value: &str| {
        let mut found = described();
        found.extra.push(pair("service-finalizers", value));
        description(Screen(&redactor), found).map(|read| read.service_finalizers)
    };
    let two = "gke.networking.io/l4-netlb-v1,service.k8s.alibaba/resources";
    assert_eq!(of(two).unwrap(), two.split(',').collect::<Vec<_>>());
    assert!(
        description(Screen(&redactor), described())
            .unwrap()
            .service_finalizers
            .is_empty()
    );
    let many = ["a.b/c"; limits::SERVICE_FINALIZERS + 1].join(",");
    for bad in [
        "",
        "name",
        "domain/name",
        "a.b/",
        "/c",
        "a.b/c/d",
        "a.b/c, d.e/f",
        "a.b/c,",
        "kubernetes.io/pvc-protection",
        "service.kubernetes.io/load-balancer-cleanup",
        "x.k8s.io/y",
        &many,
    ] {
        assert!(of(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn a_description_ends_at_its_limits_and_contains_no_secret() {
    let redactor = redactor();
    let good = description(Screen(&redactor), described()).unwrap();
    assert_eq!(good.secrets[0].uses, [SecretUse::Placeholder, SecretUse::Sign]);
    assert_eq!(good.secrets[0].hosts, ["api.example.com:8443"]);
    assert_eq!(good.cluster[0].view, adapter::ClusterGrantView::Services);
    assert_eq!((good.secrets[0].optional, good.cluster[0].optional), (true, false));
    for (said, used) in [(None, 1000), (Some(0), 1), (Some(50), 50), (Some(u32::MAX), 1000)] {
        let mut wish = described();
        wish.lookup_batch = said;
        assert_eq!(description(Screen(&redactor), wish).unwrap().lookup_batch, used);
    }
    let odd: [fn(&mut info::Description); 25] = [
        |odd| odd.extra = vec![pair("k", "v"); limits::EXTRA + 1],
        |odd| odd.extra = vec![pair("", "v")],
        |odd| odd.extra = vec![pair("k", SECRET)],
        |odd| odd.secrets[0].uses.clear(),
        |odd| odd.secrets[0].uses = vec![info::SecretUse::Hmac; limits::SECRET_USES + 1],
        |odd| odd.secrets[0].hosts = vec!["h".into(); limits::GRANT_REQUESTS + 1],
        |odd| odd.secrets[0].hosts = vec!["h".repeat(limits::SECRET_HOST + 1)],
        |odd| odd.secrets[0].hosts = vec![SECRET.into()],
        |odd| odd.cluster = vec![odd.cluster[0].clone(); limits::CLUSTER_VIEWS + 1],
        |odd| odd.name.clear(),
        |odd| odd.version.clear(),
        |odd| odd.provider_id_prefixes = vec![String::new()],
        |odd| odd.provider_id_prefixes = vec!["a://".into(); limits::PREFIXES + 1],
        |odd| odd.http = vec![odd.http[0].clone(); limits::GRANT_REQUESTS + 1],
        |odd| odd.secrets = vec![odd.secrets[0].clone(); limits::GRANT_REQUESTS + 1],
        |odd| odd.http[0].methods = vec!["GET".into(); limits::METHODS + 1],
        |odd| odd.http[0].methods = vec!["G".repeat(limits::METHOD + 1)],
        |odd| odd.http[0].scheme = "h".repeat(limits::METHOD + 1),
        |odd| odd.http[0].host = "h".repeat(limits::HOST_NAME + 1),
        |odd| odd.secrets[0].name = "n".repeat(limits::WORD + 1),
        |odd| odd.name = SECRET.into(),
        |odd| odd.version = SECRET.into(),
        |odd| odd.provider_id_prefixes = vec![SECRET.into()],
        |odd| odd.http[0].host = SECRET.into(),
        |odd| odd.secrets[0].name = SECRET.into(),
    ];
    for change in odd {
        let mut odd = described();
        change(&mut odd);
        let problem = description(Screen(&redactor), odd).unwrap_err().0;
        assert!(!problem.contains("canary"), "{problem}");
    }
    let mut reasons = described();
    reasons.http[0].reason = SECRET.into();
    reasons.secrets[0].reason = SECRET.into();
    reasons.cluster[0].reason = SECRET.into();
    let shown = description(Screen(&redactor), reasons).unwrap();
    let shown = [
        &*shown.http[0].reason,
        &*shown.secrets[0].reason,
        &*shown.cluster[0].reason,
    ];
    assert_eq!(shown, ["[secret token]"; 3]);
}

#[test]
fn config_problems_are_cut_counted_and_without_secrets() {
    let problem = || info::Problem {
        severity: info::Severity::Warning,
        at: SECRET.into(),
        message: format!("{} {SECRET}", "x".repeat(limits::MESSAGE)),
    };
    let mut all = vec![problem(); limits::PROBLEMS + 3];
    let warnings = run(problems(Screen(&redactor()), &mut Walk::default(), all.clone()));
    assert!(!warnings.iter().any(adapter::Problem::is_error));
    // An error among those that are only counted is one all the same.
    all[limits::PROBLEMS + 1].severity = info::Severity::Error;
    let shown = run(problems(Screen(&redactor()), &mut Walk::default(), all));
    assert!(shown[limits::PROBLEMS].is_error() && !shown[0].is_error());
    assert_eq!(shown.len(), limits::PROBLEMS + 1);
    assert_eq!(shown[0].at, "[secret token]");
    assert!(shown[0].message.len() <= limits::MESSAGE && !shown[0].message.contains("canary"));
    assert_eq!(shown[limits::PROBLEMS].message, "3 further problems are not listed");
}

/// Texts of any content and up to somewhat over a limit.
fn any_text(most: usize) -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        Just(SECRET.to_owned()),
        Just(String::new()),
        (0..=most + 2).prop_map(|length| "x".repeat(length)),
    ]
}

fn any_instance() -> impl Strategy<Value = common::Instance> {
    let kind = prop::sample::select(vec![
        common::AddressKind::InternalIp,
        common::AddressKind::Hostname,
        common::AddressKind::ExternalDns,
    ]);
    let value = prop_oneof![Just("10.0.0.1".to_owned()), any_text(limits::HOST_NAME)];
    let address = (kind, value).prop_map(|(kind, value)| common::Address { kind, value });
    let addresses = (prop::collection::vec(address, 0..4), 1..=400_usize)
        .prop_map(|(addresses, times)| vec![addresses; times].concat());
    let label =
        (any_text(limits::KEY), any_text(limits::LABEL_VALUE)).prop_map(|(key, value)| common::Pair { key, value });
    let labels =
        (prop::collection::vec(label, 0..4), 1..=40_usize).prop_map(|(labels, times)| vec![labels; times].concat());
    (
        any_text(limits::ID),
        prop::option::of(any_text(limits::LABEL_VALUE)),
        addresses,
        labels,
    )
        .prop_map(|(provider_id, zone, addresses, labels)| common::Instance {
            provider_id,
            instance_type: zone.clone(),
            region: zone.clone(),
            zone,
            addresses,
            labels,
            extra: Vec::new(),
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn answers_about_machines_hold_their_limits_whatever_they_are(
        machines in prop::collection::vec(any_instance(), 0..4),
    ) {
        let answers: Vec<_> = machines.iter().cloned().map(|one| Ok(common::Presence::Stopped(one))).collect();
        for (found, asked) in looked_up(answers).into_iter().zip(machines) {
            match found {
                Ok(presence) => {
                    let found = presence.instance().unwrap();
                    prop_assert!(found.addresses.len() <= limits::ADDRESSES && found.labels.len() <= limits::LABELS);
                    prop_assert!(instance_bytes(&asked) <= limits::INSTANCE);
                    prop_assert_eq!(&found.provider_id, &asked.provider_id);
                    let shown = format!("{found:?}");
                    prop_assert!(!shown.contains(SECRET));
                }
                Err(Failure::InvalidResponse(problem)) => {
                    prop_assert!(!problem.contains(&SECRET[..8]) && problem.len() <= limits::MESSAGE);
                }
                Err(other) => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn listed_routes_are_used_or_left_out_whatever_they_are(
        found in prop::collection::vec((any_text(limits::ID), "[0-9a-f:./]{0,20}|10.0.0.0/8", any_text(20)), 0..20),
    ) {
        let asked = found.len();
        let all = found.into_iter().map(|(id, destination, node)| routes::Route {
            id, destination, node: Some(node), next_hops: Vec::new(), blackhole: false,
        });
        let listed = listed(all.collect()).unwrap();
        prop_assert_eq!(listed.items.len() + listed.left_out, asked);
        prop_assert_eq!(listed.first_problem.is_some(), listed.left_out > 0);
    }
}
