//! Kubernetes' own tests of drivers.

use cloudwit_csi::proto::Topology;
use serde_json::Value;
use tokio::process::Command;

use crate::node_stub::{self, NodeStub};
use crate::scene::Scene;

/// What is tried: all of the controller and of the identity.
const FOCUS: &str = "Controller Server|Controller Service|Identity";

/// Fewer specs than this would mean that the focus fits no more; 5.6 has 70 that fit it.
const FEWEST: usize = 50;

#[tokio::test(flavor = "multi_thread")]
async fn csi_sanity_finds_nothing_wrong_with_the_controller() {
    let program = tokio::task::spawn_blocking(xtask::csi_sanity::program)
        .await
        .unwrap()
        .unwrap();
    let scene = Scene::start(3).await;
    let (controller, node) = (scene.socket(), scene.folder().join("node.sock"));
    let zone = ("topology.sim.csi.cloudwit.dev/zone".to_owned(), "sim-1a".to_owned());
    let stub = NodeStub {
        id: "vm-1".into(),
        topology: Topology {
            segments: [zone].into(),
        },
        most: 16,
    };
    node_stub::serve(stub, scene.driver.clone(), &node);
    let report = scene.folder().join("report.json");
    let ran = Command::new(program)
        .arg(format!("--csi.endpoint=unix://{}", node.display()))
        .arg(format!("--csi.controllerendpoint=unix://{}", controller.display()))
        .arg(format!("--csi.mountdir={}", scene.folder().join("mount").display()))
        .arg(format!("--csi.stagingdir={}", scene.folder().join("stage").display()))
        .arg(format!("--ginkgo.focus={FOCUS}"))
        .arg(format!("--ginkgo.json-report={}", report.display()))
        .arg("--ginkgo.no-color")
        .output()
        .await
        .unwrap();
    let output = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{output}{}", String::from_utf8_lossy(&ran.stderr));
    let specs = specs(&std::fs::read_to_string(report).unwrap());
    let of = |state: &str| specs.iter().filter(|(_, found)| found == state).count();
    assert!(of("passed") >= FEWEST, "{specs:?}");
    // Health is alpha and nobody's; the stub node has no staging.
    let left_out: Vec<&String> = specs
        .iter()
        .filter(|(_, state)| state == "skipped")
        .map(|(name, _)| name)
        .collect();
    println!("csi-sanity: {} passed; skipped: {left_out:#?}", of("passed"));
}

/// Specs that the focus fits, with what came of them.
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
    let focus: Vec<&str> = FOCUS.split('|').collect();
    read.filter(|(name, _)| focus.iter().any(|one| name.contains(one)))
        .collect()
}
