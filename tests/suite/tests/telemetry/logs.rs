//! Log lines of the real process: each is complete in itself, and says whose work it is about.

use std::fs;

use cloudwit_sim_cloud::{Fault, FaultKind};
use serde_json::Value;

use crate::stage::{Ready, Stage};

/// Where the lines of work on objects come from.
const WORK: [&str; 9] = [
    "lifecycle",
    "lifecycle::deletion",
    "node",
    "node::write",
    "route",
    "route::apply",
    "service",
    "service::drift",
    "service::steps",
];

/// A line, and the names that its spans and itself carry.
struct Line(Value);

impl Line {
    fn word(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_default()
    }

    /// The value of a field of the line itself, or of the work that it is part of.
    fn field(&self, key: &str) -> Option<&Value> {
        let spans = self.0["spans"].as_array().into_iter().flatten();
        self.0.get(key).or_else(|| spans.rev().find_map(|span| span.get(key)))
    }
}

/// Every line of the log, or the first that is no JSON.
fn lines(log: &str) -> Vec<Line> {
    let read = |line: &str| match serde_json::from_str::<Value>(line) {
        Ok(value) => {
            // A reader would see one of two.
            let length = value.to_string().len();
            assert_eq!(length, line.len(), "a key is there twice, or a blank too much: {line}");
            Line(value)
        }
        Err(error) => panic!("{error}: {line}"),
    };
    // One line is that of the shell that starts the process; it takes another way to the file, so it need not be the first.
    log.lines().filter(|line| !line.starts_with("PID=")).map(read).collect()
}

/// Nodes, a Service, routes, a cloud with faults, an API server that comes back, another component, and the end.
async fn whole_run(stage: &mut Stage) {
    stage.joins("node-1").await;
    stage.until_initialised("node-1").await;
    stage.serves("web").await;
    stage.site.cloud.set_faults([
        Fault::status(500).times(4),
        Fault::new(FaultKind::Cut).times(2),
        Fault::slow_down(1).times(1),
    ]);
    stage.joins("node-2").await;
    stage.until_initialised("node-2").await;
    stage
        .until("there are routes", || async { !stage.site.cloud.routes().is_empty() })
        .await;
    stage.site.server.stop().await.unwrap();
    stage
        .until("the loss is noticed", || async { stage.log().contains("watch") })
        .await;
    stage.site.server.restart().await.unwrap();
    stage.joins("node-3").await;
    stage.until_initialised("node-3").await;
    stage.replace_component();
    stage
        .until("the swap is told", || async { stage.log().contains("swapped") })
        .await;
    stage.stop().await;
}

#[tokio::test]
async fn each_line_of_a_run_is_json_with_its_controller() {
    let mut stage = Ready::sim().await.start(&[
        "--logging-format=json",
        "-v=10",
        "--node-monitor-period=1s",
        "--route-reconciliation-period=1s",
    ]);
    whole_run(&mut stage).await;
    let lines = lines(&stage.log());
    for line in &lines {
        for key in ["timestamp", "level", "target", "message"] {
            assert!(!line.word(key).is_empty(), "no {key}: {}", line.0);
        }
        if let Some(module) = line.word("target").strip_prefix("cloudwit_controllers::")
            && WORK.contains(&module)
        {
            assert!(line.field("controller").is_some(), "no controller: {}", line.0);
            let about = ["object", "objects"].iter().any(|key| line.field(key).is_some());
            assert!(about, "no object: {}", line.0);
        }
        if ["guest", "cloudwit_host::call", "cloudwit_host::egress"].contains(&line.word("target")) {
            for key in ["provider", "operation"] {
                assert!(line.field(key).is_some(), "no {key}: {}", line.0);
            }
        }
    }
    let said = |object: &str, controller: &str, message: &str| {
        lines.iter().any(|line| {
            line.field("object").is_some_and(|found| found == object)
                && line.field("controller").is_some_and(|found| found == controller)
                && line.word("message").contains(message)
        })
    };
    for node in ["node-1", "node-2", "node-3"] {
        assert!(said(node, "cloud-node-controller", "initialised"), "{node}");
    }
    assert!(said("default/web", "service-lb-controller", "next step"));
    assert!(
        lines.iter().any(|line| line.word("target") == "cloudwit_host::egress"),
        "a request that failed is told"
    );
}

/// The watch of the files loads everything once more right after the start, and finds what runs.
#[tokio::test]
async fn start_and_swap_log_the_provider_once_each() {
    let stage = Ready::sim().await.start(&[]);
    let swaps = async |result: &str, number: usize| {
        let line = format!("cloudwit_provider_swaps_total{{provider=\"sim\",result=\"{result}\"}} {number}");
        stage
            .until(&line, || async { stage.page("/metrics").await.contains(&line) })
            .await;
    };
    let lines = |parts: &[&str]| {
        let log = stage.log();
        let all = |line: &&str| parts.iter().all(|part| line.contains(part));
        log.lines().filter(all).count()
    };
    swaps("unchanged", 1).await;
    assert_eq!(lines(&["provider loaded", "provider=\"sim\""]), 1, "{}", stage.log());
    assert_eq!(lines(&["keeps running"]), 0, "{}", stage.log());

    stage.replace_component();
    swaps("swapped", 1).await;
    let swapped = || async { lines(&["result=\"swapped\"", "digest=", " runs"]) == 1 };
    stage.until("the swap is logged", swapped).await;
    assert_eq!(lines(&["provider loaded"]), 1, "{}", stage.log());

    // Back to what is no component, and then to what runs: that nothing changed is news then.
    let file = stage.site.deployment.folder().join("providers/sim.wasm");
    let component = fs::read(&file).unwrap();
    fs::write(&file, "no component").unwrap();
    swaps("load", 1).await;
    fs::write(&file, component).unwrap();
    swaps("unchanged", 2).await;
    let told = || async { lines(&["result=\"unchanged\"", "keeps running"]) == 1 };
    stage.until("that nothing changed is logged", told).await;
    assert_eq!(lines(&["provider loaded"]), 1, "{}", stage.log());
}

#[tokio::test]
async fn a_line_of_text_names_controller_object_and_provider_too() {
    let stage = Ready::sim().await.start(&["-v=4"]);
    stage.site.cloud.set_faults([Fault::status(403)]);
    stage.joins("node-1").await;
    let why = || {
        stage
            .log()
            .lines()
            .find(|line| line.contains("still not initialised"))
            .map(str::to_owned)
    };
    stage.until("the reason is logged", || async { why().is_some() }).await;
    let line = why().unwrap();
    for part in [
        "reconcile{controller=\"cloud-node-controller\" object=\"node-1\"",
        "provider=\"sim\"",
        "403",
    ] {
        assert!(line.contains(part), "{part} is missing in {line}");
    }
}

#[tokio::test]
async fn start_that_fails_reports_it_in_json_too() {
    let mut stage = Ready::sim()
        .await
        .start(&["--logging-format=json", "--kubeconfig=/nowhere"]);
    let status = stage.ends().await;
    assert_eq!(status.code(), Some(1));
    let lines = lines(&stage.log());
    let last = lines.last().unwrap();
    assert!(last.word("level") == "ERROR" && last.word("message").contains("--kubeconfig=/nowhere"));
    assert!(fs::metadata(stage.process.log()).unwrap().len() < 10_000);
}
