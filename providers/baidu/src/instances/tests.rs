use cloudwit_guest_sdk::Evidence;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};
use serde_json::{Value, json};

use super::*;
use crate::testing::{calls, host, listed, provider, refused, said};

fn machine(id: &str, host: &str, ip: &str) -> Value {
    json!({
        "id": id, "name": format!("name-of-{id}"), "hostname": host, "status": "Running", "zoneName": "cn-bj-a", "internalIp": ip, "publicIp": "192.0.2.7",
        "ipv6": "", "spec": "bcc.g5.c2m8", "instanceType": "N5", "vpcId": "vpc-1", "subnetId": "sbn-1", "tags": null,
    })
}

fn asked(machines: &[Value], call: &str, request: &SentRequest) -> FakeAnswer {
    if call == "GET bcc/v2/instance" {
        let few = request.query("maxKeys").as_deref() == Some("1");
        let some: Vec<Value> = machines.iter().take(if few { 1 } else { 1000 }).cloned().collect();
        return listed("instances", some);
    }
    let id = call.rsplit('/').next().unwrap();
    match machines.iter().find(|machine| machine["id"] == id) {
        Some(machine) => said(json!({ "instance": machine })),
        None => refused(404, "NoSuchObject"),
    }
}

fn cloud(machines: Vec<Value>) -> FakeHost {
    host(move |call, request| asked(&machines, call, request))
}

fn by_id(id: &str) -> NodeRef {
    NodeRef::named("node").with_provider_id(format!("cce://{id}"))
}

fn lookup(host: &FakeHost, nodes: &[NodeRef]) -> Vec<Result<Presence, Failure>> {
    provider(host).lookup(nodes).unwrap()
}

#[test]
fn machine_is_described_with_zone_type_and_addresses() {
    let mut one = machine("i-1", "host-1", "10.0.0.1");
    one["ipv6"] = json!("fd00::1");
    let cloud = cloud(vec![one]);
    let Presence::Running(instance) = lookup(&cloud, &[NodeRef::named("HOST-1")]).remove(0).unwrap() else {
        panic!()
    };
    assert_eq!(instance.provider_id, "cce://i-1");
    assert_eq!(
        (
            instance.instance_type.as_deref(),
            instance.zone.as_deref(),
            instance.region.as_deref()
        ),
        (Some("bcc.g5.c2m8"), Some("cn-bj-a"), Some("bj"))
    );
    let addresses = instance.addresses.iter().map(|one| (one.kind, one.value.as_str()));
    assert_eq!(
        addresses.collect::<Vec<_>>(),
        [
            (AddressKind::InternalIp, "10.0.0.1"),
            (AddressKind::Hostname, "10.0.0.1"),
            (AddressKind::ExternalIp, "192.0.2.7"),
            (AddressKind::InternalIp, "fd00::1"),
        ]
    );
}

#[test]
fn nodes_are_found_by_address_host_name_or_name() {
    let mut nameless = machine("i-2", "", "10.0.0.2");
    nameless["hostname"] = json!(null);
    let mut elsewhere = machine("i-3", "host-1", "10.0.0.1");
    elsewhere["vpcId"] = json!("vpc-2");
    let cloud = cloud(vec![machine("i-1", "host-1", "10.0.0.1"), nameless, elsewhere]);
    let names = ["10.0.0.1", "host-1", "name-of-i-2", "name-of-i-1"].map(NodeRef::named);
    let found = lookup(&cloud, &names);
    let id = |found: &Result<Presence, Failure>| match found {
        Ok(Presence::Running(instance)) => instance.provider_id.clone(),
        other => format!("{other:?}"),
    };
    assert_eq!(
        [id(&found[0]), id(&found[1]), id(&found[2])],
        ["cce://i-1", "cce://i-1", "cce://i-2"]
    );
    assert_eq!(found[3], Ok(Presence::Absent(Evidence::ByName)), "it has a host name");
    assert_eq!(calls(&cloud), ["GET bcc/v2/instance"]);
}

#[test]
fn provider_id_without_prefix_stays_as_it_is() {
    let cloud = cloud(vec![machine("i-1", "host-1", "10.0.0.1")]);
    let node = NodeRef::named("other").with_provider_id("i-1");
    let found = lookup(&cloud, &[node]).remove(0).unwrap();
    assert!(matches!(found, Presence::Running(instance) if instance.provider_id == "i-1"));
    for wrong in ["aws:///i-1", "cce://", "cce://a/b", "x-1"] {
        let node = NodeRef::named("node").with_provider_id(wrong);
        let failure = lookup(&cloud, &[node]).remove(0).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Invalid, "{wrong}");
    }
}

#[test]
fn states_are_running_stopped_or_gone() {
    for (status, expected) in [
        ("Running", "running"),
        ("Starting", "running"),
        ("Stopping", "running"),
        ("Error", "running"),
        ("Stopped", "stopped"),
        ("Expired", "stopped"),
        ("Recycled", "stopped"),
        ("Deleted", "gone"),
    ] {
        let mut one = machine("i-1", "host-1", "10.0.0.1");
        one["status"] = status.into();
        let cloud = cloud(vec![one, machine("i-2", "host-2", "10.0.0.2")]);
        let found = lookup(&cloud, &[by_id("i-1")]).remove(0).unwrap();
        let told = match found {
            Presence::Running(_) => "running",
            Presence::Stopped(_) => "stopped",
            Presence::Absent(Evidence::ById) => "gone",
            Presence::Absent(Evidence::ByName) => "not found",
        };
        assert_eq!(told, expected, "{status}");
    }
    let mut starting = machine("i-1", "host-1", "");
    starting["internalIp"] = json!(null);
    let failure = lookup(&cloud(vec![starting]), &[by_id("i-1")]).remove(0).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unavailable);
}

#[test]
fn only_the_clouds_word_about_this_id_is_absence() {
    let found = |machines: Vec<Value>, node: NodeRef| lookup(&cloud(machines), &[node]).remove(0);
    let other = || vec![machine("i-2", "host-2", "10.0.0.2")];
    assert_eq!(found(other(), by_id("i-1")), Ok(Presence::Absent(Evidence::ById)));
    assert_eq!(
        found(other(), NodeRef::named("host-1")),
        Ok(Presence::Absent(Evidence::ByName))
    );
    let nothing = found(Vec::new(), by_id("i-1")).unwrap_err();
    assert!(
        nothing.kind == FailureKind::Unavailable && nothing.message.contains("Region"),
        "{nothing:?}"
    );
    let proxy = host(|_, _| FakeAnswer::new(404, &[], "<html>"));
    let failure = lookup(&proxy, &[by_id("i-1")]).remove(0).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unavailable);
    let confused = host(|_, _| said(json!({ "instance": { "id": "i-2" } })));
    assert!(
        lookup(&confused, &[by_id("i-1")]).remove(0).is_err(),
        "an answer about another machine"
    );
}

#[test]
fn many_are_taken_from_one_list_and_missing_ones_asked_for() {
    let machines = (0..10).map(|number| {
        machine(
            &format!("i-{number}"),
            &format!("host-{number}"),
            &format!("10.0.0.{number}"),
        )
    });
    let cloud = cloud(machines.collect());
    let mut nodes: Vec<NodeRef> = (0..8).map(|number| by_id(&format!("i-{number}"))).collect();
    nodes.push(NodeRef::named("host-9"));
    nodes.push(by_id("i-never"));
    let found = lookup(&cloud, &nodes);
    assert!(
        found[..9].iter().all(|one| matches!(one, Ok(Presence::Running(_)))),
        "{found:?}"
    );
    assert_eq!(found[9], Ok(Presence::Absent(Evidence::ById)));
    let (list, one) = ("GET bcc/v2/instance", "GET bcc/v2/instance/i-never");
    assert_eq!(
        calls(&cloud),
        [list, one, list, one],
        "whether any is seen, and once more"
    );
}

#[test]
fn two_machines_of_one_name_are_not_guessed_between() {
    let cloud = cloud(vec![
        machine("i-1", "node", "10.0.0.1"),
        machine("i-2", "NODE", "10.0.0.2"),
    ]);
    let failure = lookup(&cloud, &[NodeRef::named("node")]).remove(0).unwrap_err();
    assert!(failure.message.contains("i-1, i-2"), "{failure:?}");
}
