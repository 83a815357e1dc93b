//! Which requests a load balancer takes, call by call. Each change is an operation.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};
use serde_json::{Value, json};

use super::*;

const NETWORK: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network";
const IP: &str = "20.100.0.1";
const NOW: u64 = 1_800_000_000;

/// What there is, by path.
type World = Rc<RefCell<BTreeMap<String, Value>>>;

/// A security group, and operations that have this status.
fn host(status: &Rc<Cell<&'static str>>) -> FakeHost {
    let status = Rc::clone(status);
    let host = FakeHost::new();
    host.now(NOW).config(
        r#"{"useManagedIdentityExtension": true, "subscriptionId": "s", "resourceGroup": "rg", "location": "westeurope", "vnetName": "net",
            "subnetName": "inner", "securityGroupName": "sg"}"#,
    );
    host.cluster("c", &[]);
    let world: World = Rc::default();
    let group = json!({ "name": "sg", "id": format!("{NETWORK}/networkSecurityGroups/sg"), "etag": "W/\"1\"", "properties": {} });
    let subnet = format!("{NETWORK}/virtualNetworks/net/subnets/inner");
    let inner = json!({ "name": "inner", "id": subnet, "etag": "W/\"1\"", "properties": {} });
    world.borrow_mut().insert(subnet, inner);
    world
        .borrow_mut()
        .insert(format!("{NETWORK}/networkSecurityGroups/sg"), group);
    host.serve(move |request| answer(&mut world.borrow_mut(), request, status.get()));
    host
}

fn succeeded() -> Rc<Cell<&'static str>> {
    Rc::new(Cell::new("Succeeded"))
}

fn answer(world: &mut BTreeMap<String, Value>, request: &SentRequest, status: &str) -> FakeAnswer {
    let url = request.url.trim_start_matches("https://management.azure.com");
    let path = url.split('?').next().unwrap_or_default().to_owned();
    let name = path.rsplit('/').next().unwrap_or_default();
    match (request.method.as_str(), name) {
        ("GET", "token") => return FakeAnswer::json(200, &json!({ "access_token": "t", "expires_in": "9999" })),
        ("GET", "1") => {
            return FakeAnswer::new(200, &[("Retry-After", "5")], &json!({ "status": status }).to_string());
        }
        ("GET", "loadBalancers" | "publicIPAddresses" | "privateLinkServices") => {
            let all = world.iter().filter(|(there, _)| there.starts_with(&path));
            let all: Vec<&Value> = all.map(|(_, one)| one).collect();
            return FakeAnswer::json(200, &json!({ "value": all }));
        }
        ("GET", _) => return FakeAnswer::json(200, &world[&path]),
        ("PUT", _) => {
            let mut made: Value = serde_json::from_slice(&request.body).unwrap();
            for (key, value) in [("id", path.as_str()), ("name", name), ("etag", "W/\"1\"")] {
                made[key] = value.into();
            }
            if path.contains("/publicIPAddresses/") {
                made["properties"]["ipAddress"] = IP.into();
            }
            let fronts = made
                .pointer_mut("/properties/frontendIPConfigurations")
                .and_then(Value::as_array_mut);
            for front in fronts.into_iter().flatten() {
                front["id"] = format!("{path}/frontendIPConfigurations/{}", json::name(front)).into();
                front["properties"]["privateIPAddress"] = "10.0.0.100".into();
            }
            world.insert(path, made);
        }
        _ => {
            world.remove(&path);
        }
    }
    let link = "https://management.azure.com/subscriptions/s/operations/1?api-version=2025-05-01";
    FakeAnswer::new(202, &[("Azure-AsyncOperation", link), ("Retry-After", "5")], "{}")
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

/// With one Node of this address.
fn ensure(host: &FakeHost, service: &Service, ip: &str, token: Option<&str>) -> Result<Balancer, Failure> {
    host.provider::<Azure>().ensure(service, &[target(ip)], token)
}

fn target(ip: &str) -> Target {
    let node = NodeRef {
        addresses: vec![Address::new(AddressKind::InternalIp, ip)],
        ..NodeRef::named("n")
    };
    Target { node, ready: true }
}

fn annotated(set: &[&str]) -> Service {
    let mut service = service();
    let pairs = set.iter().map(|key| Pair::new(annotations::TABLE.key(key), "true"));
    service.annotations = pairs.collect();
    service
}

/// Calls until it is done: the changes.
fn changes<T: std::fmt::Debug>(
    host: &FakeHost,
    mut call: impl FnMut(Option<&str>) -> Result<T, Failure>,
) -> Vec<String> {
    let (mut last, mut all) = (None, Vec::new());
    loop {
        all.extend(requests(host, &mut last, &mut call));
        if last.is_none() {
            all.retain(|request| !request.starts_with("GET"));
            return all;
        }
    }
}

/// Method and last part of each path since this many requests, without tokens.
fn sent(host: &FakeHost, before: usize) -> Vec<String> {
    let sent = host.requests().into_iter().skip(before);
    let shown = sent.map(|request| {
        let path = request.url.split('?').next().unwrap_or_default();
        format!("{} {}", request.method, path.rsplit('/').next().unwrap_or_default())
    });
    shown.filter(|shown| shown != "GET token").collect()
}

fn token(failure: &Failure) -> &str {
    match &failure.kind {
        FailureKind::Pending(token) => token,
        other => panic!("{other:?}"),
    }
}

/// Sends the requests of one call, with the token of the one before.
fn requests<T: std::fmt::Debug>(
    host: &FakeHost,
    last: &mut Option<String>,
    call: impl FnOnce(Option<&str>) -> Result<T, Failure>,
) -> Vec<String> {
    let before = host.requests().len();
    *last = call(last.as_deref()).err().map(|failure| token(&failure).to_owned());
    sent(host, before)
}

#[test]
fn each_change_costs_its_reads_and_one_look_and_the_last_no_more() {
    let (host, mut last) = (host(&succeeded()), None);
    let mut step = || requests(&host, &mut last, |token| ensure(&host, &service(), "10.0.0.4", token));
    assert_eq!(
        step(),
        ["GET publicIPAddresses", "PUT c-a1bf6e8a36f0a4d3e9a3c00000000000"]
    );
    assert_eq!(step(), ["GET 1", "GET publicIPAddresses", "GET loadBalancers", "PUT c"]);
    let expected = [
        "GET 1",
        "GET publicIPAddresses",
        "GET loadBalancers",
        "GET sg",
        "PUT sg",
    ];
    assert_eq!(step(), expected);
    assert_eq!(step(), ["GET 1"]);
    assert_eq!(last, None, "it is done");
    let mut step = || {
        requests(&host, &mut last, |token| {
            host.provider::<Azure>().delete(&service(), token)
        })
    };
    let expected = ["GET loadBalancers", "GET publicIPAddresses", "GET sg", "PUT sg"];
    assert_eq!(step(), expected);
    assert_eq!(step(), ["GET 1", "GET loadBalancers", "DELETE c"]);
    let expected = [
        "GET 1",
        "GET loadBalancers",
        "GET publicIPAddresses",
        "DELETE c-a1bf6e8a36f0a4d3e9a3c00000000000",
    ];
    assert_eq!(step(), expected);
    assert_eq!(step(), ["GET 1"]);
    assert_eq!(last, None, "it is done");
}

#[test]
fn nodes_that_change_before_the_end_come_behind_it() {
    let (host, mut last) = (host(&succeeded()), None);
    for _ in 0..3 {
        requests(&host, &mut last, |token| ensure(&host, &service(), "10.0.0.4", token));
    }
    let sent = requests(&host, &mut last, |token| ensure(&host, &service(), "10.0.0.5", token));
    assert_eq!(sent.last().map(String::as_str), Some("PUT c"));
}

#[test]
fn operation_of_another_service_is_looked_at_once_for_all() {
    let status = succeeded();
    let (host, mut first) = (host(&status), None);
    for _ in 0..2 {
        requests(&host, &mut first, |token| ensure(&host, &service(), "10.0.0.4", token));
    }
    // The load balancer is being changed.
    let other = Service::new("default", "other", "2bf6e8a3-6f0a-4d3e-9a3c-000000000001");
    let delete =
        |last: &mut Option<String>| requests(&host, last, |token| host.provider::<Azure>().delete(&other, token));
    let (mut second, mut third) = (None, None);
    assert_eq!((delete(&mut second).len(), second.is_some()), (0, true));
    status.set("InProgress");
    host.now(NOW + 5);
    assert_eq!(delete(&mut second), ["GET 1"]);
    assert_eq!((delete(&mut third).len(), third.is_some()), (0, true));
    // The call that began it reads it after the pause that the cloud requested.
    let own = requests(&host, &mut first, |token| ensure(&host, &service(), "10.0.0.4", token));
    assert_eq!((own, first.is_some()), (vec!["GET 1".to_owned()], true));
}

#[test]
fn nodes_of_node_ports_are_in_the_security_group_too() {
    let host = host(&succeeded());
    let service = annotated(&["disable-load-balancer-floating-ip"]);
    let address = "PUT c-a1bf6e8a36f0a4d3e9a3c00000000000";
    let made = changes(&host, |token| ensure(&host, &service, "10.0.0.4", token));
    assert_eq!(made, [address, "PUT c", "PUT sg"]);
    let update = |ip: &str| {
        let targets = [target(ip)];
        changes(&host, |token| {
            host.provider::<Azure>().update_targets(&service, &targets, token)
        })
    };
    assert_eq!(update("10.0.0.5"), ["PUT c", "PUT sg"]);
    assert_eq!(update("10.0.0.5"), [""; 0]);
    let deleted = changes(&host, |token| host.provider::<Azure>().delete(&service, token));
    assert_eq!(
        deleted,
        ["PUT sg", "DELETE c", "DELETE c-a1bf6e8a36f0a4d3e9a3c00000000000"]
    );
}

#[test]
fn private_link_comes_after_its_frontend_and_goes_before_it() {
    let host = host(&succeeded());
    let service = annotated(&["load-balancer-internal", "pls-create"]);
    let link = "pls-a1bf6e8a36f0a4d3e9a3c00000000000";
    let made = changes(&host, |token| ensure(&host, &service, "10.0.0.4", token));
    assert_eq!(made, ["PUT c-internal", "PUT inner", &format!("PUT {link}")]);
    assert_eq!(
        changes(&host, |token| ensure(&host, &service, "10.0.0.4", token)),
        [""; 0]
    );
    // Without the annotation it stays, and goes with the frontend.
    let service = annotated(&["load-balancer-internal"]);
    assert_eq!(
        changes(&host, |token| ensure(&host, &service, "10.0.0.4", token)),
        [""; 0]
    );
    let deleted = changes(&host, |token| host.provider::<Azure>().delete(&service, token));
    assert_eq!(deleted, [&format!("DELETE {link}"), "DELETE c-internal"]);
}
