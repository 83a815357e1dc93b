//! Load balancers from their first job to the last: on free and named addresses, changed, in a VPC, half made, deleted without a trace.

use cloudwit_test_support::files::cloudstack::clients_of_others;
use cloudwit_test_support::{NodeBuilder, ServiceBuilder};
use serde_json::{Value, json};

use crate::scene::{ALL, Scene};

const PREFIX: &str = "service.beta.kubernetes.io/cloudstack-load-balancer-";

fn key(name: &str) -> String {
    format!("{PREFIX}{name}")
}

fn behind(rule: &Value) -> usize {
    rule["machines"].as_array().map_or(0, Vec::len)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_lives_changes_and_goes() {
    let scene = Scene::with_nodes().await;
    let web = ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    let ip = scene.address("web", "").await;
    let uid = web.metadata.uid.unwrap().replace('-', "");
    let name = format!("a{}-tcp-80", &uid[..31]);
    let node_port = web.spec.unwrap().ports.unwrap()[0].node_port.unwrap();
    // As another client reads it, under upstream's names.
    let shown = clients_of_others(&scene.cloud, "shown").await.unwrap();
    let expected = json!({ name.as_str(): ["tcp", "80", node_port.to_string(), ip.as_str(), ["one", "two"]] });
    assert_eq!(shown, expected);
    let open = scene.has("firewall").await;
    assert_eq!(
        (open.len(), &open[0]["cidrlist"], &open[0]["startport"]),
        (1, &json!("0.0.0.0/0"), &json!(80))
    );
    assert_eq!(scene.annotation("web", &key("ip-associated-by-controller")).await, None);

    // A change that changes nothing in the cloud: reads only.
    scene.cloud.forget_calls().await.unwrap();
    scene.annotate("web", "example.com/touched", json!("1")).await;
    scene
        .settled("it is looked at", || async {
            match scene.calls("listLoadBalancerRuleInstances").await {
                0 => Err("not yet".into()),
                _ => Ok(()),
            }
        })
        .await;
    assert_eq!(scene.writes().await, 0);

    let affinity = json!({ "spec": { "sessionAffinity": "ClientIP" } });
    scene.patch("web", affinity).await;
    let source = |all: &[Value]| all[0]["algorithm"] == "source";
    scene.comes("affinity", "rules", source).await;
    let ranges = json!({ "spec": { "loadBalancerSourceRanges": ["10.0.0.0/8", "192.0.2.0/24"] } });
    scene.patch("web", ranges).await;
    let narrowed = |all: &[Value]| all.len() == 1 && all[0]["cidrlist"] == "10.0.0.0/8,192.0.2.0/24";
    scene.comes("sources", "firewall", narrowed).await;
    scene.annotate("web", &key("source-cidrs"), json!("10.0.0.0/8")).await;
    let cidrs = |all: &[Value]| all[0]["cidrlist"] == "10.0.0.0/8";
    scene.comes("networks of the rule", "rules", cidrs).await;
    assert_eq!(
        scene.calls("deleteLoadBalancerRule").await,
        0,
        "4.22 changes the networks in place"
    );
    let before = scene.has("rules").await[0]["id"].clone();
    scene.does("version", json!({ "version": "4.20.1.0" })).await;
    scene.annotate("web", &key("proxy-protocol"), json!("true")).await;
    let proxied = |all: &[Value]| all.len() == 1 && all[0]["protocol"] == "tcp-proxy" && behind(&all[0]) == 2;
    scene
        .comes("another rule with the PROXY protocol", "rules", proxied)
        .await;
    assert_ne!(scene.has("rules").await[0]["id"], before);
    scene.annotate("web", &key("hostname"), json!("web.example.com")).await;
    scene
        .settled("the host name is published", || async {
            let service = scene.services().get("web").await.unwrap();
            let shown = service.status.and_then(|status| status.load_balancer?.ingress);
            match shown.and_then(|shown| shown[0].hostname.clone()).as_deref() {
                Some("web.example.com") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    scene.annotate("web", &key("hostname"), Value::Null).await;
    assert_eq!(scene.address("web", "").await, ip);

    let ports = json!([
        { "name": "a", "port": 443, "protocol": "TCP" }, { "name": "b", "port": 53, "protocol": "UDP" }, { "name": "c", "port": 53, "protocol": "TCP" },
    ]);
    scene.patch("web", json!({ "spec": { "ports": ports } })).await;
    let three = |all: &[Value]| all.len() == 3 && all.iter().all(|rule| behind(rule) == 2);
    scene.comes("three rules", "rules", three).await;
    let opened = |all: &[Value]| all.len() == 3 && all.iter().all(|rule| rule["startport"] != 80);
    scene.comes("three openings", "firewall", opened).await;
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn named_addresses_stay_unless_they_were_free() {
    let scene = Scene::with_nodes().await;
    let account = scene.does("account", json!({})).await;
    let mine = json!({
        "command": "associateIpAddress", "projectid": account["project"], "networkid": account["network"], "ipaddress": "203.0.113.77",
    });
    scene.does("command", mine).await;
    let named = |name: &str, ip: &str, port: i32| {
        let ip = ip.to_owned();
        ServiceBuilder::new(name).spec(move |spec| {
            spec.load_balancer_ip = Some(ip);
            spec.ports.as_mut().unwrap()[0].port = port;
        })
    };
    named("mine", "203.0.113.77", 80).create(&scene.client).await.unwrap();
    assert_eq!(scene.address("mine", "").await, "203.0.113.77");
    named("free", "203.0.113.88", 80).create(&scene.client).await.unwrap();
    assert_eq!(scene.address("free", "").await, "203.0.113.88");
    // Another Service on the same address.
    named("also", "203.0.113.88", 81).create(&scene.client).await.unwrap();
    assert_eq!(scene.address("also", "").await, "203.0.113.88");
    for (service, associated) in [("mine", "false"), ("free", "true"), ("also", "false")] {
        let found = scene.annotation(service, &key("ip-associated-by-controller")).await;
        assert_eq!(found.as_deref(), Some(associated), "{service}");
    }
    named("nowhere", "198.51.100.1", 80)
        .create(&scene.client)
        .await
        .unwrap();
    let parts = ["198.51.100.1", "is no public address"];
    scene.warned("nowhere", "SyncLoadBalancerFailed", &parts).await;
    scene.is_gone("nowhere").await;

    let has = async |ip: &str| scene.has("addresses").await.iter().any(|one| one["ipaddress"] == ip);
    scene.is_gone("mine").await;
    assert!(has("203.0.113.77").await, "it is the user's");
    scene.is_gone("free").await;
    assert!(has("203.0.113.88").await, "another Service uses it");
    // It names another one: the rules move.
    scene
        .patch("also", json!({ "spec": { "loadBalancerIP": "203.0.113.77" } }))
        .await;
    assert_eq!(scene.address("also", "203.0.113.88").await, "203.0.113.77");
    let moved = |all: &[Value]| all.len() == 1 && all[0]["publicip"] == "203.0.113.77";
    scene.comes("one rule", "rules", moved).await;
    scene.is_gone("also").await;
    assert_eq!(scene.has("rules").await.len() + scene.has("firewall").await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vpc_has_rules_in_its_own_acl_only() {
    let mut scene = Scene::new().await;
    let network = json!({ "name": "tier", "services": ["Lb", "NetworkACL"], "vpc": true, "acl": "nodes" });
    let tier = scene.does("add_network", network).await;
    let machine = json!({ "name": "one", "network": tier["id"] });
    scene.does("add_machine", machine).await;
    NodeBuilder::new("one").create(&scene.client).await.unwrap();
    let by_hand = json!({
        "command": "createNetworkACL", "aclid": tier["aclid"], "protocol": "tcp", "startport": "22", "endport": "22", "cidrlist": "10.0.0.0/8",
        "action": "Deny", "traffictype": "Ingress",
    });
    scene.does("command", by_hand).await;
    scene.start(&[ALL]).await;
    scene.initialised("one").await;
    let web =
        ServiceBuilder::new("web").spec(|spec| spec.load_balancer_source_ranges = Some(vec!["192.0.2.0/24".into()]));
    web.create(&scene.client).await.unwrap();
    scene.address("web", "").await;
    let address = &scene.has("addresses").await[0];
    assert_eq!(address["vpcid"], tier["vpcid"]);
    let opening = |all: &[Value], cidrs: &str| {
        let own = |one: &&Value| one["startport"] == "80" && one["action"] == "Allow" && one["cidrlist"] == cidrs;
        all.len() == 2 && all.iter().filter(own).count() == 1
    };
    assert!(opening(&scene.has("openings").await, "192.0.2.0/24"));
    scene
        .patch("web", json!({ "spec": { "loadBalancerSourceRanges": null } }))
        .await;
    scene
        .comes("open to all", "openings", |all| opening(all, "0.0.0.0/0"))
        .await;
    scene.is_gone("web").await;
    let left = scene.has("openings").await;
    assert_eq!(
        (left.len(), &left[0]["startport"]),
        (1, &json!("22")),
        "what was made by hand stays"
    );
    assert_eq!(scene.has("addresses").await.len() + scene.has("rules").await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_failed_jobs_lost_answers_and_a_crash_are_got_over() {
    let mut scene = Scene::with_nodes().await;
    scene.does("quota", json!({ "limit": 0 })).await;
    ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    scene
        .warned("web", "SyncLoadBalancerFailed", &["535", "public_ip"])
        .await;
    let limit = "please retry after 500 ms.";
    let slow = json!({ "createloadbalancerruleresponse": { "errorcode": 429, "errortext": limit } });
    let faults = json!([
        // The cloud does it, and the answer is lost.
        { "body": "command=createTags", "obey": true, "status": 0 },
        { "body": "command=createLoadBalancerRule", "obey": true, "status": 0 },
        { "body": "command=createFirewallRule", "status": 429, "value": slow },
    ]);
    scene.cloud.faults(faults).await.unwrap();
    let fails = json!({ "command": "assignToLoadBalancerRule", "code": 534, "text": "the router is away" });
    scene.does("fail_jobs", fails).await;
    scene.does("quota", json!({})).await;
    scene
        .patch("web", json!({ "spec": { "sessionAffinity": "ClientIP" } }))
        .await;
    let ip = scene.address("web", "").await;
    assert_eq!(scene.has("addresses").await.len(), 1, "nothing is made twice");
    assert_eq!(behind(&scene.has("rules").await[0]), 2);

    // The process dies while jobs run, and another one continues.
    scene.does("operations_take", json!({ "seconds": 2.0 })).await;
    let ports =
        json!([{ "name": "a", "port": 80, "protocol": "TCP" }, { "name": "b", "port": 443, "protocol": "TCP" }]);
    scene.patch("web", json!({ "spec": { "ports": ports } })).await;
    scene.comes("it is being changed", "rules", |all| all.len() == 2).await;
    scene.kill().unwrap();
    scene.does("operations_take", json!({ "seconds": 0.1 })).await;
    scene.start(&[ALL]).await;
    let both = |all: &[Value]| all.len() == 2 && all.iter().all(|rule| behind(rule) == 2);
    scene.comes("both have machines", "rules", both).await;
    scene.comes("both are open", "firewall", |all| all.len() == 2).await;

    // Deleted by somebody else: it comes back with the same address.
    let rule = scene.has("rules").await[0]["id"].clone();
    scene.does("delete", json!({ "kind": "rules", "id": rule })).await;
    scene
        .patch("web", json!({ "spec": { "sessionAffinity": "None" } }))
        .await;
    scene.comes("it is back", "rules", both).await;
    assert_eq!(scene.shown_address("web").await, Some(ip));
    let fails = json!({ "command": "disassociateIpAddress", "code": 530, "text": "not now" });
    scene.does("fail_jobs", fails).await;
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_come_and_go_behind_several_services() {
    // Calls are counted: the Nodes' addresses are not looked at meanwhile.
    let scene = Scene::with_nodes_by(&[ALL, "--node-status-update-frequency=1h"]).await;
    scene.does("operations_take", json!({ "seconds": 0 })).await;
    for number in 0..5 {
        let service = ServiceBuilder::new(&format!("web-{number}"));
        service.create(&scene.client).await.unwrap();
    }
    for number in 0..5 {
        scene.address(&format!("web-{number}"), "").await;
    }
    let all_have = |count: usize| move |all: &[Value]| all.len() == 5 && all.iter().all(|rule| behind(rule) == count);
    scene.comes("all have two", "rules", all_have(2)).await;
    scene.cloud.forget_calls().await.unwrap();
    let three = scene.joins("three").await;
    scene.comes("it is behind all", "rules", all_have(3)).await;
    assert_eq!(scene.calls("assignToLoadBalancerRule").await, 5);
    let calls: Vec<String> = scene
        .cloud
        .calls()
        .await
        .unwrap()
        .into_iter()
        .map(|call| call.name)
        .collect();
    println!("5 Services: {} calls for a Node", calls.len());
    let lists = calls.iter().filter(|name| *name == "listVirtualMachines").count();
    assert!(
        lists <= 10,
        "one for each Service at most, beside those for the Node itself: {calls:?}"
    );
    // Its machine is gone before its Node is: nothing is spoilt for the others.
    scene.does("delete", json!({ "kind": "machines", "id": three })).await;
    scene.joins("four").await;
    let four = |all: &[Value]| all.len() == 5 && all.iter().all(|rule| behind(rule) >= 3);
    scene.comes("another one is behind all", "rules", four).await;
}
