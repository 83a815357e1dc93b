//! Load balancers from their first operation to the last: external and internal ones, changed, shared, half made, deleted without a trace.

use cloudwit_test_support::ServiceBuilder;
use cloudwit_test_support::files::azure::microsofts_clients;
use cloudwit_test_support::scenes::rig::address;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::scene::Scene;

/// The provider's, with its role.
const README: &str = include_str!("../../../../providers/azure/README.md");

pub const CONTROLLERS: &str =
    "--controllers=cloud-node-controller,service-lb-controller,cloud-node-lifecycle-controller";
pub const INTERNAL: &str = "service.beta.kubernetes.io/azure-load-balancer-internal";
const FIXED: &str = "service.beta.kubernetes.io/azure-load-balancer-ipv4";
const BALANCER: &str = "PUT Microsoft.Network/loadBalancers";

impl Scene {
    /// Two Nodes, and Cloudwit.
    pub async fn with_nodes() -> Self {
        Self::with_nodes_and(json!({})).await
    }

    /// The same, with further keys of the cloud config.
    pub async fn with_nodes_and(config: Value) -> Self {
        let mut scene = Self::new().await;
        scene.config = config;
        scene.does("operations_take", json!({ "seconds": 0.2 })).await;
        scene.joins("one", "10.244.1.0/24").await;
        scene.joins("two", "10.244.2.0/24").await;
        scene.start(&[CONTROLLERS]).await;
        scene.initialised("one").await;
        scene.initialised("two").await;
        scene
    }

    pub fn services(&self) -> Api<Service> {
        Api::default_namespaced(self.client.clone())
    }

    /// Waits for another address than this.
    pub async fn address(&self, service: &str, but: &str) -> String {
        self.settled("the Service has an address", || async {
            match self.shown_address(service).await {
                Some(ip) if ip != but => Ok(()),
                shown => Err(format!("{shown:?}")),
            }
        })
        .await;
        self.shown_address(service).await.unwrap()
    }

    async fn shown_address(&self, service: &str) -> Option<String> {
        address(&self.services().get_opt(service).await.unwrap()?)
    }

    pub async fn has(&self, kind: &str) -> Vec<Value> {
        self.cloud.resources(json!({ "kind": kind })).await.unwrap()
    }

    /// Waits until what is there of a kind is as wished.
    pub async fn comes(&self, what: &str, kind: &str, wished: impl Fn(&[Value]) -> bool) {
        self.settled(what, || async {
            let all = self.has(kind).await;
            if wished(&all) { Ok(()) } else { Err(format!("{all:?}")) }
        })
        .await;
    }

    /// Waits until the rules of the security group are as wished.
    pub async fn allows(&self, what: &str, wished: impl Fn(&[Value]) -> bool) {
        self.comes(what, "networkSecurityGroups", |all| {
            let rules = all[0]["properties"]["securityRules"].as_array();
            wished(rules.map_or(&[], Vec::as_slice))
        })
        .await;
    }

    pub async fn patch(&self, service: &str, patch: Value) {
        let patch = Patch::Merge(patch);
        self.services()
            .patch(service, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub async fn annotate(&self, service: &str, key: &str, value: Value) {
        self.patch(service, json!({ "metadata": { "annotations": { key: value } } }))
            .await;
    }

    pub async fn is_gone(&self, service: &str) {
        self.services().delete(service, &DeleteParams::default()).await.unwrap();
        self.settled("the Service is gone", || async {
            match self.services().get_opt(service).await.unwrap() {
                None => Ok(()),
                Some(_) => Err("it is there".into()),
            }
        })
        .await;
    }

    /// Deletes it and waits until nothing is left in the cloud.
    pub async fn leaves_nothing(&self, service: &str) {
        self.is_gone(service).await;
        for kind in ["loadBalancers", "publicIPAddresses", "privateLinkServices"] {
            assert_eq!(self.has(kind).await, Vec::<Value>::new(), "{kind}");
        }
        self.allows("no rule is left", <[Value]>::is_empty).await;
        self.only_permitted().await;
    }

    /// All that was called is in the role that the README advises.
    async fn only_permitted(&self) {
        for call in self.cloud.calls().await.unwrap() {
            let Some((method, resource)) = call.name.split_once(" Microsoft.") else {
                continue;
            };
            let verb = match method {
                "GET" => "read",
                "PUT" => "write",
                _ => "delete",
            };
            let action = format!("\"Microsoft.{}/{verb}\"", resource.trim_end_matches(".list"));
            assert!(README.contains(&action) || call.agent.contains("azsdk"), "{action}");
        }
    }

    async fn writes(&self) -> usize {
        let calls = self.cloud.calls().await.unwrap();
        let is_write = |method: &str| method == "PUT" || method == "DELETE";
        calls.iter().filter(|call| is_write(&call.method)).count()
    }
}

pub fn rules(balancer: &Value) -> &[Value] {
    let rules = balancer["properties"]["loadBalancingRules"].as_array();
    rules.map_or(&[], Vec::as_slice)
}

pub fn behind(balancer: &Value) -> usize {
    let pool = &balancer["properties"]["backendAddressPools"][0]["properties"];
    pool["loadBalancerBackendAddresses"].as_array().map_or(0, Vec::len)
}

#[tokio::test(flavor = "multi_thread")]
async fn external_one_lives_changes_and_goes() {
    let scene = Scene::with_nodes().await;
    let web = ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    let ip = scene.address("web", "").await;
    let balancers = scene.has("loadBalancers").await;
    assert_eq!((balancers.len(), behind(&balancers[0])), (1, 2));
    // As Microsoft's own client reads it, under upstream's names.
    let uid = web.metadata.uid.unwrap().replace('-', "");
    let name = format!("a{}-TCP-80", &uid[..31]);
    let shown = microsofts_clients(&scene.cloud, "shown").await.unwrap();
    assert_eq!(shown[balancers[0]["name"].as_str().unwrap()], json!([name]));

    // A change that changes nothing in the cloud: reads only.
    scene.cloud.forget_calls().await.unwrap();
    scene.annotate("web", "example.com/touched", json!("1")).await;
    scene
        .settled("it is looked at", || async {
            match scene.calls("GET Microsoft.Network/networkSecurityGroups").await {
                0 => Err("not yet".into()),
                _ => Ok(()),
            }
        })
        .await;
    assert_eq!(scene.writes().await, 0);

    scene
        .patch("web", json!({ "spec": { "sessionAffinity": "ClientIP" } }))
        .await;
    scene
        .comes("affinity", "loadBalancers", |all| {
            rules(&all[0])[0]["properties"]["loadDistribution"] == "SourceIP"
        })
        .await;
    scene
        .patch("web", json!({ "spec": { "loadBalancerSourceRanges": ["10.0.0.0/8"] } }))
        .await;
    scene
        .allows("sources", |rules| {
            rules.len() == 1 && rules[0]["properties"]["sourceAddressPrefixes"] == json!(["10.0.0.0/8"])
        })
        .await;
    scene
        .patch("web", json!({ "spec": { "externalTrafficPolicy": "Local" } }))
        .await;
    scene
        .comes("a probe of its own", "loadBalancers", |all| {
            all[0]["properties"]["probes"][0]["properties"]["requestPath"] == "/healthz"
        })
        .await;
    assert_eq!(scene.shown_address("web").await, Some(ip.clone()));
    // Deleted by somebody else: it comes back with the same address.
    let path = scene.has("loadBalancers").await[0]["id"].clone();
    scene.does("delete", json!({ "path": path })).await;
    scene
        .patch("web", json!({ "spec": { "sessionAffinity": "None" } }))
        .await;
    scene
        .comes("it is back", "loadBalancers", |all| {
            all.first().is_some_and(|one| rules(one).len() == 1)
        })
        .await;
    assert_eq!(scene.shown_address("web").await, Some(ip));
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn internal_one_lives_becomes_external_and_goes() {
    let scene = Scene::with_nodes().await;
    let service = ServiceBuilder::new("web").annotation(INTERNAL, "true");
    service.create(&scene.client).await.unwrap();
    let ip = scene.address("web", "").await;
    assert!(ip.starts_with("10.224."), "{ip}");
    scene.annotate("web", FIXED, json!("10.224.7.7")).await;
    assert_eq!(scene.address("web", &ip).await, "10.224.7.7");
    scene
        .patch(
            "web",
            json!({ "spec": { "loadBalancerSourceRanges": ["10.9.0.0/16"] } }),
        )
        .await;
    scene
        .allows("its sources", |rules| {
            rules.len() == 1 && rules[0]["properties"]["destinationAddressPrefixes"] == json!(["10.224.7.7"])
        })
        .await;
    let plain = json!({ "metadata": { "annotations": { INTERNAL: null, FIXED: null } } });
    scene.patch("web", plain).await;
    let external = scene.address("web", "10.224.7.7").await;
    assert!(external.starts_with("20.100."), "{external}");
    scene
        .comes("the internal one is gone", "loadBalancers", |all| all.len() == 1)
        .await;
    scene
        .allows("and so is its address", |rules| {
            rules.len() == 1 && rules[0]["properties"]["destinationAddressPrefixes"] == json!([external])
        })
        .await;
    scene.annotate("web", INTERNAL, json!("true")).await;
    let ip = scene.address("web", &external).await;
    assert!(ip.starts_with("10.224."), "{ip}");
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_share_an_address_that_goes_with_the_last() {
    let scene = Scene::with_nodes().await;
    ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    let ip = scene.address("web", "").await;
    let also = ServiceBuilder::new("also").annotation(FIXED, &ip);
    let also = also.spec(|spec| spec.ports.as_mut().unwrap()[0].port = 81);
    also.create(&scene.client).await.unwrap();
    assert_eq!(scene.address("also", "").await, ip);
    let clash = ServiceBuilder::new("clash").annotation(FIXED, &ip);
    clash.create(&scene.client).await.unwrap();
    scene
        .warned("clash", "SyncLoadBalancerFailed", &["belongs to another Service"])
        .await;
    scene.is_gone("clash").await;
    let fronts = |all: &[Value]| {
        all[0]["properties"]["frontendIPConfigurations"]
            .as_array()
            .map_or(0, Vec::len)
    };
    scene
        .comes("one frontend, two rules", "loadBalancers", |all| {
            fronts(all) == 1 && rules(&all[0]).len() == 2
        })
        .await;
    let tag = |all: &[Value]| all[0]["tags"]["k8s-azure-service"].clone();
    assert_eq!(tag(&scene.has("publicIPAddresses").await), "default/web,default/also");
    // The one whose frontend it is goes first.
    scene.is_gone("web").await;
    let left = scene.has("loadBalancers").await;
    assert_eq!((fronts(&left), rules(&left[0]).len()), (1, 1));
    assert_eq!(tag(&scene.has("publicIPAddresses").await), "default/also");
    scene.allows("its port stays open", |rules| rules.len() == 1).await;
    scene.leaves_nothing("also").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn throttling_quotas_edits_of_others_and_a_crash_are_got_over() {
    let mut scene = Scene::with_nodes().await;
    let kind = "publicIPAddresses";
    scene.does("quota", json!({ "kind": kind, "limit": 0 })).await;
    let error = |code: &str| json!({ "error": { "code": code, "message": "so it says" } });
    ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    scene
        .warned("web", "SyncLoadBalancerFailed", &["PublicIPCountLimitReached"])
        .await;
    let faults = json!([
        // The cloud does it, and the answer is lost.
        { "method": "PUT", "path": "/publicIPAddresses/", "obey": true, "status": 0 },
        { "method": "PUT", "path": "/loadBalancers/", "status": 429, "headers": { "Retry-After": "1" }, "value": error("TooManyRequests") },
        { "method": "PUT", "path": "/loadBalancers/", "status": 409, "value": error("AnotherOperationInProgress") },
        { "method": "PUT", "path": "/networkSecurityGroups/", "status": 412, "value": error("PreconditionFailedEtagMismatch") },
    ]);
    scene.cloud.faults(faults).await.unwrap();
    scene.does("quota", json!({ "kind": kind })).await;
    scene
        .patch("web", json!({ "spec": { "sessionAffinity": "ClientIP" } }))
        .await;
    let ip = scene.address("web", "").await;
    assert_eq!(scene.has(kind).await.len(), 1, "nothing is made twice");
    // What others write meanwhile stays.
    let mut group = scene.has("networkSecurityGroups").await.remove(0);
    let by_hand = json!({ "name": "by-hand", "properties": {
        "priority": 501, "direction": "Inbound", "access": "Deny", "protocol": "*", "sourceAddressPrefix": "*", "sourcePortRange": "*",
        "destinationAddressPrefix": "*", "destinationPortRange": "22",
    }});
    group["properties"]["securityRules"]
        .as_array_mut()
        .unwrap()
        .push(by_hand);
    scene
        .does("put", json!({ "path": group["id"], "resource": group }))
        .await;
    // The process dies while the cloud works, and another one continues. It takes long enough to be seen on a busy machine.
    scene.does("operations_take", json!({ "seconds": 20.0 })).await;
    let ports =
        json!([{ "name": "a", "port": 80, "protocol": "TCP" }, { "name": "b", "port": 443, "protocol": "TCP" }]);
    scene.patch("web", json!({ "spec": { "ports": ports } })).await;
    scene
        .comes("it is being changed", "loadBalancers", |all| {
            all[0]["properties"]["provisioningState"] == "Updating"
        })
        .await;
    scene.kill().unwrap();
    scene.does("operations_take", json!({ "seconds": 0.1 })).await;
    scene.start(&[CONTROLLERS]).await;
    scene
        .allows("both ports are open", |rules| {
            let open = |rule: &Value| rule["properties"]["destinationPortRanges"] == json!(["443", "80"]);
            rules.iter().any(open) && rules.iter().any(|rule| rule["name"] == "by-hand")
        })
        .await;
    assert_eq!(scene.shown_address("web").await, Some(ip));
    scene.is_gone("web").await;
    scene
        .allows("what was made by hand stays", |rules| {
            rules.len() == 1 && rules[0]["name"] == "by-hand"
        })
        .await;
    assert_eq!(scene.has("loadBalancers").await, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_services_share_and_a_node_costs_one_change() {
    let scene = Scene::with_nodes().await;
    scene.does("operations_take", json!({ "seconds": 0 })).await;
    for number in 0..20 {
        let service = ServiceBuilder::new(&format!("web-{number}"));
        service.create(&scene.client).await.unwrap();
    }
    for number in 0..20 {
        scene.address(&format!("web-{number}"), "").await;
    }
    let made = (scene.calls(BALANCER).await, scene.writes().await);
    assert!(
        (20..=30).contains(&made.0),
        "{made:?}: one change each, and few that somebody came before"
    );
    scene
        .allows("one rule for all", |rules| {
            let to = rules[0]["properties"]["destinationAddressPrefixes"].as_array();
            rules.len() == 1 && to.map(Vec::len) == Some(20)
        })
        .await;
    scene.cloud.forget_calls().await.unwrap();
    scene.joins("three", "10.244.3.0/24").await;
    scene
        .comes("it is behind all", "loadBalancers", |all| behind(&all[0]) == 3)
        .await;
    let calls = scene.cloud.calls().await.unwrap().len();
    println!("20 Services: {made:?} changes of load balancers and in all; {calls} calls for a Node");
    assert_eq!(scene.calls(BALANCER).await, 1);
    for number in 0..20 {
        scene
            .services()
            .delete(&format!("web-{number}"), &DeleteParams::default())
            .await
            .unwrap();
    }
    scene
        .comes("all are gone", "publicIPAddresses", <[Value]>::is_empty)
        .await;
    assert_eq!(scene.has("loadBalancers").await, Vec::<Value>::new());
    scene.allows("no rule is left", <[Value]>::is_empty).await;
}
