//! Killed or cut off in the middle: whatever was half done is found again in the cloud.

use cloudwit_test_support::ServiceBuilder;
use cloudwit_test_support::gate::Point;
use cloudwit_test_support::gate::fault::Fault;
use http::Method;
use k8s_openapi::api::core::v1::ServicePort;
use kube::api::DeleteParams;
use serde_json::Value;

use crate::stage::{Stage, ports, vips};

fn two_ports() -> ServiceBuilder {
    ServiceBuilder::new("web").spec(|spec| {
        spec.ports.get_or_insert_default().push(ServicePort {
            name: Some("https".into()),
            port: 443,
            ..ServicePort::default()
        });
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_midway_nothing_is_duplicated_or_left() {
    let mut stage = Stage::new("").await;
    let port = |number: u16| format!("\"port\":{number},");
    let mut stop = stage
        .gate
        .stop_at(Point::after(Method::POST, "/loadbalancers").with(port(80)));
    stage.create(two_ports()).await;
    for point in [
        Point::before(Method::POST, "/loadbalancers").with(port(443)),
        Point::after(Method::POST, "/loadbalancers").with(port(443)),
    ] {
        stop.reached().await;
        stage.kill();
        stop = stage.gate.stop_at(point);
        stage.start().await;
    }
    stop.reached().await;
    stage.kill();
    stage.start().await;
    stage.exposed("web").await;
    let shown = stage
        .shows("there are two", |shown| ports(shown) == ["TCP 80", "TCP 443"])
        .await;
    assert_eq!(vips(&shown[0]), vips(&shown[1]));

    let stop = stage.gate.stop_at(Point::after(Method::DELETE, "/loadbalancers/"));
    stage.services().delete("web", &DeleteParams::default()).await.unwrap();
    stop.reached().await;
    assert_eq!(stage.balancers().await.len(), 1, "one is deleted");
    stage.kill();
    stage.start().await;
    stage.gone("web").await;
    assert_eq!(stage.balancers().await, [Value::Null; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_lost_makes_no_second_one() {
    let stage = Stage::new("").await;
    let lost = stage
        .gate
        .fail(Point::before(Method::POST, "/loadbalancers"), Fault::broken(0).times(2));
    stage.create(two_ports()).await;
    stage.exposed("web").await;
    let shown = stage
        .shows("there are two", |shown| ports(shown) == ["TCP 80", "TCP 443"])
        .await;
    assert_eq!((lost.met(), shown.len()), (2, 2));
    assert_eq!(stage.writes().await.len(), 2, "{:?}", stage.writes().await);
    stage.delete("web").await;
    assert_eq!(stage.balancers().await, [Value::Null; 0]);
}
