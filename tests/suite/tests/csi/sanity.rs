//! Kubernetes' own tests of drivers.

use cloudwit_csi::proto::Topology;

use crate::machine::Machine;
use crate::node_stub::{self, NodeStub};
use crate::sanity_run::{CONTROLLER, FEWEST, passed, run};
use crate::scene::Scene;

/// Fewer specs of the node service than this would mean that they are not tried; there are 27.
const FEWEST_OF_NODES: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn csi_sanity_finds_nothing_wrong_with_the_controller() {
    let scene = Scene::start(3).await;
    let node = scene.folder().join("node.sock");
    let zone = ("topology.sim.csi.cloudwit.dev/zone".to_owned(), "sim-1a".to_owned());
    let stub = NodeStub {
        id: "vm-1".into(),
        topology: Topology {
            segments: [zone].into(),
        },
        most: 16,
    };
    node_stub::serve(stub, scene.driver.clone(), &node);
    let specs = run(&scene, &node, scene.folder(), Some(CONTROLLER)).await;
    assert!(passed(&specs, |_| true) >= FEWEST, "{specs:?}");
}

/// The controller, the identity and the node service in one run: what is created, attached, staged and published goes through all of them.
#[tokio::test(flavor = "multi_thread")]
async fn csi_sanity_finds_nothing_wrong_with_controller_and_node() {
    let Some(machine) = Machine::start("csi-node-sanity").await else {
        return;
    };
    let specs = run(&machine.scene, &machine.socket(), &machine.kubelet("pods"), None).await;
    let of_nodes = passed(&specs, |name| name.contains("Node Service"));
    let others = passed(&specs, |name| !name.contains("Node Service"));
    assert!(of_nodes >= FEWEST_OF_NODES && others >= FEWEST, "{specs:?}");
}
