//! Against a small Compute Engine whose operations are done at once: which requests are made, in which order.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use cloudwit_guest_sdk::serde_json::{Value, json};
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};

use super::*;

const API: &str = "https://gce.test/compute/v1";
/// Where the operation is while addresses are released slowly.
const SLOW: &str = "projects/p/regions/us-central1/operations/op-1";
/// With this in the world, changes are operations.
const OPERATIONS: &str = "operations";
/// With this in the world, no forwarding rule can be made.
const FAULT: &str = "fault";
const NAME: &str = "a1bf6e8a36f0a4d3e9a3c00000000000";

/// What there is, by path.
type World = Rc<RefCell<BTreeMap<String, Value>>>;

fn host(more: &Value) -> (FakeHost, World) {
    let host = FakeHost::new();
    let mut config = json!({
        "project-id": "p", "local-zone": "us-central1-a", "network-name": "default", "token-url": "nil", "api-endpoint": API,
        "node-tags": ["node"], "cluster-id": "id",
    });
    config
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    host.config(json!({ "global": config }).to_string());
    let world: World = Rc::default();
    let there = Rc::clone(&world);
    host.serve(move |request| answer(&mut there.borrow_mut(), request));
    (host, world)
}

fn answer(world: &mut BTreeMap<String, Value>, request: &SentRequest) -> FakeAnswer {
    let path = request
        .url
        .split('?')
        .next()
        .unwrap()
        .strip_prefix(API)
        .unwrap()
        .trim_start_matches('/')
        .to_owned();
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    match request.method.as_str() {
        "GET" if path.ends_with("/aggregated/instanceGroups") => FakeAnswer::json(200, &json!({})),
        "GET" if path.ends_with("/addresses") => FakeAnswer::json(200, &json!({})),
        "GET" => match world.get(&path) {
            Some(found) => FakeAnswer::json(200, found),
            None => refusal(404, "notFound"),
        },
        // It lasts until the operation is done.
        "DELETE" if path.contains("/addresses/") && world.contains_key(SLOW) && !world.contains_key(OPERATIONS) => {
            FakeAnswer::json(200, &world[SLOW])
        }
        "DELETE" if is_used(world, &path) => refusal(400, "resourceInUseByAnotherResource"),
        "DELETE" => match world.remove(&path) {
            Some(_) => operation(world),
            None => refusal(404, "notFound"),
        },
        "POST" if path.ends_with("forwardingRules") && world.contains_key(FAULT) => refusal(503, "backendError"),
        "POST" => {
            let mut made = body;
            if path.ends_with("addresses") {
                made["addressType"] = "EXTERNAL".into();
                if made.get("address").is_none() {
                    made["address"] = "192.0.2.1".into();
                }
            }
            if path.ends_with("forwardingRules") && made.get("IPAddress").is_none() {
                made["IPAddress"] = "192.0.2.1".into();
            }
            world.insert(format!("{path}/{}", made["name"].as_str().unwrap()), made);
            operation(world)
        }
        _ => {
            world.insert(path, body);
            operation(world)
        }
    }
}

fn operation(world: &BTreeMap<String, Value>) -> FakeAnswer {
    let status = if world.contains_key(OPERATIONS) {
        "RUNNING"
    } else {
        "DONE"
    };
    FakeAnswer::json(200, &json!({ "status": status, "selfLink": format!("{API}/{SLOW}") }))
}

fn refusal(status: u16, reason: &str) -> FakeAnswer {
    let error = json!({ "code": status, "message": "no", "errors": [{ "reason": reason, "message": "no" }] });
    FakeAnswer::json(status, &json!({ "error": error }))
}

/// Whether a target pool has this health check.
fn is_used(world: &BTreeMap<String, Value>, check: &str) -> bool {
    let mut pools = world.iter().filter(|(path, _)| path.contains("/targetPools/"));
    pools.any(|(_, pool)| crate::resource::texts(pool, "healthChecks").any(|link| link.ends_with(check)))
}

fn service() -> Service {
    let mut service = Service::new("default", "web", "1bf6e8a3-6f0a-4d3e-9a3c-000000000001");
    service.ports = vec![ServicePort {
        name: None,
        protocol: Protocol::Tcp,
        port: 80,
        node_port: Some(30_080),
        target_port: None,
        app_protocol: None,
    }];
    service
}

fn targets() -> Vec<Target> {
    vec![Target {
        node: NodeRef::named("n").with_provider_id("gce://p/us-central1-a/n"),
        ready: true,
    }]
}

/// Method and the last two parts of each change's path.
fn changes(host: &FakeHost) -> Vec<String> {
    let sent = host.requests();
    let changes = sent.iter().filter(|request| request.method != "GET");
    let shown = changes.map(|request| {
        let mut parts: Vec<&str> = request.url.rsplit('/').take(2).collect();
        parts.reverse();
        format!("{} {}", request.method, parts.join("/"))
    });
    shown.collect()
}

#[test]
fn an_external_one_is_made_in_order_and_then_left_alone() {
    let (host, world) = host(&json!({}));
    let gce: Gce = host.provider();
    let made = gce.ensure(&service(), &targets(), None).unwrap();
    assert_eq!(made.ingress, [Ingress::ip("192.0.2.1")]);
    let expected = [
        "POST global/httpHealthChecks",
        "POST us-central1/targetPools",
        "POST us-central1/forwardingRules",
        "POST global/firewalls",
        "POST global/firewalls",
    ];
    assert_eq!(changes(&host), expected);
    let world = world.borrow();
    let rule = &world[&format!("projects/p/regions/us-central1/forwardingRules/{NAME}")];
    assert_eq!(
        (rule["portRange"].as_str(), rule["IPProtocol"].as_str()),
        (Some("80-80"), Some("TCP"))
    );
    assert_eq!(rule["description"], r#"{"kubernetes.io/service-name":"default/web"}"#);
    let firewall = &world[&format!("projects/p/global/firewalls/k8s-fw-{NAME}")];
    assert_eq!(
        (&firewall["destinationRanges"], &firewall["targetTags"]),
        (&json!(["192.0.2.1"]), &json!(["node"]))
    );
    assert_eq!(world["projects/p/global/httpHealthChecks/k8s-id-node"]["port"], 10_256);
    drop(world);
    let before = host.requests().len();
    host.provider::<Gce>().ensure(&service(), &targets(), None).unwrap();
    assert_eq!((changes(&host).len(), host.requests().len() - before), (5, 6));
}

#[test]
fn a_change_makes_the_rule_anew_with_its_address() {
    let (host, world) = host(&json!({}));
    host.provider::<Gce>().ensure(&service(), &targets(), None).unwrap();
    let before = changes(&host).len();
    let mut service = service();
    service.session_affinity_seconds = Some(10);
    let changed = host.provider::<Gce>().ensure(&service, &targets(), None).unwrap();
    assert_eq!(changed.ingress, [Ingress::ip("192.0.2.1")]);
    let expected = [
        "POST us-central1/addresses",
        &format!("DELETE forwardingRules/{NAME}"),
        &format!("DELETE targetPools/{NAME}"),
        "POST us-central1/targetPools",
        "POST us-central1/forwardingRules",
        &format!("DELETE addresses/{NAME}"),
    ];
    assert_eq!(changes(&host)[before..], expected);
    let pool = format!("projects/p/regions/us-central1/targetPools/{NAME}");
    assert_eq!(world.borrow()[&pool]["sessionAffinity"], "CLIENT_IP");
}

#[test]
fn a_change_waits_while_its_address_is_being_released() {
    let (host, world) = host(&json!({}));
    host.provider::<Gce>().ensure(&service(), &targets(), None).unwrap();
    let running = json!({ "name": "op-1", "status": "RUNNING", "selfLink": format!("{API}/{SLOW}") });
    world.borrow_mut().insert(SLOW.into(), running);
    let mut service = service();
    service.session_affinity_seconds = Some(10);
    let made = host.provider::<Gce>().ensure(&service, &targets(), None).unwrap();
    assert!(made.remaining.is_some(), "the address that was held is being released");
    // The Service changes, and with it the token is gone.
    service.session_affinity_seconds = None;
    let before = changes(&host).len();
    let waits = host.provider::<Gce>().ensure(&service, &targets(), None).unwrap_err();
    assert!(matches!(waits.kind, FailureKind::Pending(_)), "{waits:?}");
    assert_eq!(
        changes(&host)[before..],
        [""; 0],
        "the rule is not deleted: it alone has the address"
    );
    // Released: the address is reserved again before the rule is deleted.
    world.borrow_mut().remove(SLOW);
    world
        .borrow_mut()
        .remove(&format!("projects/p/regions/us-central1/addresses/{NAME}"));
    let changed = host.provider::<Gce>().ensure(&service, &targets(), None).unwrap();
    assert_eq!(changed.ingress, made.ingress);
    assert_eq!(changes(&host)[before], "POST us-central1/addresses");
}

#[test]
fn unreserved_address_is_refused_before_any_creation() {
    let (host, _) = host(&json!({}));
    let service = Service {
        load_balancer_ip: Some("198.51.100.7".into()),
        ..service()
    };
    let failure = host.provider::<Gce>().ensure(&service, &targets(), None).unwrap_err();
    assert!(
        failure.kind == FailureKind::Invalid && failure.message().contains("198.51.100.7"),
        "{failure:?}"
    );
    assert_eq!(changes(&host), [""; 0]);
}

#[test]
fn rules_of_the_other_controller_are_left_to_it() {
    let (host, world) = host(&json!({}));
    let rule = json!({ "name": NAME, "loadBalancingScheme": "EXTERNAL", "backendService": "projects/p/regions/r/backendServices/b" });
    world
        .borrow_mut()
        .insert(format!("projects/p/regions/us-central1/forwardingRules/{NAME}"), rule);
    let gce: Gce = host.provider();
    assert_eq!(
        gce.ensure(&service(), &targets(), None).unwrap_err().kind,
        FailureKind::ImplementedElsewhere
    );
    assert_eq!(
        (gce.get(&service()), gce.delete(&service(), None)),
        (Ok(None), Ok(Vec::new()))
    );
    assert_eq!(changes(&host), [""; 0]);
}

#[test]
fn without_tags_and_nodes_no_machine_of_the_network_is_opened() {
    let (host, world) = host(&json!({ "node-tags": [] }));
    host.provider::<Gce>().ensure(&service(), &[], None).unwrap();
    assert!(!world.borrow().keys().any(|path| path.contains("/firewalls/")));
}

#[test]
fn larger_numbers_of_a_health_check_stay() {
    let (host, world) = host(&json!({}));
    let check = json!({ "name": "k8s-id-node", "port": 10_256, "requestPath": "/healthz", "checkIntervalSec": 30, "timeoutSec": 1,
        "healthyThreshold": 1, "unhealthyThreshold": 3 });
    let path = "projects/p/global/httpHealthChecks/k8s-id-node";
    world.borrow_mut().insert(path.into(), check.clone());
    host.provider::<Gce>().ensure(&service(), &targets(), None).unwrap();
    assert_eq!(world.borrow()[path], check);
}

#[test]
fn node_removal_is_one_change_and_missing_balancer_is_reported() {
    let (host, _) = host(&json!({}));
    let gce: Gce = host.provider();
    assert_eq!(
        gce.update_targets(&service(), &targets(), None).unwrap_err().kind,
        FailureKind::NotFound
    );
    gce.ensure(&service(), &targets(), None).unwrap();
    let before = changes(&host).len();
    assert_eq!(
        host.provider::<Gce>().update_targets(&service(), &targets(), None),
        Ok(Vec::new())
    );
    assert_eq!(changes(&host).len(), before);
}

#[test]
fn older_forms_of_upstreams_parts_are_right_too() {
    let (host, world) = host(&json!({}));
    let mut service = service();
    let second = ServicePort {
        port: 81,
        ..service.ports[0].clone()
    };
    service.ports.push(second);
    host.provider::<Gce>().ensure(&service, &targets(), None).unwrap();
    let before = changes(&host).len();
    let firewall = format!("projects/p/global/firewalls/k8s-fw-{NAME}");
    assert_eq!(world.borrow()[&firewall]["allowed"][0]["ports"], json!(["80-81"]));
    world.borrow_mut().get_mut(&firewall).unwrap()["allowed"][0]["ports"] = json!(["80", "81"]);
    let pool = format!("projects/p/regions/us-central1/targetPools/{NAME}");
    world.borrow_mut().get_mut(&pool).unwrap()["sessionAffinity"] = Value::Null;
    host.provider::<Gce>().ensure(&service, &targets(), None).unwrap();
    assert_eq!(changes(&host).len(), before, "{:?}", changes(&host));
}

mod over_calls;
