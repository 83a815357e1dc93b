use std::cell::RefCell;
use std::rc::Rc;

use cloudwit_guest_sdk::testing::FakeHost;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::plan::{Backends, activation, backends, lagging, marks, may_leave, sweep};
use super::seen::{BalancerService, External};
use super::wanted::service_name;
use super::*;
use crate::api::Call;
use crate::testing::{collection, host, names, provider};

const NAME: &str = "lb-a1bf6e8a36f0a4d3e9a3c00000000000";

fn service() -> Service {
    let mut service = Service::new("default", "web", "1bf6e8a3-6f0a-4d3e-9a3c-000000000001");
    service.ports = vec![ServicePort {
        name: None,
        protocol: Protocol::Tcp,
        port: 80,
        node_port: Some(30080),
        target_port: None,
        app_protocol: None,
    }];
    service
}

fn target(name: &str, ip: &str) -> Target {
    let mut node = NodeRef::named(name);
    node.addresses = vec![Address::new(AddressKind::InternalIp, ip)];
    Target { node, ready: true }
}

fn targets() -> Vec<Target> {
    vec![target("node-1", "10.0.0.1"), target("node-2", "10.0.0.2")]
}

fn wanted() -> Wanted {
    Wanted::new(&service(), &targets()).unwrap()
}

fn read<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

fn external(id: &str, name: &str, ip: &str, state: &str) -> Value {
    let actions = match state {
        "inactive" => json!({ "activate": "x", "remove": "x" }),
        _ => json!({}),
    };
    json!({
        "id": id, "type": "externalService", "name": name, "stackId": "1st1", "externalIpAddresses": [ip], "state": state, "transitioning": "no",
        "transitioningMessage": null, "metadata": { "cloudwit": "node" }, "actions": actions,
    })
}

fn unmarked(id: &str, name: &str, ip: &str) -> Value {
    let mut one = external(id, name, ip, "active");
    one["metadata"] = json!(null);
    one
}

/// As Rancher shows one, with these services behind it.
fn balancer(services: &[&str]) -> Value {
    let rule = |id: &&str| {
        json!({
            "type": "portRule", "sourcePort": 80, "targetPort": 30080, "serviceId": id, "protocol": "tcp", "hostname": null, "path": null, "priority": 1,
        })
    };
    let rules: Vec<Value> = services.iter().map(rule).collect();
    json!({
        "id": "1s9", "type": "loadBalancerService", "name": NAME, "stackId": "1st1", "state": "active", "transitioning": "no", "transitioningMessage": null,
        "launchConfig": { "type": "launchConfig", "ports": ["80:80/tcp"] },
        "lbConfig": { "type": "lbConfig", "config": "maxconn 9", "certificateIds": null, "portRules": rules },
        "publicEndpoints": [{ "ipAddress": "192.0.2.9", "port": 80 }, { "ipAddress": "192.0.2.9", "port": 81 }, { "ipAddress": null }],
        "actions": { "update": "x", "remove": "x" },
    })
}

/// What Rancher shows; each change is noted, and nothing follows from it.
#[derive(Default)]
struct Shown {
    balancers: Vec<Value>,
    externals: Vec<Value>,
    stacks: Vec<Value>,
    writes: Vec<String>,
}

fn cloud(shown: Shown) -> (FakeHost, Rc<RefCell<Shown>>) {
    let (shown, kept) = {
        let shown = Rc::new(RefCell::new(shown));
        (Rc::clone(&shown), shown)
    };
    let host = host(move |name, request| {
        let mut shown = shown.borrow_mut();
        match name {
            "GET /loadbalancerservices" => {
                let named = request.query("name");
                let fits = |one: &&Value| named.as_ref().is_none_or(|name| one["name"] == **name);
                let found: Vec<Value> = shown.balancers.iter().filter(fits).cloned().collect();
                collection("loadBalancerService", &found)
            }
            "GET /externalservices" => collection("externalService", &shown.externals),
            "GET /stacks" => collection("stack", &shown.stacks),
            "GET /settings" => collection(
                "setting",
                &[json!({ "name": "lb.instance.image", "value": "rancher/lb:1" })],
            ),
            change => {
                let body = (!request.body.is_empty()).then(|| request.text());
                shown
                    .writes
                    .push(format!("{change} {}", body.unwrap_or_default()).trim_end().to_owned());
                cloudwit_guest_sdk::testing::FakeAnswer::json(200, &json!({}))
            }
        }
    });
    (host, kept)
}

fn stack() -> Value {
    json!({ "id": "1st1", "name": "kubernetes-loadbalancers", "state": "active", "transitioning": "no", "actions": {} })
}

fn both() -> Vec<Value> {
    vec![
        external("1s1", "node-1", "10.0.0.1", "active"),
        external("1s2", "node-2", "10.0.0.2", "active"),
    ]
}

/// What is written first by `ensure`. The stand-in of the suite does what follows.
fn first_write(shown: Shown) -> String {
    let (host, kept) = cloud(shown);
    let ended = provider(&host).ensure(&service(), &targets(), None);
    assert!(ended.is_err(), "{ended:?}");
    let writes = &kept.borrow().writes;
    writes.first().cloned().unwrap_or_default()
}

#[test]
fn names_are_upstreams() {
    let host = FakeHost::new();
    assert_eq!(Rancher::name(&host.context().cluster(), &service()), NAME);
    let long = "x".repeat(70);
    for (node, name) in [
        ("node-1", "node-1"),
        ("Node_1.example.com", "Node-1-example-com"),
        ("--a..b--", "a-b"),
        ("...", ""),
        (long.as_str(), &long[..63]),
    ] {
        assert_eq!(service_name(node), name);
    }
}

#[test]
fn what_rancher_does_not_have_is_told_at_once() {
    let mut odd = service();
    odd.load_balancer_ip = Some("192.0.2.1".into());
    odd.session_affinity_seconds = Some(10_800);
    odd.source_ranges = vec!["10.0.0.0/8".into()];
    odd.ip_families = vec![IpFamily::Ipv6];
    odd.ports[0].node_port = None;
    odd.ports.push(ServicePort {
        protocol: Protocol::Udp,
        port: 53,
        ..odd.ports[0].clone()
    });
    let failure = Wanted::new(&odd, &targets()).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Invalid);
    for part in [
        "loadBalancerIP",
        "sessionAffinity",
        "loadBalancerSourceRanges",
        "ipFamilies",
        "port 80 has no node port",
        "UDP, as port 53",
    ] {
        assert!(failure.message.contains(part), "{part}: {failure:?}");
    }
    let mut open = service();
    open.source_ranges = vec!["0.0.0.0/0".into()];
    assert!(Wanted::new(&open, &targets()).is_ok());
}

#[test]
fn nodes_whose_names_are_one_share_an_external_service() {
    let all = [
        target("a.b", "10.0.0.2"),
        target("a-b", "10.0.0.1"),
        target("c", "fd00::1"),
        target("...", "10.0.0.3"),
    ];
    let wanted = Wanted::new(&service(), &all).unwrap();
    let shared = ["10.0.0.1".to_owned(), "10.0.0.2".to_owned()];
    assert_eq!(
        wanted.backends.into_iter().collect::<Vec<_>>(),
        [("a-b".to_owned(), shared.to_vec()), ("c".to_owned(), vec![])]
    );
}

#[test]
fn external_services_are_made_changed_and_waited_for() {
    let texts = |seen: &[Value]| {
        let seen: Vec<External> = seen.iter().map(read).collect();
        match backends(&wanted(), &seen, "1st1") {
            Backends::Calls(calls) => calls.iter().map(Call::text).collect(),
            Backends::Waits(name) => vec![format!("waits for {name}")],
            Backends::There(ids) => ids,
        }
    };
    assert_eq!(texts(&both()), ["1s1", "1s2"]);
    let other = external("1s2", "node-2", "10.0.0.9", "active");
    assert_eq!(
        texts(&[both().remove(0), other]),
        [r#"PUT /externalservices/1s2 {"externalIpAddresses":["10.0.0.2"]}"#]
    );
    let removed = external("1s3", "node-2", "10.0.0.2", "removed");
    let made = r#"POST /externalservices {"externalIpAddresses":["10.0.0.2"],"metadata":{"cloudwit":"node"},"name":"node-2","stackId":"1st1"}"#;
    assert_eq!(texts(&[both().remove(0), removed]), [made]);
    let leaving = external("1s3", "node-2", "10.0.0.2", "removing");
    assert_eq!(texts(&[both().remove(0), leaving]), ["waits for node-2"]);
}

#[test]
fn the_external_service_of_a_node_without_an_address_stays() {
    let mut wanted = wanted();
    wanted.backends.values_mut().for_each(Vec::clear);
    let seen: Vec<External> = both()[..1].iter().map(read).collect();
    assert_eq!(
        backends(&wanted, &seen, "1st1"),
        Backends::There(vec!["1s1".to_owned()])
    );
}

#[test]
fn dropped_is_marked_and_marked_unused_is_removed() {
    let seen = [
        unmarked("1s1", "node-1", "10.0.0.1"),
        unmarked("1s3", "gone", "10.0.0.3"),
        unmarked("1s4", "others", "10.0.0.4"),
    ];
    let seen: Vec<External> = seen.iter().map(read).collect();
    let own: BalancerService = read(&balancer(&["1s1", "1s3"]));
    let texts = |calls: Vec<Call>| calls.iter().map(Call::text).collect::<Vec<_>>();
    let kept = ["1s1".to_owned()];
    assert_eq!(
        texts(marks(&own, &seen, &kept)),
        [r#"PUT /externalservices/1s3 {"metadata":{"cloudwit":"node"}}"#]
    );
    assert!(!may_leave(&seen, &kept), "upstream's that nobody dropped are not ours");
    let marked = [
        both(),
        vec![
            external("1s3", "gone", "10.0.0.3", "active"),
            external("1s5", "going", "10.0.0.5", "removing"),
        ],
    ];
    let marked: Vec<External> = marked.concat().iter().map(read).collect();
    assert!(may_leave(&marked, &kept));
    let other: BalancerService = read(&balancer(&["1s2"]));
    assert_eq!(texts(sweep(&marked, &kept, &[other])), ["DELETE /externalservices/1s3"]);
}

#[test]
fn what_is_off_is_started_and_what_cannot_be_is_named() {
    let mut off = balancer(&["1s1"]);
    (off["state"], off["actions"]) = ("inactive".into(), json!({ "activate": "x" }));
    let seen = [
        external("1s1", "node-1", "10.0.0.1", "inactive"),
        external("1s2", "node-2", "10.0.0.2", "registering"),
        external("1s3", "other", "10.0.0.3", "inactive"),
    ];
    let seen: Vec<External> = seen.iter().map(read).collect();
    let kept = ["1s1".to_owned(), "1s2".to_owned()];
    let calls = activation(&read(&off), &seen, &kept);
    let texts: Vec<String> = calls.iter().map(Call::text).collect();
    assert_eq!(
        texts,
        [
            "POST /externalservices/1s1?action=activate",
            "POST /loadbalancerservices/1s9?action=activate"
        ]
    );
    assert_eq!(
        lagging(&seen[1..], &kept).as_deref(),
        Some("the external service node-2 is registering")
    );
    assert_eq!(lagging(&seen[2..], &kept), None);
}

#[test]
fn ports_rules_and_addresses_are_read_as_rancher_writes_them() {
    let own: BalancerService = read(&balancer(&["1s2", "1s1"]));
    assert!(own.publishes(&["80:80/tcp".into()]) && !own.publishes(&["81:81/tcp".into()]) && !own.publishes(&[]));
    assert_eq!(own.ingress(), [Ingress::ip("192.0.2.9")]);
    let kept = ["1s1".to_owned(), "1s2".to_owned()];
    assert_eq!(own.rules(), wanted().rules(&kept));
    // What others have set beside the rules stays.
    assert_eq!(own.config(&[]), json!({ "config": "maxconn 9", "portRules": [] }));
    let mut odd = balancer(&["1s1"]);
    odd["lbConfig"]["portRules"][0]["targetPort"] = json!(null);
    let odd: BalancerService = read(&odd);
    assert_ne!(odd.rules(), wanted().rules(&kept[..1]));
    assert!(odd.uses("1s1"));
}

#[test]
fn each_part_is_made_when_what_it_needs_is_there() {
    let stack_made = r#"POST /stacks {"externalId":"kubernetes-loadbalancers://","name":"kubernetes-loadbalancers"}"#;
    assert_eq!(first_write(Shown::default()), stack_made);
    let stacks = || vec![stack()];
    let with = |balancers, externals| Shown {
        balancers,
        externals,
        stacks: stacks(),
        writes: Vec::new(),
    };
    assert!(first_write(with(vec![], vec![])).starts_with("POST /externalservices {"));
    let rules = r#"[{"protocol":"tcp","serviceId":"1s1","sourcePort":80,"targetPort":30080},{"protocol":"tcp","serviceId":"1s2","sourcePort":80,"targetPort":30080}]"#;
    let made = format!(
        r#"POST /loadbalancerservices {{"launchConfig":{{"imageUuid":"docker:rancher/lb:1","ports":["80:80/tcp"]}},"lbConfig":{{"portRules":{rules}}},"name":"{NAME}","stackId":"1st1"}}"#
    );
    assert_eq!(first_write(with(vec![], both())), made);
    let changed =
        format!(r#"PUT /loadbalancerservices/1s9 {{"lbConfig":{{"config":"maxconn 9","portRules":{rules}}}}}"#);
    assert_eq!(first_write(with(vec![balancer(&["1s1"])], both())), changed);
    let mut other_ports = balancer(&["1s1", "1s2"]);
    other_ports["launchConfig"]["ports"] = json!(["81:81/tcp"]);
    assert_eq!(
        first_write(with(vec![other_ports], both())),
        "DELETE /loadbalancerservices/1s9"
    );
    let gone = vec![balancer(&["1s1", "1s3"])];
    let dropped = [both(), vec![unmarked("1s3", "gone", "10.0.0.3")]].concat();
    assert!(first_write(with(gone, dropped)).starts_with("PUT /externalservices/1s3 {\"metadata\""));
}

#[test]
fn nothing_is_written_where_nothing_differs() {
    let (host, kept) = cloud(Shown {
        balancers: vec![balancer(&["1s1", "1s2"])],
        externals: both(),
        ..Shown::default()
    });
    let rancher = provider(&host);
    assert_eq!(
        rancher.ensure(&service(), &targets(), None),
        Ok(Balancer::at(vec![Ingress::ip("192.0.2.9")]))
    );
    assert_eq!(rancher.update_targets(&service(), &targets(), None), Ok(vec![]));
    assert_eq!(kept.borrow().writes, [""; 0]);
    assert_eq!(
        names(&host),
        ["GET /loadbalancerservices", "GET /externalservices"].repeat(2)
    );
    assert_eq!(
        rancher.get(&service()),
        Ok(Some(Balancer::at(vec![Ingress::ip("192.0.2.9")])))
    );
}

#[test]
fn states_on_the_way_are_pending_and_errors_are_told() {
    let ensured = |change: &dyn Fn(&mut Value)| {
        let mut one = balancer(&["1s1", "1s2"]);
        change(&mut one);
        let (host, _kept) = cloud(Shown {
            balancers: vec![one],
            externals: both(),
            stacks: vec![stack()],
            writes: Vec::new(),
        });
        provider(&host).ensure(&service(), &targets(), None)
    };
    let pending = |ensured: Result<Balancer, Failure>, text: &str| {
        let failure = ensured.unwrap_err();
        assert!(
            matches!(failure.kind, FailureKind::Pending(_)) && failure.message.contains(text),
            "{failure:?}"
        );
    };
    pending(ensured(&|one| one["state"] = "registering".into()), "is registering");
    pending(ensured(&|one| one["state"] = "removing".into()), "is removing");
    pending(ensured(&|one| one["publicEndpoints"] = json!([])), "has no address yet");
    let failed = ensured(&|one| {
        (one["state"], one["transitioning"]) = ("activating".into(), "error".into());
        one["transitioningMessage"] = "Scheduling failed: no host has port 80".into();
    });
    let failure = failed.unwrap_err();
    assert!(
        failure.kind == FailureKind::Unavailable && failure.message.contains("no host has port 80"),
        "{failure:?}"
    );
}

#[test]
fn an_external_service_that_lags_keeps_no_address_back() {
    let mut externals = both();
    externals[1]["state"] = "registering".into();
    let (host, _kept) = cloud(Shown {
        balancers: vec![balancer(&["1s1", "1s2"])],
        externals,
        ..Shown::default()
    });
    let rancher = provider(&host);
    let ready = rancher.ensure(&service(), &targets(), None).unwrap();
    assert_eq!(ready.ingress, [Ingress::ip("192.0.2.9")]);
    assert!(
        ready
            .remaining
            .is_some_and(|left| left.message.contains("node-2 is registering"))
    );
    let failure = rancher.update_targets(&service(), &targets(), None).unwrap_err();
    assert!(matches!(failure.kind, FailureKind::Pending(_)), "{failure:?}");
}

#[test]
fn two_load_balancers_of_one_name_are_not_guessed_between() {
    let mut second = balancer(&[]);
    second["id"] = "1s8".into();
    let (host, kept) = cloud(Shown {
        balancers: vec![balancer(&[]), second],
        ..Shown::default()
    });
    for failure in [
        provider(&host).ensure(&service(), &targets(), None).unwrap_err(),
        provider(&host).delete(&service(), None).unwrap_err(),
    ] {
        assert!(failure.message.contains("1s9, 1s8"), "{failure:?}");
    }
    assert_eq!(kept.borrow().writes, [""; 0]);
}

#[test]
fn a_deletion_marks_removes_and_sweeps() {
    let deleted = |balancers, externals: Vec<Value>, stacks| {
        let (host, kept) = cloud(Shown {
            balancers,
            externals,
            stacks,
            writes: Vec::new(),
        });
        let ended = provider(&host).delete(&service(), None);
        (ended.is_ok(), kept.borrow().writes.clone())
    };
    assert_eq!(deleted(vec![], vec![], vec![]), (true, vec![]));
    assert_eq!(deleted(vec![], vec![], vec![stack()]), (true, vec![]));
    let (_, writes) = deleted(
        vec![balancer(&["1s3"])],
        vec![unmarked("1s3", "gone", "10.0.0.3")],
        vec![],
    );
    assert_eq!(
        writes[0],
        r#"PUT /externalservices/1s3 {"metadata":{"cloudwit":"node"}}"#
    );
    let (_, writes) = deleted(vec![balancer(&["1s1", "1s2"])], both(), vec![]);
    assert_eq!(writes[0], "DELETE /loadbalancerservices/1s9");
    let mut other = balancer(&["1s2"]);
    other["name"] = "lb-other".into();
    let (_, writes) = deleted(vec![other], both(), vec![stack()]);
    assert_eq!(writes[0], "DELETE /externalservices/1s1");
    let mut gone = balancer(&[]);
    gone["state"] = "removed".into();
    assert_eq!(deleted(vec![gone], vec![], vec![]), (true, vec![]));
}

#[test]
fn targets_of_a_load_balancer_that_is_not_there_are_not_found() {
    let (host, _kept) = cloud(Shown::default());
    let failure = provider(&host)
        .update_targets(&service(), &targets(), None)
        .unwrap_err();
    assert!(failure.is_not_found());
    let updates = [0, 1].map(|_| TargetUpdate {
        service: service(),
        token: None,
    });
    drop(host);
    let (host, _kept) = cloud(Shown {
        balancers: vec![balancer(&["1s1", "1s2"])],
        externals: both(),
        ..Shown::default()
    });
    let updated = provider(&host).update_targets_of(&updates, &targets()).unwrap();
    assert!(updated.iter().all(Result::is_ok), "{updated:?}");
    let calls = names(&host);
    assert_eq!(calls.len(), 3, "external services are listed once: {calls:?}");
}

#[test]
fn a_dry_run_changes_nothing() {
    let (host, kept) = cloud(Shown::default());
    host.dry_run();
    let failure = provider(&host).ensure(&service(), &targets(), None).unwrap_err();
    assert!(failure.message.contains("dry run"), "{failure:?}");
    assert_eq!(kept.borrow().writes, [""; 0]);
}
