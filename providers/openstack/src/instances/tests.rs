//! Look-ups by the recorded answers of Nova and Neutron.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::FakeAnswer;
use serde_json::{Value, json};

use crate::recorded::{Stage, answer, file, json as recorded};

/// The recorded servers: ids of node-1, node-2 and node-3.
fn ids() -> [String; 3] {
    let (one, two) = (recorded(file!("servers_page_1")), recorded(file!("servers_page_2")));
    let servers = [&one["servers"][0], &one["servers"][1], &two["servers"][0]];
    ["node-1", "node-2", "node-3"].map(|name| {
        let server = servers.iter().find(|server| server["name"] == name).unwrap();
        server["id"].as_str().unwrap().to_owned()
    })
}

fn by_id(id: &str) -> NodeRef {
    NodeRef::named("n").with_provider_id(format!("openstack:///{id}"))
}

/// Nova gives two servers in a page, Neutron two ports, as they are recorded.
fn paged() -> Stage {
    Stage::new("")
        .always("GET", "/servers/detail?limit=500", || answer(file!("servers_page_1")))
        .always("GET", "/servers/detail?limit=2&marker=", || {
            answer(file!("servers_page_2"))
        })
        .always("GET", "neutron.test/v2.0/ports?device_id=", || answer(file!("ports")))
        .always("GET", "/servers/0000", || answer(file!("server_not_found")))
}

const NOWHERE: &str = "00000000-0000-4000-8000-000000000000";

#[test]
fn many_nodes_take_listing_pages_and_one_port_request() {
    let ids = ids();
    let stage = paged();
    let nodes = [
        by_id(&ids[2]),
        NodeRef::named("node-1"),
        by_id(&ids[1]),
        NodeRef::named("gone"),
        by_id(NOWHERE),
    ];
    let answers = stage.provider().lookup(&nodes).unwrap();
    let told: Vec<String> = answers
        .iter()
        .map(|answer| match answer.as_ref().unwrap() {
            Presence::Running(instance) => format!("{} runs", instance.provider_id),
            Presence::Stopped(instance) => format!("{} stopped", instance.provider_id),
            Presence::Absent(evidence) => format!("{evidence:?}"),
        })
        .collect();
    assert_eq!(
        told,
        [
            format!("openstack:///{} runs", ids[2]),
            format!("openstack:///{} runs", ids[0]),
            format!("openstack:///{} stopped", ids[1]),
            "Evidence::ByName".into(),
            "Evidence::ById".into(),
        ]
    );
    let calls = stage.calls();
    assert_eq!(calls.len(), 4, "two pages, the missing server, ports: {calls:#?}");
    assert_eq!(stage.sent("GET", "ports")[0].url.matches("device_id=").count(), 3);
}

#[test]
fn everything_that_is_known_of_a_server_is_reported() {
    let ids = ids();
    let stage = Stage::new("")
        .always("GET", &format!("/servers/{}", ids[1]), || answer(file!("server")))
        .always("GET", "/ports", || answer(file!("ports")));
    let answers = stage.provider().lookup(&[by_id(&ids[1])]).unwrap();
    let Ok(Presence::Stopped(instance)) = &answers[0] else {
        panic!("{answers:?}")
    };
    assert_eq!(instance.instance_type.as_deref(), Some("m1.small"));
    assert_eq!(
        (instance.zone.as_deref(), instance.region.as_deref()),
        (Some("zone-1-north"), Some("RegionOne"))
    );
    let server = recorded(file!("server"));
    let internal = server["server"]["addresses"]["nodes"][0]["addr"].as_str().unwrap();
    assert_eq!(
        instance.addresses,
        [
            Address::new(AddressKind::InternalIp, internal),
            Address::new(AddressKind::ExternalIp, "192.0.2.7"),
            Address::new(AddressKind::Hostname, "two.example.com"),
        ]
    );
    assert_eq!(stage.calls().len(), 2, "one Node costs two requests and no listing");
}

#[test]
fn a_node_that_joins_is_found_by_its_name_alone() {
    let pattern = "name=%5Enode-3%24";
    let stage = Stage::new("regional-provider-id = true\n")
        .always("GET", pattern, || answer(file!("servers_by_name")))
        .always("GET", "/ports", || answer(file!("ports")));
    let answers = stage.provider().lookup(&[NodeRef::named("node-3")]).unwrap();
    let Ok(Presence::Running(instance)) = &answers[0] else {
        panic!("{answers:?}")
    };
    assert_eq!(instance.provider_id, format!("openstack://RegionOne/{}", ids()[2]));
    // The id of a Node is kept, whatever is configured now.
    let ids = ids();
    let stage = Stage::new("regional-provider-id = true\n")
        .always("GET", "/servers/", || answer(file!("server")))
        .always("GET", "/ports", || answer(file!("ports")));
    let answers = stage.provider().lookup(&[by_id(&ids[1])]).unwrap();
    assert!(
        matches!(&answers[0], Ok(Presence::Stopped(instance)) if instance.provider_id == format!("openstack:///{}", ids[1]))
    );
}

#[test]
fn a_floating_address_is_external() {
    let stage = paged();
    let nodes: Vec<NodeRef> = ids()
        .iter()
        .map(|id| by_id(id))
        .chain([NodeRef::named("gone")])
        .collect();
    let answers = stage.provider().lookup(&nodes).unwrap();
    let Ok(Presence::Running(instance)) = &answers[0] else {
        panic!("{answers:?}")
    };
    assert_eq!(
        instance.addresses.last(),
        Some(&Address::new(AddressKind::ExternalIp, "172.24.0.9"))
    );
    assert_eq!(instance.addresses.len(), 2);
}

#[test]
fn a_404_that_is_not_novas_is_no_evidence() {
    for (status, body) in [(404, "<html>no such backend</html>"), (404, "{}"), (410, "{}")] {
        let stage = Stage::new("").always("GET", "/servers/", move || FakeAnswer::new(status, &[], body));
        let answers = stage.provider().lookup(&[by_id(NOWHERE)]).unwrap();
        assert!(answers[0].is_err(), "{answers:?}");
    }
}

#[test]
fn listing_error_is_no_absence_and_server_error_stays_its_own() {
    let nodes: Vec<NodeRef> = ids().iter().map(|id| by_id(id)).chain([by_id(NOWHERE)]).collect();
    let body = r#"{"computeFault": {"code": 503, "message": "busy"}}"#;
    let stage = paged().always("GET", "/servers/detail?limit=2&marker", move || {
        FakeAnswer::new(503, &[("retry-after", "7")], body)
    });
    let failure = stage.provider().lookup(&nodes).unwrap_err();
    assert!(
        matches!(
            &failure,
            Failure {
                kind: FailureKind::RateLimited,
                retry_after: Some(7000),
                ..
            }
        ),
        "{failure:?}"
    );
    let stage = paged().always("GET", "/servers/0000", || FakeAnswer::new(500, &[], "{}"));
    let answers = stage.provider().lookup(&nodes).unwrap();
    assert!(answers[..3].iter().all(Result::is_ok), "{answers:?}");
    assert!(
        matches!(
            answers[3],
            Err(Failure {
                kind: FailureKind::Unavailable,
                ..
            })
        ),
        "{answers:?}"
    );
}

#[test]
fn an_answer_that_is_cut_is_no_answer() {
    let whole = cloudwit_guest_sdk::testing::recorded(file!("servers_page_1"));
    for cut in [1, whole.len() / 2, whole.len() - 3] {
        let stage = paged().always("GET", "/servers/detail?limit=500", move || {
            FakeAnswer::new(200, &[], &whole[..cut])
        });
        let nodes: Vec<NodeRef> = ["a", "b", "c", "d"].map(NodeRef::named).into();
        let failure = stage.provider().lookup(&nodes).unwrap_err();
        assert!(
            matches!(&failure, Failure { kind: FailureKind::Unavailable, message: text, .. } if text.contains("GET compute/servers/detail")),
            "{failure:?}"
        );
    }
}

#[test]
fn failure_concerning_all_stops_further_requests() {
    let nodes: Vec<NodeRef> = (0..9).map(|n| by_id(&format!("{n}"))).collect();
    let stage = Stage::new("")
        .always("GET", "/servers/detail", || {
            FakeAnswer::json(200, &json!({"servers": []}))
        })
        .always("GET", "/servers/0", || answer(file!("server_not_found")))
        .always("GET", "/servers/1", || {
            FakeAnswer::new(429, &[("retry-after", "3")], "{}")
        });
    let answers = stage.provider().lookup(&nodes).unwrap();
    assert_eq!(answers[0], Ok(Presence::Absent(Evidence::ById)));
    assert!(
        answers[1..].iter().all(|answer| matches!(
            answer,
            Err(Failure {
                kind: FailureKind::RateLimited,
                ..
            })
        )),
        "{answers:?}"
    );
    assert_eq!(stage.calls().len(), 3);
}

#[test]
fn hundreds_of_nodes_list_all_ports_at_once() {
    let server = |n: usize| {
        json!({"id": format!("s-{n}"), "name": format!("n-{n}"), "status": "ACTIVE",
            "flavor": {"original_name": "m1.small"}, "addresses": {}})
    };
    let servers: Vec<Value> = (0..60).map(server).collect();
    let stage = Stage::new("")
        .always("GET", "/servers/detail", move || FakeAnswer::json(200, &json!({"servers": servers})))
        .always("GET", "/ports?fields=id", || {
            let port = |n: usize| json!({"id": "p", "device_id": format!("s-{n}"), "status": "ACTIVE", "fixed_ips": [{"ip_address": format!("10.0.0.{n}")}]});
            FakeAnswer::json(200, &json!({"ports": (0..200).map(port).collect::<Vec<_>>()}))
        });
    let nodes: Vec<NodeRef> = (0..60).map(|n| by_id(&format!("s-{n}"))).collect();
    let answers = stage.provider().lookup(&nodes).unwrap();
    assert_eq!(stage.calls().len(), 2, "{:#?}", stage.calls());
    let Ok(Presence::Running(instance)) = &answers[59] else {
        panic!("{answers:?}")
    };
    assert_eq!(instance.addresses, [Address::new(AddressKind::InternalIp, "10.0.0.59")]);
}

#[test]
fn trunks_take_two_more_requests_for_any_subport_count() {
    let port = json!({"id": "p-1", "device_id": "s-1", "status": "ACTIVE", "network_id": "n-1",
        "fixed_ips": [{"ip_address": "10.0.0.4"}], "trunk_details": {"trunk_id": "t", "sub_ports": [{"port_id": "p-2"}, {"port_id": "p-3"}]}});
    let sub = |id: &str, network: &str, ip: &str| json!({"id": id, "network_id": network, "status": "ACTIVE", "fixed_ips": [{"ip_address": ip}]});
    let subports = json!({"ports": [sub("p-3", "n-3", "10.3.0.4"), sub("p-2", "n-2", "10.2.0.4")]});
    let networks = json!({"networks": [{"id": "n-2", "name": "vlan-b"}, {"id": "n-3", "name": "vlan-a"}]});
    let server = json!({"server": {"id": "s-1", "name": "a", "status": "ACTIVE", "flavor": {"original_name": "m"},
        "addresses": {"nodes": [{"addr": "10.0.0.4", "OS-EXT-IPS:type": "fixed"}]}}});
    let stage = Stage::new("[Networking]\npublic-network-name = vlan-b\n")
        .always("GET", "/servers/s-1", move || FakeAnswer::json(200, &server))
        .always("GET", "/ports?device_id=s-1", move || {
            FakeAnswer::json(200, &json!({"ports": [port]}))
        })
        .always("GET", "/ports?id=p-2&id=p-3", move || FakeAnswer::json(200, &subports))
        .always("GET", "/networks?id=n-2&id=n-3", move || {
            FakeAnswer::json(200, &networks)
        });
    let answers = stage.provider().lookup(&[by_id("s-1")]).unwrap();
    let Ok(Presence::Running(instance)) = &answers[0] else {
        panic!("{answers:?}")
    };
    assert_eq!(
        instance.addresses,
        [
            Address::new(AddressKind::InternalIp, "10.0.0.4"),
            Address::new(AddressKind::InternalIp, "10.3.0.4"),
            Address::new(AddressKind::ExternalIp, "10.2.0.4"),
        ]
    );
    assert_eq!(stage.calls().len(), 4);
}

#[test]
fn a_listing_that_never_ends_is_a_failure() {
    let page = json!({"servers": [{"id": "x"}], "servers_links": [{"rel": "next", "href": "http://nova.test/v2.1/servers/detail?marker=x"}]});
    let stage = Stage::new("").always("GET", "/servers/detail", move || FakeAnswer::json(200, &page));
    let nodes: Vec<NodeRef> = ["a", "b", "c", "d"].map(NodeRef::named).into();
    assert!(matches!(
        stage.provider().lookup(&nodes),
        Err(Failure {
            kind: FailureKind::Other,
            ..
        })
    ));
    assert_eq!(stage.calls().len(), 2);
}

#[test]
fn probe_covers_services_and_reports_ungranted_endpoints() {
    let stage = Stage::new("").always("GET", "", || answer(file!("servers_empty")));
    assert_eq!((stage.provider().probe(), stage.calls().len()), (Ok(()), 3));
    let stage = Stage::new("").always("GET", "", FakeAnswer::refused);
    let Err(Failure {
        kind: FailureKind::Denied,
        message: text,
        ..
    }) = stage.provider().probe()
    else {
        panic!()
    };
    for host in ["nova.test", "neutron.test", "octavia.test"] {
        assert!(text.contains(host), "{text}");
    }
    let stage = Stage::new("[LoadBalancer]\nenabled = false\n").always("GET", "", || answer(file!("servers_empty")));
    assert_eq!((stage.provider().probe(), stage.calls().len()), (Ok(()), 2));
}

#[test]
fn an_exhausted_quota_is_denied_and_novas_413_is_throttling() {
    let stage = Stage::new("")
        .once("GET", "nova", || answer(file!("quota")))
        .once("GET", "nova", || {
            FakeAnswer::new(
                413,
                &[("retry-after", "2")],
                r#"{"overLimit": {"code": 413, "message": "slow down"}}"#,
            )
        });
    let ask = || {
        stage
            .provider()
            .api
            .get(crate::api::Endpoint::Compute, "/x")
            .send()
            .map(drop)
            .unwrap_err()
    };
    assert!(
        matches!(ask(), Failure { kind: FailureKind::Exhausted, message: text, .. } if text.contains("Quota exceeded for resources: ['network']"))
    );
    assert!(
        matches!(ask(), Failure { kind: FailureKind::RateLimited, retry_after: Some(2000), message: text, .. } if text.contains("slow down"))
    );
}

/// A project of 20 pages, which has every server that is requested by id.
fn large() -> Stage {
    let page = |number: usize| {
        let mut page = json!({"servers": [{"id": format!("other-{number}"), "name": "other", "status": "ACTIVE"}]});
        if number < 19 {
            let href = format!("http://nova.test/v2.1/servers/detail?limit=500&marker=page-{number}");
            page["servers_links"] = json!([{"rel": "next", "href": href}]);
        }
        move || FakeAnswer::json(200, &page)
    };
    let stage = Stage::new("").always("GET", "/servers/detail?limit=500", page(0));
    let stage = (1..20).fold(stage, |stage, number| {
        stage.always("GET", &format!("marker=page-{}", number - 1), page(number))
    });
    stage
        .always("GET", "/servers/s-", || answer(file!("server")))
        .always("GET", "/ports", || FakeAnswer::json(200, &json!({"ports": []})))
}

fn silent(numbers: std::ops::Range<usize>) -> Vec<NodeRef> {
    let node = |number| NodeRef::named(format!("n-{number}")).with_provider_id(format!("openstack:///s-{number}"));
    numbers.map(node).collect()
}

#[test]
fn silent_nodes_of_a_large_project_do_not_list_it_again() {
    let stage = large();
    // How large it is, is not known yet.
    stage.provider().lookup(&silent(0..4)).unwrap();
    let pages = |stage: &Stage| stage.sent("GET", "/servers/detail").len();
    assert_eq!(pages(&stage), 20);
    for _ in 0..5 {
        let before = stage.calls().len();
        stage.provider().lookup(&silent(0..4)).unwrap();
        let calls = &stage.calls()[before..];
        assert!(calls.len() <= 5, "four servers and their ports: {calls:#?}");
    }
    stage.provider().lookup(&silent(0..19)).unwrap();
    assert_eq!(pages(&stage), 20, "nineteen are fewer than twenty pages");
    stage.provider().lookup(&silent(0..20)).unwrap();
    assert_eq!(pages(&stage), 40);
}

#[test]
fn hundreds_of_nodes_of_a_huge_project_are_listed() {
    let stage = large();
    let state = stage.host.context().state();
    state.put("servers-pages", "1000", cloudwit_guest_sdk::state::Keep::WHILE_LOADED);
    stage.provider().lookup(&silent(0..100)).unwrap();
    assert_eq!(stage.sent("GET", "/servers/detail").len(), 20);
}
