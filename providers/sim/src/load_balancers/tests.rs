//! Each decision about a load balancer, with the requests it takes.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::FakeHost;
use serde_json::{Value, json};

use crate::Sim;

const BY_OWNER: &str = "https://sim.test/v1/load-balancers?cluster=test&owner=uid-1&limit=1000";
const BY_NAME: &str = "https://sim.test/v1/load-balancers?cluster=test&name=auid1&limit=1000";

fn host() -> FakeHost {
    let host = FakeHost::new();
    host.config(r#"{"endpoint": "https://sim.test"}"#)
        .secret("token", "t0ken");
    host
}

fn service() -> Service {
    let mut service = Service::new("default", "web", "uid-1");
    service.ports.push(ServicePort {
        name: None,
        protocol: Protocol::Tcp,
        port: 80,
        node_port: Some(30080),
        target_port: None,
        app_protocol: None,
    });
    service
}

fn target(machine: &str) -> Target {
    Target {
        node: NodeRef::named(machine).with_provider_id(format!("sim://{machine}")),
        ready: true,
    }
}

fn spec(targets: &[&str]) -> Value {
    json!({"name": "auid1", "cluster": "test", "owner": "uid-1", "scheme": "public",
        "ports": [{"protocol": "tcp", "port": 80, "nodePort": 30080}], "targets": targets, "sourceRanges": [],
        "affinitySeconds": null, "healthCheckPort": null, "requestedAddress": null})
}

fn balancer(state: &str, spec: Value) -> Value {
    let address = if state == "active" {
        json!("198.51.100.1")
    } else {
        Value::Null
    };
    json!({"id": "lb-1", "state": state, "address": address, "spec": spec})
}

fn page(items: &[Value]) -> Value {
    json!({"items": items, "next": null})
}

fn nothing_found(host: &FakeHost) {
    host.expect("GET", BY_OWNER).answers(200, page(&[]));
    host.expect("GET", BY_NAME).answers(200, page(&[]));
}

/// The first two requests of an `ensure` for which there is one of its name.
fn name_is_taken(host: &FakeHost) {
    host.expect("GET", BY_OWNER).answers(200, page(&[]));
    host.expect("POST", "https://sim.test/v1/load-balancers")
        .answers(409, json!({"error": "lb-1 is named auid1 already"}));
}

#[test]
fn a_new_one_is_created_and_waited_for_without_sleeping() {
    let host = host();
    host.expect("GET", BY_OWNER).answers(200, page(&[]));
    host.expect("POST", "https://sim.test/v1/load-balancers")
        .with_json(spec(&["vm-1", "vm-2"]))
        .answers(201, balancer("building", spec(&["vm-1", "vm-2"])));
    let targets = [target("vm-2"), target("vm-1")];
    let waiting = host.provider::<Sim>().ensure(&service(), &targets, None).unwrap_err();
    let Failure {
        kind: FailureKind::Pending(token),
        retry_after,
        ..
    } = waiting
    else {
        panic!("{waiting:?}")
    };
    assert_eq!((retry_after, token.as_str()), (Some(1000), "lb-1"));

    host.expect("GET", "https://sim.test/v1/load-balancers/lb-1")
        .answers(200, balancer("active", spec(&["vm-1", "vm-2"])));
    let balancer = host
        .provider::<Sim>()
        .ensure(&service(), &targets, Some("lb-1"))
        .unwrap();
    assert_eq!(balancer, Balancer::at(vec![Ingress::ip("198.51.100.1")]));
}

#[test]
fn what_is_right_already_is_left_alone() {
    let host = host();
    host.expect("GET", BY_OWNER)
        .answers(200, page(&[balancer("active", spec(&["vm-1"]))]));
    host.provider::<Sim>()
        .ensure(&service(), &[target("vm-1")], None)
        .unwrap();
}

fn machine(id: &str) -> Value {
    json!({"id": id, "name": id, "type": "small", "zone": "sim-1a", "region": "sim-1", "state": "running",
        "addresses": [], "labels": {}})
}

#[test]
fn a_machine_that_is_gone_does_not_hold_up_the_others() {
    let host = host();
    host.expect("GET", BY_OWNER).answers(200, page(&[]));
    let refusal = json!({"error": "there is no machine vm-2"});
    host.expect("POST", "https://sim.test/v1/load-balancers")
        .with_json(spec(&["vm-1", "vm-2"]))
        .answers(422, refusal.clone());
    host.expect("GET", "https://sim.test/v1/instances?ids=vm-1%2Cvm-2&limit=1000")
        .answers(200, page(&[machine("vm-1")]));
    host.expect("POST", "https://sim.test/v1/load-balancers")
        .with_json(spec(&["vm-1"]))
        .answers(201, balancer("active", spec(&["vm-1"])));
    let targets = [target("vm-1"), target("vm-2")];
    host.provider::<Sim>().ensure(&service(), &targets, None).unwrap();

    // It is right already as far as it can be: refused once more, and then nothing is left to change.
    host.expect("GET", BY_OWNER)
        .answers(200, page(&[balancer("active", spec(&["vm-1"]))]));
    host.expect("PUT", "https://sim.test/v1/load-balancers/lb-1/targets")
        .answers(422, refusal);
    host.expect("GET", "https://sim.test/v1/instances?ids=vm-1%2Cvm-2&limit=1000")
        .answers(200, page(&[machine("vm-1")]));
    host.provider::<Sim>()
        .update_targets(&service(), &targets, None)
        .unwrap();
}

#[test]
fn refusal_about_anything_else_is_reported() {
    let host = host();
    host.expect("GET", BY_OWNER).answers(200, page(&[]));
    host.expect("POST", "https://sim.test/v1/load-balancers")
        .answers(422, json!({"error": "port 80 is taken"}));
    host.expect("GET", "https://sim.test/v1/instances?ids=vm-1&limit=1000")
        .answers(200, page(&[machine("vm-1")]));
    let failure = host
        .provider::<Sim>()
        .ensure(&service(), &[target("vm-1")], None)
        .unwrap_err();
    assert!(
        matches!(&failure, Failure { kind: FailureKind::Invalid, message: why, .. } if why.contains("port 80 is taken")),
        "{failure:?}"
    );
}

#[test]
fn what_differs_is_updated() {
    let host = host();
    let mut wanted = spec(&[]);
    wanted["scheme"] = json!("internal");
    wanted["sourceRanges"] = json!(["10.0.0.0/8"]);
    wanted["requestedAddress"] = json!("198.51.100.1");
    wanted["affinitySeconds"] = json!(60);
    wanted["healthCheckPort"] = json!(32000);
    host.expect("GET", BY_OWNER)
        .answers(200, page(&[balancer("active", spec(&[]))]));
    host.expect("PUT", "https://sim.test/v1/load-balancers/lb-1")
        .with_json(wanted.clone())
        .answers(200, balancer("active", wanted));
    let mut service = service();
    service
        .annotations
        .push(Pair::new("sim.cloudwit.dev/scheme", "internal"));
    service.source_ranges.push("10.0.0.0/8".into());
    service.load_balancer_ip = Some("198.51.100.1".into());
    service.session_affinity_seconds = Some(60);
    service.health_check_node_port = Some(32000);
    host.provider::<Sim>().ensure(&service, &[], None).unwrap();
}

#[test]
fn one_of_the_right_name_without_an_owner_is_adopted() {
    let host = host();
    let mut unowned = spec(&[]);
    unowned["owner"] = Value::Null;
    name_is_taken(&host);
    host.expect("GET", BY_NAME)
        .answers(200, page(&[balancer("active", unowned)]));
    host.expect("PUT", "https://sim.test/v1/load-balancers/lb-1")
        .with_json(spec(&[]))
        .answers(200, balancer("active", spec(&[])));
    host.provider::<Sim>().ensure(&service(), &[], None).unwrap();
}

#[test]
fn same_name_of_another_service_is_not_touched() {
    let host = host();
    let mut foreign = spec(&[]);
    foreign["owner"] = json!("uid-2");
    host.expect("GET", BY_OWNER).answers(200, page(&[]));
    host.expect("GET", BY_NAME)
        .answers(200, page(&[balancer("active", foreign.clone())]));
    assert_eq!(host.provider::<Sim>().delete(&service(), None), Ok(vec![]));

    name_is_taken(&host);
    host.expect("GET", BY_NAME)
        .answers(200, page(&[balancer("active", foreign)]));
    let failure = host.provider::<Sim>().ensure(&service(), &[], None).unwrap_err();
    assert!(
        matches!(&failure, Failure { kind: FailureKind::Invalid, message: why, .. } if why.contains("lb-1") && why.contains("owned by uid-2")),
        "{failure:?}"
    );
}

#[test]
fn conflict_that_is_not_about_the_name_is_reported() {
    let host = host();
    name_is_taken(&host);
    host.expect("GET", BY_NAME).answers(200, page(&[]));
    let failure = host.provider::<Sim>().ensure(&service(), &[], None).unwrap_err();
    assert!(
        matches!(&failure, Failure { kind: FailureKind::Conflict, message: text, .. } if text.contains("already")),
        "{failure:?}"
    );
}

#[test]
fn two_owned_ones_are_a_conflict_for_a_person() {
    let host = host();
    let mut second = balancer("active", spec(&[]));
    second["id"] = json!("lb-2");
    host.expect("GET", BY_OWNER)
        .answers(200, page(&[balancer("active", spec(&[])), second]));
    let failure = host.provider::<Sim>().get(&service()).unwrap_err();
    assert!(
        matches!(&failure, Failure { kind: FailureKind::Conflict, message: text, .. } if text.contains("lb-1, lb-2")),
        "{failure:?}"
    );
}

#[test]
fn a_token_of_a_vanished_one_starts_again() {
    let host = host();
    host.expect("GET", "https://sim.test/v1/load-balancers/lb-7")
        .answers(404, json!({}));
    host.expect("GET", BY_OWNER).answers(200, page(&[]));
    host.expect("POST", "https://sim.test/v1/load-balancers")
        .answers(201, balancer("active", spec(&[])));
    host.provider::<Sim>().ensure(&service(), &[], Some("lb-7")).unwrap();
}

#[test]
fn impossible_request_is_refused_before_any_call() {
    let host = host();
    let refused = |change: fn(&mut Service)| {
        let mut service = service();
        change(&mut service);
        match host.provider::<Sim>().ensure(&service, &[], None) {
            Err(Failure {
                kind: FailureKind::Invalid,
                message: text,
                ..
            }) => text,
            other => panic!("{other:?}"),
        }
    };
    let scheme = refused(|service| service.annotations.push(Pair::new("sim.cloudwit.dev/scheme", "privat")));
    assert!(
        scheme.contains("sim.cloudwit.dev/scheme") && scheme.contains("privat"),
        "{scheme}"
    );
    assert!(refused(|service| service.ports[0].protocol = Protocol::Sctp).contains("port 80 is SCTP"));
    assert!(refused(|service| service.ports[0].node_port = None).contains("port 80 has no node port"));
}

#[test]
fn targets_are_only_written_when_they_differ() {
    let host = host();
    let with = |targets: &[&str]| page(&[balancer("active", spec(targets))]);
    host.expect("GET", BY_OWNER).answers(200, with(&["vm-1", "vm-2"]));
    let two = [target("vm-2"), target("vm-1")];
    assert_eq!(
        host.provider::<Sim>().update_targets(&service(), &two, None),
        Ok(vec![])
    );

    host.expect("GET", BY_OWNER).answers(200, with(&["vm-1"]));
    host.expect("PUT", "https://sim.test/v1/load-balancers/lb-1/targets")
        .with_json(json!({"targets": ["vm-1", "vm-2"]}))
        .answers(200, balancer("active", spec(&["vm-1", "vm-2"])));
    assert_eq!(
        host.provider::<Sim>().update_targets(&service(), &two, None),
        Ok(vec![])
    );

    nothing_found(&host);
    let missing = host.provider::<Sim>().update_targets(&service(), &two, None);
    assert!(
        matches!(
            missing,
            Err(Failure {
                kind: FailureKind::NotFound,
                ..
            })
        ),
        "{missing:?}"
    );
}

/// Two that are found with one request, one without an owner, and one that is gone.
#[test]
fn balancers_of_many_services_are_listed_once() {
    let host = host();
    let of = |uid: &str| TargetUpdate {
        service: Service::new("default", "web", uid),
        token: None,
    };
    let owned = |uid: &str, targets: &[&str]| {
        let mut shown = balancer("active", spec(targets));
        shown["id"] = json!(format!("lb-{uid}"));
        shown["spec"]["owner"] = json!(uid);
        shown
    };
    host.expect(
        "GET",
        "https://sim.test/v1/load-balancers?cluster=test&owners=u1%2Cu2%2Cu3%2Cu4&limit=1000",
    )
    .answers(
        200,
        page(&[owned("u4", &["vm-1"]), owned("u2", &["vm-9"]), owned("u1", &[])]),
    );
    for changed in ["lb-u1", "lb-u2"] {
        host.expect("PUT", &format!("https://sim.test/v1/load-balancers/{changed}/targets"))
            .with_json(json!({"targets": ["vm-1"]}))
            .answers(200, owned("u", &["vm-1"]));
    }
    host.expect(
        "GET",
        "https://sim.test/v1/load-balancers?cluster=test&name=au3&limit=1000",
    )
    .answers(200, page(&[]));
    let updates = ["u1", "u2", "u3", "u4"].map(of);
    let results = host
        .provider::<Sim>()
        .update_targets_of(&updates, &[target("vm-1")])
        .unwrap();
    let kinds: Vec<_> = results
        .into_iter()
        .map(|result| result.map_err(|failure| failure.kind))
        .collect();
    assert_eq!(kinds, [Ok(vec![]), Ok(vec![]), Err(FailureKind::NotFound), Ok(vec![])]);
}

#[test]
fn a_node_without_a_provider_id_is_no_target_yet() {
    let host = host();
    host.expect("GET", BY_OWNER)
        .answers(200, page(&[balancer("active", spec(&["vm-1"]))]));
    let fresh = Target {
        node: NodeRef::named("fresh"),
        ready: false,
    };
    assert_eq!(
        host.provider::<Sim>()
            .update_targets(&service(), &[target("vm-1"), fresh], None),
        Ok(vec![])
    );
}

#[test]
fn get_distinguishes_half_built_from_missing() {
    let host = host();
    host.expect("GET", BY_OWNER)
        .answers(200, page(&[balancer("building", spec(&[]))]));
    assert_eq!(host.provider::<Sim>().get(&service()), Ok(Some(Balancer::at(vec![]))));
    nothing_found(&host);
    assert_eq!(host.provider::<Sim>().get(&service()), Ok(None));
}

#[test]
fn deleting_is_done_when_nothing_is_left() {
    let host = host();
    host.expect("GET", BY_OWNER)
        .answers(200, page(&[balancer("active", spec(&[]))]));
    host.expect("DELETE", "https://sim.test/v1/load-balancers/lb-1")
        .answers_with(204, &[], "");
    assert_eq!(host.provider::<Sim>().delete(&service(), None), Ok(vec![]));

    host.expect("GET", BY_OWNER)
        .answers(200, page(&[balancer("active", spec(&[]))]));
    host.expect("DELETE", "https://sim.test/v1/load-balancers/lb-1")
        .answers(404, json!({}));
    assert_eq!(host.provider::<Sim>().delete(&service(), None), Ok(vec![]));

    nothing_found(&host);
    assert_eq!(host.provider::<Sim>().delete(&service(), None), Ok(vec![]));
}

#[test]
fn a_rate_limit_comes_through_with_its_advice() {
    let host = host();
    host.expect("GET", BY_OWNER)
        .answers_with(429, &[("Retry-After", "12")], "");
    let Err(Failure {
        kind: FailureKind::RateLimited,
        retry_after,
        ..
    }) = host.provider::<Sim>().get(&service())
    else {
        panic!()
    };
    assert_eq!(retry_after, Some(12_000));
}
