//! Several vCenters: one that is down neither hides its own machines nor holds up those of the others; names in both are nobody's.

use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::clouds::vcsim::VcsimOptions;
use cloudwit_test_support::gate::Point;
use cloudwit_test_support::gate::fault::Fault;
use cloudwit_test_support::objects::provider_id;
use http::{Method, StatusCode};

use crate::scene::Scene;

/// A vCenter whose machines have other ids than those of the default one: they are made of their places.
fn another() -> VcsimOptions {
    VcsimOptions {
        datacenters: 3,
        machines: 1,
        ..VcsimOptions::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vcenter_down_keeps_its_nodes_and_others_proceed() {
    let mut scene = Scene::with(&[another(), VcsimOptions::default()]).await;
    let (a, b) = (&scene.vcenters[0], &scene.vcenters[1]);
    let on_a = a.machine("/DC2/vm/DC2_H0_VM0", "on-a", "10.0.0.1").await;
    let on_b = b.machine("/DC0/vm/DC0_C0_RP0_VM1", "on-b", "10.0.0.2").await;
    let gone = b.machine("/DC1/vm/DC1_C0_RP0_VM1", "gone", "10.0.0.3").await;
    for name in ["on-a", "on-b", "gone"] {
        NodeBuilder::new(name).create(&scene.client).await.unwrap();
    }
    scene.start(&["--node-status-update-frequency=1h"]);
    for (name, machine) in [("on-a", &on_a), ("on-b", &on_b), ("gone", &gone)] {
        let node = scene.initialised(name).await;
        assert_eq!(provider_id(&node), Some(machine.provider_id().as_str()));
    }

    let down = Fault::status(StatusCode::SERVICE_UNAVAILABLE);
    let down = scene.vcenters[0].gate.fail(Point::before(Method::POST, "/sdk"), down);
    scene.vcenters[1].vcsim.destroy(&gone.path).await.unwrap();
    scene.vcenters[1]
        .machine("/DC1/vm/DC1_C0_RP0_VM0", "new-on-b", "10.0.0.4")
        .await;
    NodeBuilder::new("new-on-b").create(&scene.client).await.unwrap();
    for name in ["on-a", "gone"] {
        scene.falls_silent(name).await;
    }
    // It has a name, which a machine of the other one could have too.
    scene.initialised("new-on-b").await;
    scene
        .settled("both Nodes are asked for at the vCenter that is down", || async {
            if down.met() >= 3 {
                Ok(())
            } else {
                Err(format!("{} times", down.met()))
            }
        })
        .await;
    for name in ["on-a", "gone"] {
        assert!(
            scene.node(name).await.is_some(),
            "{name}: nobody can say that it is gone while one vCenter is down"
        );
    }

    scene.vcenters[0].gate.open();
    scene
        .settled(
            "the Node whose machine is gone is deleted when both answer again",
            || async {
                match scene.node("gone").await {
                    None => Ok(()),
                    Some(_) => Err("it is there".into()),
                }
            },
        )
        .await;
    assert!(scene.node("on-a").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn name_in_two_vcenters_is_reported_and_unassigned() {
    let mut scene = Scene::with(&[VcsimOptions::default(), another()]).await;
    for (vcenter, path) in scene.vcenters.iter().zip(["/DC0/vm/DC0_H0_VM1", "/DC2/vm/DC2_H0_VM0"]) {
        vcenter.machine(path, "twin", "10.0.0.1").await;
    }
    NodeBuilder::new("twin").create(&scene.client).await.unwrap();
    scene.start(&[]);
    let wrong = ["several machines fit", "DC2_H0_VM0"];
    scene.waits("twin", &wrong).await;
    scene.warned("twin", "InitializationFailed", &wrong).await;
    assert_eq!(provider_id(&scene.node("twin").await.unwrap()), None);
}
