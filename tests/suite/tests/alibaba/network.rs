//! Network Load Balancers, for Services of their class: jobs, server groups of their own, zones; deleted without a trace.

use serde_json::{Value, json};

use crate::scene::{NLB, Scene, key, members};

impl Scene {
    /// Waits until the Service is reached by a host name.
    async fn host_name(&self, service: &str) -> String {
        let shown = || async {
            let service = self.services().get(service).await.unwrap();
            service.status?.load_balancer?.ingress?.first()?.hostname.clone()
        };
        self.settled("the Service has a host name", || async {
            shown().await.map(drop).ok_or_else(|| "none".to_owned())
        })
        .await;
        shown().await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_lives_changes_and_goes() {
    let scene = Scene::with_nodes().await;
    let web = scene.serves("web", Some(NLB), &[]).await;
    let name = scene.host_name("web").await;
    let node_port = web.spec.unwrap().ports.unwrap()[0].node_port.unwrap();
    let balancer = &scene.has("nlbs").await[0];
    assert_eq!(
        (&balancer["DNSName"], &balancer["AddressType"]),
        (&json!(name), &json!("Internet"))
    );
    let zones: Vec<&Value> = balancer["ZoneMappings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|zone| &zone["VSwitchId"])
        .collect();
    assert_eq!(zones, ["vsw-1", "vsw-2"]);
    let group = &scene.has("nlb-groups").await[0];
    let expected = format!("k8s.{node_port}.TCP.web.default.c0a1b2c3d4e5f6");
    assert_eq!(
        (group["ServerGroupName"].as_str(), members(group)),
        (Some(expected.as_str()), 2)
    );
    let listener = &scene.has("nlb-listeners").await[0];
    assert_eq!(listener["ListenerDescription"], "k8s.80.TCP.web.default.c0a1b2c3d4e5f6");
    assert_eq!(scene.has("balancers").await.len(), 0, "no Classic one");

    scene.cloud.forget_calls().await.unwrap();
    scene.annotate("web", "example.com/touched", json!("1")).await;
    scene.called("nlb:ListListeners", 1).await;
    assert_eq!(scene.writes().await, Vec::<String>::new());

    for (annotation, value, kind, at, shown) in [
        ("idle-timeout", "300", "nlb-listeners", "/IdleTimeout", json!(300)),
        (
            "proxy-protocol",
            "on",
            "nlb-listeners",
            "/ProxyProtocolEnabled",
            json!(true),
        ),
        ("cps", "1000", "nlb-listeners", "/Cps", json!(1000)),
        ("scheduler", "sch", "nlb-groups", "/Scheduler", json!("sch")),
        (
            "connection-drain",
            "on",
            "nlb-groups",
            "/ConnectionDrainEnabled",
            json!(true),
        ),
        (
            "health-check-uri",
            "/ready",
            "nlb-groups",
            "/HealthCheck/HealthCheckUrl",
            json!("/ready"),
        ),
        (
            "health-check-httpcode",
            "http_2xx,http_3xx",
            "nlb-groups",
            "/HealthCheck/HealthCheckHttpCode",
            json!(["http_2xx", "http_3xx"]),
        ),
        ("cross-zone-enabled", "off", "nlbs", "/CrossZoneEnabled", json!(false)),
        ("address-type", "intranet", "nlbs", "/AddressType", json!("Intranet")),
        (
            "security-group-ids",
            "sg-1,sg-2",
            "nlbs",
            "/SecurityGroupIds",
            json!(["sg-1", "sg-2"]),
        ),
        (
            "bandwidth-package-id",
            "cbwp-1",
            "nlbs",
            "/BandwidthPackageId",
            json!("cbwp-1"),
        ),
        (
            "delete-protection",
            "off",
            "nlbs",
            "/DeletionProtectionConfig/Enabled",
            json!(false),
        ),
    ] {
        scene.annotate("web", &key(annotation), json!(value)).await;
        scene
            .comes(annotation, kind, |all| all[0].pointer(at) == Some(&shown))
            .await;
    }
    scene.annotate("web", &key("security-group-ids"), json!("sg-2")).await;
    scene
        .comes("a security group less", "nlbs", |all| {
            all[0]["SecurityGroupIds"] == json!(["sg-2"])
        })
        .await;
    scene
        .annotate(
            "web",
            &key("zone-maps"),
            json!("cn-hangzhou-g:vsw-1,cn-hangzhou-k:vsw-3"),
        )
        .await;
    scene
        .comes("another zone", "nlbs", |all| {
            all[0]["ZoneMappings"][1]["VSwitchId"] == "vsw-3"
        })
        .await;
    scene.annotate("web", &key("delete-protection"), json!("on")).await;

    scene.annotate("web", &key("cert-id"), json!("1-cn-hangzhou")).await;
    scene.annotate("web", &key("protocol-port"), json!("tcpssl:443")).await;
    let ports = json!({ "spec": { "ports": [{ "name": "a", "port": 443, "protocol": "TCP" }, { "name": "b", "port": 443, "protocol": "UDP" }] } });
    scene.patch("web", ports).await;
    let both = |all: &[Value]| {
        let mut all: Vec<&str> = all
            .iter()
            .filter(|one| one["ListenerStatus"] == "Running")
            .map(|one| one["ListenerProtocol"].as_str().unwrap())
            .collect();
        all.sort_unstable();
        all == ["TCPSSL", "UDP"]
    };
    scene.comes("TLS and UDP", "nlb-listeners", both).await;
    scene
        .comes("two groups with members", "nlb-groups", |all| {
            all.len() == 2 && all.iter().all(|group| members(group) == 2)
        })
        .await;
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_jobs_lost_answers_and_a_crash_are_got_over() {
    let mut scene = Scene::with_nodes().await;
    for action in ["CreateServerGroup", "AddServersToServerGroup", "CreateListener"] {
        scene.does("fail_jobs", json!({ "action": action })).await;
    }
    // The cloud does it, and the answer is lost.
    let lost = json!([{ "body": "LoadBalancerName=a", "obey": true, "status": 0 }]);
    scene.cloud.faults(lost).await.unwrap();
    scene.serves("web", Some(NLB), &[]).await;
    scene.host_name("web").await;
    assert_eq!(
        (scene.has("nlbs").await.len(), scene.has("nlb-groups").await.len()),
        (1, 1),
        "nothing is made twice"
    );
    let running = |all: &[Value]| all.len() == 1 && all[0]["ListenerStatus"] == "Running";
    scene.comes("its listener runs", "nlb-listeners", running).await;

    // The process dies while jobs run, and another one continues. It takes long enough to be seen on a busy machine.
    scene.does("operations_take", json!({ "seconds": 20.0 })).await;
    scene.joins("three").await;
    scene
        .comes("it is being changed", "nlb-groups", |all| {
            all[0]["ServerGroupStatus"] == "Configuring"
        })
        .await;
    scene.kill().unwrap();
    scene.does("operations_take", json!({ "seconds": 0.1 })).await;
    scene.run(&[crate::scene::ALL]).await;
    scene
        .comes("three members", "nlb-groups", |all| members(&all[0]) == 3)
        .await;
    scene.does("fail_jobs", json!({ "action": "DeleteLoadBalancer" })).await;
    scene.leaves_nothing("web").await;
}
