//! Private link services: made at a Service's frontend, changed, and gone before the frontend, with the endpoints that are connected.

use cloudwit_test_support::ServiceBuilder;
use serde_json::{Value, json};

use crate::scene::Scene;
use crate::services::INTERNAL;

const CREATE: &str = "service.beta.kubernetes.io/azure-pls-create";
const VISIBILITY: &str = "service.beta.kubernetes.io/azure-pls-visibility";
const ADDRESSES: &str = "service.beta.kubernetes.io/azure-pls-ip-configuration-ip-address";
const COUNT: &str = "service.beta.kubernetes.io/azure-pls-ip-configuration-ip-address-count";
const KIND: &str = "privateLinkServices";

impl Scene {
    /// Waits until the only private link service is as wished.
    async fn links(&self, what: &str, wished: impl Fn(&Value) -> bool) {
        self.comes(what, KIND, |all| all.len() == 1 && wished(&all[0]["properties"]))
            .await;
    }

    /// A consumer's endpoint at the only one.
    async fn connects(&self, name: &str) {
        let path = self.has(KIND).await[0]["id"].clone();
        self.does("connect", json!({ "path": path, "name": name })).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn private_link_lives_changes_and_goes_with_its_frontend() {
    let scene = Scene::with_nodes().await;
    let service = ServiceBuilder::new("web").annotation(INTERNAL, "true");
    let service = service
        .annotation(CREATE, "true")
        .annotation("service.beta.kubernetes.io/azure-pls-fqdns", "a.example b.example");
    let web = service.create(&scene.client).await.unwrap();
    scene.address("web", "").await;
    scene
        .links("it is made", |link| {
            link["fqdns"] == json!(["a.example", "b.example"]) && link["provisioningState"] == "Succeeded"
        })
        .await;
    let made = scene.has(KIND).await.remove(0);
    let uid = web.metadata.uid.unwrap().replace('-', "");
    assert_eq!(made["name"], json!(format!("pls-a{}", &uid[..31])));
    assert_eq!(made["tags"]["k8s-azure-owner-service"], "default/web");
    let subnets = scene.has("subnets").await;
    let open = subnets
        .iter()
        .filter(|subnet| subnet["properties"]["privateLinkServiceNetworkPolicies"] == "Disabled");
    assert_eq!(open.count(), 1, "only the subnet that it has addresses of");

    let more = json!({ "metadata": { "annotations": { VISIBILITY: "*", ADDRESSES: "10.7.0.7", COUNT: "2" } } });
    scene.patch("web", more).await;
    scene
        .links("it is changed", |link| {
            let addresses = link["ipConfigurations"].as_array().unwrap();
            link["visibility"]["subscriptions"] == json!(["*"])
                && addresses.len() == 2
                && addresses[0]["properties"]["privateIPAddress"] == "10.7.0.7"
        })
        .await;
    // It is right: nothing is written.
    scene.cloud.forget_calls().await.unwrap();
    scene.annotate("web", "example.com/touched", json!("1")).await;
    scene
        .settled("it is looked at", || async {
            match scene.calls("GET Microsoft.Network/privateLinkServices.list").await {
                0 => Err("not yet".into()),
                _ => Ok(()),
            }
        })
        .await;
    assert_eq!(scene.calls("PUT Microsoft.Network/privateLinkServices").await, 0);
    // The frontend goes, and before it the service with its endpoints, though no annotation names it any more.
    scene.connects("one").await;
    scene.connects("two").await;
    let plain =
        json!({ "metadata": { "annotations": { INTERNAL: null, CREATE: null, ADDRESSES: null, COUNT: null } } });
    scene.patch("web", plain).await;
    scene.comes("it is gone", KIND, <[Value]>::is_empty).await;
    scene
        .settled("the Service is external", || async {
            match scene.has("publicIPAddresses").await.len() {
                1 => Ok(()),
                count => Err(format!("{count} addresses")),
            }
        })
        .await;
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn private_link_of_rules_without_floating_ip_is_shared_and_that_of_others_stays() {
    let scene = Scene::with_nodes().await;
    let apart = "service.beta.kubernetes.io/azure-disable-load-balancer-floating-ip";
    let web = ServiceBuilder::new("web").annotation(CREATE, "true");
    web.create(&scene.client).await.unwrap();
    scene
        .warned(
            "web",
            "SyncLoadBalancerFailed",
            &["needs an internal address, or rules without floating IP"],
        )
        .await;
    scene.annotate("web", apart, json!("true")).await;
    let ip = scene.address("web", "").await;
    scene
        .links("it is made", |link| link["provisioningState"] == "Succeeded")
        .await;
    let also = ServiceBuilder::new("also")
        .annotation(CREATE, "true")
        .annotation(apart, "true");
    let also = also.annotation("service.beta.kubernetes.io/azure-load-balancer-ipv4", &ip);
    let also = also.spec(|spec| spec.ports.as_mut().unwrap()[0].port = 81);
    also.create(&scene.client).await.unwrap();
    assert_eq!(scene.address("also", "").await, ip);
    assert_eq!(scene.has(KIND).await.len(), 1);
    // Without this cluster's tag it is neither changed nor deleted, with an Event.
    let mut taken = scene.has(KIND).await.remove(0);
    let tags = taken["tags"].take();
    scene
        .does("put", json!({ "path": taken["id"], "resource": taken }))
        .await;
    scene.annotate("web", VISIBILITY, json!("*")).await;
    scene
        .warned("web", "SyncLoadBalancerFailed", &["is not of this cluster"])
        .await;
    taken["tags"] = tags;
    scene
        .does("put", json!({ "path": taken["id"], "resource": taken }))
        .await;
    scene
        .links("it is ours again", |link| {
            link["visibility"]["subscriptions"] == json!(["*"])
        })
        .await;
    scene.is_gone("also").await;
    assert_eq!(scene.has(KIND).await.len(), 1, "it stays for the owner");
    scene.connects("one").await;
    scene.leaves_nothing("web").await;
}
