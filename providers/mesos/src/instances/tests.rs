use cloudwit_guest_sdk::Evidence;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost};
use serde_json::json;

use super::*;

/// Masters with these agents; the registry admits them and `a-S7`, and `a-S8` is unreachable.
fn host(agents: Vec<Value>) -> FakeHost {
    let host = FakeHost::new();
    host.config("[mesos-cloud]\nmesos-master = m.test:5050\n");
    host.serve(move |request| {
        if request.url.ends_with("/master/slaves") {
            return FakeAnswer::json(
                200,
                &json!({ "slaves": agents, "recovered_slaves": [{ "id": "a-S6" }] }),
            );
        }
        let ids = agents.iter().map(|agent| agent["id"].clone()).chain([json!("a-S7")]);
        let admitted: Vec<Value> = ids.map(|id| json!({ "info": { "id": { "value": id } } })).collect();
        let unreachable = json!([{ "id": { "value": "a-S8" }, "timestamp": { "nanoseconds": 1 } }]);
        let registry = json!({ "slaves": { "slaves": admitted }, "unreachable": { "slaves": unreachable } });
        FakeAnswer::json(200, &registry)
    });
    host
}

fn agent(id: &str, hostname: &str) -> Value {
    json!({ "id": id, "hostname": hostname, "pid": "slave(1)@10.0.0.5:5051", "active": true, "attributes": { "rack": 7.0 } })
}

fn lookup(host: &FakeHost, node: NodeRef) -> Result<Presence, Failure> {
    host.provider::<Mesos>().lookup(&[node]).unwrap().remove(0)
}

fn by_id(id: &str) -> NodeRef {
    NodeRef::named("node-1").with_provider_id(format!("mesos://{id}"))
}

fn running(found: Result<Presence, Failure>) -> Instance {
    match found {
        Ok(Presence::Running(instance)) => instance,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_agent_is_described_with_its_fault_domain_or_attributes() {
    let mut one = agent("a-S0", "Node-1");
    let found = running(lookup(&host(vec![one.clone()]), NodeRef::named("node-1")));
    assert_eq!(found.provider_id, "mesos://a-S0");
    assert_eq!(
        (found.instance_type.as_deref(), found.zone),
        (Some("mesos-agent"), None)
    );
    let addresses: Vec<_> = found
        .addresses
        .iter()
        .map(|one| (one.kind, one.value.as_str()))
        .collect();
    assert_eq!(
        addresses,
        [(AddressKind::InternalIp, "10.0.0.5"), (AddressKind::Hostname, "Node-1")]
    );
    one["attributes"] = json!({ "zone": "z 1", "region": "r", "instance_type": "m5.large" });
    let found = running(lookup(&host(vec![one.clone()]), by_id("a-S0")));
    assert_eq!(
        (found.zone.as_deref(), found.region.as_deref()),
        (Some("z-1"), Some("r"))
    );
    assert_eq!(found.instance_type.as_deref(), Some("m5.large"));
    one["domain"] = json!({ "fault_domain": { "zone": { "name": "z9" }, "region": { "name": "r9" } } });
    let found = running(lookup(&host(vec![one.clone()]), by_id("a-S0")));
    assert_eq!(
        (found.zone.as_deref(), found.region.as_deref()),
        (Some("z9"), Some("r9"))
    );
    one["active"] = false.into();
    assert!(matches!(
        lookup(&host(vec![one.clone()]), by_id("a-S0")),
        Ok(Presence::Stopped(_))
    ));
    one["pid"] = "".into();
    assert_eq!(
        lookup(&host(vec![one]), by_id("a-S0")).unwrap_err().kind,
        FailureKind::Unavailable
    );
}

#[test]
fn in_tree_node_is_found_by_name_and_keeps_its_id() {
    let host = host(vec![agent("a-S0", "node-1")]);
    assert_eq!(running(lookup(&host, by_id(""))).provider_id, "mesos://");
    let gone = NodeRef::named("node-2").with_provider_id("mesos://");
    assert_eq!(lookup(&host, gone), Ok(Presence::Absent(Evidence::ByName)));
    let foreign = NodeRef::named("node-1").with_provider_id("aws:///i-1");
    assert_eq!(lookup(&host, foreign).unwrap_err().kind, FailureKind::Invalid);
}

#[test]
fn only_an_agent_that_the_registry_does_not_have_is_gone() {
    let host = host(vec![agent("a-S0", "node-2"), json!({ "id": 7 })]);
    assert_eq!(lookup(&host, by_id("a-S1")), Ok(Presence::Absent(Evidence::ById)));
    for (id, why) in [("a-S6", "admitted"), ("a-S7", "admitted"), ("a-S8", "unreachable")] {
        let failure = lookup(&host, by_id(id)).unwrap_err();
        assert!(
            failure.kind == FailureKind::Unavailable && failure.message.contains(why),
            "{failure:?}"
        );
    }
}

#[test]
fn a_machine_whose_agent_registered_anew_is_not_gone() {
    for (registered, recovered) in [
        (agent("a-S9", "Node-1"), json!({ "id": "a-S8" })),
        (agent("a-S0", "other"), json!({ "id": "a-S9", "hostname": "node-1" })),
    ] {
        let host = FakeHost::new();
        host.config("[mesos-cloud]\nmesos-master = m.test:5050\n");
        host.serve(move |request| match request.url.ends_with("/master/slaves") {
            true => FakeAnswer::json(200, &json!({ "slaves": [registered], "recovered_slaves": [recovered] })),
            false => FakeAnswer::json(
                200,
                &json!({ "slaves": { "slaves": [{ "info": { "id": { "value": "a-S0" } } }] } }),
            ),
        });
        let failure = lookup(&host, by_id("a-S1")).unwrap_err();
        assert!(
            failure.kind == FailureKind::Unavailable && failure.message.contains("another id"),
            "{failure:?}"
        );
    }
}

#[test]
fn masters_that_know_no_agent_or_show_no_registry_deny_none() {
    for (slaves, status, registry) in [
        (
            json!([]),
            200,
            json!({ "slaves": { "slaves": [{ "info": { "id": { "value": "a-S9" } } }] } }),
        ),
        (json!([agent("a-S0", "n")]), 200, json!({ "slaves": {} })),
        (json!([agent("a-S0", "n")]), 200, json!({})),
        (json!([agent("a-S0", "n")]), 403, json!({})),
        (json!([agent("a-S0", "n")]), 404, json!({})),
    ] {
        let host = FakeHost::new();
        host.config("[mesos-cloud]\nmesos-master = m.test:5050\n");
        let is_listed = slaves != json!([]);
        host.serve(move |request| match request.url.ends_with("/master/slaves") {
            true => FakeAnswer::json(200, &json!({ "slaves": slaves })),
            false => FakeAnswer::json(status, &registry),
        });
        let found = host
            .provider::<Mesos>()
            .lookup(&[by_id("a-S1"), by_id("a-S0")])
            .unwrap();
        assert!(found[0].is_err(), "{status}");
        assert_eq!(matches!(found[1], Ok(Presence::Running(_))), is_listed, "{status}");
    }
}
