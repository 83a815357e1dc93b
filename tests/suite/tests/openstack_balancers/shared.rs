//! Two Services on one load balancer.

use cloudwit_test_support::ServiceBuilder;
use k8s_openapi::api::core::v1::ServicePort;
use serde_json::json;

use crate::stage::{PREFIX, Stage};

fn on(id: &str, name: &str, port: i32) -> ServiceBuilder {
    let port = ServicePort {
        name: Some("p".into()),
        port,
        ..ServicePort::default()
    };
    ServiceBuilder::new(name)
        .annotation(&format!("{PREFIX}load-balancer-id"), id)
        .spec(|spec| spec.ports = Some(vec![port]))
}

#[tokio::test(flavor = "multi_thread")]
async fn services_share_until_the_last_and_port_conflicts_show() {
    let stage = Stage::new("max-shared-lb = 2\n").await;
    stage.create(ServiceBuilder::new("owner")).await;
    let address = stage.exposed("owner").await;
    let id = stage.shown().await.id();

    stage.create(on(&id, "collides", 80)).await;
    stage.told("collides", "TCP port 80 is listener").await;
    stage.create(on(&id, "second", 81)).await;
    assert_eq!(stage.exposed("second").await, address, "both have the same address");
    let shown = stage.shown().await;
    assert_eq!(shown.ports(), ["TCP 80", "TCP 81"]);
    let names = json!(["kube_service_lab_default_owner", "kube_service_lab_default_second"]);
    assert_eq!(shown.balancers[0]["tags"], names);
    stage.create(on(&id, "third", 82)).await;
    stage.told("third", "shared by 2 Services already").await;
    let internal =
        on(&id, "internal", 83).annotation("service.beta.kubernetes.io/openstack-internal-load-balancer", "true");
    stage.create(internal).await;
    stage.told("internal", "an internal Service cannot share").await;
    for name in ["collides", "third", "internal"] {
        stage.delete(name).await;
    }
    assert_eq!(
        stage.shown().await.ports(),
        ["TCP 80", "TCP 81"],
        "who could not share took nothing away"
    );

    stage.delete("owner").await;
    let shown = stage
        .shows("only the second one's listener is left", |shown| {
            shown.ports() == ["TCP 81"]
        })
        .await;
    assert_eq!(shown.balancers[0]["tags"], json!(["kube_service_lab_default_second"]));
    assert_eq!((shown.pools.len(), shown.address()), (1, address));
    stage.delete("second").await;
    stage.clean().await;
}
