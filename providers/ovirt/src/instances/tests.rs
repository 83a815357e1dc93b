use cloudwit_guest_sdk::Evidence;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost};
use serde_json::{Value, json};

use super::*;
use crate::testing::{CONFIG, engine, host, host_with, machine, paths, provider};

fn by_id(id: &str) -> NodeRef {
    NodeRef::named("node").with_provider_id(format!("ovirt:///{id}"))
}

fn lookup(host: &FakeHost, nodes: &[NodeRef]) -> Vec<Result<Presence, Failure>> {
    provider(host).lookup(nodes).unwrap()
}

fn instance(found: Result<Presence, Failure>) -> Instance {
    match found {
        Ok(Presence::Running(instance) | Presence::Stopped(instance)) => instance,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_machine_is_described_from_what_engine_and_guest_report() {
    let host = host(engine(vec![machine("1", "Node-1"), machine("2", "node-11")]));
    assert_eq!(
        lookup(&host, &[NodeRef::named("node-1")]),
        [Ok(Presence::Absent(Evidence::ByName))],
        "the stand-in of this test takes case into account"
    );
    let found = instance(lookup(&host, &[by_id("1")]).remove(0));
    assert_eq!(found.provider_id, "ovirt:///1");
    assert_eq!(found.instance_type.as_deref(), Some("ovirt-4c-8g"));
    assert_eq!(
        (found.zone.as_deref(), found.region.as_deref()),
        (Some("Cluster-One"), Some("North"))
    );
    let addresses: Vec<_> = found
        .addresses
        .iter()
        .map(|one| (one.kind, one.value.as_str()))
        .collect();
    let expected = [
        (AddressKind::InternalIp, "10.1.0.7"),
        (AddressKind::InternalIp, "fd00::7"),
        (AddressKind::Hostname, "Node-1"),
    ];
    assert_eq!(addresses, expected);
    assert_eq!(
        instance(lookup(&host, &[NodeRef::named("node-11")]).remove(0)).provider_id,
        "ovirt:///2"
    );
    let clusters = paths(&host).into_iter().filter(|path| path == "/clusters").count();
    assert_eq!(clusters, 1, "names of clusters are remembered");
}

#[test]
fn zones_are_as_configured() {
    let place = |zones: &str| {
        let host = host_with(&format!("{CONFIG}{zones}"), engine(vec![machine("1", "node-1")]));
        let found = instance(lookup(&host, &[by_id("1")]).remove(0));
        let follow = host
            .requests()
            .iter()
            .find_map(|request| request.query("follow"))
            .unwrap();
        (found.zone, found.region, follow)
    };
    let of = |zone: Option<&str>, region: Option<&str>, more: &str| {
        let follow = format!("nics.reporteddevices{more}");
        (zone.map(str::to_owned), region.map(str::to_owned), follow)
    };
    assert_eq!(
        place("[zones]\nlabel-prefix = zone-\n"),
        of(Some("north"), Some("North"), ",affinitylabels")
    );
    assert_eq!(
        place("[zones]\nlabel-prefix = rack-\nregion = r\n"),
        of(Some("Cluster-One"), Some("r"), ",affinitylabels")
    );
    assert_eq!(place("[zones]\ndisabled = true\n"), of(None, None, ""));
}

#[test]
fn unreported_zone_is_requested_again_and_never_guessed() {
    let silent = |path: &'static str, zones: &str| {
        let looks = std::cell::Cell::new(0);
        let engine = engine(vec![machine("1", "node-1")]);
        host_with(&format!("{CONFIG}{zones}"), move |request| {
            let is_silent = request.url.contains(path) && looks.replace(looks.get() + 1) < 2;
            match is_silent {
                true => FakeAnswer::json(200, &json!({})),
                false => engine(request),
            }
        })
    };
    for path in ["/clusters", "/datacenters"] {
        let host = silent(path, "");
        let failure = lookup(&host, &[by_id("1")]).remove(0).unwrap_err();
        assert!(
            failure.kind == FailureKind::Unavailable && failure.message.contains("c-1"),
            "{failure:?}"
        );
        let found = instance(lookup(&host, &[by_id("1")]).remove(0));
        assert_eq!(
            (found.zone.as_deref(), found.region.as_deref()),
            (Some("Cluster-One"), Some("North"))
        );
    }
    let host = silent("/datacenters", "[zones]\nregion = r\n");
    let found = instance(lookup(&host, &[by_id("1")]).remove(0));
    assert_eq!(found.region.as_deref(), Some("r"), "no data centre is needed");
}

#[test]
fn labels_of_two_zones_are_not_guessed_between() {
    let mut both = machine("1", "node-1");
    let labels = |names: &[&str]| -> Value { names.iter().map(|name| json!({ "name": name })).collect() };
    for (names, zone) in [
        (&["zone-a", "zone-b"][..], None),
        (&["zone-a b", "zone-a-b", "rack"], Some("a-b")),
    ] {
        both["affinity_labels"]["affinity_label"] = labels(names);
        let host = host_with(
            &format!("{CONFIG}[zones]\nlabel-prefix = zone-\n"),
            engine(vec![both.clone()]),
        );
        let found = lookup(&host, &[by_id("1")]).remove(0);
        match zone {
            Some(zone) => assert_eq!(instance(found).zone.as_deref(), Some(zone)),
            None => {
                let failure = found.unwrap_err();
                let named = failure.message.contains("a, b");
                assert!(failure.kind == FailureKind::Invalid && named, "{failure:?}");
            }
        }
    }
}

#[test]
fn states_are_running_or_stopped() {
    for (status, stopped) in [
        ("up", false),
        ("migrating", false),
        ("paused", false),
        ("not_responding", false),
        ("unknown", false),
        ("powering_down", false),
        ("down", true),
        ("suspended", true),
    ] {
        let mut one = machine("1", "node-1");
        one["status"] = status.into();
        let found = lookup(&host(engine(vec![one])), &[by_id("1")]).remove(0).unwrap();
        assert_eq!(matches!(found, Presence::Stopped(_)), stopped, "{status}");
    }
    let mut silent = machine("1", "node-1");
    silent["nics"] = json!({});
    silent["fqdn"] = Value::Null;
    let failure = lookup(&host(engine(vec![silent.clone()])), &[by_id("1")])
        .remove(0)
        .unwrap_err();
    assert!(
        failure.kind == FailureKind::Unavailable && failure.message.contains("guest agent"),
        "{failure:?}"
    );
    silent["status"] = "down".into();
    let found = lookup(&host(engine(vec![silent])), &[by_id("1")]).remove(0);
    assert!(matches!(found, Ok(Presence::Stopped(_))), "{found:?}");
}

#[test]
fn only_the_engines_word_about_exactly_this_id_is_absence() {
    let found = |machines: Vec<Value>, node: NodeRef| lookup(&host(engine(machines)), &[node]).remove(0);
    let other = || vec![machine("2", "node-2")];
    assert_eq!(found(other(), by_id("1")), Ok(Presence::Absent(Evidence::ById)));
    assert_eq!(
        found(other(), NodeRef::named("node-1")),
        Ok(Presence::Absent(Evidence::ByName))
    );
    let nothing = found(Vec::new(), by_id("1")).unwrap_err();
    assert!(
        nothing.kind == FailureKind::Unavailable && nothing.message.contains("ReadOnlyAdmin"),
        "{nothing:?}"
    );
    let proxy = host(|_| FakeAnswer::new(404, &[], "<html>not found</html>"));
    assert_eq!(
        lookup(&proxy, &[by_id("1")]).remove(0).unwrap_err().kind,
        FailureKind::Unavailable
    );
    // One that has the engine behind it for everything but this machine.
    for (body, is_engines) in [
        ("", true),
        (r#"{"reason": "Operation Failed", "detail": "Entity not found"}"#, true),
        (" <html>not found</html>", false),
        ("default backend - 404", false),
        (r#"{"message": "no route matched"}"#, false),
        ("[]", false),
    ] {
        let engine = engine(other());
        let host = host(move |request| match request.url.contains("/vms/") {
            true => FakeAnswer::new(404, &[], body),
            false => engine(request),
        });
        let found = lookup(&host, &[by_id("1")]).remove(0);
        match is_engines {
            true => assert_eq!(found, Ok(Presence::Absent(Evidence::ById)), "{body}"),
            false => assert_eq!(found.unwrap_err().kind, FailureKind::Unavailable, "{body}"),
        }
    }
    for wrong in ["aws:///i-1", "ovirt:///", "ovirt:///a/b", "ovirt://1"] {
        let node = NodeRef::named("node").with_provider_id(wrong);
        assert_eq!(found(other(), node).unwrap_err().kind, FailureKind::Invalid, "{wrong}");
    }
}

#[test]
fn many_are_taken_from_one_list_and_the_rest_is_requested_by_id() {
    let machines = (0..10).map(|number| machine(&format!("vm-{number}"), &format!("node-{number}")));
    let mut machines: Vec<Value> = machines.collect();
    machines.push(json!({ "id": "odd", "nics": 7 }));
    let host = host_with(&format!("{CONFIG}[filters]\nvms = tag=k8s\n"), engine(machines));
    let mut nodes: Vec<NodeRef> = (0..8).map(|number| by_id(&format!("vm-{number}"))).collect();
    nodes.push(NodeRef::named("node-9"));
    nodes.push(by_id("gone"));
    let found = lookup(&host, &nodes);
    assert!(
        found[..9].iter().all(|one| matches!(one, Ok(Presence::Running(_)))),
        "{found:?}"
    );
    assert_eq!(found[9], Ok(Presence::Absent(Evidence::ById)));
    let expected = ["/vms", "/vms/gone", "/vms", "/vms/gone", "/clusters", "/datacenters"];
    assert_eq!(paths(&host), expected);
    let searches: Vec<_> = host
        .requests()
        .iter()
        .filter_map(|request| request.query("search"))
        .collect();
    assert_eq!(searches, ["tag=k8s sortby name page 1"]);
}

#[test]
fn machines_outside_filter_come_from_one_list() {
    let count = MOST_MISSING + 1;
    let all = move |request: &cloudwit_guest_sdk::testing::SentRequest| {
        let machines: Vec<Value> = (0..count).map(|number| machine(&format!("vm-{number}"), "n")).collect();
        let search = request.query("search").unwrap_or_default();
        match (request.url.contains("/vms"), search.as_str()) {
            (true, "sortby name page 1") => FakeAnswer::json(200, &json!({ "vm": machines[..100] })),
            (true, "sortby name page 2") => FakeAnswer::json(200, &json!({ "vm": machines[100..] })),
            (true, _) => FakeAnswer::json(200, &json!({})),
            (false, _) => engine(Vec::new())(request),
        }
    };
    let host = host_with(&format!("{CONFIG}[filters]\nvms = tag=k8s\n"), all);
    let nodes: Vec<NodeRef> = (0..count).map(|number| by_id(&format!("vm-{number}"))).collect();
    let found = lookup(&host, &nodes);
    assert!(
        found.iter().all(|one| matches!(one, Ok(Presence::Running(_)))),
        "{found:?}"
    );
    assert_eq!(paths(&host), ["/vms", "/vms", "/vms", "/clusters", "/datacenters"]);
}

#[test]
fn two_machines_of_one_name_are_not_guessed_between() {
    let host = host_with(
        &format!("{CONFIG}[filters]\nvms = tag=k8s\n"),
        engine(vec![machine("1", "node"), machine("2", "node")]),
    );
    let failure = lookup(&host, &[NodeRef::named("node")]).remove(0).unwrap_err();
    assert!(failure.message.contains("1 (vm-1), 2 (vm-2)"), "{failure:?}");
    let search = host.requests()[1].query("search");
    assert_eq!(search.as_deref(), Some("tag=k8s and fqdn=node sortby name page 1"));
}
