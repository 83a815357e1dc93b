//! Rules and probes that annotations, families and the cloud config change: single ports, node ports, all ports, one probe for all Services, who is denied.

use cloudwit_test_support::ServiceBuilder;
use k8s_openapi::api::core::v1::{Service, ServicePort};
use serde_json::{Value, json};

use crate::scene::Scene;
use crate::services::{INTERNAL, rules};

const APART: &str = "service.beta.kubernetes.io/azure-disable-load-balancer-floating-ip";
const ALL_PORTS: &str = "service.beta.kubernetes.io/azure-load-balancer-enable-high-availability-ports";
const DENY: &str = "service.beta.kubernetes.io/azure-deny-all-except-load-balancer-source-ranges";

/// The port 443 beside that of the builder.
fn with_443(service: ServiceBuilder) -> ServiceBuilder {
    service.spec(|spec| {
        let ports = spec.ports.get_or_insert_default();
        ports[0].name = Some("web".into());
        ports.push(ServicePort {
            name: Some("secure".into()),
            port: 443,
            ..ports[0].clone()
        });
    })
}

fn node_port(service: &Service, at: usize) -> i32 {
    service.spec.as_ref().unwrap().ports.as_ref().unwrap()[at]
        .node_port
        .unwrap()
}

fn probes(balancer: &Value) -> &[Value] {
    let probes = balancer["properties"]["probes"].as_array();
    probes.map_or(&[], Vec::as_slice)
}

/// Destinations of a rule of the security group.
fn to(rule: &Value) -> Vec<&str> {
    let to = rule["properties"]["destinationAddressPrefixes"].as_array().unwrap();
    to.iter().filter_map(Value::as_str).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn single_ports_are_set_apart_by_their_annotations() {
    let scene = Scene::with_nodes().await;
    let web = with_443(ServiceBuilder::new("web"))
        .annotation("service.beta.kubernetes.io/port_443_no_lb_rule", "true")
        .annotation("service.beta.kubernetes.io/port_80_health-probe_protocol", "http")
        .annotation("service.beta.kubernetes.io/port_80_health-probe_port", "secure")
        .annotation("service.beta.kubernetes.io/port_80_health-probe_interval", "15")
        .annotation("service.beta.kubernetes.io/port_80_health-probe_request-path", "/live");
    let web = web.create(&scene.client).await.unwrap();
    scene.address("web", "").await;
    let balancer = scene.has("loadBalancers").await.remove(0);
    let probed = json!({
        "protocol": "Http", "port": node_port(&web, 1), "requestPath": "/live", "intervalInSeconds": 15, "probeThreshold": 2,
    });
    assert_eq!((rules(&balancer).len(), probes(&balancer).len()), (1, 1));
    assert_eq!(probes(&balancer)[0]["properties"], probed);
    let plain = json!({ "metadata": { "annotations": {
        "service.beta.kubernetes.io/port_443_no_lb_rule": null, "service.beta.kubernetes.io/port_80_no_probe_rule": "true",
    }}});
    scene.patch("web", plain).await;
    scene
        .comes("the other port, with the only probe", "loadBalancers", |all| {
            let rules = rules(&all[0]);
            let has_probe = |rule: &Value| !rule["properties"]["probe"].is_null();
            rules.len() == 2 && !has_probe(&rules[0]) && has_probe(&rules[1]) && probes(&all[0]).len() == 1
        })
        .await;
    scene
        .annotate(
            "web",
            "service.beta.kubernetes.io/port_80_health-probe_interval",
            json!("4"),
        )
        .await;
    let parts = ["port_80_health-probe_interval is \"4\"", "from 5 to 119"];
    scene.warned("web", "SyncLoadBalancerFailed", &parts).await;
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_without_floating_ip_lead_to_node_ports_that_open_with_the_nodes() {
    let scene = Scene::with_nodes().await;
    let service = with_443(ServiceBuilder::new("web")).annotation(APART, "true");
    let web = service.create(&scene.client).await.unwrap();
    let ip = scene.address("web", "").await;
    let balancer = scene.has("loadBalancers").await.remove(0);
    for (at, rule) in rules(&balancer).iter().enumerate() {
        let rule = &rule["properties"];
        assert_eq!(
            (&rule["backendPort"], &rule["enableFloatingIP"]),
            (&json!(node_port(&web, at)), &json!(false))
        );
    }
    let mut ports = [0, 1].map(|at| node_port(&web, at).to_string());
    ports.sort();
    scene
        .allows("the node ports of two Nodes", |rules| {
            rules.len() == 1
                && to(&rules[0]).len() == 2
                && rules[0]["properties"]["destinationPortRanges"] == json!(ports)
        })
        .await;
    // One that floats is beside it, and the Nodes of both change.
    ServiceBuilder::new("also").create(&scene.client).await.unwrap();
    let other = scene.address("also", "").await;
    scene.joins("three", "10.244.3.0/24").await;
    scene
        .allows("those of three", |rules| {
            rules.len() == 2 && to(&rules[0]).len() == 3 && to(&rules[1]) == [other.as_str()]
        })
        .await;
    scene.annotate("web", APART, Value::Null).await;
    scene
        .allows("the address of the load balancer", |rules| {
            let mut all: Vec<&str> = rules.iter().flat_map(to).collect();
            all.sort_unstable();
            let mut expected = [ip.as_str(), other.as_str()];
            expected.sort_unstable();
            all == expected
        })
        .await;
    scene.annotate("web", APART, json!("true")).await;
    scene
        .allows("the Nodes again", |rules| rules.iter().any(|rule| to(rule).len() == 3))
        .await;
    scene.is_gone("also").await;
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn internal_one_has_addresses_of_two_families() {
    let scene = Scene::with_nodes().await;
    let service = ServiceBuilder::new("web").annotation(INTERNAL, "true").spec(|spec| {
        spec.ip_family_policy = Some("RequireDualStack".into());
        spec.load_balancer_source_ranges = Some(vec!["10.0.0.0/8".into(), "fd00::/8".into()]);
    });
    let web = service.create(&scene.client).await.unwrap();
    scene
        .settled("the Service has two addresses", || async {
            let found = scene.services().get("web").await.unwrap().status.unwrap();
            let ingress = found
                .load_balancer
                .and_then(|status| status.ingress)
                .unwrap_or_default();
            let ips: Vec<String> = ingress.into_iter().filter_map(|one| one.ip).collect();
            match ips.as_slice() {
                [v4, v6] if v4.starts_with("10.224.") && v6.starts_with("fd00::") => Ok(()),
                _ => Err(format!("{ips:?}")),
            }
        })
        .await;
    let balancer = scene.has("loadBalancers").await.remove(0);
    let led: Vec<Value> = rules(&balancer)
        .iter()
        .map(|rule| rule["properties"]["backendPort"].clone())
        .collect();
    assert_eq!(led, [json!(80), json!(node_port(&web, 0))]);
    scene
        .allows("the address of one family, the Nodes of the other", |rules| {
            rules.len() == 2 && to(&rules[0])[0].starts_with("10.224.") && to(&rules[1]).len() == 2
        })
        .await;
    let fixed = "service.beta.kubernetes.io/azure-load-balancer-ipv6";
    scene.annotate("web", fixed, json!("FD00::0:77")).await;
    scene
        .comes("a fixed address", "loadBalancers", |all| {
            all[0]["properties"]["frontendIPConfigurations"][1]["properties"]["privateIPAddress"] == "fd00::77"
        })
        .await;
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_rule_is_for_all_ports_and_all_other_sources_are_denied() {
    let scene = Scene::with_nodes().await;
    let service = with_443(ServiceBuilder::new("web")).annotation(INTERNAL, "true");
    let service = service.annotation(ALL_PORTS, "true").annotation(DENY, "true");
    let service = service.spec(|spec| spec.load_balancer_source_ranges = Some(vec!["10.9.0.0/16".into()]));
    service.create(&scene.client).await.unwrap();
    let ip = scene.address("web", "").await;
    let balancer = scene.has("loadBalancers").await.remove(0);
    let all = &rules(&balancer)[0]["properties"];
    assert_eq!(
        (rules(&balancer).len(), &all["protocol"], &all["frontendPort"]),
        (1, &json!("All"), &json!(0))
    );
    scene
        .allows("its sources, and no others", |rules| {
            let denied = rules.iter().find(|rule| rule["properties"]["access"] == "Deny");
            rules.len() == 2
                && denied.is_some_and(|rule| {
                    rule["name"] == "k8s-azure-lb_deny-all_IPv4"
                        && rule["properties"]["priority"] == 4095
                        && to(rule) == [ip.as_str()]
                })
        })
        .await;
    let plain = json!({ "metadata": { "annotations": { ALL_PORTS: null, DENY: null } } });
    scene.patch("web", plain).await;
    scene
        .comes("a rule for each port", "loadBalancers", |all| rules(&all[0]).len() == 2)
        .await;
    scene.allows("nothing is denied", |rules| rules.len() == 1).await;
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn services_share_a_probe_that_goes_with_the_last() {
    let shared = json!({ "clusterServiceLoadBalancerHealthProbeMode": "shared" });
    let scene = Scene::with_nodes_and(shared).await;
    for name in ["web", "also"] {
        ServiceBuilder::new(name).create(&scene.client).await.unwrap();
        scene.address(name, "").await;
    }
    let balancer = scene.has("loadBalancers").await.remove(0);
    let expected = json!({ "protocol": "Http", "port": 10256, "requestPath": "/healthz", "intervalInSeconds": 5, "probeThreshold": 2 });
    assert_eq!(
        (probes(&balancer).len(), &probes(&balancer)[0]["properties"]),
        (1, &expected)
    );
    scene
        .patch("web", json!({ "spec": { "externalTrafficPolicy": "Local" } }))
        .await;
    let names = |all: &[Value]| {
        let mut names: Vec<String> = probes(&all[0])
            .iter()
            .map(|probe| probe["name"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    scene
        .comes("a probe of its own beside it", "loadBalancers", |all| {
            let names = names(all);
            names.len() == 2 && names[1] == "cluster-service-shared-health-probe"
        })
        .await;
    scene.is_gone("also").await;
    let left = scene.has("loadBalancers").await;
    assert_eq!(names(&left).len(), 1, "no rule has the shared one any more");
    scene.leaves_nothing("web").await;
}
