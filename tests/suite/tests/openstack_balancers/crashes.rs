//! Killed in the middle: whatever was half done is found again in the cloud.

use cloudwit_test_support::ServiceBuilder;
use cloudwit_test_support::clouds::openstack::Service as Cloud;
use cloudwit_test_support::gate::Point;
use http::Method;
use kube::api::DeleteParams;

use crate::stage::{LBAAS, Stage};

const ALL: &str = "create-monitor = true\nmanage-security-groups = true\n";

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_making_one_it_continues_where_it_was() {
    let points = [
        (
            Cloud::LoadBalancer,
            Point::after(Method::POST, format!("{LBAAS}/loadbalancers")),
        ),
        (Cloud::Network, Point::before(Method::POST, "/v2.0/floatingips")),
        (Cloud::Network, Point::after(Method::POST, "/v2.0/floatingips")),
        (Cloud::Network, Point::after(Method::POST, "/v2.0/security-groups")),
        (Cloud::Network, Point::after(Method::POST, "/v2.0/security-group-rules")),
        (Cloud::Network, Point::after(Method::PUT, "/v2.0/ports/")),
    ];
    let mut stage = Stage::new(ALL).await;
    let mut points = points.into_iter();
    let (cloud, point) = points.next().unwrap();
    let mut stop = stage.scene.gate(cloud).stop_at(point);
    stage.create(ServiceBuilder::new("web")).await;
    for (cloud, point) in points {
        stop.reached().await;
        stage.kill();
        stop = stage.scene.gate(cloud).stop_at(point);
        stage.start();
    }
    stop.reached().await;
    stage.kill();
    stage.start();
    stage.exposed("web").await;
    let shown = stage.shown().await;
    assert_eq!(
        (shown.balancers.len(), shown.floating.len(), stage.groups().await.len()),
        (1, 1, 1),
        "{shown:#?}"
    );
    stage.delete("web").await;
    stage.clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_deleting_one_nothing_is_left() {
    let points = [
        (Cloud::Network, Point::after(Method::DELETE, "/v2.0/floatingips/")),
        (
            Cloud::LoadBalancer,
            Point::after(Method::DELETE, format!("{LBAAS}/loadbalancers/")),
        ),
        (Cloud::Network, Point::after(Method::PUT, "/v2.0/ports/")),
        (Cloud::Network, Point::after(Method::DELETE, "/v2.0/security-groups/")),
    ];
    let mut stage = Stage::new(ALL).await;
    stage.create(ServiceBuilder::new("web")).await;
    stage.exposed("web").await;
    stage
        .scene
        .settled("its node ports are open", || async {
            let groups = stage.groups().await;
            let calls = stage.calls().await.neutron;
            let opened = calls
                .iter()
                .filter(|call| call.starts_with("PUT") && call.contains("/ports/"))
                .count();
            if groups.len() == 1 && opened >= 2 {
                Ok(())
            } else {
                Err(format!("{groups:?}"))
            }
        })
        .await;
    let mut points = points.into_iter();
    let (cloud, point) = points.next().unwrap();
    let mut stop = stage.scene.gate(cloud).stop_at(point);
    stage.services().delete("web", &DeleteParams::default()).await.unwrap();
    for (cloud, point) in points {
        stop.reached().await;
        stage.kill();
        stop = stage.scene.gate(cloud).stop_at(point);
        stage.start();
    }
    stop.reached().await;
    stage.kill();
    stage.start();
    stage.gone("web").await;
    stage.clean().await;
}
