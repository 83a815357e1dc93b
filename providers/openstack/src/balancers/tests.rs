//! Whole calls on recorded answers: which requests they make and what they answer.

use cloudwit_guest_sdk::testing::FakeAnswer;
use serde_json::Value;

use super::*;
use crate::recorded::{Stage, answer, file, json};

const CONFIG: &str = "[LoadBalancer]\ncreate-monitor = true\n";

/// The Service that the recorded load balancer was made for.
fn service() -> Service {
    let mut service = Service::new("default", "web", "u-1");
    service.ports = vec![ServicePort {
        name: None,
        protocol: Protocol::Tcp,
        port: 80,
        node_port: Some(30080),
        target_port: None,
        app_protocol: None,
    }];
    service.ip_families = vec![IpFamily::Ipv4];
    service.traffic_policy = TrafficPolicy::Local;
    service.health_check_node_port = Some(31_000);
    service
}

fn targets() -> Vec<Target> {
    let port = &json(file!("ports_of_group"))["ports"][0];
    let server = port["device_id"].as_str().unwrap();
    let mut node = NodeRef::named("node-1").with_provider_id(format!("openstack:///{server}"));
    let address = port["fixed_ips"][0]["ip_address"].as_str().unwrap();
    node.addresses = vec![Address::new(AddressKind::InternalIp, address)];
    vec![Target { node, ready: true }]
}

/// A cloud that shows the recorded load balancer.
fn stage(more: &str) -> Stage {
    let stage = Stage::new(&format!("{CONFIG}{more}"));
    stage.host.cluster("kubernetes", &[]);
    stage
        .always("GET", "octavia.test/", || answer(file!("octavia_versions")))
        .always("GET", "/lbaas/loadbalancers/", || answer(file!("balancer")))
        .always("GET", "/lbaas/loadbalancers?name=", || answer(file!("balancers_named")))
        .always("GET", "/lbaas/listeners?loadbalancer_id=", || {
            answer(file!("listeners"))
        })
        .always("GET", "/lbaas/pools?loadbalancer_id=", || answer(file!("pools")))
        .always("GET", "/members", || answer(file!("members")))
        .always("GET", "/lbaas/healthmonitors/", || answer(file!("monitor")))
        .always("GET", "/floatingips?port_id=", || answer(file!("floating_ips")))
        .always("GET", "/security-groups?name=", || {
            answer(file!("security_groups_none"))
        })
}

/// A cloud without load balancers.
fn empty(more: &str) -> Stage {
    stage(more)
        .always("GET", "/lbaas/loadbalancers?name=", || {
            FakeAnswer::new(200, &[], "{\"loadbalancers\": []}")
        })
        .always("GET", "neutron.test/v2.0/ports?device_id=", || {
            answer(file!("ports_of_group"))
        })
        .always("GET", "router%3Aexternal=true", || answer(file!("networks_external")))
        .always("GET", "/subnets?network_id=", || answer(file!("subnets_external")))
        .always("POST", "/lbaas/loadbalancers", || answer(file!("balancer_created")))
}

/// The requests that change something.
fn writes(stage: &Stage) -> Vec<String> {
    stage
        .calls()
        .into_iter()
        .filter(|call| !call.starts_with("GET "))
        .collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().into()
}

/// What a pending answer carries.
struct Waiting {
    token: String,
    message: String,
    retry_after: Option<u32>,
}

fn pending(result: Result<Balancer, Failure>) -> Waiting {
    match result {
        Err(Failure {
            kind: FailureKind::Pending(token),
            message,
            retry_after,
            ..
        }) => Waiting {
            token,
            message,
            retry_after,
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_upstream_left_is_adopted_without_a_change() {
    let stage = stage("");
    let balancer = stage.provider().ensure(&service(), &targets(), None).unwrap();
    assert_eq!(writes(&stage), Vec::<String>::new());
    let floating = text(&json(file!("floating_ips"))["floatingips"][0]["floating_ip_address"]);
    let id = text(&json(file!("balancer"))["loadbalancer"]["id"]);
    let expected = Balancer {
        ingress: vec![Ingress {
            endpoint: Endpoint::Ip((floating.clone(), Some(IpMode::Vip))),
            ports: Vec::new(),
        }],
        annotations: vec![
            AnnotationChange::set("loadbalancer.openstack.org/load-balancer-id", id.clone()),
            AnnotationChange::set("loadbalancer.openstack.org/load-balancer-address", floating.clone()),
        ],
        remaining: None,
    };
    assert_eq!(balancer, expected);

    let mut written = service();
    written.annotations = vec![
        Pair::new("loadbalancer.openstack.org/load-balancer-id", id.clone()),
        Pair::new("loadbalancer.openstack.org/load-balancer-address", floating),
    ];
    let calls = stage.calls().len();
    let again = stage.provider().ensure(&written, &targets(), None).unwrap();
    assert_eq!((writes(&stage).len(), again.annotations), (0, vec![]));
    assert_eq!(stage.calls().len() - calls, 7, "{:?}", stage.calls());
}

#[test]
fn a_new_one_is_made_in_one_request_as_upstream_makes_it() {
    let stage = empty("");
    let waiting = pending(stage.provider().ensure(&service(), &targets(), None));
    assert_eq!(waiting.retry_after, Some(1_000));
    let sent = stage.sent("POST", "/lbaas/loadbalancers")[0].json();
    let recorded = file!("balancer_created")
        .lines()
        .next()
        .unwrap()
        .split_once(" with ")
        .unwrap()
        .1;
    let mut upstream: Value = serde_json::from_str(recorded).unwrap();
    let subnet = json(file!("ports_of_group"))["ports"][0]["fixed_ips"][0]["subnet_id"].clone();
    assert_eq!(upstream["loadbalancer"]["vip_subnet_id"], subnet);
    upstream["loadbalancer"]["vip_subnet_id"] = subnet;
    assert_eq!(sent, upstream);
}

/// The token after so many checks.
fn looked(id: &str, times: u32) -> String {
    format!(r#"{{"id": "{id}", "looks": {times}, "marks": []}}"#)
}

#[test]
fn busy_octavia_gets_one_request_and_next_comes_later() {
    let stage = stage("").always("GET", "/lbaas/loadbalancers/", || answer(file!("balancer_pending")));
    let id = text(&json(file!("balancer"))["loadbalancer"]["id"]);
    let first = pending(stage.provider().ensure(&service(), &targets(), Some(&looked(&id, 0))));
    assert_eq!(first.retry_after, Some(1_000));
    let second = pending(stage.provider().ensure(&service(), &targets(), Some(&first.token)));
    assert_eq!(second.retry_after, Some(1_200));
    let looks = stage.calls();
    assert_eq!(
        looks.iter().filter(|call| call.contains("/lbaas/")).count(),
        2,
        "{looks:?}"
    );
    assert!(second.message.contains("PENDING_CREATE"), "{}", second.message);
}

#[test]
fn a_conflict_because_octavia_works_is_no_failure() {
    for busy in [file!("listener_busy"), file!("balancer_busy")] {
        let stage = stage("").always("PUT", "/lbaas/listeners/", move || answer(busy));
        let mut service = service();
        service.annotations = vec![Pair::new("loadbalancer.openstack.org/connection-limit", "7")];
        let waiting = pending(stage.provider().ensure(&service, &targets(), None));
        assert_eq!(waiting.retry_after, Some(1_000));
    }
    let taken = stage("").always("PUT", "/lbaas/listeners/", || answer(file!("listener_port_taken")));
    let mut service = service();
    service.annotations = vec![Pair::new("loadbalancer.openstack.org/connection-limit", "7")];
    let failure = taken.provider().ensure(&service, &targets(), None).unwrap_err();
    assert!(failure.kind == FailureKind::Conflict, "{failure:?}");
}

#[test]
fn ineffective_octavia_change_is_not_repeated_forever() {
    let stage = stage("")
        .always("PUT", "/lbaas/listeners/", || answer(file!("listeners")))
        .always("GET", "/lbaas/loadbalancers/", || answer(file!("balancer")));
    let mut service = service();
    service.annotations = vec![Pair::new("loadbalancer.openstack.org/connection-limit", "7")];
    let stage = stage
        .once("GET", "/lbaas/loadbalancers/", || answer(file!("balancer")))
        .once("GET", "/lbaas/loadbalancers/", || answer(file!("balancer_pending")));
    let waiting = pending(stage.provider().ensure(&service, &targets(), None));
    let failure = stage
        .provider()
        .ensure(&service, &targets(), Some(&waiting.token))
        .unwrap_err();
    assert!(
        matches!(&failure, Failure { kind: FailureKind::Other, message: text, .. } if text.contains("without effect")),
        "{failure:?}"
    );
    assert_eq!(writes(&stage).len(), 1);
}

#[test]
fn value_that_the_driver_normalises_is_written_once() {
    let written = std::cell::Cell::new(0);
    let stage = stage("").always("PUT", "/lbaas/listeners/", move || {
        written.set(written.get() + 1);
        assert!(written.get() < 10, "the same change again and again");
        answer(file!("listeners"))
    });
    let mut service = service();
    service.annotations = vec![Pair::new("loadbalancer.openstack.org/connection-limit", "7")];
    for tries in 1..4 {
        let failure = stage.provider().ensure(&service, &targets(), None).unwrap_err();
        assert!(
            matches!(&failure, Failure { kind: FailureKind::Other, message: text, .. } if text.contains("without effect") && text.contains("connection_limit")),
            "{failure:?}"
        );
        assert_eq!(writes(&stage).len(), tries);
    }
}

#[test]
fn change_that_is_undone_in_turn_is_not_made_for_ever() {
    // The driver keeps one of two values: what the first change sets, the second one resets.
    let flips = std::rc::Rc::new(std::cell::Cell::new(false));
    let (first, second) = (std::rc::Rc::clone(&flips), std::rc::Rc::clone(&flips));
    let listeners = move || match first.get() {
        true => answer(&file!("listeners").replace("\"connection_limit\": -1", "\"connection_limit\": 7")),
        false => answer(file!("listeners")),
    };
    let pools = || answer(&file!("pools").replace("ROUND_ROBIN", "SOURCE_IP"));
    let reset = std::rc::Rc::clone(&flips);
    let written = std::rc::Rc::new(std::cell::Cell::new(0));
    let counted = std::rc::Rc::clone(&written);
    let stage = stage("")
        .always("GET", "/lbaas/listeners?loadbalancer_id=", listeners)
        .always("GET", "/lbaas/pools?loadbalancer_id=", pools)
        .always("PUT", "/lbaas/listeners/", move || {
            second.set(true);
            counted.set(counted.get() + 1);
            assert!(counted.get() < 10, "the same change again and again");
            answer(file!("listeners"))
        })
        .always("PUT", "/lbaas/pools/", move || {
            reset.set(false);
            answer(file!("pools"))
        });
    let mut service = service();
    service.annotations = vec![Pair::new("loadbalancer.openstack.org/connection-limit", "7")];
    let failure = stage.provider().ensure(&service, &targets(), None).unwrap_err();
    assert!(failure.message().contains("without effect"), "{failure:?}");
    assert_eq!((written.get(), writes(&stage).len()), (1, 2));
}

#[test]
fn an_exhausted_quota_is_named_and_nothing_is_made() {
    let stage = empty("").always("POST", "/lbaas/loadbalancers", || answer(file!("balancer_quota")));
    let failure = stage.provider().ensure(&service(), &targets(), None).unwrap_err();
    assert!(
        matches!(&failure, Failure { kind: FailureKind::Denied, message: text, .. } if text.contains("Quota has been met for resources: Load Balancer")),
        "{failure:?}"
    );
}

#[test]
fn annotations_that_are_wrong_or_not_known_cost_no_change() {
    for (key, value, told) in [
        ("proxy-protocol", "maybe", "proxy-protocol is \"maybe\""),
        (
            "conection-limit",
            "5",
            "did you mean loadbalancer.openstack.org/connection-limit?",
        ),
        (
            "load-balancer-id",
            "11111111-1111-4111-8111-111111111111",
            "there is no load balancer 11111111",
        ),
        ("floating-subnet", "nothing-*", "no subnet fits floating-subnet"),
    ] {
        let stage = empty("").always("GET", "/lbaas/loadbalancers/", || answer(file!("balancer_not_found")));
        let mut service = service();
        service.annotations = vec![Pair::new(format!("loadbalancer.openstack.org/{key}"), value)];
        let failure = stage.provider().ensure(&service, &targets(), None).unwrap_err();
        assert!(
            matches!(&failure, Failure { kind: FailureKind::Invalid, message: text, .. } if text.contains(told)),
            "{failure:?}"
        );
        assert_eq!(writes(&stage), Vec::<String>::new(), "{key}");
    }
}

#[test]
fn failed_one_is_removed_unless_it_ever_served() {
    let in_error = || {
        let text = file!("balancer").replace("\"ACTIVE\"", "\"ERROR\"");
        answer(&text)
    };
    let named = || answer(&file!("balancers_named").replace("\"ACTIVE\"", "\"ERROR\""));
    let broken = stage("")
        .always("GET", "/lbaas/loadbalancers/", in_error)
        .always("GET", "/lbaas/loadbalancers?name=", named)
        .always("GET", "/floatingips?port_id=", || answer(file!("floating_ips_none")))
        .always("DELETE", "/lbaas/loadbalancers/", || FakeAnswer::new(204, &[], ""));
    let failure = broken.provider().ensure(&service(), &targets(), None).unwrap_err();
    assert!(
        matches!(&failure, Failure { kind: FailureKind::Unavailable, message: text, .. } if text.contains("another one will be made")),
        "{failure:?}"
    );
    assert!(writes(&broken)[0].ends_with("?cascade=true"));

    let served = stage("").always("GET", "/lbaas/loadbalancers?name=", named);
    let mut service = service();
    service.annotations = vec![Pair::new(
        "loadbalancer.openstack.org/load-balancer-address",
        "172.24.0.5",
    )];
    let failure = served.provider().ensure(&service, &targets(), None).unwrap_err();
    assert!(
        failure.message().contains("openstack loadbalancer failover"),
        "{failure:?}"
    );
    assert_eq!(writes(&served), Vec::<String>::new());
}

#[test]
fn proxy_protocol_and_host_names_show_in_the_ingress() {
    let (classes, config) = (Default::default(), Default::default());
    let stage = stage("enable-ingress-hostname = true\ningress-hostname-suffix = example.com\n");
    let provider = stage.provider();
    let ingress = |provider: &OpenStack, annotation: &str, value: &str| {
        let mut service = service();
        service.annotations = vec![Pair::new(format!("loadbalancer.openstack.org/{annotation}"), value)];
        let asked = annotations::read(&service, &config, &classes).unwrap();
        let task = BalancerTask::new(provider, &service, asked).unwrap();
        format!("{:?}", task.ingress("192.0.2.1").endpoint)
    };
    assert_eq!(
        ingress(&provider, "proxy-protocol", "true"),
        "Endpoint::Hostname(\"192.0.2.1.example.com\")"
    );
    assert_eq!(
        ingress(&provider, "hostname", "www.test"),
        "Endpoint::Hostname(\"www.test\")"
    );
    let plain = Stage::new("").always("GET", "octavia.test/", || answer(file!("octavia_versions")));
    let plain = plain.provider();
    assert!(ingress(&plain, "proxy-protocol", "v2").contains("IpMode::Proxy"));
    assert!(ingress(&plain, "x-forwarded-for", "true").contains("IpMode::Vip"));
}

#[test]
fn cut_answer_proves_nothing_about_the_cloud() {
    let stage = stage("").always("GET", "/lbaas/pools?loadbalancer_id=", || {
        FakeAnswer::new(200, &[], "{\"pools\": [{\"id\": \"x")
    });
    let failure = stage.provider().ensure(&service(), &targets(), None).unwrap_err();
    assert!(failure.kind == FailureKind::Unavailable, "{failure:?}");
    assert_eq!(writes(&stage), Vec::<String>::new());
}

#[test]
fn load_balancer_that_waits_for_ever_is_reported() {
    let stage = stage("").always("GET", "/lbaas/loadbalancers/", || answer(file!("balancer_pending")));
    let id = text(&json(file!("balancer"))["loadbalancer"]["id"]);
    let failure = stage
        .provider()
        .ensure(&service(), &targets(), Some(&looked(&id, 23)))
        .unwrap_err();
    assert!(
        matches!(&failure, Failure { kind: FailureKind::Unavailable, message: text, .. } if text.contains("over five minutes")),
        "{failure:?}"
    );
}

#[test]
fn missing_member_is_removed_without_other_reads() {
    let stage = stage("").always("PUT", "/members", || FakeAnswer::new(202, &[], ""));
    let stage = stage
        .once("GET", "/members", || answer(file!("members")))
        .once("GET", "/members", || FakeAnswer::new(200, &[], "{\"members\": []}"));
    assert_eq!(stage.provider().update_targets(&service(), &[], None), Ok(vec![]));
    assert_eq!(writes(&stage).len(), 1);
    assert_eq!(stage.sent("PUT", "/members")[0].text(), "{\"members\":[]}");
}

#[test]
fn balancers_of_many_services_are_listed_once() {
    let update = |uid: Option<&str>| {
        let mut service = service();
        service.uid = uid.map_or(service.uid, Into::into);
        service.name = uid.map_or(service.name, Into::into);
        TargetUpdate { service, token: None }
    };
    let one = stage("");
    assert_eq!(one.provider().update_targets(&service(), &targets(), None), Ok(vec![]));
    let lists = |stage: &Stage| {
        stage
            .calls()
            .iter()
            .filter(|call| call.contains("/loadbalancers?"))
            .count()
    };
    assert_eq!(lists(&one), 1, "{:?}", one.calls());

    let many = stage("").once("GET", "/lbaas/loadbalancers", || answer(file!("balancers_named")));
    let updates = [update(None), update(None)];
    let results = many.provider().update_targets_of(&updates, &targets()).unwrap();
    assert_eq!(results, [Ok(vec![]), Ok(vec![])]);
    let listed: Vec<String> = many
        .calls()
        .into_iter()
        .filter(|call| call.contains("/loadbalancers"))
        .collect();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert!(!listed[0].contains("name="), "{listed:?}");

    let none = || FakeAnswer::new(200, &[], "{\"loadbalancers\": []}");
    let gone = empty("")
        .once("GET", "/lbaas/loadbalancers", none)
        .provider()
        .update_targets_of(&[update(None), update(Some("other"))], &targets());
    assert!(
        gone.unwrap()
            .iter()
            .all(|result| result.as_ref().is_err_and(Failure::is_not_found))
    );
}

#[test]
fn a_mistake_in_an_annotation_does_not_keep_new_nodes_out() {
    let mut service = service();
    service.annotations = vec![Pair::new("loadbalancer.openstack.org/lb-method", "RANDOM")];
    let adopted = stage("");
    assert_eq!(
        adopted.provider().update_targets(&service, &targets(), None),
        Ok(vec![])
    );
    service.annotations = vec![Pair::new("loadbalancer.openstack.org/node-selector", "=x")];
    let failure = adopted
        .provider()
        .update_targets(&service, &targets(), None)
        .unwrap_err();
    assert!(failure.message().contains("node-selector"), "{failure:?}");
    assert_eq!(writes(&adopted), Vec::<String>::new());
}

#[test]
fn targets_of_a_load_balancer_that_is_gone_are_not_found() {
    let failure = empty("")
        .provider()
        .update_targets(&service(), &targets(), None)
        .unwrap_err();
    assert!(failure.is_not_found(), "{failure:?}");
}

#[test]
fn load_balancers_that_are_switched_off_are_left_to_others() {
    let stage = Stage::new("[LoadBalancer]\nenabled = false\n");
    let failure = stage.provider().ensure(&service(), &[], None).unwrap_err();
    assert!(failure.kind == FailureKind::ImplementedElsewhere, "{failure:?}");
    assert_eq!(stage.calls(), Vec::<String>::new());
}
