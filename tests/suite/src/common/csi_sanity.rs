//! csi-sanity, Kubernetes' own tests of drivers, on a driver's socket.

use std::path::Path;
use std::sync::Arc;

use cloudwit_host::Provider;
use serde_json::Value;
use tokio::process::Command;

use crate::common::csi_node_stub::{self, NodeStub};
use crate::common::csi_served::Served;

/// Where there are no devices: all of the controller and of the identity.
pub const CONTROLLER: &str = "Controller Server|Controller Service|Identity";

/// Fewer specs than this would mean that the focus fits no more; 5.6 has 70 that fit it.
pub const FEWEST: usize = 50;

/// The controller and the identity of this provider pass, at least so many specs; the node plugin is a stub.
pub async fn controller_passes(provider: Provider, node: NodeStub, fewest: usize) {
    let served = Served::start(Arc::new(provider)).await;
    let socket = served.folder().join("node.sock");
    csi_node_stub::serve(node, served.driver.clone(), &socket);
    let specs = run(&served, &socket, served.folder(), Some(CONTROLLER)).await;
    assert!(passed(&specs, |_| true) >= fewest, "{specs:?}");
}

/// Runs the specs that the focus fits, and tells what came of each: its name and its state. `node` is the socket of a node service.
pub async fn run(served: &Served, node: &Path, folder: &Path, focus: Option<&str>) -> Vec<(String, String)> {
    let program = tokio::task::spawn_blocking(xtask::servers::csi_sanity::program)
        .await
        .unwrap()
        .unwrap();
    let report = served.folder().join("report.json");
    let mut command = Command::new(program);
    command
        .arg(format!("--csi.endpoint=unix://{}", node.display()))
        .arg(format!("--csi.controllerendpoint=unix://{}", served.socket().display()))
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
pub fn passed(specs: &[(String, String)], fits: impl Fn(&str) -> bool) -> usize {
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
