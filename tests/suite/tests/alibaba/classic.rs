//! Classic Load Balancers: made, changed in all ways, used though the user's, deleted without a trace.

use serde_json::{Value, json};

use crate::scene::{CLB_API, Scene, key, members, name_of};

#[tokio::test(flavor = "multi_thread")]
async fn one_lives_changes_and_goes() {
    let scene = Scene::with_nodes().await;
    let web = scene.serves("web", None, &[("spec", "slb.s1.small")]).await;
    let ip = scene.address("web", "").await;
    let node_port = i64::from(web.spec.unwrap().ports.unwrap()[0].node_port.unwrap());
    let uid = web.metadata.uid.unwrap().replace('-', "");
    let balancer = &scene.has("balancers").await[0];
    assert_eq!(balancer["Address"], ip.as_str());
    assert_eq!(balancer["LoadBalancerName"], format!("a{}", &uid[..31]));
    assert_eq!(
        balancer["tags"]["kubernetes.do.not.delete"],
        balancer["LoadBalancerName"]
    );
    assert_eq!(
        (&balancer["InstanceChargeType"], &balancer["DeleteProtection"]),
        (&json!("PayByCLCU"), &json!("on"))
    );
    let group = &scene.has("groups").await[0];
    assert_eq!((&group["name"], members(group)), (&json!(name_of(node_port, "web")), 2));
    let listener = &scene.has("listeners").await[0];
    assert_eq!(
        (&listener["Description"], &listener["Status"], &listener["Scheduler"]),
        (&json!(name_of(80, "web")), &json!("running"), &json!("rr"))
    );

    // A change that changes nothing in the cloud: reads only.
    scene.cloud.forget_calls().await.unwrap();
    scene.annotate("web", "example.com/touched", json!("1")).await;
    scene.called("slb:DescribeLoadBalancerListeners", 1).await;
    assert_eq!(scene.writes().await, Vec::<String>::new());

    for (annotation, value, field, shown) in [
        ("scheduler", "wlc", "Scheduler", json!("wlc")),
        ("persistence-timeout", "600", "PersistenceTimeout", json!(600)),
        ("health-check-type", "http", "HealthCheckType", json!("http")),
        ("health-check-uri", "/ready", "HealthCheckURI", json!("/ready")),
        ("health-check-interval", "9", "HealthCheckInterval", json!(9)),
        ("connection-drain", "on", "ConnectionDrain", json!("on")),
        ("proxy-protocol", "on", "ProxyProtocolV2Enabled", json!(true)),
    ] {
        scene.annotate("web", &key(annotation), json!(value)).await;
        scene.comes(annotation, "listeners", |all| all[0][field] == shown).await;
    }
    let acl = json!({ "metadata": { "annotations": { key("acl-status"): "on", key("acl-type"): "white", key("acl-id"): "acl-2,acl-1" } } });
    scene.patch("web", acl).await;
    scene
        .comes("access lists", "listeners", |all| {
            all[0]["acls"] == json!(["acl-1", "acl-2"])
        })
        .await;
    for (annotation, value, field, shown) in [
        ("name", "the-web", "LoadBalancerName", json!("the-web")),
        (
            "charge-type",
            "paybybandwidth",
            "InternetChargeType",
            json!("paybybandwidth"),
        ),
        ("bandwidth", "42", "Bandwidth", json!(42)),
        (
            "modification-protection",
            "NonProtection",
            "ModificationProtectionStatus",
            json!("NonProtection"),
        ),
        (
            "instance-charge-type",
            "PayBySpec",
            "LoadBalancerSpec",
            json!("slb.s1.small"),
        ),
        ("spec", "slb.s2.small", "LoadBalancerSpec", json!("slb.s2.small")),
    ] {
        scene.annotate("web", &key(annotation), json!(value)).await;
        scene.comes(annotation, "balancers", |all| all[0][field] == shown).await;
    }
    scene
        .annotate("web", &key("additional-resource-tags"), json!("team=a,stage=b"))
        .await;
    scene
        .comes("tags", "balancers", |all| {
            all[0]["tags"]["team"] == "a" && all[0]["tags"]["stage"] == "b"
        })
        .await;

    // Layer 7 on the same port, and further ports.
    let ports = json!({ "spec": { "ports": [
        { "name": "a", "port": 80, "protocol": "TCP" }, { "name": "b", "port": 443, "protocol": "TCP" }, { "name": "c", "port": 53, "protocol": "UDP" },
    ] } });
    scene.annotate("web", &key("proxy-protocol"), Value::Null).await;
    scene.annotate("web", &key("cert-id"), json!("cert-1")).await;
    scene
        .annotate("web", &key("protocol-port"), json!("http:80,https:443"))
        .await;
    scene.patch("web", ports).await;
    let protocols = |all: &[Value]| {
        let mut all: Vec<String> = all
            .iter()
            .filter(|one| one["Status"] == "running")
            .map(|one| one["ListenerProtocol"].to_string())
            .collect();
        all.sort();
        all == ["\"http\"", "\"https\"", "\"udp\""]
    };
    scene.comes("three listeners", "listeners", protocols).await;
    scene
        .comes("three groups", "groups", |all| {
            all.len() == 3 && all.iter().all(|group| members(group) == 2)
        })
        .await;
    assert_eq!(scene.shown_address("web").await, Some(ip));
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_the_users_gets_members_and_stays() {
    let scene = Scene::with_nodes().await;
    let made = scene
        .command(
            CLB_API,
            "CreateLoadBalancer",
            json!({ "LoadBalancerName": "mine", "AddressType": "internet" }),
        )
        .await;
    let id = made["LoadBalancerId"].as_str().unwrap();
    let by_hand = json!({ "LoadBalancerId": id, "ListenerPort": 80, "Bandwidth": -1, "Description": "mine" });
    scene.command(CLB_API, "CreateLoadBalancerTCPListener", by_hand).await;
    scene.serves("web", None, &[("id", id)]).await;
    assert_eq!(scene.address("web", "").await, made["Address"].as_str().unwrap());
    let groups = |all: &[Value]| all.len() == 1 && members(&all[0]) == 2;
    scene.comes("a group with members", "groups", groups).await;
    assert_eq!(scene.has("listeners").await[0]["Description"], "mine");
    scene
        .annotate("web", &key("force-override-listeners"), json!("true"))
        .await;
    let own =
        |all: &[Value]| all.len() == 1 && all[0]["Description"] == name_of(80, "web") && all[0]["Status"] == "running";
    scene.comes("the listener is taken over", "listeners", own).await;
    // That of another Service is not taken.
    scene.serves("thief", None, &[]).await;
    scene.address("thief", "").await;
    let other = scene.has("balancers").await;
    let other = other.iter().find(|one| one["LoadBalancerName"] != "mine").unwrap();
    scene
        .serves("robber", None, &[("id", other["LoadBalancerId"].as_str().unwrap())])
        .await;
    scene
        .warned("robber", "SyncLoadBalancerFailed", &["is another Service's"])
        .await;
    for service in ["robber", "thief", "web"] {
        scene.is_gone(service).await;
    }
    let left = scene.has("balancers").await;
    assert_eq!((left.len(), &left[0]["LoadBalancerName"]), (1, &json!("mine")));
    assert_eq!(scene.has("listeners").await.len() + scene.has("groups").await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_refused_and_what_has_no_effect_is_said() {
    let scene = Scene::with_nodes().await;
    scene
        .serves(
            "odd",
            None,
            &[
                ("vgroup-port", "rsp-1:80"),
                ("scheduler", "wrr"),
                ("cookie", "x"),
                ("zone-maps", "a:b"),
            ],
        )
        .await;
    scene
        .warned("odd", "SyncLoadBalancerFailed", &["vgroup-port", "not there yet"])
        .await;
    scene.annotate("odd", &key("vgroup-port"), Value::Null).await;
    scene
        .warned("odd", "UnsupportedAnnotation", &["cookie", "no port of this Service"])
        .await;
    scene
        .warned("odd", "UnsupportedAnnotation", &["zone-maps", "no such thing"])
        .await;
    scene.address("odd", "").await;
    // Access for some must not become access for all.
    scene
        .patch("odd", json!({ "spec": { "loadBalancerSourceRanges": ["10.0.0.0/8"] } }))
        .await;
    scene
        .warned("odd", "SyncLoadBalancerFailed", &["loadBalancerSourceRanges", "acl-id"])
        .await;
    scene.annotate("odd", &key("address-type"), json!("intranet")).await;
    scene
        .patch("odd", json!({ "spec": { "loadBalancerSourceRanges": null } }))
        .await;
    scene
        .warned("odd", "SyncLoadBalancerFailed", &["address-type", "cannot be changed"])
        .await;
    scene.leaves_nothing("odd").await;

    scene.serves("inside", None, &[("address-type", "intranet")]).await;
    let ip = scene.address("inside", "").await;
    let balancer = &scene.has("balancers").await[0];
    assert!(ip.starts_with("10.") && balancer["VSwitchId"] == "vsw-1", "{balancer}");
    scene
        .annotate("inside", &key("preserve-lb-on-delete"), json!("true"))
        .await;
    scene.called("slb:DescribeLoadBalancers", 1).await;
    scene.is_gone("inside").await;
    let kept = &scene.has("balancers").await[0];
    assert_eq!((&kept["tags"], &kept["DeleteProtection"]), (&json!({}), &json!("off")));
    assert_eq!(scene.has("listeners").await.len(), 1);
}
