//! Load balancers from their first operation to the last: external and internal ones, changed, adopted from upstream, deleted without a trace.

use cloudwit_test_support::ServiceBuilder;
use cloudwit_test_support::files::gce::google_client;
use cloudwit_test_support::scenes::rig::address;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::scene::{Scene, ZONE};

/// All kinds of resources that load balancers are made of.
const KINDS: [&str; 8] = [
    "forwardingRules",
    "targetPools",
    "backendServices",
    "firewalls",
    "httpHealthChecks",
    "healthChecks",
    "addresses",
    "instanceGroups",
];

const UPSTREAM_FINALIZER: &str = "gke.networking.io/l4-netlb-v1";

pub const INTERNAL: (&str, &str) = ("networking.gke.io/load-balancer-type", "Internal");

impl Scene {
    /// Two Nodes in two zones, and Cloudwit.
    pub async fn with_nodes() -> Self {
        let mut scene = Self::new().await;
        scene.does("operations_take", json!({ "seconds": 0.2 })).await;
        scene.joins("one", ZONE, "10.244.1.0/24").await;
        scene.joins("two", "us-central1-b", "10.244.2.0/24").await;
        scene
            .start(&["--controllers=cloud-node-controller,service-lb-controller,cloud-node-lifecycle-controller"])
            .await;
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

    /// Waits until what is in a collection is as wished.
    pub async fn comes(&self, what: &str, collection: &str, wished: impl Fn(&Value) -> bool) {
        self.settled(what, || async {
            let all = self.has(collection).await;
            if wished(&Value::Object(all.clone())) {
                Ok(())
            } else {
                Err(format!("{all:?}"))
            }
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

    /// Deletes it and waits until nothing is left in the cloud.
    pub async fn leaves_nothing(&self, service: &str) {
        self.services().delete(service, &DeleteParams::default()).await.unwrap();
        self.settled("the Service is gone", || async {
            match self.services().get_opt(service).await.unwrap() {
                None => Ok(()),
                Some(_) => Err("it is there".into()),
            }
        })
        .await;
        for kind in KINDS {
            assert!(self.has(kind).await.is_empty(), "{kind}: {:?}", self.has(kind).await);
        }
    }

    /// How many calls changed something, but for routes, which their controller makes meanwhile.
    async fn writes(&self) -> usize {
        let calls = self.cloud.calls().await.unwrap();
        calls
            .iter()
            .filter(|call| {
                call.method != "GET"
                    && call.method != "HEAD"
                    && call.name != "/token"
                    && !call.name.ends_with("listInstances")
                    && !call.name.starts_with("routes.")
            })
            .count()
    }
}

/// The first resource of a collection.
fn first(all: &Value) -> &Value {
    all.as_object()
        .and_then(|all| all.values().next())
        .unwrap_or(&Value::Null)
}

fn count(value: &Value) -> usize {
    value.as_array().map_or(0, Vec::len)
}

#[tokio::test(flavor = "multi_thread")]
async fn external_one_lives_changes_and_goes() {
    let scene = Scene::with_nodes().await;
    ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    let ip = scene.address("web", "").await;
    scene
        .comes("its address is the rule's alone", "addresses", |all| all == &json!({}))
        .await;
    scene
        .comes("both machines are behind it", "targetPools", |all| {
            count(&first(all)["instances"]) == 2
        })
        .await;
    let rules = scene.has("forwardingRules").await;
    assert_eq!(rules.values().next().unwrap()["IPAddress"], ip.as_str());

    // Session affinity: the rule is made anew and keeps its address.
    scene
        .patch("web", json!({ "spec": { "sessionAffinity": "ClientIP" } }))
        .await;
    scene
        .comes("affinity", "targetPools", |all| {
            first(all)["sessionAffinity"] == "CLIENT_IP"
        })
        .await;
    scene
        .comes("the rule is back", "forwardingRules", |all| {
            first(all)["IPAddress"] == ip.as_str()
        })
        .await;
    // Source ranges: only the firewall rule changes.
    scene
        .patch("web", json!({ "spec": { "loadBalancerSourceRanges": ["10.0.0.0/8"] } }))
        .await;
    scene
        .comes("sources", "firewalls", |all| {
            let mut rules = all.as_object().unwrap().iter();
            rules.any(|(name, rule)| name.contains("/k8s-fw-") && rule["sourceRanges"] == json!(["10.0.0.0/8"]))
        })
        .await;
    // Only local Pods: a check of its own, and the shared one stays until the last Service.
    scene
        .patch("web", json!({ "spec": { "externalTrafficPolicy": "Local" } }))
        .await;
    scene
        .comes("a check of its own", "httpHealthChecks", |all| {
            all.as_object().unwrap().keys().any(|name| !name.contains("/k8s-"))
        })
        .await;
    scene
        .comes("the rule is back", "forwardingRules", |all| {
            first(all)["IPAddress"] == ip.as_str()
        })
        .await;
    // The other tier has other addresses.
    scene
        .patch(
            "web",
            json!({ "metadata": { "annotations": { "cloud.google.com/network-tier": "Standard" } } }),
        )
        .await;
    let standard = scene.address("web", &ip).await;
    scene
        .comes("the tier", "forwardingRules", |all| {
            first(all)["networkTier"] == "STANDARD" && first(all)["IPAddress"] == standard.as_str()
        })
        .await;
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn internal_one_lives_becomes_external_and_goes() {
    let scene = Scene::with_nodes().await;
    let service = ServiceBuilder::new("web").annotation(INTERNAL.0, INTERNAL.1);
    service.create(&scene.client).await.unwrap();
    let ip = scene.address("web", "").await;
    assert!(ip.starts_with("10.128."), "{ip}");
    scene
        .comes("two zones are behind it", "backendServices", |all| {
            count(&first(all)["backends"]) == 2
        })
        .await;
    scene
        .comes("its address is the rule's alone", "addresses", |all| all == &json!({}))
        .await;
    let access = "networking.gke.io/internal-load-balancer-allow-global-access";
    scene
        .patch("web", json!({ "metadata": { "annotations": { access: "true" } } }))
        .await;
    scene
        .comes("other regions", "forwardingRules", |all| {
            first(all)["allowGlobalAccess"] == true && first(all)["IPAddress"] == ip.as_str()
        })
        .await;
    scene
        .patch("web", json!({ "metadata": { "annotations": { INTERNAL.0: null } } }))
        .await;
    let external = scene.address("web", &ip).await;
    assert!(external.starts_with("34.72."), "{external}");
    scene
        .comes("the backend service is gone", "backendServices", |all| {
            all == &json!({})
        })
        .await;
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_come_and_go_behind_both_kinds_without_another_rule() {
    let scene = Scene::with_nodes().await;
    ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    let inner = ServiceBuilder::new("inner").annotation(INTERNAL.0, INTERNAL.1);
    inner.create(&scene.client).await.unwrap();
    scene.address("web", "").await;
    scene.address("inner", "").await;
    scene
        .comes("nothing is held", "addresses", |all| all == &json!({}))
        .await;
    scene.cloud.forget_calls().await.unwrap();
    scene.joins("three", "us-central1-c", "10.244.3.0/24").await;
    scene
        .comes("it is in the pool", "targetPools", |all| {
            count(&first(all)["instances"]) == 3
        })
        .await;
    scene
        .comes("and its zone a backend", "backendServices", |all| {
            count(&first(all)["backends"]) == 3
        })
        .await;
    let members = |all: &Value| {
        all.as_object()
            .unwrap()
            .values()
            .map(|group| count(&group["_members"]))
            .sum::<usize>()
    };
    scene
        .comes("and in its zone's group", "instanceGroups", |all| members(all) == 3)
        .await;
    scene.nodes().delete("one", &DeleteParams::default()).await.unwrap();
    scene
        .comes("the deleted one is out", "targetPools", |all| {
            count(&first(all)["instances"]) == 2
        })
        .await;
    scene
        .comes("and out of its group", "instanceGroups", |all| members(all) == 2)
        .await;
    scene
        .comes("and out of the backends", "backendServices", |all| {
            count(&first(all)["backends"]) == 2
        })
        .await;
    assert_eq!(scene.calls("forwardingRules.insert").await, 0);
    scene
        .services()
        .delete("inner", &DeleteParams::default())
        .await
        .unwrap();
    scene
        .comes("the inner one is gone", "backendServices", |all| all == &json!({}))
        .await;
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_upstream_left_is_used_as_it_is() {
    let mut scene = Scene::new().await;
    scene.config = "cluster-id = 0123456789abcdef\n".into();
    for (name, zone) in [("judge-0", ZONE), ("judge-1", "us-central1-b")] {
        scene.joins(name, zone, &format!("10.244.{}.0/24", &name[6..])).await;
    }
    let service = ServiceBuilder::new("web")
        .spec(|spec| {
            spec.external_traffic_policy = Some("Local".into());
            // Below those that the API server gives out itself, such as this Service's node port.
            spec.health_check_node_port = Some(30_001);
        })
        .create(&scene.client)
        .await
        .unwrap();
    let uid = service.metadata.uid.unwrap().replace('-', "");
    let name = format!("a{}", &uid[..31]);
    let made = google_client(&scene.cloud, &["balancer", &name]).await.unwrap();
    scene.cloud.forget_calls().await.unwrap();
    scene.start(&[]).await;
    let ip = scene.address("web", "").await;
    assert_eq!(made["address"], ip.as_str());
    assert_eq!(
        scene.calls("forwardingRules.insert").await + scene.calls("targetPools.insert").await,
        0
    );
    // Only what Google's samples lack: two firewall rules.
    assert_eq!(scene.calls("firewalls.insert").await, 2);
    assert_eq!(scene.writes().await, 2);

    // Nobody else would take upstream's finalizer off.
    let finalizers = json!([UPSTREAM_FINALIZER, "service.kubernetes.io/load-balancer-cleanup"]);
    scene
        .patch("web", json!({ "metadata": { "finalizers": finalizers } }))
        .await;
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_are_reported_and_what_is_deleted_outside_comes_back() {
    let scene = Scene::with_nodes().await;
    scene
        .does("quota", json!({ "collection": "forwardingRules", "limit": 0 }))
        .await;
    ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    scene
        .warned("web", "SyncLoadBalancerFailed", &["quotaExceeded", "Limit: 0"])
        .await;
    // Half built, and nothing is made twice when it goes on.
    scene.does("quota", json!({ "collection": "forwardingRules" })).await;
    scene
        .patch("web", json!({ "metadata": { "labels": { "again": "1" } } }))
        .await;
    let ip = scene.address("web", "").await;
    assert_eq!(scene.calls("targetPools.insert").await, 1);
    scene
        .comes("its address is the rule's alone", "addresses", |all| all == &json!({}))
        .await;
    let path = scene.has("forwardingRules").await.keys().next().unwrap().clone();
    scene.does("delete", json!({ "path": path })).await;
    // Any change of the Service is a look at the cloud.
    scene
        .patch("web", json!({ "spec": { "loadBalancerSourceRanges": ["10.0.0.0/8"] } }))
        .await;
    let again = scene.address("web", &ip).await;
    scene
        .comes("the rule is back", "forwardingRules", |all| {
            first(all)["IPAddress"] == again.as_str()
        })
        .await;
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn throttling_lost_answers_and_edits_of_others_are_got_over() {
    let scene = Scene::with_nodes().await;
    let error = |code: u16, reason: &str| json!({ "error": { "code": code, "message": reason, "errors": [{ "reason": reason }] } });
    let faults = json!([
        // The cloud does it, and the answer is lost.
        { "method": "POST", "path": "/addresses", "obey": true, "status": 0 },
        { "method": "POST", "path": "/firewalls", "status": 403, "value": error(403, "rateLimitExceeded") },
        { "method": "POST", "path": "/httpHealthChecks", "status": 429, "headers": { "Retry-After": "1" }, "value": error(429, "rateLimitExceeded") },
        { "method": "POST", "path": "/healthChecks", "status": 503, "value": error(503, "backendError") },
        { "method": "POST", "path": "/forwardingRules", "status": 400, "value": error(400, "resourceNotReady") },
        { "method": "PUT", "path": "/backendServices", "status": 412, "value": error(412, "conditionNotMet") },
    ]);
    scene.cloud.faults(faults).await.unwrap();
    ServiceBuilder::new("web")
        .annotation(INTERNAL.0, INTERNAL.1)
        .create(&scene.client)
        .await
        .unwrap();
    scene.address("web", "").await;
    // By fingerprint: the one that is refused is planned anew.
    scene
        .patch("web", json!({ "spec": { "sessionAffinity": "ClientIP" } }))
        .await;
    scene
        .comes("affinity", "backendServices", |all| {
            first(all)["sessionAffinity"] == "CLIENT_IP"
        })
        .await;
    assert_eq!(scene.calls("regionBackendServices.update").await, 2);
    scene
        .comes("nothing is held", "addresses", |all| all == &json!({}))
        .await;
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_vpc_event_gives_administrators_the_commands() {
    let mut scene = Scene::new().await;
    scene.config = "network-project-id = host\n".into();
    scene.does("operations_take", json!({ "seconds": 0.2 })).await;
    scene.does("deny", json!({ "methods": ["compute.firewalls.*"] })).await;
    scene.joins("one", ZONE, "10.244.1.0/24").await;
    scene
        .start(&["--controllers=cloud-node-controller,service-lb-controller"])
        .await;
    scene.initialised("one").await;
    ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    scene.address("web", "").await;
    let events: Api<k8s_openapi::api::core::v1::Event> = Api::default_namespaced(scene.client.clone());
    scene
        .settled("the command is told", || async {
            let events = events.list(&Default::default()).await.unwrap();
            let told = events
                .items
                .iter()
                .filter(|event| event.reason.as_deref() == Some("LoadBalancerManualChange"));
            let texts: Vec<_> = told.filter_map(|event| event.message.clone()).collect();
            let whole = |text: &String| {
                text.contains("gcloud compute firewall-rules create k8s-fw-") && text.contains("--project host")
            };
            if texts.iter().any(whole) {
                Ok(())
            } else {
                Err(format!("{texts:?}"))
            }
        })
        .await;
    assert!(scene.has("firewalls").await.is_empty());
    scene.leaves_nothing("web").await;
}
