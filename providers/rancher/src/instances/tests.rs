use cloudwit_guest_sdk::Evidence;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};
use serde_json::{Value, json};

use super::*;
use crate::testing::{collection, host, names, provider, refused};

fn machine(id: &str, name: &str) -> Value {
    json!({
        "id": "1h7", "type": "host", "uuid": id, "hostname": name, "state": "active", "agentState": null, "labels": {},
        "agentIpAddress": "10.0.0.7", "ipAddresses": [{ "type": "ipAddress", "address": "10.0.0.7", "state": "active" }],
    })
}

/// Answers a list of hosts as Rancher filters it.
fn listed(machines: &[Value], request: &SentRequest) -> FakeAnswer {
    let uuid = request.query("uuid");
    let fits = |one: &&Value| uuid.as_ref().is_none_or(|uuid| one["uuid"].as_str() == Some(uuid));
    let found: Vec<Value> = machines.iter().filter(fits).cloned().collect();
    collection("host", &found)
}

fn cloud(machines: Vec<Value>) -> FakeHost {
    host(move |_, request| listed(&machines, request))
}

fn by_id(id: &str) -> NodeRef {
    NodeRef::named("node").with_provider_id(format!("rancher://{id}"))
}

fn lookup(host: &FakeHost, node: NodeRef) -> Result<Presence, Failure> {
    provider(host).lookup(&[node]).unwrap().remove(0)
}

fn running(found: Result<Presence, Failure>) -> Instance {
    match found {
        Ok(Presence::Running(instance)) => instance,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_host_is_described_as_upstream_does() {
    let mut one = machine("u-1", "Node-1");
    let ip = |address: &str, state: &str| json!({ "address": address, "state": state });
    one["ipAddresses"] = json!([
        ip("10.0.0.7", "active"),
        ip("10.0.0.8", "active"),
        ip("10.0.0.9", "removed"),
        ip("x", "active")
    ]);
    let instance = running(lookup(&cloud(vec![one]), NodeRef::named("node-1")));
    assert_eq!(instance.provider_id, "rancher://u-1");
    assert_eq!(instance.instance_type.as_deref(), Some("rancher"));
    assert_eq!(
        (instance.zone.as_deref(), instance.region.as_deref()),
        (Some("FailureDomain1"), Some("Region1"))
    );
    let addresses = instance.addresses.iter().map(|one| (one.kind, one.value.as_str()));
    assert_eq!(
        addresses.collect::<Vec<_>>(),
        [
            (AddressKind::ExternalIp, "10.0.0.7"),
            (AddressKind::InternalIp, "10.0.0.7"),
            (AddressKind::ExternalIp, "10.0.0.8"),
            (AddressKind::InternalIp, "10.0.0.8"),
            (AddressKind::Hostname, "Node-1"),
        ]
    );
}

#[test]
fn labels_of_the_host_are_its_zone_and_region() {
    let mut one = machine("u-1", "node");
    one["labels"] = json!({ "io.rancher.host.zone": "z 1", "io.rancher.host.region": "", "other": null });
    let instance = running(lookup(&cloud(vec![one]), by_id("u-1")));
    assert_eq!(
        (instance.zone.as_deref(), instance.region.as_deref()),
        (Some("z-1"), Some("Region1"))
    );
}

#[test]
fn names_are_compared_without_the_domain_that_one_of_them_has() {
    for (host, node, same) in [
        ("node-1", "NODE-1", true),
        ("node-1.example.com", "node-1", true),
        ("node-1", "node-1.example.com", true),
        ("node-1.example.com", "node-1.example.com", true),
        ("node-1.example.com", "node-1.example.org", false),
        ("node-1", "node-11", false),
        ("10.0.0.1", "10", false),
        ("10", "10.0.0.1", false),
        ("10.0.0.1", "10.0.0.1", true),
        ("", "", false),
    ] {
        let found: Host = serde_json::from_value(machine("u-1", host)).unwrap();
        assert_eq!(found.is_of(node), same, "{host} {node}");
    }
    let two = vec![machine("u-1", "node"), machine("u-2", "node.example.com")];
    let failure = lookup(&cloud(two), NodeRef::named("node")).unwrap_err();
    assert!(
        failure.message.contains("u-1 (node), u-2 (node.example.com)"),
        "{failure:?}"
    );
}

#[test]
fn states_are_running_stopped_or_gone() {
    for (state, agent, found) in [
        ("active", json!(null), "running"),
        ("active", json!("reconnecting"), "running"),
        ("activating", json!(null), "running"),
        ("removing", json!(null), "running"),
        ("active", json!("disconnected"), "stopped"),
        ("inactive", json!(null), "stopped"),
        ("removed", json!(null), "gone"),
        ("purging", json!(null), "gone"),
        ("purged", json!("disconnected"), "gone"),
    ] {
        let mut one = machine("u-1", "node");
        (one["state"], one["agentState"]) = (state.into(), agent);
        let found_as = match lookup(&cloud(vec![one, machine("u-2", "other")]), by_id("u-1")) {
            Ok(Presence::Running(_)) => "running",
            Ok(Presence::Stopped(_)) => "stopped",
            Ok(Presence::Absent(Evidence::ById)) => "gone",
            other => panic!("{other:?}"),
        };
        assert_eq!(found_as, found, "{state}");
    }
    let mut one = machine("u-1", "node");
    one["ipAddresses"] = json!([]);
    assert_eq!(
        running(lookup(&cloud(vec![one.clone()]), by_id("u-1"))).addresses.len(),
        3,
        "the agent's"
    );
    one["agentIpAddress"] = json!(null);
    let failure = lookup(&cloud(vec![one]), by_id("u-1")).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unavailable);
}

#[test]
fn only_an_empty_list_for_exactly_this_id_is_absence() {
    let other = || machine("u-2", "node-2");
    assert_eq!(
        lookup(&cloud(vec![other()]), by_id("u-1")),
        Ok(Presence::Absent(Evidence::ById))
    );
    assert_eq!(
        lookup(&cloud(vec![other()]), NodeRef::named("node-1")),
        Ok(Presence::Absent(Evidence::ByName))
    );
    let nothing = lookup(&cloud(Vec::new()), by_id("u-1")).unwrap_err();
    assert!(
        nothing.kind == FailureKind::Unavailable && nothing.message.contains("cattle-url"),
        "{nothing:?}"
    );
    // The filter is read past, or the item cannot be read: it may be the one.
    for odd in [other(), json!({ "uuid": "u-1" }), json!(7), json!({})] {
        let seen = odd.clone();
        let host = host(move |_, _| collection("host", std::slice::from_ref(&seen)));
        assert_eq!(
            lookup(&host, by_id("u-1")).unwrap_err().kind,
            FailureKind::Other,
            "{odd}"
        );
    }
    for answer in [
        FakeAnswer::new(404, &[], "<html>not found</html>"),
        refused(404, "NotFound"),
        refused(401, "Unauthorized"),
        collection("stack", &[]),
    ] {
        let said = answer.clone();
        let host = host(move |_, request| match request.query("uuid") {
            Some(_) => said.clone(),
            None => collection("host", &[json!({})]),
        });
        assert!(lookup(&host, by_id("u-1")).is_err(), "{answer:?}");
    }
    for wrong in ["aws:///i-1", "rancher://", "rancher://a/b"] {
        let node = NodeRef::named("node").with_provider_id(wrong);
        assert_eq!(
            lookup(&cloud(vec![other()]), node).unwrap_err().kind,
            FailureKind::Invalid,
            "{wrong}"
        );
    }
}

#[test]
fn many_are_taken_from_pages_that_may_cut_a_host_in_two() {
    let host = host(|_, request| {
        if let Some(uuid) = request.query("uuid") {
            assert_eq!(uuid, "u-7");
            return collection("host", &[]);
        }
        let page = |from: usize, next: Value| {
            let mut data: Vec<Value> = (from..from + 3)
                .map(|number| machine(&format!("u-{number}"), &format!("node-{number}")))
                .collect();
            if from > 0 {
                data[0]["ipAddresses"][0]["address"] = json!("10.0.0.8");
            }
            let pages = json!({ "next": next, "partial": from == 0 });
            FakeAnswer::json(
                200,
                &json!({ "type": "collection", "resourceType": "host", "data": data, "pagination": pages }),
            )
        };
        match request.query("marker") {
            None => page(0, json!("http://rancher/hosts?marker=m3&limit=500&include=ipAddresses")),
            Some(_) => page(2, json!(null)),
        }
    });
    let mut nodes: Vec<NodeRef> = (0..5).map(|number| by_id(&format!("u-{number}"))).collect();
    nodes.push(by_id("u-7"));
    let mut found = provider(&host).lookup(&nodes).unwrap();
    assert_eq!(found.pop(), Some(Ok(Presence::Absent(Evidence::ById))));
    let cut = running(found.remove(2));
    assert_eq!(cut.addresses.len(), 5, "{cut:?}");
    assert!(
        found.iter().all(|one| matches!(one, Ok(Presence::Running(_)))),
        "{found:?}"
    );
    assert_eq!(
        names(&host),
        ["GET /hosts"; 5],
        "two pages, the missing one, whether any is seen, and the missing one again"
    );
}
