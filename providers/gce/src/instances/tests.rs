use cloudwit_guest_sdk::serde_json::{Value, json};
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};

use super::*;

const API: &str = "https://gce.test/compute/v1";

fn host() -> FakeHost {
    let host = FakeHost::new();
    let config = json!({ "global": {
        "project-id": "p", "local-zone": "us-central1-a", "network-name": "default", "token-url": "nil", "api-endpoint": API,
    }});
    host.config(config.to_string());
    host
}

fn machine(name: &str, zone: &str) -> Value {
    json!({
        "name": name, "zone": format!("{API}/projects/p/zones/{zone}"), "status": "RUNNING",
        "machineType": format!("{API}/projects/p/zones/{zone}/machineTypes/e2-small"),
        "networkInterfaces": [{ "networkIP": "10.0.0.1", "accessConfigs": [{ "natIP": "34.0.0.1" }] }],
    })
}

fn missing(path: &str) -> FakeAnswer {
    let message = format!("The resource '{path}' was not found");
    FakeAnswer::json(
        404,
        &json!({ "error": { "code": 404, "message": message, "errors": [{ "reason": "notFound" }] } }),
    )
}

fn lookup(host: &FakeHost, nodes: &[NodeRef]) -> Vec<Result<Presence, Failure>> {
    host.provider::<Gce>().lookup(nodes).unwrap()
}

fn with_id(id: &str) -> NodeRef {
    NodeRef::named(id.rsplit('/').next().unwrap()).with_provider_id(id)
}

#[test]
fn one_machine_is_one_request_and_only_its_own_absence_is_one() {
    let host = host();
    host.serve(|request: &SentRequest| {
        let path = request
            .url
            .split('?')
            .next()
            .unwrap()
            .strip_prefix(API)
            .unwrap()
            .to_owned();
        match path.rsplit('/').next() {
            Some("here") => FakeAnswer::json(200, &machine("here", "us-central1-a")),
            Some("gone") => missing(&path[1..]),
            Some("no-zone") => missing("projects/p/zones/us-central1-z"),
            Some("proxy") => FakeAnswer::new(404, &[], "<html>no such backend</html>"),
            _ => panic!("{path}"),
        }
    });
    let answer = |name: &str| lookup(&host, &[with_id(&format!("gce://p/us-central1-a/{name}"))]).remove(0);
    let Ok(Presence::Running(instance)) = answer("here") else {
        panic!()
    };
    assert_eq!(instance.provider_id, "gce://p/us-central1-a/here");
    assert_eq!(
        (instance.zone.as_deref(), instance.region.as_deref()),
        (Some("us-central1-a"), Some("us-central1"))
    );
    assert_eq!(instance.instance_type.as_deref(), Some("e2-small"));
    assert_eq!(answer("gone"), Ok(Presence::Absent(Evidence::ById)));
    assert_eq!(answer("no-zone").unwrap_err().kind, FailureKind::NotFound);
    assert_eq!(answer("proxy").unwrap_err().kind, FailureKind::Unavailable);
}

#[test]
fn many_are_one_list_and_what_is_missing_there_is_requested() {
    let host = host();
    host.serve(|request: &SentRequest| {
        let path = request.url.split('?').next().unwrap().strip_prefix(API).unwrap().to_owned();
        if path == "/projects/p/aggregated/instances" {
            let items = json!({ "zones/us-central1-a": { "instances": [machine("a", "us-central1-a"), machine("b", "us-central1-a")] } });
            return FakeAnswer::json(200, &json!({ "items": items }));
        }
        missing(&path[1..])
    });
    let ids = ["a", "b", "c"].map(|name| with_id(&format!("gce://p/us-central1-a/{name}")));
    let answers = lookup(&host, &ids);
    assert!(matches!(
        &answers[..2],
        [Ok(Presence::Running(_)), Ok(Presence::Running(_))]
    ));
    assert_eq!(answers[2], Ok(Presence::Absent(Evidence::ById)));
    assert_eq!(host.requests().len(), 2);
}

#[test]
fn a_project_that_is_wrong_is_the_failure_of_its_own_machines() {
    let host = host();
    host.serve(|request: &SentRequest| match request.url.contains("/projects/p/") {
        true => FakeAnswer::json(200, &machine("a", "us-central1-a")),
        false => missing("projects/q"),
    });
    let ids = [
        "gce://p/us-central1-a/a",
        "gce://q/us-central1-a/x",
        "gce://q/us-central1-a/y",
        "gce://q/us-central1-a/z",
    ];
    let answers = lookup(&host, &ids.map(with_id));
    assert!(matches!(answers[0], Ok(Presence::Running(_))));
    assert!(
        answers[1..]
            .iter()
            .all(|answer| answer.as_ref().unwrap_err().kind == FailureKind::NotFound)
    );
    assert_eq!(host.requests().len(), 2);
}

#[test]
fn a_name_counts_in_the_clusters_zones_only() {
    let items = json!({
        "zones/us-central1-b": { "instances": [machine("n", "us-central1-b")] },
        "zones/europe-west1-b": { "instances": [machine("n", "europe-west1-b")] },
    });
    for (multizone, found) in [("false", false), ("true", true)] {
        let host = host();
        host.value("global.multizone", multizone);
        let items = items.clone();
        host.serve(move |_| FakeAnswer::json(200, &json!({ "items": items })));
        let answer = lookup(&host, &[NodeRef::named("n.c.p.internal")]).remove(0);
        match answer {
            Ok(Presence::Running(instance)) if found => assert_eq!(instance.provider_id, "gce://p/us-central1-b/n"),
            Ok(Presence::Absent(Evidence::ByName)) if !found => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_zone_that_does_not_answer_hides_no_name() {
    let host = host();
    let items = json!({ "zones/us-central1-a": { "warning": { "code": "UNREACHABLE", "message": "down" } } });
    host.serve(move |_| FakeAnswer::json(200, &json!({ "items": items })));
    let answer = lookup(&host, &[NodeRef::named("n")]).remove(0);
    assert_eq!(answer.unwrap_err().kind, FailureKind::Unavailable);
}

#[test]
fn addresses_are_in_upstreams_order_and_stopped_is_stopped() {
    let wire = json!({
        "name": "n", "zone": "zones/us-central1-a", "status": "TERMINATED",
        "networkInterfaces": [
            { "networkIP": "10.0.0.1", "ipv6AccessConfigs": [{ "externalIpv6": "2600::1" }], "accessConfigs": [{ "natIP": "34.0.0.1" }] },
            { "networkIP": "10.1.0.1", "ipv6Address": "fd20::1", "accessConfigs": [{}] },
        ],
    });
    let machine: Machine = serde_json::from_value(wire).unwrap();
    let shown = |ipv6_first| {
        let Existing::Stopped(instance) = machine.existing("p", ipv6_first) else {
            panic!()
        };
        instance
            .addresses
            .into_iter()
            .map(|address| address.value)
            .collect::<Vec<_>>()
    };
    assert_eq!(shown(false), ["10.0.0.1", "34.0.0.1", "10.1.0.1", "2600::1", "fd20::1"]);
    assert_eq!(shown(true), ["2600::1", "fd20::1", "10.0.0.1", "34.0.0.1", "10.1.0.1"]);
}

#[test]
fn a_provider_id_of_another_form_is_refused() {
    let host = host();
    for id in ["gce://p/z", "gce://p/z/n/x", "gce:////n", "aws:///z/i-1"] {
        let failure = lookup(&host, &[with_id(id)]).remove(0).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Invalid, "{id}");
    }
}
