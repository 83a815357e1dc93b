use cloudwit_guest_sdk::Evidence;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};
use serde_json::{Value, json};

use super::*;
use crate::testing::{commands, host, no_such, provider, refused, said};

fn machine(id: &str, name: &str) -> Value {
    json!({
        "id": id, "name": name, "state": "Running", "zonename": "Zone 1", "serviceofferingname": "m1.Small-Instance", "hostname": "kvm-7",
        "publicip": "192.0.2.7", "nic": [
            { "networkid": "n-1", "ipaddress": "10.1.0.7", "ip6address": "fd00::7", "isdefault": true },
            { "networkid": "n-2", "ipaddress": "10.2.0.7", "isdefault": false },
        ],
    })
}

/// Answers a list of machines as CloudStack filters it.
fn listed(machines: &[Value], request: &SentRequest) -> FakeAnswer {
    let text = |machine: &Value, key: &str| machine[key].as_str().unwrap_or_default().to_owned();
    if let Some(id) = request.field("id").filter(|id| id.starts_with("never")) {
        return refused("listVirtualMachines", 431, &no_such("id", &id));
    }
    let (id, name) = (request.field("id"), request.field("name"));
    let fits = |machine: &&Value| {
        id.as_ref().is_none_or(|id| text(machine, "id") == *id)
            && name
                .as_ref()
                .is_none_or(|name| text(machine, "name").to_lowercase().contains(name))
    };
    let found: Vec<&Value> = machines.iter().filter(fits).collect();
    match found.len() {
        0 => said("listVirtualMachines", json!({})),
        count => said(
            "listVirtualMachines",
            json!({ "count": count, "virtualmachine": found }),
        ),
    }
}

fn cloud(machines: Vec<Value>) -> FakeHost {
    host(move |_, request| listed(&machines, request))
}

fn by_id(id: &str) -> NodeRef {
    NodeRef::named("node").with_provider_id(format!("external-cloudstack://{id}"))
}

fn lookup(host: &FakeHost, nodes: &[NodeRef]) -> Vec<Result<Presence, Failure>> {
    provider(host).lookup(nodes).unwrap()
}

#[test]
fn a_machine_is_described_as_upstream_does() {
    let cloud = cloud(vec![machine("vm-1", "Node-1"), machine("vm-11", "node-11")]);
    let found = lookup(&cloud, &[NodeRef::named("node-1")]).remove(0).unwrap();
    let Presence::Running(instance) = found else {
        panic!("{found:?}")
    };
    assert_eq!(instance.provider_id, "external-cloudstack://vm-1");
    assert_eq!(instance.instance_type.as_deref(), Some("m1SmallInstance"));
    assert_eq!(
        (instance.zone.as_deref(), instance.region.as_deref()),
        (Some("Zone-1"), Some("Zone-1"))
    );
    let addresses: Vec<_> = instance
        .addresses
        .iter()
        .map(|one| (one.kind, one.value.as_str()))
        .collect();
    assert_eq!(
        addresses,
        [
            (AddressKind::InternalIp, "10.1.0.7"),
            (AddressKind::Hostname, "Node-1"),
            (AddressKind::ExternalIp, "192.0.2.7"),
            (AddressKind::InternalIp, "fd00::7"),
        ]
    );
}

#[test]
fn a_provider_id_of_the_in_tree_days_stays_as_it_is() {
    let cloud = cloud(vec![machine("vm-1", "node-1")]);
    let node = NodeRef::named("other").with_provider_id("cloudstack://vm-1");
    let found = lookup(&cloud, &[node]).remove(0).unwrap();
    assert!(matches!(found, Presence::Running(instance) if instance.provider_id == "cloudstack://vm-1"));
    for wrong in ["aws:///i-1", "external-cloudstack://", "external-cloudstack://a/b"] {
        let node = NodeRef::named("node").with_provider_id(wrong);
        let failure = lookup(&cloud, &[node]).remove(0).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Invalid, "{wrong}");
    }
}

#[test]
fn states_are_running_or_stopped() {
    for (state, stopped) in [
        ("Running", false),
        ("Starting", false),
        ("Stopping", false),
        ("Migrating", false),
        ("Unknown", false),
        ("Stopped", true),
        ("Shutdown", true),
        ("Destroyed", true),
    ] {
        let mut one = machine("vm-1", "node-1");
        one["state"] = state.into();
        let cloud = cloud(vec![one]);
        let found = lookup(&cloud, &[by_id("vm-1")]).remove(0).unwrap();
        assert_eq!(matches!(found, Presence::Stopped(_)), stopped, "{state}");
    }
    let mut starting = machine("vm-1", "node-1");
    starting["nic"] = json!([]);
    let cloud = cloud(vec![starting]);
    let failure = lookup(&cloud, &[by_id("vm-1")]).remove(0).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unavailable);
}

#[test]
fn only_the_clouds_word_about_exactly_this_id_is_absence() {
    let found = |machines: Vec<Value>, nodes: &[NodeRef]| lookup(&cloud(machines), nodes).remove(0);
    let absent = Ok(Presence::Absent(Evidence::ById));
    let other = || vec![machine("vm-2", "node-2")];
    assert_eq!(
        found(other(), &[by_id("never-there")]),
        absent,
        "CloudStack never had it"
    );
    assert_eq!(found(other(), &[by_id("vm-1")]), absent, "it was expunged");
    let by_name = Ok(Presence::Absent(Evidence::ByName));
    assert_eq!(found(other(), &[NodeRef::named("node-1")]), by_name);
    let nothing = found(Vec::new(), &[by_id("vm-1")]).unwrap_err();
    assert!(
        nothing.kind == FailureKind::Unavailable && nothing.message.contains("project-id"),
        "{nothing:?}"
    );
    let project = host(|command, _| refused(command, 431, &no_such("projectid", "p-1")));
    let failure = lookup(&project, &[by_id("vm-1")]).remove(0).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unavailable);
}

#[test]
fn many_are_taken_from_one_list_and_the_rest_is_requested_by_id() {
    let machines = (0..10).map(|number| machine(&format!("vm-{number}"), &format!("node-{number}")));
    let cloud = cloud(machines.collect());
    let mut nodes: Vec<NodeRef> = (0..8).map(|number| by_id(&format!("vm-{number}"))).collect();
    nodes.push(NodeRef::named("node-9"));
    nodes.push(by_id("never-there"));
    let found = lookup(&cloud, &nodes);
    assert!(
        found[..9].iter().all(|one| matches!(one, Ok(Presence::Running(_)))),
        "{found:?}"
    );
    assert_eq!(found[9], Ok(Presence::Absent(Evidence::ById)));
    assert_eq!(
        commands(&cloud),
        ["listVirtualMachines"; 4],
        "a page, the missing one, whether any is seen, and the missing one again"
    );
}

#[test]
fn two_machines_of_one_name_are_not_guessed_between() {
    let cloud = cloud(vec![machine("vm-1", "node"), machine("vm-2", "NODE")]);
    let failure = lookup(&cloud, &[NodeRef::named("node")]).remove(0).unwrap_err();
    assert!(failure.message.contains("vm-1, vm-2"), "{failure:?}");
}
