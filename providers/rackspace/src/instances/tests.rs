use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost};
use serde_json::json;

use super::*;
use crate::servers::Place;
use crate::testing::{answer, calls, file, host, provider};

fn pages() -> FakeHost {
    host(|request| {
        if request.url.contains("/servers/nowhere") {
            return answer(file!("server_not_found"));
        }
        match request.query("marker") {
            None => answer(file!("servers_page_1")),
            Some(_) => answer(file!("servers_page_2")),
        }
    })
}

fn told(answers: Vec<Result<Presence, Failure>>) -> Vec<String> {
    let word = |answer: Result<Presence, Failure>| match answer {
        Ok(Presence::Running(instance)) => {
            format!("{} runs", instance.provider_id.split("-id-").next().unwrap_or_default())
        }
        Ok(Presence::Stopped(_)) => "stopped".into(),
        Ok(Presence::Absent(Evidence::ById)) => "absent by id".into(),
        Ok(Presence::Absent(_)) => "absent by name".into(),
        Err(failure) => failure.message,
    };
    answers.into_iter().map(word).collect()
}

#[test]
fn many_nodes_take_one_listing_and_absence_needs_the_id() {
    let host = pages();
    let nodes = [
        NodeRef::named("node-1"),
        NodeRef::named("node-2"),
        NodeRef::named("gone"),
        NodeRef::named("n").with_provider_id("rackspace://nowhere"),
    ];
    let told = told(provider(&host).lookup(&nodes).unwrap());
    assert!(
        told[0].starts_with("rackspace://test-server") && told[0].ends_with("runs"),
        "{told:?}"
    );
    assert_eq!(told[1..], ["stopped", "absent by name", "absent by id"]);
    assert_eq!(
        calls(&host).len(),
        5,
        "two pages, the id that they do not have twice, and whether there are others"
    );
}

#[test]
fn few_nodes_are_requested_one_by_one() {
    let host = host(|_| answer(file!("server")));
    let id = "rackspace:///test-server";
    let answers = provider(&host)
        .lookup(&[NodeRef::named("n").with_provider_id(id)])
        .unwrap();
    let Ok(Presence::Running(instance)) = &answers[0] else {
        panic!("{answers:?}")
    };
    assert_eq!(instance.provider_id, id, "the form that the Node has stays");
    assert_eq!(calls(&host), ["GET servers/test-server"]);
}

#[test]
fn cloud_that_fails_deletes_none() {
    let host = host(|_| FakeAnswer::json(500, &json!({ "computeFault": { "code": 500, "message": "oh" } })));
    let nodes: Vec<NodeRef> = (0..2)
        .map(|number| NodeRef::named("n").with_provider_id(format!("rackspace://{number}")))
        .collect();
    let answers = provider(&host).lookup(&nodes).unwrap();
    assert!(answers.iter().all(Result::is_err), "{answers:?}");
    assert_eq!(calls(&host).len(), 1, "the second would fare no better");
}

#[test]
fn server_is_reported_with_its_addresses_flavor_and_region() {
    let host = host(|_| answer(file!("server")));
    let server = provider(&host).server("x").unwrap().unwrap();
    let Existing::Running(instance) = existing(&server, Some("dfw")) else {
        panic!("it runs")
    };
    assert_eq!(
        (
            instance.instance_type.as_deref(),
            instance.region.as_deref(),
            instance.zone.as_deref()
        ),
        (Some("general1-1"), Some("DFW"), None)
    );
    let kinds: Vec<AddressKind> = instance.addresses.iter().map(|address| address.kind).collect();
    let expected = [
        AddressKind::Hostname,
        AddressKind::InternalIp,
        AddressKind::ExternalIp,
        AddressKind::ExternalIp,
    ];
    assert_eq!(kinds, expected);
    assert!(
        !instance.addresses[2].value.contains(':') && instance.addresses[3].value.contains(':'),
        "IPv4 first"
    );
}

#[test]
fn account_networks_are_internal_and_odd_texts_dropped() {
    let place = |addr: &str| vec![Place { addr: addr.into() }];
    let server = Server {
        name: "n".into(),
        addresses: [
            ("lan", "192.168.0.5"),
            ("private", "10.1.2.3"),
            ("public", "no address"),
        ]
        .map(|(network, addr)| (network.to_owned(), place(addr)))
        .into(),
        ..Server::default()
    };
    let values: Vec<String> = addresses(&server).into_iter().map(|address| address.value).collect();
    assert_eq!(values, ["n", "10.1.2.3", "192.168.0.5"]);
}

#[test]
fn foreign_form_of_provider_id_costs_its_node_alone() {
    let host = host(|_| answer(file!("server")));
    let node = |id: &str| NodeRef::named("n").with_provider_id(id);
    let nodes = [
        node("rackspace://a/b"),
        node("rackspace://%"),
        node("rackspace://ok"),
        node("aws:///x/i-1"),
    ];
    let answers = provider(&host).lookup(&nodes).unwrap();
    let runs: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(runs, [false, false, true, false]);
    assert_eq!(calls(&host), ["GET servers/ok"]);
}
