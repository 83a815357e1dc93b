//! Routes by the recorded answers of Neutron.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::FakeAnswer;
use serde_json::{Value, json};

use crate::recorded::{Stage, answer, file, json as recorded};

/// Addresses of the recorded ports: of node-1 (its pair is set), node-2 and node-3.
fn ips() -> [String; 3] {
    let router = recorded(file!("router"));
    let hops = &router["router"]["routes"];
    let ports = recorded(file!("ports_guarded"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (one, two) = (text(&hops[0]["nexthop"]), text(&hops[1]["nexthop"]));
    let guarded = |port: &&Value| port["port_security_enabled"] == true;
    let mut all = ports["ports"]
        .as_array()
        .unwrap()
        .iter()
        .filter(guarded)
        .map(|port| text(&port["fixed_ips"][0]["ip_address"]));
    let three = all.find(|ip| *ip != one && *ip != two).unwrap();
    [one, two, three]
}

fn node(name: &str, ip: &str) -> NodeRef {
    let mut node = NodeRef::named(name);
    node.addresses = vec![
        Address::new(AddressKind::ExternalIp, "198.51.100.1"),
        Address::new(AddressKind::InternalIp, "fd00::1"),
        Address::new(AddressKind::InternalIp, ip),
    ];
    node
}

fn wanted(destination: &str, node: NodeRef) -> NewRoute {
    NewRoute {
        name_hint: "uid".into(),
        destination: destination.into(),
        node,
    }
}

/// A cluster with three Nodes and the recorded router.
fn stage() -> Stage {
    let stage = Stage::new("[Route]\nrouter-id = r-1\n")
        .always("GET", "/v2.0/extensions", || answer(file!("extensions")))
        .always("GET", "/v2.0/routers/r-1", || answer(file!("router")))
        .always("GET", "/v2.0/ports?device_id=r-1", || answer(file!("router_ports")))
        .always("GET", "/v2.0/ports?network_id=", || answer(file!("ports_guarded")))
        .always("PUT", "/v2.0/routers/r-1/add_extraroutes", || {
            answer(file!("router_add"))
        })
        .always("PUT", "/v2.0/routers/r-1/remove_extraroutes", || {
            answer(file!("router_remove"))
        })
        .always("PUT", "/v2.0/ports/", || answer(file!("port_pairs")));
    stage.host.cluster("test", &["10.244.0.0/16"]);
    let cluster = |(name, ip): (&str, &String)| ClusterNode {
        ref_: node(name, ip),
        labels: vec![],
        pod_cidrs: vec![],
    };
    stage.host.view(
        ["one", "two", "three"].into_iter().zip(&ips()).map(cluster).collect(),
        vec![],
    );
    stage
}

/// The same on a Neutron without these extensions.
fn without(stage: Stage, lacking: &'static [&str]) -> Stage {
    stage.always("GET", "/v2.0/extensions", move || {
        let mut known = recorded(file!("extensions"));
        let known = known["extensions"].as_array_mut().unwrap();
        known.retain(|extension| !lacking.iter().any(|alias| extension["alias"] == *alias));
        FakeAnswer::json(200, &json!({"extensions": known}))
    })
}

fn existing(destination: &str, nexthop: &str, blackhole: bool) -> Route {
    Route {
        id: format!("{destination} via {nexthop}"),
        destination: destination.into(),
        node: None,
        next_hops: vec![],
        blackhole,
    }
}

fn router(routes: Value) -> FakeAnswer {
    FakeAnswer::json(200, &json!({"router": {"routes": routes, "revision_number": 7}}))
}

#[test]
fn cluster_routes_show_nodes_and_nodeless_are_blackholes() {
    let [one, two, _] = ips();
    let stage = stage();
    let stage = stage.always("GET", "/v2.0/routers/r-1", move || {
        router(json!([
            {"destination": "10.244.1.0/24", "nexthop": one}, {"destination": "10.244.7.0/24", "nexthop": "10.1.9.9"},
            {"destination": "192.168.0.0/24", "nexthop": two}, {"destination": "10.0.0.0/8", "nexthop": two}]))
    });
    let routes = stage.provider().list().unwrap();
    let [one, ..] = ips();
    assert_eq!(
        routes,
        [
            Route {
                id: format!("10.244.1.0/24 via {one}"),
                destination: "10.244.1.0/24".into(),
                node: Some("one".into()),
                next_hops: vec![Address::new(AddressKind::InternalIp, one)],
                blackhole: false,
            },
            Route {
                id: "10.244.7.0/24 via 10.1.9.9".into(),
                destination: "10.244.7.0/24".into(),
                node: None,
                next_hops: vec![Address::new(AddressKind::InternalIp, "10.1.9.9")],
                blackhole: true,
            },
        ],
        "neither foreign ranges nor one that only overlaps"
    );
}

#[test]
fn route_whose_port_lets_nothing_through_is_reported_as_missing() {
    let stage = stage();
    let routes = stage.provider().list().unwrap();
    assert_eq!(
        routes
            .iter()
            .map(|route| route.destination.as_str())
            .collect::<Vec<_>>(),
        ["10.244.1.0/24"]
    );
    let stage = without(stage, &["allowed-address-pairs"]);
    stage.host.context().state().remove("neutron-extensions");
    assert_eq!(stage.provider().list().unwrap().len(), 2);
}

#[test]
fn many_changes_are_one_request_each_way_and_the_ports_follow() {
    let [one, two, three] = ips();
    let stage = stage();
    let create = [
        wanted("10.244.3.0/24", node("three", &three)),
        wanted("10.244.2.0/24", node("two", &two)),
    ];
    let delete = [
        existing("10.244.1.0/24", &one, false),
        existing("10.244.8.0/24", "10.1.9.9", true),
    ];
    let outcome = stage.provider().apply(&create, &delete, &RouteTokens::none()).unwrap();
    assert_eq!(
        outcome,
        RouteOutcome {
            created: vec![Ok(()), Ok(())],
            deleted: vec![Ok(()), Ok(())]
        }
    );
    let removed = stage.sent("PUT", "remove_extraroutes");
    assert_eq!(removed.len(), 1);
    assert_eq!(
        removed[0].json(),
        json!({"router": {"routes": [{"destination": "10.244.1.0/24", "nexthop": one}]}}),
        "the other is gone"
    );
    let added = stage.sent("PUT", "add_extraroutes");
    assert_eq!(added.len(), 1);
    assert_eq!(
        added[0].json(),
        json!({"router": {"routes": [{"destination": "10.244.3.0/24", "nexthop": three}]}}),
        "the other is there"
    );
    let ports = stage.sent("PUT", "/v2.0/ports/");
    let pairs: Vec<Value> = ports
        .iter()
        .map(|request| request.json()["port"]["allowed_address_pairs"].clone())
        .collect();
    assert_eq!(
        pairs,
        [
            json!([]),
            json!([{"ip_address": "10.244.3.0/24"}]),
            json!([{"ip_address": "10.244.2.0/24"}])
        ]
    );
    assert_eq!(ports[0].header("if-match"), Some("revision_number=4"));
}

#[test]
fn of_many_routes_only_those_fail_that_neutron_refuses() {
    let [.., three] = ips();
    let stage = stage().once("PUT", "add_extraroutes", || answer(file!("router_add_far")));
    let stage = stage
        .once("PUT", "add_extraroutes", || answer(file!("router_add")))
        .once("PUT", "add_extraroutes", || answer(file!("router_add_far")));
    let create = [
        wanted("10.244.3.0/24", node("three", &three)),
        wanted("10.244.9.0/24", node("far", "10.99.0.1")),
        wanted("fd00:1::/64", node("two", "10.1.0.9")),
        wanted("10.244.9.0/24", NodeRef::named("bare")),
    ];
    let outcome = stage.provider().apply(&create[..2], &[], &RouteTokens::none()).unwrap();
    assert_eq!(outcome.created[0], Ok(()));
    assert!(
        matches!(&outcome.created[1], Err(Failure { kind: FailureKind::Invalid, message: text, .. }) if text.contains("not connected with router"))
    );
    let outcome = stage.provider().apply(&create[3..], &[], &RouteTokens::none()).unwrap();
    assert!(
        matches!(&outcome.created[0], Err(Failure { kind: FailureKind::Invalid, message: text, .. }) if text.contains("Node bare has no internal IPv4 address"))
    );
}

#[test]
fn a_route_is_taken_back_when_its_port_cannot_be_changed() {
    let [.., three] = ips();
    let stage = stage().always("PUT", "/v2.0/ports/", || FakeAnswer::new(503, &[], "{}"));
    let outcome = stage
        .provider()
        .apply(
            &[wanted("10.244.3.0/24", node("three", &three))],
            &[],
            &RouteTokens::none(),
        )
        .unwrap();
    assert!(matches!(
        outcome.created[0],
        Err(Failure {
            kind: FailureKind::Unavailable,
            ..
        })
    ));
    assert_eq!(
        stage.sent("PUT", "remove_extraroutes")[0].json(),
        stage.sent("PUT", "add_extraroutes")[0].json()
    );
    // A route that was there before stays.
    let [_, two, _] = ips();
    let outcome = stage
        .provider()
        .apply(&[wanted("10.244.2.0/24", node("two", &two))], &[], &RouteTokens::none())
        .unwrap();
    assert!(matches!(
        outcome.created[0],
        Err(Failure {
            kind: FailureKind::Unavailable,
            ..
        })
    ));
    assert_eq!(stage.sent("PUT", "extraroutes").len(), 2);
    // And a deleted one comes back, so that its pair is not left behind.
    let [one, ..] = ips();
    let outcome = stage
        .provider()
        .apply(&[], &[existing("10.244.1.0/24", &one, false)], &RouteTokens::none())
        .unwrap();
    assert!(matches!(
        outcome.deleted[0],
        Err(Failure {
            kind: FailureKind::Unavailable,
            ..
        })
    ));
    assert!(stage.sent("PUT", "add_extraroutes")[1].text().contains("10.244.1.0/24"));
}

#[test]
fn next_hop_without_port_is_reported_and_nothing_stays() {
    let stage = stage();
    let outcome = stage
        .provider()
        .apply(
            &[wanted("10.244.9.0/24", node("far", "10.1.200.200"))],
            &[],
            &RouteTokens::none(),
        )
        .unwrap();
    assert!(
        matches!(&outcome.created[0], Err(Failure { kind: FailureKind::NotFound, message: text, .. }) if text.contains("10.1.200.200")),
        "{outcome:?}"
    );
    assert_eq!(stage.sent("PUT", "remove_extraroutes").len(), 1);
    // Where a server is gone, its port is too.
    let stage = stage.always("GET", "/v2.0/routers/r-1", || {
        router(json!([{"destination": "10.244.9.0/24", "nexthop": "10.1.200.200"}]))
    });
    let outcome = stage
        .provider()
        .apply(
            &[],
            &[existing("10.244.9.0/24", "10.1.200.200", false)],
            &RouteTokens::none(),
        )
        .unwrap();
    assert_eq!(outcome.deleted, [Ok(())]);
}

#[test]
fn pairs_of_others_stay_also_when_they_came_meanwhile() {
    let [.., three] = ips();
    let port = |revision: i64, pairs: Value| {
        let body = json!({"port": {"id": "p", "fixed_ips": [], "port_security_enabled": true, "allowed_address_pairs": pairs, "revision_number": revision}});
        FakeAnswer::json(200, &body)
    };
    let stage = stage()
        .once("PUT", "/v2.0/ports/", || answer(file!("port_pairs_late")))
        .once("GET", "/v2.0/ports/", move || {
            port(
                9,
                json!([{"ip_address": "10.9.0.0/16", "mac_address": "fa:16:3e:00:00:01"}]),
            )
        });
    let outcome = stage
        .provider()
        .apply(
            &[wanted("10.244.3.0/24", node("three", &three))],
            &[],
            &RouteTokens::none(),
        )
        .unwrap();
    assert_eq!(outcome.created, [Ok(())]);
    let sent = stage.sent("PUT", "/v2.0/ports/");
    assert_eq!(sent[1].header("if-match"), Some("revision_number=9"));
    assert_eq!(
        sent[1].json()["port"]["allowed_address_pairs"],
        json!([{"ip_address": "10.9.0.0/16", "mac_address": "fa:16:3e:00:00:01"}, {"ip_address": "10.244.3.0/24"}])
    );
    // A call that loses every race ends.
    let stage = stage
        .always("PUT", "/v2.0/ports/", || answer(file!("port_pairs_late")))
        .always("GET", "/v2.0/ports/", move || port(9, json!([])));
    let outcome = stage
        .provider()
        .apply(
            &[wanted("10.244.3.0/24", node("three", &three))],
            &[],
            &RouteTokens::none(),
        )
        .unwrap();
    assert!(
        matches!(
            outcome.created[0],
            Err(Failure {
                kind: FailureKind::Conflict,
                ..
            })
        ),
        "{outcome:?}"
    );
}

#[test]
fn without_extraroute_atomic_list_is_replaced_by_revision() {
    let [one, two, three] = ips();
    let stage = without(stage(), &["extraroute-atomic"])
        .once("PUT", "/v2.0/routers/r-1", || answer(file!("router_replace_late")))
        .always("PUT", "/v2.0/routers/r-1", || answer(file!("router_replace")));
    let create = [wanted("10.244.3.0/24", node("three", &three))];
    let outcome = stage
        .provider()
        .apply(&create, &[existing("10.244.1.0/24", &one, false)], &RouteTokens::none())
        .unwrap();
    assert_eq!(
        outcome,
        RouteOutcome {
            created: vec![Ok(())],
            deleted: vec![Ok(())]
        }
    );
    let hop = |destination: &str, nexthop: &str| json!({"destination": destination, "nexthop": nexthop});
    let sent = stage.sent("PUT", "/v2.0/routers/r-1");
    let bodies: Vec<Value> = sent
        .iter()
        .map(|request| request.json()["router"]["routes"].clone())
        .collect();
    assert_eq!(
        bodies,
        [
            json!([hop("10.244.2.0/24", &two)]),
            json!([hop("10.244.2.0/24", &two)]),
            json!([
                hop("10.244.1.0/24", &one),
                hop("10.244.2.0/24", &two),
                hop("10.244.3.0/24", &three)
            ]),
        ],
        "late, again, and then the addition (the recorded router does not change)"
    );
    let revision = format!(
        "revision_number={}",
        recorded(file!("router"))["router"]["revision_number"]
    );
    assert!(sent.iter().all(|request| request.header("if-match") == Some(&revision)));
}

#[test]
fn what_is_as_wanted_changes_nothing() {
    let [one, ..] = ips();
    let stage = stage();
    let outcome = stage
        .provider()
        .apply(&[wanted("10.244.1.0/24", node("one", &one))], &[], &RouteTokens::none())
        .unwrap();
    assert_eq!(outcome.created, [Ok(())]);
    assert_eq!(stage.sent("PUT", "").len(), 0);
}

#[test]
fn missing_router_is_named_and_unset_one_does_nothing() {
    let stage = Stage::new("");
    assert!(
        matches!(stage.provider().list(), Err(Failure { kind: FailureKind::ImplementedElsewhere, message: text, .. }) if text.contains("router-id"))
    );
    let stage = self::stage().always("GET", "/v2.0/routers/r-1", || answer(file!("router_not_found")));
    assert!(
        matches!(stage.provider().list(), Err(Failure { kind: FailureKind::NotFound, message: text, .. }) if text.contains("could not be found"))
    );
}

#[test]
fn router_locked_by_another_call_is_not_written() {
    let [.., three] = ips();
    let stage = without(stage(), &["extraroute-atomic"]);
    let state = stage.host.context().state();
    let held = state.lock("router/r-1", std::time::Duration::ZERO);
    assert!(held.is_some());
    let outcome = stage
        .provider()
        .apply(
            &[wanted("10.244.3.0/24", node("three", &three))],
            &[],
            &RouteTokens::none(),
        )
        .unwrap();
    assert!(
        matches!(&outcome.created[0], Err(Failure { kind: FailureKind::Unavailable, message: text, .. }) if text.contains("another call")),
        "{outcome:?}"
    );
    assert_eq!(stage.sent("PUT", "/v2.0/routers/r-1").len(), 0);
}
