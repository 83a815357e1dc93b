use cloudwit_guest_sdk::testing::FakeHost;
use serde_json::{Value, json};

use super::*;
use crate::testing::{host, parameter, provider, refused, said};

fn entry(table: &str, destination: &str, hop: &str) -> Value {
    json!({
        "RouteTableId": table, "DestinationCidrBlock": destination, "NextHops": { "NextHop": [{ "NextHopId": hop, "NextHopType": "Instance" }] },
    })
}

fn node(name: &str, id: &str, pods: &str) -> ClusterNode {
    ClusterNode {
        ref_: NodeRef::named(name).with_provider_id(format!("cn-test.{id}")),
        labels: Vec::new(),
        pod_cidrs: vec![pods.into()],
    }
}

fn two_tables(entries: fn(&str) -> Vec<Value>) -> FakeHost {
    let host = host(move |_, request| {
        let found = entries(&parameter(request, "RouteTableId").unwrap());
        said(json!({ "TotalCount": found.len(), "NextToken": "", "RouteEntrys": { "RouteEntry": found } }))
    });
    host.config(crate::testing::CONFIG.replace("\"region\"", "\"routeTableIDs\": \"t-1,t-2\", \"region\""));
    host.cluster("c", &["10.0.0.0/8"]).view(
        vec![node("one", "i-1", "10.1.0.0/24"), node("two", "i-2", "10.2.0.0/24")],
        Vec::new(),
    );
    host
}

#[test]
fn route_in_some_tables_is_missing_only_where_wanted() {
    let host = two_tables(|table| match table {
        "t-1" => vec![
            entry("t-1", "10.1.0.0/24", "i-1"),
            entry("t-1", "10.2.0.0/24", "i-2"),
            entry("t-1", "10.9.0.0/24", "i-9"),
            entry("t-1", "192.168.0.0/16", "i-1"),
        ],
        _ => vec![entry("t-2", "10.2.0.0/24", "i-2")],
    });
    let routes = provider(&host).list().unwrap();
    let shown: Vec<_> = routes
        .iter()
        .map(|route| (route.destination.as_str(), route.node.as_deref(), route.id.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            ("10.2.0.0/24", Some("two"), "i-2 t-1,t-2"),
            ("10.9.0.0/24", None, "i-9 t-1")
        ]
    );
}

#[test]
fn each_change_has_its_own_outcome() {
    let host = host(|action, request| match action {
        "DescribeRouteTableList" => said(json!({
            "TotalCount": 1, "RouterTableList": { "RouterTableListType": [{ "RouteTableId": "t", "RouteTableType": "System" }] },
        })),
        "DescribeRouteEntryList" => {
            said(json!({ "TotalCount": 1, "RouteEntrys": { "RouteEntry": [entry("t", "10.3.0.0/24", "i-3")] } }))
        }
        "CreateRouteEntries" => {
            assert_eq!(
                parameter(request, "RouteEntries.1.NextHopType").as_deref(),
                Some("Instance")
            );
            let failed = |range: &str, hop: &str, code: &str| json!({ "DstCidrBlock": range, "NextHop": hop, "FailedCode": code, "FailedMessage": "m" });
            said(json!({ "FailedRouteEntries": [
                failed("10.2.0.0/24", "i-2", "QuotaExceeded.RouteEntry"), failed("10.3.0.0/24", "i-3", "InvalidCIDRBlock.Duplicate"),
                failed("10.4.0.0/24", "i-4", "InvalidCIDRBlock.Duplicate"),
            ] }))
        }
        _ => said(
            json!({ "FailedRouteEntries": [{ "DstCidrBlock": "10.8.0.0/24", "NextHop": "i-8", "FailedCode": "InvalidRouteEntry.NotFound" }] }),
        ),
    });
    let new = |number: u8| NewRoute {
        name_hint: "n".into(),
        destination: format!("10.{number}.0.0/24"),
        node: NodeRef::named("n").with_provider_id(format!("cn-test.i-{number}")),
    };
    let old = Route {
        id: "i-8 t".into(),
        destination: "10.8.0.0/24".into(),
        node: None,
        next_hops: Vec::new(),
        blackhole: false,
    };
    let outcome = provider(&host)
        .apply(&[new(1), new(2), new(3), new(4)], &[old], &RouteTokens::none())
        .unwrap();
    assert_eq!(outcome.deleted, [Ok(())], "it is gone");
    let kinds: Vec<Option<FailureKind>> = outcome
        .created
        .into_iter()
        .map(|result| result.err().map(|failure| failure.kind))
        .collect();
    assert_eq!(
        kinds,
        [
            None,
            Some(FailureKind::Exhausted),
            None,
            Some(FailureKind::AlreadyExists)
        ],
        "to another hop it is no success"
    );
}

#[test]
fn one_bad_entry_costs_the_others_nothing() {
    let host = host(
        |action, request| match (action, parameter(request, "RouteEntries.1.DstCidrBlock").as_deref()) {
            ("DeleteRouteEntries", _) if parameter(request, "RouteEntries.2.DstCidrBlock").is_some() => {
                refused(400, "InvalidParameter")
            }
            ("DeleteRouteEntries", Some("10.1.0.0/24")) => said(json!({})),
            _ => refused(400, "InvalidParameter"),
        },
    );
    let old = |range: &str| Route {
        id: "i-1 t".into(),
        destination: range.into(),
        node: None,
        next_hops: Vec::new(),
        blackhole: false,
    };
    let outcome = provider(&host)
        .apply(&[], &[old("10.1.0.0/24"), old("odd")], &RouteTokens::none())
        .unwrap();
    assert!(outcome.deleted[0].is_ok() && outcome.deleted[1].is_err());
}
