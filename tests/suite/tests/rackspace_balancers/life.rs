//! The life of load balancers without anything going wrong.

use cloudwit_test_support::ServiceBuilder;
use k8s_openapi::api::core::v1::ServicePort;
use serde_json::{Value, json};

use crate::stage::{Stage, addresses, id, nodes, ports, vips};

/// TCP 80 and UDP 53.
fn two_ports(name: &str) -> ServiceBuilder {
    ServiceBuilder::new(name).spec(|spec| {
        let ports = spec.ports.get_or_insert_default();
        ports.push(ServicePort {
            name: Some("dns".into()),
            protocol: Some("UDP".into()),
            port: 53,
            ..ServicePort::default()
        });
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn two_ports_share_an_address_and_follow_nodes_and_ports() {
    let mut stage = Stage::new("create-monitor = true\n").await;
    stage.create(two_ports("web")).await;
    let address = stage.exposed("web").await;
    let shown = stage
        .shows("there are two", |shown| ports(shown) == ["UDP 53", "TCP 80"])
        .await;
    assert_eq!(vips(&shown[0]), vips(&shown[1]));
    assert_eq!(shown[0]["virtualIps"][0]["address"], json!(address));
    let mut all = vec![stage.address_of("node-1").await, stage.address_of("node-2").await];
    all.sort();
    let name = stage.name_of("web").await;
    let monitor = json!({ "type": "CONNECT", "delay": 10, "timeout": 5, "attemptsBeforeDeactivation": 3 });
    let service = stage.service("web").await;
    for one in &shown {
        assert_eq!((nodes(one), &one["name"]), (all.clone(), &json!(name)));
        let is_udp = one["protocol"] == "UDP";
        assert_eq!(one["healthMonitor"], if is_udp { Value::Null } else { monitor.clone() });
        assert_eq!(one["metadata"][0]["value"], "default/web");
        assert_eq!(one["metadata"][1]["value"], "lab");
        let own = service.spec.as_ref().unwrap().ports.as_ref().unwrap();
        let port = own
            .iter()
            .find(|port| Some(i64::from(port.port)) == one["port"].as_i64());
        assert_eq!(one["nodes"][0]["port"].as_i64(), port.unwrap().node_port.map(i64::from));
    }
    let made = ["POST loadbalancers 202", "POST loadbalancers 202"];
    assert_eq!(stage.writes().await, made, "each in one request");

    // After a restart what is there is taken over.
    stage.kill();
    let lists = stage.lists().await;
    stage.start().await;
    stage.looked_again(lists).await;
    stage
        .installation
        .settled("both were read", || async {
            let calls = stage.mimic.cloud.calls().await.unwrap();
            match calls.iter().filter(|call| call.name == "GET loadbalancers/ID").count() {
                3.. => Ok(()),
                count => Err(format!("read {count} times")),
            }
        })
        .await;
    assert_eq!(stage.writes().await, made);

    let label = json!({ "metadata": { "labels": { "node.kubernetes.io/exclude-from-external-load-balancers": "" } } });
    let patch = kube::api::Patch::Merge(label);
    let patched = stage
        .installation
        .nodes()
        .patch("node-2", &Default::default(), &patch)
        .await;
    patched.unwrap();
    let left = vec![stage.address_of("node-1").await];
    stage
        .shows("the excluded Node is behind none", |shown| {
            shown.len() == 2 && shown.iter().all(|one| nodes(one) == left)
        })
        .await;

    let only = json!({ "spec": { "ports": [{ "name": "http", "port": 81, "protocol": "TCP" }] } });
    stage.patch("web", only).await;
    let shown = stage
        .shows("only the new port is left", |shown| ports(shown) == ["TCP 81"])
        .await;
    assert_eq!(nodes(&shown[0]), left);
    assert_eq!(
        addresses(&stage.service("web").await),
        std::slice::from_ref(&address),
        "the address stays"
    );
    assert_eq!(shown[0]["virtualIps"][0]["address"], json!(address));
    stage.delete("web").await;
    assert_eq!(stage.balancers().await, [Value::Null; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_affinity_and_annotations_apply_and_revert() {
    let stage = Stage::new("monitor-delay = 7s\n").await;
    let service = ServiceBuilder::new("web").spec(|spec| {
        spec.load_balancer_source_ranges = Some(vec!["10.0.0.0/8".into()]);
        spec.session_affinity = Some("ClientIP".into());
    });
    stage.create(service).await;
    stage.exposed("web").await;
    let list = |one: &Value| {
        let items = one["accessList"].as_array().into_iter().flatten();
        let item = |item: &Value| format!("{} {}", item["type"], item["address"]).replace('"', "");
        let mut items: Vec<String> = items.map(item).collect();
        items.sort();
        items
    };
    let shown = stage.balancers().await;
    assert_eq!(list(&shown[0]), ["ALLOW 10.0.0.0/8", "DENY 0.0.0.0/0"]);
    assert_eq!(shown[0]["sessionPersistence"]["persistenceType"], "SOURCE_IP");
    assert_eq!(
        (&shown[0]["algorithm"], &shown[0]["timeout"]),
        (&json!("ROUND_ROBIN"), &json!(30))
    );
    assert_eq!(shown[0]["healthMonitor"], Value::Null);
    assert_eq!(stage.writes().await.len(), 1, "all of it in the first request");

    stage
        .patch(
            "web",
            json!({ "spec": {
                "loadBalancerSourceRanges": ["192.0.2.7/32", "10.0.0.0/8"],
                "externalTrafficPolicy": "Local",
            } }),
        )
        .await;
    stage
        .shows("one more may connect, and traffic stays local", |shown| {
            list(&shown[0]) == ["ALLOW 10.0.0.0/8", "ALLOW 192.0.2.7/32", "DENY 0.0.0.0/0"]
                && shown[0]["healthMonitor"]["delay"] == 7
        })
        .await;
    stage.annotate("web", "algorithm", json!("least_connections")).await;
    stage.annotate("web", "timeout", json!("120")).await;
    stage
        .shows("algorithm and timeout", |shown| {
            shown[0]["algorithm"] == "LEAST_CONNECTIONS" && shown[0]["timeout"] == 120
        })
        .await;

    stage
        .patch(
            "web",
            json!({ "spec": {
                "loadBalancerSourceRanges": null, "sessionAffinity": "None", "externalTrafficPolicy": "Cluster",
            } }),
        )
        .await;
    let shown = stage
        .shows("everybody may connect to any node", |shown| {
            let gone = |key: &str| shown[0][key].is_null();
            gone("accessList") && gone("sessionPersistence") && gone("healthMonitor")
        })
        .await;
    // Changes by hand go with the next change of the Service.
    let account = stage.account().await;
    let by_hand = |method, path: &str, body| account.by_hand(method, format!("/{}{path}", id(&shown[0])).leak(), body);
    let change = json!({ "loadBalancer": { "timeout": 5 } });
    by_hand(http::Method::PUT, "", change).await.unwrap();
    let change = json!({ "accessList": [{ "address": "0.0.0.0/0", "type": "DENY" }] });
    by_hand(http::Method::POST, "/accesslist", change).await.unwrap();
    let foreign = json!({ "nodes": [{ "address": "10.9.9.9", "port": 1, "condition": "ENABLED" }] });
    by_hand(http::Method::POST, "/nodes", foreign).await.unwrap();
    stage.annotate("web", "timeout", json!("60")).await;
    stage
        .shows("what was done by hand is undone", |shown| {
            shown[0]["timeout"] == 60 && shown[0]["accessList"].is_null() && nodes(&shown[0]).len() == 2
        })
        .await;
    stage.delete("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn internal_one_is_on_servicenet_and_address_can_be_shared() {
    let stage = Stage::new("").await;
    stage.create(ServiceBuilder::new("web")).await;
    let public = stage.exposed("web").await;
    let other = ServiceBuilder::new("api").spec(|spec| {
        spec.load_balancer_ip = Some(public.clone());
        spec.ports.get_or_insert_default()[0].port = 8080;
    });
    stage.create(other).await;
    assert_eq!(stage.exposed("api").await, public);
    let shown = stage.balancers().await;
    assert_eq!(
        (ports(&shown), vips(&shown[0])),
        (vec!["TCP 80".into(), "TCP 8080".into()], vips(&shown[1]))
    );

    stage.annotate("web", "internal", json!("true")).await;
    let shown = stage
        .shows("it moved to ServiceNet", |shown| {
            ports(shown) == ["TCP 80", "TCP 8080"] && shown[0]["virtualIps"][0]["type"] == "SERVICENET"
        })
        .await;
    let inside = shown[0]["virtualIps"][0]["address"].as_str().unwrap().to_owned();
    stage
        .installation
        .settled("the Service shows the new address", || async {
            match addresses(&stage.service("web").await) {
                shown if shown == [inside.clone()] => Ok(()),
                shown => Err(format!("{shown:?}")),
            }
        })
        .await;
    assert_eq!(addresses(&stage.service("api").await), [public]);
    stage.delete("web").await;
    assert_eq!(
        ports(&stage.balancers().await),
        ["TCP 8080"],
        "the other Service keeps its own"
    );
    stage.delete("api").await;
    assert_eq!(stage.balancers().await, [Value::Null; 0]);
}
