//! Bad days of Nova and Neutron: throttled, down, cut in the middle. Nodes wait and are not lost.

use cloudwit_test_support::clouds::openstack::Service;
use cloudwit_test_support::gate::Point;
use cloudwit_test_support::gate::fault::Fault;
use http::{Method, StatusCode};

use crate::scene::Scene;

/// What may happen to a request for servers or ports.
fn faults() -> Vec<(&'static str, Fault)> {
    let status = |code| Fault::status(StatusCode::from_u16(code).unwrap());
    let json = |fault: Fault, body: &'static str| fault.body("application/json", body);
    vec![
        ("429 with Retry-After", status(429).header("retry-after", "1")),
        ("429 without", status(429)),
        ("503 with Retry-After", status(503).header("retry-after", "1")),
        ("503 without", status(503)),
        (
            "413 as Nova throttles",
            json(
                status(413).header("retry-after", "1"),
                "{\"overLimit\": {\"code\": 413}}",
            ),
        ),
        (
            "404 of a proxy whose backend is gone",
            status(404).body("text/html", "<html>no such backend</html>"),
        ),
        (
            "a page of HTML",
            status(200).body("text/html", "<html>maintenance</html>"),
        ),
        ("an empty object", json(status(200), "{}")),
        ("JSON that is cut", Fault::cut(40)),
        ("a connection that breaks", Fault::broken(40)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_joins_on_a_bad_day_is_initialised_after_it() {
    let mut scene = Scene::new().await;
    scene.start_with_password(&["--controllers=cloud-node-controller"]);
    for (number, (what, fault)) in faults().into_iter().enumerate() {
        let name = format!("node-{number}");
        let (service, path) = if number % 2 == 0 {
            (Service::Compute, "/servers")
        } else {
            (Service::Network, "/v2.0/ports")
        };
        let fault = scene
            .gate(service)
            .fail(Point::before(Method::GET, path), fault.times(2));
        scene.joins(&name, &format!("10.244.{number}.0/24")).await;
        scene.initialised(&name).await;
        assert_eq!(fault.met(), 2, "{what}");
        scene.gate(service).open();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_node_is_deleted_for_an_answer_that_is_not_novas_word() {
    let mut scene = Scene::new().await;
    scene.joins("kept", "10.244.1.0/24").await;
    scene.start_with_password(&[
        "--controllers=cloud-node-controller,cloud-node-lifecycle-controller",
        "--node-status-update-frequency=1h",
    ]);
    scene.initialised("kept").await;
    scene.falls_silent("kept").await;
    for (what, fault) in faults() {
        let fault = scene
            .gate(Service::Compute)
            .fail(Point::before(Method::GET, "/servers"), fault.times(3));
        scene
            .settled(what, || async {
                if fault.met() == 3 {
                    Ok(())
                } else {
                    Err(format!("{} times", fault.met()))
                }
            })
            .await;
        assert!(scene.node("kept").await.is_some(), "{what}");
        scene.gate(Service::Compute).open();
    }
}
