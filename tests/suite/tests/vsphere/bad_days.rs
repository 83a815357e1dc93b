//! Bad days of a vCenter: throttled, down, cut in the middle, answered by something else. Nodes wait and are not lost.

use cloudwit_test_support::gate::fault::Fault;
use cloudwit_test_support::objects::provider_id;
use http::StatusCode;

use crate::scene::{Scene, soap};

/// What may happen to a call.
fn faults() -> Vec<(&'static str, Fault)> {
    let status = |code| Fault::status(StatusCode::from_u16(code).unwrap());
    vec![
        ("503 without Retry-After", status(503)),
        ("503 with it", status(503).header("retry-after", "1")),
        ("429", status(429).header("retry-after", "1")),
        (
            "502 of a gateway",
            status(502).body("text/html", "<html>bad gateway</html>"),
        ),
        (
            "404 of a gateway",
            status(404).body("text/html", "<html>no backend</html>"),
        ),
        (
            "a page of HTML",
            status(200).body("text/html", "<!DOCTYPE html><html>maintenance</html>"),
        ),
        ("500 without a fault", status(500).body("text/plain", "internal error")),
        ("an empty answer", status(200)),
        ("XML that is cut", Fault::cut(300)),
        ("a connection that breaks", Fault::broken(300)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn no_node_is_deleted_for_an_answer_that_is_not_vcenters_word() {
    let mut scene = Scene::new().await;
    scene.joins("/DC0/vm/DC0_H0_VM0", "kept", "10.0.0.1").await;
    scene.start(&["--node-status-update-frequency=1h"]);
    let uid = scene.initialised("kept").await.metadata.uid;
    scene.falls_silent("kept").await;
    for (what, fault) in faults() {
        let fault = scene.vcenter().gate.fail(soap("RetrievePropertiesEx"), fault.times(8));
        scene
            .settled(what, || async {
                if fault.met() >= 4 {
                    Ok(())
                } else {
                    Err(format!("{} times", fault.met()))
                }
            })
            .await;
        scene.vcenter().gate.open();
        let node = scene.node("kept").await.unwrap();
        assert_eq!(node.metadata.uid, uid, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_joins_on_a_bad_day_is_initialised_after_it() {
    let mut scene = Scene::new().await;
    scene.start(&[]);
    let paths = [
        "/DC0/vm/DC0_H0_VM0",
        "/DC0/vm/DC0_H0_VM1",
        "/DC0/vm/DC0_C0_RP0_VM0",
        "/DC0/vm/DC0_C0_RP0_VM1",
    ];
    let methods = ["FindAllByDnsName", "RetrievePropertiesEx"];
    for (number, (what, fault)) in faults().into_iter().enumerate().take(8) {
        let name = format!("node-{number}");
        let fault = scene.vcenter().gate.fail(soap(methods[number % 2]), fault.times(3));
        let machine = scene.joins(paths[number % 4], &name, "10.0.0.1").await;
        let node = scene.initialised(&name).await;
        assert_eq!(provider_id(&node), Some(machine.provider_id().as_str()), "{what}");
        assert!(fault.met() > 0, "{what}");
        scene.vcenter().gate.open();
        scene.nodes().delete(&name, &Default::default()).await.unwrap();
    }
}
