use cloudwit_guest_sdk::serde_json::Value;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost};

use super::*;

const API: &str = "https://gce.test/compute/v1";

fn host() -> FakeHost {
    let host = FakeHost::new();
    let config = json!({ "global": {
        "project-id": "p", "network-project-id": "shared", "local-zone": "us-central1-a", "network-name": "default", "token-url": "nil",
        "api-endpoint": API,
    }});
    host.config(config.to_string())
        .cluster("a-name-of-more-than-twenty-six-letters", &["10.0.0.0/8"]);
    host
}

fn node(name: &str) -> NodeRef {
    NodeRef::named(name).with_provider_id(format!("gce://p/us-central1-a/{name}"))
}

fn wanted(destination: &str) -> NewRoute {
    NewRoute {
        name_hint: "1bf6e8a3-6f0a-4d3e-9a3c-000000000001".into(),
        destination: destination.into(),
        node: node("n"),
    }
}

fn operation(status: &str) -> Value {
    json!({ "status": status, "selfLink": format!("{API}/projects/shared/global/operations/o-1") })
}

fn create(host: &FakeHost, token: Option<&str>) -> Result<(), Failure> {
    let gce: Gce = host.provider();
    let tokens = RouteTokens {
        create: vec![token.map(str::to_owned)],
        delete: Vec::new(),
    };
    gce.apply(&[wanted("10.1.0.0/24")], &[], &tokens)
        .unwrap()
        .created
        .remove(0)
}

#[test]
fn a_route_is_made_in_the_networks_project_and_waited_for() {
    let host = host();
    host.expect("POST", &format!("{API}/projects/shared/global/routes"))
        .with_json(json!({
            "name": "a-name-of-more-than-twenty-1bf6e8a3-6f0a-4d3e-9a3c-000000000001", "destRange": "10.1.0.0/24", "priority": 1000,
            "description": "k8s-node-route", "network": format!("{API}/projects/shared/global/networks/default"),
            "nextHopInstance": format!("{API}/projects/p/zones/us-central1-a/instances/n"),
        }))
        .answers(200, operation("RUNNING"));
    let FailureKind::Pending(token) = create(&host, None).unwrap_err().kind else {
        panic!()
    };
    host.expect("GET", &format!("{API}/{token}"))
        .answers(200, operation("RUNNING"));
    assert_eq!(
        create(&host, Some(&token)).unwrap_err().kind,
        FailureKind::Pending(token.clone())
    );
    host.expect("GET", &format!("{API}/{token}"))
        .answers(200, operation("DONE"));
    assert_eq!(create(&host, Some(&token)), Ok(()));
}

#[test]
fn what_is_there_is_made_and_what_is_gone_is_deleted() {
    let host = host();
    let refusal = |reason: &str| json!({ "error": { "message": "m", "errors": [{ "reason": reason }] } });
    host.expect("POST", &format!("{API}/projects/shared/global/routes"))
        .answers(409, refusal("alreadyExists"));
    assert_eq!(create(&host, None), Ok(()));
    host.expect("DELETE", &format!("{API}/projects/shared/global/routes/r"))
        .answers(404, refusal("notFound"));
    let route = shown(
        Seen {
            name: "r".into(),
            ..Seen::default()
        },
        &[],
    );
    let gce: Gce = host.provider();
    assert_eq!(
        gce.apply(&[], &[route], &RouteTokens::none()).unwrap().deleted,
        [Ok(())]
    );
}

#[test]
fn routes_of_this_network_are_reported_with_their_nodes() {
    let host = host();
    let ours = ClusterNode {
        ref_: NodeRef::named("n.c.p.internal").with_provider_id("gce://p/us-central1-a/n"),
        labels: Vec::new(),
        pod_cidrs: Vec::new(),
    };
    host.view(vec![ours], Vec::new());
    host.serve(|request| {
        assert!(
            request.url.contains("/projects/shared/global/routes?filter="),
            "{}",
            request.url
        );
        let hop = |name: &str| {
            format!("https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a/instances/{name}")
        };
        let network = |name: &str| format!("{API}/projects/shared/global/networks/{name}");
        let items = json!([
            { "name": "r1", "network": network("default"), "destRange": "10.1.0.0/24", "nextHopInstance": hop("n") },
            { "name": "r2", "network": network("default"), "destRange": "10.2.0.0/24", "nextHopInstance": hop("gone"),
              "warnings": [{ "code": "NEXT_HOP_INSTANCE_NOT_FOUND" }] },
            { "name": "r3", "network": network("other"), "destRange": "10.3.0.0/24", "nextHopInstance": hop("n") },
        ]);
        FakeAnswer::json(200, &json!({ "items": items }))
    });
    let routes = host.provider::<Gce>().list().unwrap();
    let shown: Vec<_> = routes
        .iter()
        .map(|route| (&*route.id, route.node.as_deref(), route.blackhole))
        .collect();
    assert_eq!(shown, [("r1", Some("n.c.p.internal"), false), ("r2", None, true)]);
}

#[test]
fn names_fit_and_differ_by_family() {
    let names = ["10.1.0.0/24", "fd00::/64"]
        .map(|destination| name("a-name-of-more-than-twenty-six-letters", &wanted(destination)));
    assert!(
        names.iter().all(|name| name.len() <= 63) && names[0] != names[1],
        "{names:?}"
    );
}
