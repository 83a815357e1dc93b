//! Kubernetes' own tests of drivers.

use std::path::Path;

use cloudwit_csi::proto::Topology;
use serde_json::Value;
use tokio::process::Command;

use crate::machine::Machine;
use crate::node_stub::{self, NodeStub};
use crate::scene::Scene;

/// Where there are no devices: all of the controller and of the identity.
const CONTROLLER: &str = "Controller Server|Controller Service|Identity";

/// Fewer specs than this would mean that the focus fits no more; 5.6 has 70 that fit it.
const FEWEST: usize = 50;

/// The same for those of the node service, of which there are 27.
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

/// Runs the specs that the focus fits, and tells what came of each: its name and its state.
async fn run(scene: &Scene, node: &Path, folder: &Path, focus: Option<&str>) -> Vec<(String, String)> {
    let program = tokio::task::spawn_blocking(xtask::csi_sanity::program)
        .await
        .unwrap()
        .unwrap();
    let report = scene.folder().join("report.json");
    let mut command = Command::new(program);
    command
        .arg(format!("--csi.endpoint=unix://{}", node.display()))
        .arg(format!("--csi.controllerendpoint=unix://{}", scene.socket().display()))
        .arg(format!("--csi.mountdir={}", folder.join("mount").display()))
        .arg(format!("--csi.stagingdir={}", folder.join("stage").display()))
        .arg(format!("--ginkgo.json-report={}", report.display()))
        .arg("--csi.testnodevolumeattachlimit")
        .arg("--ginkgo.no-color")
        .args(focus.map(|focus| format!("--ginkgo.focus={focus}")));
    let ran = command.output().await.unwrap();
    let output = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{output}{}", String::from_utf8_lossy(&ran.stderr));
    let mut specs = specs(&std::fs::read_to_string(report).unwrap());
    if let Some(focus) = focus {
        specs.retain(|(name, _)| focus.split('|').any(|one| name.contains(one)));
    }
    // Health is alpha and nobody's; groups of snapshots are not offered.
    let skipped = specs.iter().filter(|(_, state)| state == "skipped");
    let left_out: Vec<&String> = skipped.map(|(name, _)| name).collect();
    println!(
        "csi-sanity: {} passed; skipped: {left_out:#?}",
        passed(&specs, |_| true)
    );
    specs
}

/// How many of those with a fitting name passed.
fn passed(specs: &[(String, String)], fits: impl Fn(&str) -> bool) -> usize {
    let passed = specs.iter().filter(|(name, state)| state == "passed" && fits(name));
    passed.count()
}

fn specs(report: &str) -> Vec<(String, String)> {
    let report: Value = serde_json::from_str(report).unwrap();
    let specs = report[0]["SpecReports"].as_array().unwrap();
    let read = specs.iter().map(|spec| {
        let mut names: Vec<&str> = spec["ContainerHierarchyTexts"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        names.extend(spec["LeafNodeText"].as_str());
        (names.join(": "), spec["State"].as_str().unwrap_or_default().to_owned())
    });
    read.collect()
}
