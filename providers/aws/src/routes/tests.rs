//! Routes, with moto's answers.

use std::rc::Rc;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost};

use crate::Aws;
use crate::testing::{
    CONFIG, EC2, NOW, actions, describe, host, instance_ids, modified, no_route_tables, node, refusal, route_created,
    route_exists, route_tables, route_unknown, serve,
};

fn table_id() -> &'static str {
    route_tables()
        .split("<routeTableId>")
        .nth(1)
        .unwrap()
        .split('<')
        .next()
        .unwrap()
}

/// A cluster with a Node for each of these instances.
fn with_nodes(ids: &[&str]) -> FakeHost {
    let host = host();
    let nodes = ids.iter().enumerate().map(|(number, id)| ClusterNode {
        ref_: node(&format!("node-{number}"), &format!("aws:///us-east-1a/{id}")),
        labels: Vec::new(),
        pod_cidrs: Vec::new(),
    });
    host.view(nodes.collect(), Vec::new());
    host
}

fn wanted(name: &str, id: &str, destination: &str) -> NewRoute {
    NewRoute {
        name_hint: "uid".into(),
        destination: destination.into(),
        node: node(name, &format!("aws:///us-east-1a/{id}")),
    }
}

fn existing(destination: &str) -> Route {
    Route {
        id: format!("test-{destination}"),
        destination: destination.into(),
        node: None,
        next_hops: Vec::new(),
        blackhole: false,
    }
}

fn listed(host: &FakeHost) -> Vec<(String, Option<String>, bool)> {
    let routes = host.provider::<Aws>().list().unwrap();
    routes
        .into_iter()
        .map(|route| (route.destination, route.node, route.blackhole))
        .collect()
}

#[test]
fn only_cluster_machine_routes_are_listed_by_node_name() {
    let ids = instance_ids();
    let host = with_nodes(&[ids[0]]);
    serve(&host);
    // 10.244.9.0/24 leads to an instance that is neither a Node nor tagged: a foreign appliance.
    assert_eq!(listed(&host), [("10.244.0.0/24".into(), Some("node-0".into()), false)]);
    let id = host.provider::<Aws>().list().unwrap().remove(0).id;
    assert_eq!(id, "test-10.244.0.0/24");
}

#[test]
fn the_route_of_a_machine_whose_node_is_gone_may_go() {
    let host = with_nodes(&[instance_ids()[4]]);
    serve(&host);
    let expected = [
        ("10.244.0.0/24".into(), None, false),
        ("10.244.9.0/24".into(), Some("node-0".into()), false),
    ];
    assert_eq!(listed(&host), expected);
}

#[test]
fn when_all_machines_are_nodes_listing_is_one_call() {
    let ids = instance_ids();
    let host = with_nodes(&[ids[0], ids[4]]);
    serve(&host);
    assert_eq!(listed(&host).len(), 2);
    assert_eq!(actions(&host), ["DescribeRouteTables"]);
}

#[test]
fn a_dead_route_is_a_black_hole() {
    let host = with_nodes(&[instance_ids()[0], instance_ids()[4]]);
    let at = format!("{}</instanceId><origin>CreateRoute</origin><state>", instance_ids()[4]);
    let dead = route_tables().replace(&(at.clone() + "active"), &(at + "blackhole"));
    host.expect("POST", EC2).answers_xml(200, &dead);
    assert_eq!(listed(&host)[1], ("10.244.9.0/24".into(), None, true));
}

#[test]
fn without_the_view_of_nodes_nothing_is_guessed() {
    let host = host();
    serve(&host);
    assert!(matches!(
        host.provider::<Aws>().list(),
        Err(Failure {
            kind: FailureKind::Denied,
            ..
        })
    ));
}

#[test]
fn the_table_is_the_configured_one_or_the_only_one_with_the_tag() {
    let host = with_nodes(&[]);
    host.expect("POST", EC2)
        .with_fields(&[
            ("Filter.1.Name", "tag-key"),
            ("Filter.1.Value.1", "kubernetes.io/cluster/test"),
            ("Filter.1.Value.2", "KubernetesCluster"),
        ])
        .answers_xml(200, no_route_tables());
    let none = host.provider::<Aws>().list().unwrap_err();
    assert!(
        matches!(&none, Failure { kind: FailureKind::Invalid, message: text, .. } if text.contains("kubernetes.io/cluster/test") && text.contains("RouteTableID")),
        "{none:?}"
    );

    let item = route_tables()
        .split_once("<routeTableSet>")
        .unwrap()
        .1
        .split_once("</routeTableSet>")
        .unwrap()
        .0;
    let twice = route_tables().replace(item, &(item.to_owned() + item));
    host.expect("POST", EC2).answers_xml(200, &twice);
    let several = host.provider::<Aws>().list().unwrap_err();
    assert!(
        matches!(&several, Failure { kind: FailureKind::Invalid, message: text, .. } if text.contains(table_id())),
        "{several:?}"
    );

    let others = route_tables().replace("cluster/test", "cluster/other");
    host.expect("POST", EC2).answers_xml(200, &others);
    assert!(host.provider::<Aws>().list().is_err());

    host.config(CONFIG.to_owned() + "RouteTableID = rtb-7\n");
    host.expect("POST", EC2)
        .with_fields(&[("Filter.1.Name", "route-table-id"), ("Filter.1.Value.1", "rtb-7")])
        .answers_xml(200, no_route_tables());
    assert!(
        matches!(host.provider::<Aws>().list(), Err(Failure { kind: FailureKind::NotFound, message: text, .. }) if text.contains("rtb-7"))
    );
}

#[test]
fn a_new_route_turns_the_check_of_addresses_off_and_then_comes() {
    let host = host();
    serve(&host);
    let id = instance_ids()[0];
    let outcome = host
        .provider::<Aws>()
        .apply(&[wanted("n", id, "10.244.3.0/24")], &[], &RouteTokens::none())
        .unwrap();
    assert_eq!(outcome.created, [Ok(())]);
    assert_eq!(
        actions(&host),
        [
            "DescribeRouteTables",
            "DescribeInstances",
            "ModifyInstanceAttribute",
            "CreateRoute"
        ]
    );
    let sent = host.requests();
    assert_eq!(sent[2].field("SourceDestCheck.Value").as_deref(), Some("false"));
    let fields = ["RouteTableId", "DestinationCidrBlock", "InstanceId"].map(|name| sent[3].field(name).unwrap());
    assert_eq!(fields, [table_id(), "10.244.3.0/24", id]);
}

#[test]
fn what_is_there_already_is_not_done_again() {
    let host = host();
    host.serve(|request| match request.field("Action").as_deref() {
        Some("DescribeInstances") => FakeAnswer::xml(
            200,
            &crate::testing::instances().replace("<sourceDestCheck>true", "<sourceDestCheck>false"),
        ),
        Some("DescribeRouteTables") => FakeAnswer::xml(200, route_tables()),
        other => panic!("{other:?}"),
    });
    let outcome = host
        .provider::<Aws>()
        .apply(
            &[wanted("n", instance_ids()[0], "10.244.0.0/24")],
            &[],
            &RouteTokens::none(),
        )
        .unwrap();
    assert_eq!(outcome.created, [Ok(())]);
}

#[test]
fn a_dead_route_in_the_way_is_deleted_first() {
    let host = host();
    let at = format!("{}</instanceId><origin>CreateRoute</origin><state>", instance_ids()[0]);
    let dead = route_tables().replace(&(at.clone() + "active"), &(at + "blackhole"));
    host.serve(move |request| match request.field("Action").as_deref() {
        Some("DescribeRouteTables") => FakeAnswer::xml(200, &dead),
        Some("DescribeInstances") => describe(request),
        Some("DeleteRoute") => FakeAnswer::xml(200, crate::testing::route_deleted()),
        Some("CreateRoute") => FakeAnswer::xml(200, route_created()),
        _ => FakeAnswer::xml(200, modified()),
    });
    let outcome = host
        .provider::<Aws>()
        .apply(
            &[wanted("n", instance_ids()[1], "10.244.0.0/24")],
            &[],
            &RouteTokens::none(),
        )
        .unwrap();
    assert_eq!(outcome.created, [Ok(())]);
    assert_eq!(
        actions(&host)[2..],
        ["ModifyInstanceAttribute", "DeleteRoute", "CreateRoute"]
    );
}

#[test]
fn deletions_come_first_and_what_is_gone_is_deleted() {
    let host = host();
    host.serve(|request| {
        match (
            request.field("Action").as_deref(),
            request.field("DestinationCidrBlock").as_deref(),
        ) {
            (Some("DeleteRoute"), Some("10.244.9.0/24")) => FakeAnswer::xml(400, route_unknown()),
            (Some("DeleteRoute"), _) => FakeAnswer::xml(200, crate::testing::route_deleted()),
            (Some("DescribeRouteTables"), _) => FakeAnswer::xml(200, route_tables()),
            (Some("DescribeInstances"), _) => describe(request),
            (Some("CreateRoute"), _) => FakeAnswer::xml(200, route_created()),
            _ => FakeAnswer::xml(200, modified()),
        }
    });
    let delete = ["10.244.0.0/24", "10.244.9.0/24", "10.99.0.0/24", "0.0.0.0/0"].map(existing);
    let outcome = host
        .provider::<Aws>()
        .apply(
            &[wanted("n", instance_ids()[1], "10.244.0.0/24")],
            &delete,
            &RouteTokens::none(),
        )
        .unwrap();
    assert_eq!(outcome.deleted[..3], [Ok(()), Ok(()), Ok(())]);
    assert!(
        matches!(&outcome.deleted[3], Err(Failure { kind: FailureKind::Conflict, message: text, .. }) if text.contains("0.0.0.0/0"))
    );
    assert_eq!(outcome.created, [Ok(())]);
    let deleted = actions(&host).iter().filter(|action| *action == "DeleteRoute").count();
    assert_eq!(deleted, 2, "what was not in the table was not asked for");
}

#[test]
fn each_route_has_its_own_answer() {
    let host = host();
    host.serve(|request| {
        match (
            request.field("Action").as_deref(),
            request.field("DestinationCidrBlock").as_deref(),
        ) {
            (Some("CreateRoute"), Some("10.244.4.0/24")) => FakeAnswer::xml(400, route_exists()),
            (Some("CreateRoute"), Some("10.244.5.0/24")) => {
                FakeAnswer::xml(400, &refusal("RouteLimitExceeded", "50 are enough"))
            }
            (Some("CreateRoute"), _) => FakeAnswer::xml(200, route_created()),
            (Some("DescribeRouteTables"), _) => FakeAnswer::xml(200, route_tables()),
            (Some("DescribeInstances"), _) => describe(request),
            _ => FakeAnswer::xml(200, modified()),
        }
    });
    let id = instance_ids()[0];
    let create = [
        wanted("taken", id, "10.244.4.0/24"),
        wanted("full", id, "10.244.5.0/24"),
        wanted("gone", "i-0aaaaaaaaaaaaaaaa", "10.244.6.0/24"),
        wanted("fine", id, "fd00:1::/64"),
        NewRoute {
            node: NodeRef::named("unborn"),
            ..wanted("", id, "10.244.8.0/24")
        },
    ];
    let created = host
        .provider::<Aws>()
        .apply(&create, &[], &RouteTokens::none())
        .unwrap()
        .created;
    assert!(
        matches!(
            created[0],
            Err(Failure {
                kind: FailureKind::AlreadyExists,
                ..
            })
        ),
        "{:?}",
        created[0]
    );
    assert!(
        matches!(&created[1], Err(Failure { kind: FailureKind::Exhausted, message: text, .. }) if text.contains("RouteLimitExceeded")),
        "{:?}",
        created[1]
    );
    assert!(
        matches!(&created[2], Err(Failure { kind: FailureKind::NotFound, message: text, .. }) if text.contains("Node gone")),
        "{:?}",
        created[2]
    );
    assert_eq!(created[3], Ok(()));
    assert!(
        matches!(&created[4], Err(Failure { kind: FailureKind::Invalid, message: text, .. }) if text.contains("Node unborn")),
        "{:?}",
        created[4]
    );
    let last = host.requests().pop().unwrap();
    assert_eq!(last.field("DestinationIpv6CidrBlock").as_deref(), Some("fd00:1::/64"));
}

#[test]
fn when_aws_reports_slow_down_nothing_more_is_requested() {
    let host = host();
    host.serve(|request| match request.field("Action").as_deref() {
        Some("DescribeRouteTables") => FakeAnswer::xml(200, route_tables()),
        Some("DescribeInstances") => describe(request),
        _ => FakeAnswer::new(
            503,
            &[("retry-after", "3")],
            &refusal("RequestLimitExceeded", "slow down"),
        ),
    });
    let id = instance_ids()[0];
    let create = [wanted("a", id, "10.244.3.0/24"), wanted("b", id, "10.244.4.0/24")];
    let created = host
        .provider::<Aws>()
        .apply(&create, &[], &RouteTokens::none())
        .unwrap()
        .created;
    for answer in created {
        assert!(
            matches!(
                &answer,
                Err(Failure {
                    kind: FailureKind::RateLimited,
                    retry_after: Some(3_000),
                    ..
                })
            ),
            "{answer:?}"
        );
    }
    assert_eq!(host.requests().len(), 3);
}

/// What becomes of three routes when the first one takes so many seconds.
fn after_seconds(call: u64, seconds: u64) -> Vec<Result<(), Failure>> {
    let host = Rc::new(host());
    host.call_seconds(call);
    let clock = Rc::downgrade(&host);
    let aws = host.provider::<Aws>();
    let id = instance_ids()[0];
    let create: Vec<NewRoute> = (0..3)
        .map(|number| wanted("n", id, &format!("10.244.{}.0/24", 20 + number)))
        .collect();
    host.serve(move |request| match request.field("Action").as_deref() {
        Some("DescribeRouteTables") => FakeAnswer::xml(200, route_tables()),
        Some("DescribeInstances") => describe(request),
        Some("CreateRoute") => {
            clock.upgrade().unwrap().now(NOW + seconds);
            FakeAnswer::xml(200, route_created())
        }
        _ => FakeAnswer::xml(200, modified()),
    });
    aws.apply(&create, &[], &RouteTokens::none()).unwrap().created
}

#[test]
fn a_batch_that_takes_too_long_is_left_over_for_the_next_call() {
    let created = after_seconds(60, 45);
    assert_eq!(created[0], Ok(()));
    assert!(
        matches!(
            created[1],
            Err(Failure {
                kind: FailureKind::RateLimited,
                ..
            })
        ) && matches!(
            created[2],
            Err(Failure {
                kind: FailureKind::RateLimited,
                ..
            })
        )
    );
}

#[test]
fn batch_ends_at_two_thirds_of_the_calls_time() {
    for (call, seconds, continues) in [
        (60, 39, true),
        (60, 40, false),
        (30, 19, true),
        (30, 20, false),
        (600, 399, true),
        (600, 400, false),
    ] {
        assert_eq!(after_seconds(call, seconds)[1].is_ok(), continues, "{call} {seconds}");
    }
}

#[test]
fn nothing_to_do_is_no_call() {
    let host = host();
    let outcome = host.provider::<Aws>().apply(&[], &[], &RouteTokens::none()).unwrap();
    assert!(outcome.created.is_empty() && outcome.deleted.is_empty() && host.requests().is_empty());
}
