use cloudwit_guest_sdk::testing::{FakeAnswer, SentRequest};
use serde_json::{Value, json};

use super::*;
use crate::testing::{host, parameter, provider, refused, said};

fn machine(id: &str, ip: &str, status: &str) -> Value {
    json!({
        "InstanceId": id, "InstanceName": format!("name-of-{id}"), "Status": status, "InstanceType": "ecs.g7.large", "ZoneId": "cn-test-a", "RegionId": "cn-test",
        "PublicIpAddress": { "IpAddress": [] }, "InnerIpAddress": { "IpAddress": [] }, "EipAddress": { "IpAddress": "" },
        "VpcAttributes": { "PrivateIpAddress": { "IpAddress": [ip] } },
    })
}

fn listed(machines: Vec<Value>) -> FakeAnswer {
    said(json!({ "TotalCount": machines.len(), "NextToken": "", "Instances": { "Instance": machines } }))
}

/// A cloud with `i-1` at 10.0.0.1 and a stopped `i-2` at 10.0.0.2.
fn two(_: &str, request: &SentRequest) -> FakeAnswer {
    let all = [
        machine("i-1", "10.0.0.1", "Running"),
        machine("i-2", "10.0.0.2", "Stopped"),
    ];
    let has = |name: &str, value: &Value| {
        parameter(request, name).is_none_or(|wanted| wanted.contains(value.as_str().unwrap()))
    };
    let found = all.into_iter().filter(|one| {
        has("InstanceIds", &one["InstanceId"])
            && has("InstanceName", &one["InstanceName"])
            && has(
                "PrivateIpAddresses",
                &one["VpcAttributes"]["PrivateIpAddress"]["IpAddress"][0],
            )
    });
    listed(found.collect())
}

fn node(name: &str, id: Option<&str>) -> NodeRef {
    NodeRef {
        provider_id: id.map(str::to_owned),
        ..NodeRef::named(name)
    }
}

#[test]
fn ids_of_both_forms_are_asked_for_in_one_request() {
    let host = host(two);
    let nodes = [
        node("a", Some("cn-test.i-1")),
        node("b", Some("alicloud://cn-test.i-2")),
        node("c", Some("cn-test.i-3")),
        node("d", Some("cn-other.i-1")),
    ];
    let seen = provider(&host).lookup(&nodes).unwrap();
    assert!(matches!(&seen[0], Ok(Presence::Running(instance)) if instance.provider_id == "cn-test.i-1"));
    assert!(
        matches!(&seen[1], Ok(Presence::Stopped(instance)) if instance.provider_id == "alicloud://cn-test.i-2"),
        "it stays as it is"
    );
    assert_eq!(seen[2], Ok(Presence::Absent(Evidence::ById)));
    assert!(
        matches!(&seen[3], Err(failure) if failure.kind == FailureKind::Invalid && failure.message.contains("cn-test"))
    );
    assert_eq!(host.requests().len(), 2, "what is missing is asked for twice");
}

#[test]
fn nothing_is_absent_for_empty_account_or_failure() {
    let none = host(|_, _| listed(Vec::new()));
    let seen = provider(&none).lookup(&[node("a", Some("cn-test.i-1"))]).unwrap();
    assert!(
        matches!(&seen[0], Err(failure) if failure.kind == FailureKind::Unavailable),
        "{seen:?}"
    );
    drop(none);
    let denied = host(|_, _| refused(404, "InvalidAccessKeyId.NotFound"));
    assert!(provider(&denied).lookup(&[node("a", Some("cn-test.i-1"))]).is_err());
}

#[test]
fn a_node_without_id_is_found_by_address_id_or_name() {
    let host = host(two);
    let by_address = NodeRef {
        addresses: vec![Address::new(AddressKind::InternalIp, "10.0.0.2")],
        ..NodeRef::named("x")
    };
    let nodes = [
        by_address,
        node("cn-test.10.0.0.1", None),
        node("i-1", None),
        node("name-of-i-2", None),
        node("cn-test.10.0.0.9", None),
    ];
    let seen = provider(&host).lookup(&nodes).unwrap();
    let id = |at: usize| match &seen[at] {
        Ok(Presence::Running(instance) | Presence::Stopped(instance)) => instance.provider_id.clone(),
        other => format!("{other:?}"),
    };
    assert_eq!(
        [0, 1, 2, 3].map(id),
        ["cn-test.i-2", "cn-test.i-1", "cn-test.i-1", "cn-test.i-2"]
    );
    assert_eq!(seen[4], Ok(Presence::Absent(Evidence::ByName)));
    let addresses = host
        .requests()
        .iter()
        .find_map(|request| parameter(request, "PrivateIpAddresses").map(|ips| (ips, parameter(request, "VpcId"))));
    assert_eq!(
        addresses,
        Some((r#"["10.0.0.2","10.0.0.1","10.0.0.9"]"#.into(), Some("vpc-1".into())))
    );
}

#[test]
fn many_names_cost_one_list() {
    let host = host(two);
    let nodes: Vec<NodeRef> = (0..60)
        .map(|number| node(&format!("name-of-i-{number}"), None))
        .collect();
    let seen = provider(&host).lookup(&nodes).unwrap();
    assert!(
        seen[1].is_ok()
            && matches!(&seen[2], Ok(Presence::Stopped(_)))
            && seen[3] == Ok(Presence::Absent(Evidence::ByName))
    );
    assert_eq!(host.requests().len(), 1);
}

#[test]
fn a_machine_without_private_address_is_not_described_yet() {
    let odd: Machine = serde_json::from_value(machine("i-1", "", "Running")).unwrap();
    assert_eq!(odd.existing().unwrap_err().kind, FailureKind::Unavailable);
    let mut value = machine("i-1", "10.0.0.1", "Running");
    value["EipAddress"]["IpAddress"] = json!("47.1.1.1");
    value["PublicIpAddress"]["IpAddress"] = json!(["47.2.2.2"]);
    value["NetworkInterfaces"]["NetworkInterface"] =
        json!([{ "Type": "Primary", "Ipv6Sets": { "Ipv6Set": [{ "Ipv6Address": "2408::1" }] } }]);
    let machine: Machine = serde_json::from_value(value).unwrap();
    let Ok(Existing::Running(instance)) = machine.existing() else {
        panic!()
    };
    let addresses: Vec<&str> = instance
        .addresses
        .iter()
        .map(|address| address.value.as_str())
        .collect();
    assert_eq!(
        addresses,
        ["47.2.2.2", "47.1.1.1", "10.0.0.1", "2408::1"],
        "upstream's order"
    );
}
