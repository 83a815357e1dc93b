use super::*;
use crate::nsx::testing::{CONFIG, Manager, refused};

const ROUTES: &str = "/infra/tier-1s/t1/static-routes";

fn node(name: &str) -> NodeRef {
    let mut node = NodeRef::named(name);
    node.addresses = vec![
        Address::new(AddressKind::ExternalIp, "192.0.2.1"),
        Address::new(AddressKind::InternalIp, "10.0.0.1"),
        Address::new(AddressKind::InternalIp, "fd00::1"),
    ];
    node
}

fn wanted(destination: &str) -> NewRoute {
    NewRoute {
        name_hint: "uid-1".into(),
        destination: destination.into(),
        node: node("one"),
    }
}

fn create(provider: &Vsphere, route: NewRoute, token: Option<&str>) -> Result<(), Failure> {
    let tokens = RouteTokens {
        create: vec![token.map(str::to_owned)],
        delete: Vec::new(),
    };
    provider.apply(&[route], &[], &tokens).unwrap().created.remove(0)
}

fn token(result: Result<(), Failure>) -> String {
    match result.unwrap_err().kind {
        FailureKind::Pending(token) => token,
        other => panic!("{other:?}"),
    }
}

#[test]
fn route_is_upstreams_and_waits_until_it_is_realized() {
    let (host, manager) = Manager::start(CONFIG);
    let provider: Vsphere = host.provider();
    manager.state("static-routes", "UNREALIZED");
    let waits = token(create(&provider, wanted("10.244.1.0/24"), None));
    let route = manager.one(ROUTES);
    assert_eq!(
        (
            text(&route, "id"),
            text(&route, "display_name"),
            text(&route, "network")
        ),
        ("uid-1_10.244.1.0_24", "c1_one_10.244.1.0/24", "10.244.1.0/24")
    );
    assert_eq!(route["next_hops"], json!([{ "ip_address": "10.0.0.1" }]));
    assert!(has_tags(&route, &[(CLUSTER, "c1"), (NODE, "one")]), "{route}");
    assert_eq!(token(create(&provider, wanted("10.244.1.0/24"), Some(&waits))), waits);
    manager.state("static-routes", "REALIZED");
    assert_eq!(create(&provider, wanted("10.244.1.0/24"), Some(&waits)), Ok(()));
    assert_eq!(manager.changes().len(), 1, "it is asked for once");
    manager.state("static-routes", "ERROR");
    let failure = create(&provider, wanted("10.244.1.0/24"), Some(&waits)).unwrap_err();
    assert!(
        failure.kind == FailureKind::Other && failure.message.contains("no room"),
        "{failure:?}"
    );
}

#[test]
fn route_of_ipv6_has_a_next_hop_of_its_family() {
    let (host, manager) = Manager::start(CONFIG);
    let provider: Vsphere = host.provider();
    token(create(&provider, wanted("fd00:1::/64"), None));
    let route = manager.one(ROUTES);
    assert_eq!(text(&route, "id"), "uid-1_fd00:1::_64");
    assert_eq!(route["next_hops"], json!([{ "ip_address": "fd00::1" }]));
    let mut without = wanted("10.244.1.0/24");
    without.node.addresses.clear();
    let failure = create(&provider, without, None).unwrap_err();
    assert_eq!(failure.kind, FailureKind::FailedPrecondition);
}

#[test]
fn routes_of_this_cluster_are_listed_and_deleted() {
    let (host, manager) = Manager::start(CONFIG);
    let provider: Vsphere = host.provider();
    for (id, cluster) in [("own", "c1"), ("other", "c2")] {
        manager.set(
            &format!("{ROUTES}/{id}"),
            json!({ "network": "10.244.1.0/24", "next_hops": [{ "ip_address": "10.0.0.1" }], "tags": tags([(CLUSTER, cluster), (NODE, "one")]) }),
        );
    }
    manager.set(&format!("{ROUTES}/by-hand"), json!({ "network": "10.9.0.0/16" }));
    let listed = provider.list().unwrap();
    let expected = Route {
        id: "own".into(),
        destination: "10.244.1.0/24".into(),
        node: Some("one".into()),
        next_hops: vec![Address::new(AddressKind::InternalIp, "10.0.0.1")],
        blackhole: false,
    };
    assert_eq!(listed.len(), 1);
    assert_eq!(format!("{:?}", listed[0]), format!("{expected:?}"));
    let deletes = |routes: &[Route]| provider.apply(&[], routes, &RouteTokens::none()).unwrap().deleted;
    assert_eq!(deletes(&listed), [Ok(())]);
    assert_eq!(deletes(&listed), [Ok(())], "gone is gone");
    assert_eq!(manager.all(ROUTES).len(), 2);
}

#[test]
fn unrealizable_route_is_blackhole_and_others_stand() {
    let (host, manager) = Manager::start(CONFIG);
    let provider: Vsphere = host.provider();
    for id in ["a", "b"] {
        let own = tags([(CLUSTER, "c1"), (NODE, "one")]);
        let route = json!({ "network": "10.244.1.0/24", "next_hops": [{ "ip_address": "10.0.0.1" }], "tags": own });
        manager.set(&format!("{ROUTES}/{id}"), route);
    }
    manager.state("static-routes/b", "ERROR");
    let nowhere = || {
        provider
            .list()
            .unwrap()
            .iter()
            .map(|route| route.blackhole)
            .collect::<Vec<_>>()
    };
    assert_eq!(nowhere(), [false, true]);
    let looks = || {
        let all = host.requests();
        all.iter()
            .filter(|request| request.url.contains("realized-entities"))
            .count()
    };
    assert_eq!(
        (nowhere(), looks()),
        (vec![false, true], 3),
        "one of them is asked about again"
    );
    manager.state("static-routes/b", "REALIZED");
    assert_eq!((nowhere(), nowhere(), looks()), (vec![false; 2], vec![false; 2], 4));
}

#[test]
fn one_refused_route_costs_no_other() {
    let (host, manager) = Manager::start(CONFIG);
    let provider: Vsphere = host.provider();
    manager.fails("PATCH", "10.244.1.0", refused(400, 503000, "limit"));
    let routes = [wanted("10.244.1.0/24"), wanted("10.244.2.0/24")];
    let created = provider.apply(&routes, &[], &RouteTokens::none()).unwrap().created;
    let kinds: Vec<FailureKind> = created.into_iter().map(|result| result.unwrap_err().kind).collect();
    assert_eq!(kinds[0], FailureKind::FailedPrecondition);
    assert!(matches!(kinds[1], FailureKind::Pending(_)), "{kinds:?}");
}
