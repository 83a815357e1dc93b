use cloudwit_guest_sdk::Evidence;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost};
use serde_json::json;

use super::*;

/// A project with these machines, whose networks are known at once.
fn host(more: &str, machines: Vec<Value>) -> FakeHost {
    let host = FakeHost::new();
    host.config(format!(
        "[Global]\ntarget = https://photon.test\ntenant = t\nproject = p\n{more}"
    ));
    host.serve(move |request| {
        let parts: Vec<&str> = request.url.split('?').next().unwrap().split('/').skip(4).collect();
        let one = |id: &str| machines.iter().find(|machine| machine["id"] == id);
        match parts.as_slice() {
            ["tenants"] => FakeAnswer::json(200, &json!({ "items": [{ "id": "1", "name": "t" }] })),
            ["tenants", ..] => FakeAnswer::json(200, &json!({ "items": [{ "id": "2", "name": "p" }] })),
            ["projects", ..] => FakeAnswer::json(200, &json!({ "items": machines })),
            ["vms", id] => match one(id) {
                Some(machine) => FakeAnswer::json(200, machine),
                None => FakeAnswer::json(404, &json!({ "code": "VmNotFound", "message": "no" })),
            },
            ["vms", id, "subnets"] => {
                let ip = one(id).map(|machine| machine["ip"].clone()).unwrap();
                let networks = json!([{ "ipAddress": "-" }, { "ipAddress": ip }, { "ipAddress": ip }]);
                FakeAnswer::json(
                    200,
                    &json!({ "id": "7", "state": "COMPLETED", "resourceProperties": { "networkConnections": networks } }),
                )
            }
            other => panic!("{other:?}"),
        }
    });
    host
}

fn machine(id: &str, name: &str, ip: &str) -> Value {
    json!({ "id": id, "name": name, "state": "STARTED", "flavor": "small 1", "ip": ip })
}

fn lookup(host: &FakeHost, node: NodeRef) -> Result<Presence, Failure> {
    host.provider::<Photon>().lookup(&[node]).unwrap().remove(0)
}

fn by_id(id: &str) -> NodeRef {
    NodeRef::named("node").with_provider_id(format!("photon://{id}"))
}

fn running(found: Result<Presence, Failure>) -> Instance {
    match found {
        Ok(Presence::Running(instance)) => instance,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_machine_is_found_by_name_or_by_address() {
    let machines = || {
        vec![
            machine("a-1", "Node-1", "10.0.0.1"),
            machine("a-2", "node-2", "10.0.0.2"),
            json!({ "id": 7 }),
        ]
    };
    let found = running(lookup(&host("", machines()), NodeRef::named("node-1")));
    assert_eq!(
        (found.provider_id.as_str(), found.instance_type.as_deref()),
        ("photon://a-1", Some("small-1"))
    );
    let addresses: Vec<_> = found
        .addresses
        .iter()
        .map(|one| (one.kind, one.value.as_str()))
        .collect();
    assert_eq!(
        addresses,
        [(AddressKind::InternalIp, "10.0.0.1"), (AddressKind::Hostname, "Node-1")]
    );
    let named = NodeRef::named("10.0.0.2");
    let found = running(lookup(&host("overrideIP = true\n", machines()), named.clone()));
    assert_eq!(found.provider_id, "photon://a-2");
    // The Node's own Hostname, its address, would go.
    assert_eq!(
        found.addresses,
        [Address::new(AddressKind::InternalIp, "10.0.0.2".to_owned())]
    );
    assert_eq!(
        lookup(&host("", machines()), named),
        Ok(Presence::Absent(Evidence::ByName))
    );
}

#[test]
fn states_are_running_or_stopped() {
    for (state, stopped) in [
        ("STARTED", false),
        ("CREATING", false),
        ("ERROR", false),
        ("STOPPED", true),
        ("SUSPENDED", true),
    ] {
        let mut one = machine("a-1", "node", "10.0.0.1");
        one["state"] = state.into();
        let found = lookup(&host("", vec![one]), by_id("a-1")).unwrap();
        assert_eq!(matches!(found, Presence::Stopped(_)), stopped, "{state}");
    }
    for name in ["", "Node A"] {
        let found = running(lookup(&host("", vec![machine("a-1", name, "10.0.0.1")]), by_id("a-1")));
        assert_eq!(found.addresses.len(), 1, "{name:?} is no host's");
    }
    let failure = lookup(&host("", vec![machine("a-1", "node", "-")]), by_id("a-1")).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unavailable);
}

#[test]
fn denied_machine_is_absent_while_project_has_others() {
    let found = |machines: Vec<Value>, node: NodeRef| lookup(&host("", machines), node);
    let other = || vec![machine("a-2", "node-2", "10.0.0.2")];
    assert_eq!(found(other(), by_id("a-1")), Ok(Presence::Absent(Evidence::ById)));
    let nothing = found(Vec::new(), by_id("a-1")).unwrap_err();
    assert!(
        nothing.kind == FailureKind::Unavailable && nothing.message.contains("tenant and project"),
        "{nothing:?}"
    );
    for wrong in ["aws:///i-1", "photon://", "photon://a/b"] {
        let node = NodeRef::named("node").with_provider_id(wrong);
        assert_eq!(found(other(), node).unwrap_err().kind, FailureKind::Invalid, "{wrong}");
    }
}

#[test]
fn many_are_taken_from_one_list_and_the_rest_is_requested_by_id() {
    let machines = (0..6).map(|number| machine(&format!("a-{number}"), &format!("node-{number}"), "10.0.0.1"));
    let host = host("", machines.collect());
    let nodes: Vec<NodeRef> = (0..7).map(|number| by_id(&format!("a-{number}"))).collect();
    let found = host.provider::<Photon>().lookup(&nodes).unwrap();
    assert!(
        found[..6].iter().all(|one| matches!(one, Ok(Presence::Running(_)))),
        "{found:?}"
    );
    assert_eq!(found[6], Ok(Presence::Absent(Evidence::ById)));
    let single = host
        .requests()
        .into_iter()
        .filter(|request| request.url.contains("/vms/") && !request.url.ends_with("/subnets"));
    // Once again after other machines were seen.
    assert_eq!(single.count(), 2);
}
