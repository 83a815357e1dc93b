//! When the route controller lists, and which failed changes it still wants.

use super::*;
use cloudwit_model::{NewRoute, NodeRef, Route};

#[test]
fn lists_become_rarer_while_nothing_is_to_be_done() {
    let pauses = |period| [0, 1, 2, 3, 4, 5, 99].map(|quiet| list_pause(Duration::from_secs(period), quiet).as_secs());
    assert_eq!(pauses(10), [10, 20, 40, 80, 160, 300, 300]);
    assert_eq!(
        pauses(600),
        [600; 7],
        "never rarer than the operator wants, never more often"
    );
}

#[test]
fn a_failed_change_is_dropped_when_nodes_make_it_wrong() {
    let node = |uid: &str, range: &str| -> Arc<Node> {
        let node = serde_json::json!({ "metadata": { "name": "n1", "uid": uid }, "spec": { "podCIDRs": [range] } });
        Arc::new(serde_json::from_value(node).unwrap())
    };
    let network: IpNet = "10.0.1.0/24".parse().unwrap();
    let create = NewRoute {
        name_hint: "u1".into(),
        destination: network.to_string(),
        node: NodeRef {
            name: "n1".into(),
            ..NodeRef::default()
        },
    };
    let creation = RouteChange {
        network,
        delete: Vec::new(),
        create: Some(create),
    };
    assert!(still_wanted(&creation, |_| Some(node("u1", "10.0.1.0/24"))));
    assert!(!still_wanted(&creation, |_| None), "the Node is gone");
    let tainted = |_: &str| {
        let mut node = Arc::unwrap_or_clone(node("u1", "10.0.1.0/24"));
        let taint = k8s_openapi::api::core::v1::Taint {
            key: crate::node_view::UNINITIALIZED.into(),
            ..Default::default()
        };
        node.spec.as_mut().unwrap().taints = Some(vec![taint]);
        Some(Arc::new(node))
    };
    assert!(
        !still_wanted(&creation, tainted),
        "the Node waits for its initialisation"
    );
    assert!(
        !still_wanted(&creation, |_| Some(node("u2", "10.0.1.0/24"))),
        "another Node of that name"
    );
    assert!(
        !still_wanted(&creation, |_| Some(node("u1", "10.0.2.0/24"))),
        "another range"
    );

    let route = Route {
        id: "r".into(),
        destination: network.to_string(),
        node: Some("n1".into()),
        next_hops: Vec::new(),
        blackhole: false,
    };
    let mut deletion = RouteChange {
        network,
        delete: vec![route],
        create: None,
    };
    assert!(still_wanted(&deletion, |_| None));
    assert!(
        !still_wanted(&deletion, |_| Some(node("u1", "10.0.1.0/24"))),
        "the Node came back"
    );
    deletion.delete[0].blackhole = true;
    assert!(
        still_wanted(&deletion, |_| Some(node("u1", "10.0.1.0/24"))),
        "a blackhole serves nobody"
    );
}

fn because(configure: bool, ranges: &[&str]) -> Option<String> {
    let cluster_cidrs = ranges.iter().map(|range| range.parse().unwrap()).collect();
    not_started_because(&RouteOptions {
        configure,
        cluster_cidrs,
        ..RouteOptions::default()
    })
}

#[test]
fn it_starts_with_one_range_of_each_family_at_most() {
    assert_eq!(because(true, &["10.0.0.0/8"]), None);
    assert_eq!(because(true, &["10.0.0.0/8", "fd00::/48"]), None);
    assert_eq!(
        because(false, &["10.0.0.0/8"]).unwrap(),
        "--configure-cloud-routes is false"
    );
    assert!(because(true, &[]).unwrap().starts_with("--cluster-cidr is not set: "));
    let error = because(true, &["10.0.0.0/8", "11.0.0.0/8"]).unwrap();
    assert!(
        error.starts_with("--cluster-cidr=10.0.0.0/8,11.0.0.0/8 has more than one range of a family"),
        "{error}"
    );
    assert!(because(true, &["10.0.0.0/8", "fd00::/48", "fd01::/48"]).is_some());
}
