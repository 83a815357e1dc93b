//! Rows of upstream's `controllers/route/route_controller_test.go` that are decisions, and the weak spots R3 to R7.

use super::*;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde_json::json;

const V4: &str = "10.120.0.0/16";
const V6: &str = "fd00:120::/32";

fn nets(texts: &[&str]) -> Vec<IpNet> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn node(name: &str, ranges: &[&str]) -> Node {
    let address = format!("192.168.0.{}", name.bytes().last().unwrap() - b'0');
    serde_json::from_value(json!({
        "metadata": { "name": name, "uid": format!("uid-{name}") },
        "spec": { "podCIDRs": ranges },
        "status": { "addresses": [{ "type": "InternalIP", "address": address }, { "type": "Hostname", "address": name }] },
    }))
    .unwrap()
}

fn route(node: &str, destination: &str) -> Route {
    Route {
        id: format!("{node}:{destination}"),
        destination: destination.into(),
        node: (!node.is_empty()).then(|| node.into()),
        next_hops: Vec::new(),
        blackhole: false,
    }
}

fn via(mut route: Route, hop: &str) -> Route {
    route.next_hops = vec![cloudwit_model::Address::new(
        cloudwit_model::AddressKind::InternalIP,
        hop,
    )];
    route
}

fn blackhole(destination: &str) -> Route {
    Route {
        blackhole: true,
        ..route("", destination)
    }
}

/// A cloud that does what it is told; answers the routes it ends with as `node destination`.
fn outcome(cluster: &[&str], nodes: &[Node], routes: &[Route]) -> Vec<String> {
    let plan = plan(&nets(cluster), nodes, routes);
    let mut cloud: Vec<Route> = routes.to_vec();
    for change in &plan.changes {
        cloud.retain(|route| !change.delete.contains(route));
        cloud.extend(change.create.iter().map(|new| {
            let route = route(&new.node.name, &new.destination);
            let hop = new.node.addresses.iter().find(|address| address.kind.is_ip()).unwrap();
            via(route, &hop.value)
        }));
    }
    let mut ends: Vec<String> = cloud
        .iter()
        .map(|route| format!("{} {}", route.node.as_deref().unwrap_or("-"), route.destination))
        .collect();
    ends.sort();
    let again = super::plan(&nets(cluster), nodes, &cloud);
    assert_eq!(again.changes, [], "a second pass has nothing left to do");
    ends
}

fn dual() -> [Node; 2] {
    [
        node("n1", &["10.120.0.0/24", "fd00:120:0:1::/64"]),
        node("n2", &["10.120.1.0/24", "fd00:120:0:2::/64"]),
    ]
}

fn single() -> [Node; 2] {
    [node("n1", &["10.120.0.0/24"]), node("n2", &["10.120.1.0/24"])]
}

const FOUR: [&str; 4] = [
    "n1 10.120.0.0/24",
    "n1 fd00:120:0:1::/64",
    "n2 10.120.1.0/24",
    "n2 fd00:120:0:2::/64",
];
const TWO: [&str; 2] = ["n1 10.120.0.0/24", "n2 10.120.1.0/24"];

fn four_routes() -> Vec<Route> {
    vec![
        route("n1", "10.120.0.0/24"),
        route("n1", "fd00:120:0:1::/64"),
        route("n2", "10.120.1.0/24"),
        route("n2", "fd00:120:0:2::/64"),
    ]
}

fn two_routes() -> Vec<Route> {
    vec![route("n1", "10.120.0.0/24"), route("n2", "10.120.1.0/24")]
}

fn changes(cluster: &[&str], nodes: &[Node], routes: &[Route]) -> Vec<(String, usize, bool)> {
    let plan = plan(&nets(cluster), nodes, routes);
    plan.changes
        .iter()
        .map(|change| (change.network.to_string(), change.delete.len(), change.create.is_some()))
        .collect()
}

#[test]
fn dual_stack_routes_converge() {
    let old = |index: usize| via(four_routes()[index].clone(), "192.168.9.9");
    for (routes, why) in [
        (vec![], "none there"),
        (four_routes(), "all there"),
        ((0..4).map(old).collect(), "the addresses of the nodes have changed"),
        (
            vec![
                route("n2", "10.120.0.0/24"),
                route("n2", "fd00:120:0:1::/64"),
                route("n1", "10.120.1.0/24"),
                route("n1", "fd00:120:0:2::/64"),
            ],
            "each at the other node",
        ),
        (
            vec![route("n1", "10.120.0.0/24"), route("n2", "fd00:120:0:2::/64")],
            "some missing",
        ),
        (
            [
                four_routes(),
                vec![route("gone", "10.120.9.0/24"), route("gone", "fd00:120:0:9::/64")],
            ]
            .concat(),
            "too many, of an unknown node",
        ),
    ] {
        assert_eq!(outcome(&[V4, V6], &dual(), &routes), FOUR, "{why}");
    }
    assert_eq!(
        changes(&[V4, V6], &dual(), &four_routes()),
        [],
        "all there: nothing is done"
    );
    assert_eq!(
        changes(&[V4, V6], &dual(), &(0..4).map(old).collect::<Vec<_>>()).len(),
        4,
        "old addresses: all are replaced"
    );
}

#[test]
fn single_stack_routes_converge() {
    for (routes, why) in [
        (two_routes(), "all there"),
        (
            two_routes()
                .into_iter()
                .map(|route| via(route, "192.168.9.9"))
                .collect(),
            "addresses changed",
        ),
        (vec![route("n1", "10.120.0.0/24")], "one missing"),
        (vec![], "none there"),
        (
            [
                two_routes(),
                vec![route("x", "10.120.3.0/24"), route("y", "10.120.4.0/24")],
            ]
            .concat(),
            "too many",
        ),
        (
            vec![route("n1", "10.120.0.0/24"), route("x", "10.120.1.0/24")],
            "one at an unknown node",
        ),
        (
            [two_routes(), vec![blackhole("10.120.2.0/24")]].concat(),
            "a blackhole in range",
        ),
    ] {
        assert_eq!(outcome(&[V4], &single(), &routes), TWO, "{why}");
    }
}

#[test]
fn a_node_without_ranges_gets_no_route_and_no_condition() {
    let nodes = [node("n1", &["10.120.0.0/24"]), node("n2", &[])];
    assert_eq!(outcome(&[V4], &nodes, &[]), ["n1 10.120.0.0/24"]);
    assert!(!plan(&nets(&[V4]), &nodes, &[]).nodes.contains_key("n2"));
}

#[test]
fn a_blackhole_out_of_range_is_left_alone() {
    let routes = [two_routes(), vec![blackhole("10.1.2.0/24")]].concat();
    assert_eq!(outcome(&[V4], &single(), &routes), ["- 10.1.2.0/24", TWO[0], TWO[1]]);
}

#[test]
fn the_same_range_twice_on_one_node_is_one_route() {
    assert_eq!(
        outcome(&[V4], &[node("n1", &["10.120.0.0/24", "10.120.0.0/24"])], &[]),
        ["n1 10.120.0.0/24"]
    );
}

#[test]
fn responsibility_needs_whole_route_inside_one_range() {
    for (cluster, inside, outside) in [
        (
            "10.244.0.0/16",
            &["10.244.0.0/24", "10.244.10.0/24", "10.244.255.0/24"][..],
            &["10.224.0.0/24", "10.0.10.0/24", "10.255.255.0/24"][..],
        ),
        (
            "10.244.0.0/14",
            &["10.244.0.0/24", "10.247.255.0/24"],
            &["10.248.0.0/24", "10.243.255.0/24"],
        ),
        ("a00:100::/10", &["a00:100::/24"], &["b00:100::/24"]),
        // Upstream is responsible for the first of these, since its first address is inside.
        ("10.120.0.0/16", &["10.120.0.0/16"], &["10.120.0.0/15", "10.0.0.0/8"]),
    ] {
        for (routes, expected) in [(inside, true), (outside, false)] {
            for route in routes {
                assert_eq!(
                    responsible(&nets(&[cluster]), &route.parse().unwrap()),
                    expected,
                    "{route} in {cluster}"
                );
            }
        }
    }
}

#[test]
fn nothing_outside_of_the_clusters_ranges_is_made_or_deleted() {
    let nodes = [node("n1", &["10.120.0.0/24"]), node("n2", &["10.7.0.0/24"])];
    let routes = [
        route("n1", "10.120.0.0/24"),
        route("x", "10.120.0.0/15"),
        route("n1", "10.7.1.0/24"),
    ];
    let plan = plan(&nets(&[V4]), &nodes, &routes);
    assert_eq!(plan.changes, []);
    assert_eq!(plan.refused.len(), 1);
    assert_eq!(
        (plan.refused[0].node.as_str(), plan.refused[0].range.as_str()),
        ("n2", "10.7.0.0/24")
    );
    assert_eq!(
        plan.refused[0].reason,
        "it is outside of the cluster's ranges 10.120.0.0/16 (--cluster-cidr)"
    );
    assert_eq!(
        plan.routes_created(&BTreeSet::new()),
        [("n1".into(), true), ("n2".into(), false)].into()
    );
}

#[test]
fn an_existing_route_outside_of_the_ranges_serves_its_node() {
    let nodes = [node("n1", &["10.7.0.0/24"])];
    let plan = plan(&nets(&[V4]), &nodes, &[route("n1", "10.7.0.0/24")]);
    assert_eq!((plan.changes.len(), plan.refused.len()), (0, 0));
    assert_eq!(plan.routes_created(&BTreeSet::new()), [("n1".into(), true)].into());
}

#[test]
fn ranges_are_compared_as_networks_not_as_text() {
    let nodes = [node("n1", &["fd00:120:0:1::/64", "10.120.0.0/24"])];
    let routes = [
        route("n1", "fd00:0120:0000:0001:0:0:0:0/64"),
        route("n1", "10.120.0.5/24"),
    ];
    assert_eq!(changes(&[V4, V6], &nodes, &routes), []);
}

#[test]
fn range_moving_to_other_node_is_one_delete_and_create() {
    let nodes = [node("n1", &[]), node("n2", &["10.120.0.0/24"])];
    let plan = plan(&nets(&[V4]), &nodes, &[route("n1", "10.120.0.0/24")]);
    assert_eq!(plan.changes.len(), 1);
    assert_eq!(plan.changes[0].delete, [route("n1", "10.120.0.0/24")]);
    assert_eq!(plan.changes[0].create.as_ref().unwrap().node.name, "n2");
    assert_eq!(plan.changes[0].create.as_ref().unwrap().name_hint, "uid-n2");
}

#[test]
fn a_blackhole_at_a_nodes_range_is_replaced_in_the_same_pass() {
    let dead = Route {
        blackhole: true,
        ..route("n1", "10.120.0.0/24")
    };
    let nodes = [node("n1", &["10.120.0.0/24"])];
    assert_eq!(
        changes(&[V4], &nodes, std::slice::from_ref(&dead)),
        [("10.120.0.0/24".into(), 1, true)]
    );
    let alive = route("n1", "10.120.0.0/24");
    assert_eq!(
        changes(&[V4], &nodes, &[dead, alive]),
        [("10.120.0.0/24".into(), 1, false)],
        "beside a living route it only goes"
    );
}

fn waiting(name: &str, ranges: &[&str]) -> Node {
    let mut node = node(name, ranges);
    let taint = k8s_openapi::api::core::v1::Taint {
        key: UNINITIALIZED.into(),
        effect: "NoSchedule".into(),
        ..Default::default()
    };
    node.spec.as_mut().unwrap().taints = Some(vec![taint]);
    node
}

#[test]
fn waiting_node_gets_no_route_and_no_condition() {
    let nodes = [waiting("n1", &["10.120.0.0/24"]), node("n2", &["10.120.1.0/24"])];
    let plan = plan(&nets(&[V4]), &nodes, &[]);
    let networks: Vec<IpNet> = plan.changes.iter().map(|change| change.network).collect();
    assert_eq!(networks, nets(&["10.120.1.0/24"]));
    assert_eq!(plan.routes_created(&BTreeSet::new()), [("n2".to_owned(), true)].into());
    assert!(
        concerns_routes(&nodes[0], &node("n1", &["10.120.0.0/24"])),
        "the end of the wait is acted on"
    );
}

#[test]
fn waiting_node_keeps_route_before_addresses_return() {
    let nodes = [waiting("n1", &["10.120.0.0/24"])];
    for kept in [
        route("n1", "10.120.0.0/24"),
        via(route("n1", "10.120.0.0/24"), "192.168.7.7"),
    ] {
        let plan = plan(&nets(&[V4]), &nodes, &[kept]);
        assert_eq!((plan.changes, plan.nodes.len()), (vec![], 1));
    }
    for in_the_way in [
        route("gone", "10.120.0.0/24"),
        blackhole("10.120.0.0/24"),
        route("n1", "10.120.9.0/24"),
    ] {
        let plan = changes(&[V4], &nodes, std::slice::from_ref(&in_the_way));
        assert_eq!(
            plan,
            [(in_the_way.destination, 1, false)],
            "what leads nowhere goes all the same"
        );
    }
}

#[test]
fn a_route_is_kept_while_its_node_has_all_its_next_hops() {
    let nodes = [node("n1", &["10.120.0.0/24"])];
    let good = via(route("n1", "10.120.0.0/24"), "192.168.0.1");
    assert_eq!(changes(&[V4], &nodes, &[good]), []);
    let old = via(route("n1", "10.120.0.0/24"), "192.168.0.7");
    assert_eq!(changes(&[V4], &nodes, &[old]), [("10.120.0.0/24".into(), 1, true)]);
}

#[test]
fn node_with_the_route_keeps_a_shared_range_else_the_older() {
    let aged = |mut node: Node, second| {
        node.metadata.creation_timestamp = Some(Time(Timestamp::from_second(second).unwrap()));
        node
    };
    let nodes = [
        aged(node("n1", &["10.120.0.0/24"]), 200),
        aged(node("n2", &["10.120.0.0/24"]), 100),
    ];
    let fresh = plan(&nets(&[V4]), &nodes, &[]);
    assert_eq!(fresh.changes[0].create.as_ref().unwrap().node.name, "n2");
    assert_eq!(fresh.refused[0].reason, "node n2 has the same range");
    assert_eq!(
        fresh.routes_created(&BTreeSet::new()),
        [("n1".into(), false), ("n2".into(), true)].into()
    );
    let settled = plan(&nets(&[V4]), &nodes, &[route("n1", "10.120.0.0/24")]);
    assert_eq!(settled.changes, []);
    assert_eq!(settled.refused[0].node, "n2");
}

#[test]
fn invalid_cidr_is_refused_and_malformed_route_ignored() {
    let plan = plan(&nets(&[V4]), &[node("n1", &["nonsense"])], &[route("n1", "nonsense")]);
    assert_eq!(plan.changes, []);
    assert_eq!(plan.refused[0].reason, "it is not a CIDR");
    assert_eq!(plan.routes_created(&BTreeSet::new()), [("n1".into(), false)].into());
}

#[test]
fn conditions_follow_the_outcome_of_the_pass() {
    let nodes = [
        node("n1", &["10.120.0.0/24", "fd00:120:0:1::/64"]),
        node("n2", &["10.120.1.0/24"]),
        node("n3", &[]),
        node("n4", &[]),
    ];
    let routes = [route("n2", "10.120.1.0/24"), route("n3", "10.120.3.0/24")];
    let plan = plan(&nets(&[V4, V6]), &nodes, &routes);
    let created = |missing: &[&str]| plan.routes_created(&nets(missing).into_iter().collect());
    let expected = |n1| BTreeMap::from([("n1".to_owned(), n1), ("n2".to_owned(), true), ("n3".to_owned(), false)]);
    assert_eq!(
        created(&[]),
        expected(true),
        "n3 has a route but no range; n4 has neither and is left alone"
    );
    assert_eq!(
        created(&["fd00:120:0:1::/64"]),
        expected(false),
        "one of two creations failed"
    );
}

#[test]
fn batches_keep_a_change_whole_and_near_the_size() {
    let nodes: Vec<Node> = (0..10)
        .map(|index| node(&format!("n{index}"), &[&format!("10.120.{index}.0/24")]))
        .collect();
    let stale: Vec<Route> = (0..10)
        .map(|index| route("x", &format!("10.120.{index}.0/24")))
        .collect();
    let plan = plan(&nets(&[V4]), &nodes, &stale);
    let sizes = |size| {
        batches(&plan.changes, size)
            .iter()
            .map(|batch| batch.len())
            .collect::<Vec<_>>()
    };
    assert_eq!(sizes(100), [10]);
    assert_eq!(sizes(8), [4, 4, 2]);
    assert_eq!(sizes(1), [1; 10], "a change of two operations is not cut");
    assert!(batches(&[], 8).is_empty());
}

#[test]
fn only_ranges_and_addresses_of_a_node_concern_routes() {
    let before = node("n1", &["10.120.0.0/24"]);
    let mut other_address = before.clone();
    other_address.status.as_mut().unwrap().addresses.as_mut().unwrap()[0].address = "192.168.0.9".into();
    assert!(concerns_routes(&before, &other_address));
    assert!(concerns_routes(&before, &node("n1", &["10.120.1.0/24"])));
    assert!(concerns_routes(&node("n1", &[]), &before));
    assert!(!concerns_routes(&before, &before.clone()));
    let mut labelled = before.clone();
    labelled.status.as_mut().unwrap().conditions = Some(Vec::new());
    labelled.labels = [("a", "b")].into_iter().collect();
    assert!(!concerns_routes(&before, &labelled));
}

#[test]
fn nodes_of_a_provider_without_routes_are_left_to_others() {
    let network: IpNet = "10.0.1.0/24".parse().unwrap();
    let create = |name: &str| {
        let node = NodeRef {
            name: name.into(),
            ..NodeRef::default()
        };
        Some(NewRoute {
            name_hint: name.into(),
            destination: network.to_string(),
            node,
        })
    };
    let stale = Route {
        id: "r".into(),
        destination: network.to_string(),
        node: None,
        next_hops: Vec::new(),
        blackhole: true,
    };
    let change = |create, delete| RouteChange {
        network,
        delete,
        create,
    };
    let ours = change(create("ours"), vec![stale.clone()]);
    let leftover = change(None, vec![stale.clone()]);
    let theirs = change(create("theirs"), vec![stale]);
    let mut plan = RoutePlan {
        changes: vec![ours.clone(), theirs, leftover.clone()],
        nodes: ["ours", "theirs"]
            .map(|name| (name.to_owned(), BTreeSet::from([network])))
            .into(),
        ..RoutePlan::default()
    };
    plan.leave_to_others(&BTreeSet::from(["ours"]));
    assert_eq!(plan.changes, [ours, leftover]);
    assert_eq!(
        plan.routes_created(&BTreeSet::new()).into_keys().collect::<Vec<_>>(),
        ["ours"]
    );
}
