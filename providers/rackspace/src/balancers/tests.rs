//! Whole calls on a small cloud that works at once unless a test sets it otherwise; mimic judges the same calls in `tests/suite`.

use std::cell::RefCell;
use std::rc::Rc;

use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};
use serde_json::{Value, json};

use super::*;
use crate::testing::{GLOBAL, calls, host, provider};

/// Load balancers, and the next answers instead of the cloud's own to requests that are no GET.
#[derive(Default)]
struct Cloud {
    balancers: Vec<Value>,
    /// Status of those that are made next.
    made: &'static str,
    instead: Vec<FakeAnswer>,
}

impl Cloud {
    fn answer(&mut self, request: &SentRequest) -> FakeAnswer {
        let path = request.url.split("/loadbalancers").nth(1).unwrap();
        let mut parts = path.split('?').next().unwrap().split('/').skip(1);
        let id: Option<u64> = parts.next().and_then(|id| id.parse().ok());
        let at = self
            .balancers
            .iter()
            .position(|one| Some(one["id"].as_u64().unwrap()) == id);
        if request.method != "GET" && !self.instead.is_empty() {
            return self.instead.remove(0);
        }
        match (request.method.as_str(), id, at) {
            ("GET", None, _) => FakeAnswer::json(200, &json!({ "loadBalancers": self.balancers })),
            ("POST", None, _) => {
                let mut made = request.json()["loadBalancer"].clone();
                made["id"] = json!(self.balancers.len() + 1);
                made["status"] = self.made.into();
                made["virtualIps"] = json!([{ "id": 7, "address": "192.0.2.1", "type": "PUBLIC" }]);
                for (node, id) in made["nodes"].as_array_mut().unwrap().iter_mut().zip(1..) {
                    node["id"] = json!(id);
                }
                self.balancers.push(made.clone());
                FakeAnswer::json(202, &json!({ "loadBalancer": made }))
            }
            (_, Some(_), None) => FakeAnswer::json(404, &json!({ "message": "Load balancer not found", "code": 404 })),
            ("GET", _, Some(at)) => FakeAnswer::json(200, &json!({ "loadBalancer": self.balancers[at] })),
            ("DELETE", _, Some(at)) if parts.next().is_none() => {
                self.balancers.remove(at);
                FakeAnswer::new(202, &[], "")
            }
            ("POST", _, Some(at)) => {
                let new = request.json()["nodes"].as_array().unwrap().clone();
                let nodes = self.balancers[at]["nodes"].as_array_mut().unwrap();
                nodes.extend(new);
                for (node, id) in nodes.iter_mut().zip(1..) {
                    node["id"] = json!(id);
                }
                FakeAnswer::new(202, &[], "")
            }
            other => panic!("{other:?}"),
        }
    }
}

fn cloud() -> (FakeHost, Rc<RefCell<Cloud>>) {
    let cloud = Rc::new(RefCell::new(Cloud {
        made: "ACTIVE",
        ..Cloud::default()
    }));
    let shared = Rc::clone(&cloud);
    let host = host(move |request| shared.borrow_mut().answer(request));
    // The region in which mimic has load balancers.
    host.config(GLOBAL.replace("dfw", "ord"));
    (host, cloud)
}

fn service(ports: &[u16]) -> Service {
    let mut service = Service::new("default", "web", "1bf6e8a3-6f0a-4d3e-9a3c-000000000001");
    service.ports = ports
        .iter()
        .map(|port| ServicePort {
            name: None,
            protocol: Protocol::Tcp,
            port: *port,
            node_port: Some(30000 + port),
            target_port: None,
            app_protocol: None,
        })
        .collect();
    service
}

fn targets(count: u8) -> Vec<Target> {
    let target = |number| {
        let mut node = NodeRef::named(format!("node-{number}"));
        node.addresses = vec![Address::new(AddressKind::InternalIp, format!("10.0.0.{number}"))];
        Target { node, ready: true }
    };
    (1..=count).map(target).collect()
}

fn writes(host: &FakeHost) -> Vec<String> {
    calls(host)
        .into_iter()
        .filter(|call| !call.starts_with("GET "))
        .collect()
}

fn token(failure: &Failure) -> String {
    match &failure.kind {
        FailureKind::Pending(token) => token.clone(),
        other => panic!("{other:?}: {}", failure.message),
    }
}

fn immutable() -> FakeAnswer {
    let text = "Load Balancer '1' has a status of 'PENDING_UPDATE' and is considered immutable.";
    FakeAnswer::json(422, &json!({ "message": text, "code": 422 }))
}

#[test]
fn two_ports_are_made_kept_and_deleted() {
    let (host, cloud) = cloud();
    let service = service(&[80, 443]);
    let made = provider(&host).ensure(&service, &targets(2), None).unwrap();
    assert_eq!(made, Balancer::at(vec![Ingress::ip("192.0.2.1")]));
    assert_eq!(writes(&host), ["POST loadbalancers", "POST loadbalancers"]);
    assert_eq!(cloud.borrow().balancers[1]["name"], "a1bf6e8a36f0a4d3e9a3c00000000000");
    assert_eq!(provider(&host).get(&service).unwrap(), Some(made.clone()));
    let before = calls(&host).len();
    assert_eq!(provider(&host).ensure(&service, &targets(2), None).unwrap(), made);
    let again = calls(&host).split_off(before);
    assert_eq!(
        again,
        [
            "GET loadbalancers?limit=100",
            "GET loadbalancers/1",
            "GET loadbalancers/2"
        ]
    );
    provider(&host).delete(&service, None).unwrap();
    assert_eq!(writes(&host)[2..], ["DELETE loadbalancers/1", "DELETE loadbalancers/2"]);
    assert_eq!(provider(&host).get(&service), Ok(None));
    assert_eq!(
        provider(&host).delete(&service, None),
        Ok(Vec::new()),
        "there is nothing"
    );
}

#[test]
fn building_is_pending_and_address_precedes_second_port() {
    let (host, cloud) = cloud();
    cloud.borrow_mut().made = "BUILD";
    let service = service(&[80, 443]);
    let waits = provider(&host).ensure(&service, &targets(1), None).unwrap_err();
    assert_eq!(waits.message(), "load balancer 1 is BUILD");
    assert_eq!(provider(&host).get(&service).unwrap().unwrap().ingress, []);
    cloud.borrow_mut().balancers[0]["status"] = "ACTIVE".into();
    let partly = provider(&host)
        .ensure(&service, &targets(1), Some(&token(&waits)))
        .unwrap();
    assert_eq!(partly.ingress, [Ingress::ip("192.0.2.1")]);
    let remaining = partly.remaining.unwrap();
    assert_eq!(remaining.message, "load balancer 2 is BUILD");
    cloud.borrow_mut().balancers[1]["status"] = "ACTIVE".into();
    let whole = provider(&host)
        .ensure(&service, &targets(1), Some(&remaining.token))
        .unwrap();
    assert_eq!(whole.remaining, None);
    assert_eq!(writes(&host).len(), 2);
}

#[test]
fn a_change_of_one_that_is_immutable_is_made_later() {
    let (host, cloud) = cloud();
    let service = service(&[80]);
    provider(&host).ensure(&service, &targets(1), None).unwrap();
    cloud.borrow_mut().instead = vec![immutable()];
    let waits = provider(&host).update_targets(&service, &targets(2), None).unwrap_err();
    assert!(waits.message().contains("considered immutable"), "{}", waits.message());
    let token = token(&waits);
    assert_eq!(
        provider(&host).update_targets(&service, &targets(2), Some(&token)),
        Ok(Vec::new())
    );
    assert_eq!(cloud.borrow().balancers[0]["nodes"].as_array().unwrap().len(), 2);
}

#[test]
fn targets_of_many_services_are_updated_from_one_listing() {
    let (host, cloud) = cloud();
    let one = service(&[80]);
    let mut gone = service(&[81]);
    gone.uid = "another".into();
    provider(&host).ensure(&one, &targets(1), None).unwrap();
    let before = calls(&host).len();
    let update = |service: &Service| TargetUpdate {
        service: service.clone(),
        token: None,
    };
    let results = provider(&host)
        .update_targets_of(&[update(&one), update(&gone)], &targets(2))
        .unwrap();
    assert_eq!(results[0], Ok(Vec::new()));
    assert!(results[1].as_ref().unwrap_err().is_not_found());
    let again = calls(&host).split_off(before);
    let get = "GET loadbalancers/1";
    assert_eq!(
        again,
        ["GET loadbalancers?limit=100", get, "POST loadbalancers/1/nodes", get]
    );
    assert_eq!(cloud.borrow().balancers[0]["nodes"][1]["address"], "10.0.0.2");
}

#[test]
fn one_failing_in_build_is_recreated_after_a_pause() {
    let (host, cloud) = cloud();
    cloud.borrow_mut().made = "BUILD";
    let service = service(&[80]);
    let waits = provider(&host).ensure(&service, &targets(1), None).unwrap_err();
    cloud.borrow_mut().balancers[0]["status"] = "ERROR".into();
    let mut token = Some(token(&waits));
    // The controller keeps a token over these failures, and no others.
    for _ in 0..6 {
        let Err(failure) = provider(&host).ensure(&service, &targets(1), token.as_deref()) else {
            break;
        };
        cloud.borrow_mut().made = "ACTIVE";
        cloud
            .borrow_mut()
            .balancers
            .retain(|one| one["status"] != "PENDING_DELETE");
        token = match failure.kind {
            FailureKind::Pending(token) => Some(token),
            FailureKind::Unavailable | FailureKind::Conflict | FailureKind::Aborted | FailureKind::RateLimited => token,
            _ => None,
        };
    }
    let statuses: Vec<String> = cloud
        .borrow()
        .balancers
        .iter()
        .map(|one| one["status"].to_string())
        .collect();
    assert_eq!(statuses, ["\"ACTIVE\""], "{:?}", writes(&host));
}

#[test]
fn one_that_was_deleted_meanwhile_is_made_anew() {
    let (host, cloud) = cloud();
    let service = service(&[80]);
    provider(&host).ensure(&service, &targets(1), None).unwrap();
    cloud.borrow_mut().instead = vec![FakeAnswer::json(
        404,
        &json!({ "message": "Load balancer not found", "code": 404 }),
    )];
    let failure = provider(&host).update_targets(&service, &targets(2), None).unwrap_err();
    assert_eq!(
        failure.kind,
        FailureKind::Other,
        "it is there all the same: {}",
        failure.message()
    );
    cloud.borrow_mut().balancers.clear();
    assert!(
        provider(&host)
            .update_targets(&service, &targets(2), None)
            .unwrap_err()
            .is_not_found()
    );
    provider(&host).ensure(&service, &targets(2), None).unwrap();
    assert_eq!(cloud.borrow().balancers.len(), 1);
}

#[test]
fn deletion_waits_for_what_the_cloud_is_busy_with() {
    let (host, cloud) = cloud();
    let service = service(&[80, 443]);
    provider(&host).ensure(&service, &targets(1), None).unwrap();
    cloud.borrow_mut().balancers[0]["status"] = "PENDING_UPDATE".into();
    let waits = provider(&host).delete(&service, None).unwrap_err();
    assert_eq!(waits.message(), "load balancer 1 is PENDING_UPDATE");
    assert_eq!(cloud.borrow().balancers.len(), 1, "the other one is deleted already");
    cloud.borrow_mut().balancers[0]["status"] = "PENDING_DELETE".into();
    let waits = provider(&host).delete(&service, Some(&token(&waits))).unwrap_err();
    assert_eq!(waits.message(), "load balancer 1 is PENDING_DELETE");
    // Shown for a while after its end.
    cloud.borrow_mut().balancers[0]["status"] = "DELETED".into();
    assert_eq!(provider(&host).delete(&service, Some(&token(&waits))), Ok(Vec::new()));
}

#[test]
fn limits_of_rate_and_of_numbers_are_distinguished() {
    let (host, cloud) = cloud();
    let fails = |answer: FakeAnswer| {
        cloud.borrow_mut().instead = vec![answer];
        provider(&host).ensure(&service(&[80]), &targets(1), None).unwrap_err()
    };
    let limited = fails(FakeAnswer::new(
        413,
        &[("retry-after", "7")],
        r#"{"overLimit": {"code": 413, "message": "slow"}}"#,
    ));
    assert_eq!(
        (limited.kind, limited.retry_after),
        (FailureKind::RateLimited, Some(7000))
    );
    let text = "Nodes must not exceed 25 per load balancer.";
    let full = fails(FakeAnswer::json(413, &json!({ "message": text, "code": 413 })));
    assert_eq!((full.kind, full.message.as_str()), (FailureKind::Exhausted, text));
    let wrong =
        json!({ "message": "Validation Failure", "code": 400, "validationErrors": { "messages": ["Port is taken."] } });
    let invalid = fails(FakeAnswer::json(400, &wrong));
    assert_eq!(invalid.kind, FailureKind::Invalid);
    assert!(
        invalid.message().contains("Validation Failure: Port is taken."),
        "{}",
        invalid.message()
    );
}

#[test]
fn a_proxys_404_is_no_load_balancer_that_is_gone() {
    let (host, _) = cloud();
    provider(&host).ensure(&service(&[80]), &targets(1), None).unwrap();
    let host = crate::testing::host(|request| match request.url.contains("/loadbalancers/1") {
        true => FakeAnswer::new(404, &[], "<html>no backend</html>"),
        false => {
            let name = "a1bf6e8a36f0a4d3e9a3c00000000000";
            FakeAnswer::json(
                200,
                &json!({ "loadBalancers": [{ "id": 1, "name": name, "status": "ACTIVE" }] }),
            )
        }
    });
    host.config(GLOBAL.replace("dfw", "ord"));
    let failure = provider(&host).ensure(&service(&[80]), &targets(1), None).unwrap_err();
    assert!(failure.message().contains("404"), "{}", failure.message());
    assert_eq!(writes(&host), [""; 0]);
}

#[test]
fn all_pages_are_read_and_a_cloud_without_pages_is_read_once() {
    let page = |from: u64| {
        let all: Vec<Value> = (from..from + 100)
            .map(|id| json!({ "id": id, "name": "other" }))
            .collect();
        FakeAnswer::json(200, &json!({ "loadBalancers": all }))
    };
    let host = host(move |request| match request.query("marker").as_deref() {
        None => page(1),
        Some("100") => page(100),
        Some("199") => FakeAnswer::json(200, &json!({ "loadBalancers": [{ "id": 199, "name": "last" }] })),
        other => panic!("{other:?}"),
    });
    host.config(GLOBAL.replace("dfw", "ord"));
    assert_eq!(provider(&host).balancers().unwrap().len(), 199);
    assert_eq!(calls(&host).len(), 3);
    let host = crate::testing::host(move |_| page(1));
    host.config(GLOBAL.replace("dfw", "ord"));
    assert_eq!(provider(&host).balancers().unwrap().len(), 100);
    assert_eq!(calls(&host).len(), 2);
}

#[test]
fn a_dry_run_and_a_switch_make_nothing() {
    let (host, cloud) = cloud();
    host.dry_run();
    let failure = provider(&host).ensure(&service(&[80]), &targets(1), None).unwrap_err();
    assert!(
        failure.message().contains("dry run: would change"),
        "{}",
        failure.message()
    );
    host.config(format!(
        "{}[LoadBalancer]\nenabled = false\n",
        GLOBAL.replace("dfw", "ord")
    ));
    let failure = provider(&host).ensure(&service(&[80]), &targets(1), None).unwrap_err();
    assert_eq!(failure.kind, FailureKind::ImplementedElsewhere);
    assert_eq!(cloud.borrow().balancers.len(), 0);
}

#[test]
fn more_nodes_than_fit_are_reported() {
    let (host, cloud) = cloud();
    provider(&host).ensure(&service(&[80]), &targets(27), None).unwrap();
    assert_eq!(cloud.borrow().balancers[0]["nodes"].as_array().unwrap().len(), 25);
    let events = host.events();
    assert_eq!(events.len(), 1);
    assert!(events[0].message.starts_with("2 Nodes are left out"), "{events:?}");
}
