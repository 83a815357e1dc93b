//! Bad days of EC2: throttled, down, cut in the middle, a clock that is wrong. Nodes wait and are not lost.

use cloudwit_test_support::gate::fault::Fault;
use http::StatusCode;

use crate::scene::{Scene, refusal};

/// What may happen to a request.
fn faults() -> Vec<(&'static str, Fault)> {
    let status = |code| Fault::status(StatusCode::from_u16(code).unwrap());
    vec![
        (
            "throttled with Retry-After",
            refusal(503, "RequestLimitExceeded").header("retry-after", "1"),
        ),
        ("throttled without", refusal(503, "RequestLimitExceeded")),
        ("429 with Retry-After", status(429).header("retry-after", "1")),
        ("429 without", status(429)),
        ("503 without", status(503)),
        (
            "a page of HTML",
            status(200).body("text/html", "<!DOCTYPE html><html>maintenance</html>"),
        ),
        (
            "404 of a proxy",
            status(404).body("text/html", "<html>no such backend</html>"),
        ),
        ("another kind of XML", status(200).body("text/xml", "<Hello/>")),
        ("XML that is cut", Fault::cut(900)),
        ("a connection that breaks", Fault::broken(900)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_joins_on_a_bad_day_is_initialised_after_it() {
    let mut scene = Scene::new("joining").await;
    scene.start(&[
        "--controllers=cloud-node-controller",
        "--node-status-update-frequency=1h",
    ]);
    for (number, (what, fault)) in faults().into_iter().enumerate() {
        let fault = scene.fail("DescribeInstances", fault.times(2));
        let machine = scene.joins(&format!("10.244.{number}.0/24")).await;
        scene.initialised(&machine.private_dns).await;
        assert_eq!(fault.met(), 2, "{what}");
        scene.gate.open();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_node_is_deleted_for_an_answer_that_is_not_awss_word() {
    let mut scene = Scene::new("kept").await;
    let machine = scene.joins("10.244.1.0/24").await;
    scene.start(&[
        "--controllers=cloud-node-controller,cloud-node-lifecycle-controller",
        "--node-status-update-frequency=1h",
    ]);
    scene.initialised(&machine.private_dns).await;
    scene.falls_silent(&machine.private_dns).await;
    for (what, fault) in faults() {
        let fault = scene.fail("DescribeInstances", fault.times(2));
        scene
            .settled(what, || async {
                if fault.met() == 2 {
                    Ok(())
                } else {
                    Err(format!("{} times", fault.met()))
                }
            })
            .await;
        assert!(scene.node(&machine.private_dns).await.is_some(), "{what}");
        scene.gate.open();
        // An answer in between: else the pauses grow from fault to fault.
        let answered = scene.answered().await;
        scene
            .settled("AWS is asked on", || async {
                if scene.answered().await > answered {
                    Ok(())
                } else {
                    Err("not yet".into())
                }
            })
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_clock_is_corrected_by_awss_date() {
    let mut scene = Scene::new("clock").await;
    let machine = scene.joins("10.244.1.0/24").await;
    let fault = refusal(400, "RequestExpired")
        .header("date", "Sat, 01 Jan 2028 00:00:00 GMT")
        .times(1);
    let fault = scene.fail("DescribeInstances", fault);
    scene.start(&["--controllers=cloud-node-controller"]);
    scene.initialised(&machine.private_dns).await;
    assert_eq!(fault.met(), 1);
    let told = scene.log().matches("the clock here differs from AWS's").count();
    assert_eq!(told, 1, "{}", scene.log());
}
