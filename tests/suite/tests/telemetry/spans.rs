//! Spans of the real process, as a collector gets them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use cloudwit_sim_cloud::{Fault, FaultKind};
use cloudwit_suite::root;
use cloudwit_test_support::scenes::deployment::TOKEN;

use crate::stage::Ready;
use cloudwit_suite::collector::{Collector, Received};

/// The table of docs/reference/tracing.md: attributes by span.
fn table() -> BTreeMap<String, BTreeSet<String>> {
    let page = fs::read_to_string(root().join("docs/reference/tracing.md")).unwrap();
    let word = |cell: &str| cell.trim().strip_prefix('`')?.strip_suffix('`').map(str::to_owned);
    let mut table = BTreeMap::<String, BTreeSet<String>>::new();
    for line in page.lines().filter_map(|line| line.strip_prefix("| ")) {
        let mut cells = line.split(" | ").map(word);
        if let (Some(Some(span)), Some(Some(attribute))) = (cells.next(), cells.next()) {
            table.entry(span).or_default().insert(attribute);
        }
    }
    table
}

/// All spans, to go from one to another.
struct Trace(Vec<Received>);

impl Trace {
    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Received> {
        self.0.iter().filter(move |span| span.name == name)
    }

    fn below<'a>(&'a self, parent: &'a Received, name: &'a str) -> impl Iterator<Item = &'a Received> {
        self.named(name).filter(|span| span.parent == parent.id)
    }

    fn by_id(&self, id: &[u8]) -> Option<&Received> {
        self.0.iter().find(|span| span.id == id)
    }

    /// The finished work on a Node, and the work of which it is one of many.
    fn initialised(&self, node: &str) -> Option<(&Received, &Received)> {
        let done = |span: &&Received| span.has("object", node) && span.has("result", "done");
        self.named("reconcile").filter(done).find_map(|span| {
            let shared = span.links.iter().find_map(|id| self.by_id(id))?;
            Some((span, shared))
        })
    }

    /// A reconcile of this object with this call below it that has sent such a request.
    fn path(&self, object: &str, operation: &str, method: &str) -> bool {
        let sent = |call: &Received| {
            self.below(call, "http_request")
                .any(|request| request.has("http.request.method", method))
        };
        let asked = |reconcile: &Received| {
            self.below(reconcile, "provider_call")
                .any(|call| call.has("operation", operation) && sent(call))
        };
        self.named("reconcile")
            .any(|span| span.has("object", object) && asked(span))
    }
}

#[tokio::test]
async fn trace_leads_from_object_through_provider_to_request() {
    let collector = Collector::start().await;
    let ready = Ready::sim().await;
    let names: Vec<String> = (1..=6).map(|number| format!("node-{number}")).collect();
    for name in &names {
        ready.joins(name).await;
    }
    let stage = ready.start(&[&format!("--tracing-endpoint={}", collector.url)]);
    for name in &names {
        stage.until_initialised(name).await;
    }
    stage.serves("web").await;
    stage
        .until("all spans have come", || async {
            let trace = Trace(collector.spans());
            names.iter().all(|name| trace.initialised(name).is_some())
                && trace.path("default/web", "load-balancers.ensure", "POST")
        })
        .await;
    let trace = Trace(collector.spans());
    let shared: BTreeSet<&[u8]> = names
        .iter()
        .map(|name| {
            let (span, shared) = trace.initialised(name).unwrap();
            assert!(
                span.has("controller", "cloud-node-controller") && span.parent.is_empty(),
                "{span:?}"
            );
            assert!(shared.attributes.contains_key("objects") && !shared.attributes.contains_key("object"));
            let lookup = trace.below(shared, "provider_call").next().unwrap();
            assert!(
                lookup.has("operation", "instances.lookup") && lookup.has("result", "ok"),
                "{lookup:?}"
            );
            assert_eq!(lookup.attributes["digest"].len(), 12);
            let request = trace.below(lookup, "http_request").next().unwrap();
            assert!(
                request.has("http.response.status_code", "200") && request.kind == 3,
                "{request:?}"
            );
            shared.id.as_slice()
        })
        .collect();
    assert!(shared.len() < names.len(), "they share look-ups");
    assert_eq!(trace.0[0].resource["service.name"], "cloudwit");
    assert!(trace.0[0].resource["service.instance.id"].contains('_'));
}

#[tokio::test]
async fn each_failure_and_attribute_matches_the_table() {
    let collector = Collector::start().await;
    let stage = Ready::sim().await.start(&[
        &format!("--tracing-endpoint={}", collector.url),
        "--node-status-update-frequency=1s",
    ]);
    stage.joins("node-1").await;
    stage.until_initialised("node-1").await;
    stage.serves("web").await;
    stage.site.cloud.set_faults([
        Fault::status(503).times(1),
        Fault::new(FaultKind::Cut).times(3),
        Fault::new(FaultKind::Echo),
    ]);
    stage.joins("node-2").await;
    let is_error = |span: &Received, attribute: &str, value: &str| span.has(attribute, value) && span.is_error;
    stage
        .until("failures have come", || async {
            let spans = collector.spans();
            ["connection", "protocol"]
                .iter()
                .any(|kind| spans.iter().any(|span| is_error(span, "error.type", kind)))
                && spans
                    .iter()
                    .any(|span| is_error(span, "http.response.status_code", "503"))
                && spans
                    .iter()
                    .any(|span| is_error(span, "http.response.status_code", "403"))
                && spans.iter().any(|span| is_error(span, "result", "denied"))
                && spans
                    .iter()
                    .any(|span| span.name == "reconcile" && is_error(span, "result", "failed"))
        })
        .await;
    let mut seen = BTreeMap::<String, BTreeSet<String>>::new();
    for span in collector.spans() {
        seen.entry(span.name).or_default().extend(span.attributes.into_keys());
    }
    assert_eq!(seen, table());
    let raw = collector.raw();
    for never in [TOKEN, "/v1/", "Bearer", "uthorization", "bad token"] {
        let found = raw.windows(never.len()).any(|part| part == never.as_bytes());
        assert!(!found, "{never} is in a span");
    }
}

#[tokio::test]
async fn collector_that_refuses_holds_nothing_up_and_is_reported_once() {
    let collector = Collector::start().await;
    collector.answers(401);
    let stage = Ready::sim()
        .await
        .start(&[&format!("--tracing-endpoint={}", collector.url)]);
    for name in ["node-1", "node-2", "node-3"] {
        stage.joins(name).await;
        stage.until_initialised(name).await;
        let before = collector.requests();
        stage
            .until("spans were offered", || async { collector.requests() > before })
            .await;
    }
    collector.answers(200);
    stage.joins("node-4").await;
    stage
        .until("spans are taken", || async { !collector.spans().is_empty() })
        .await;
    stage
        .until("both are counted", || async {
            let metrics = stage.page("/metrics").await;
            ["exported", "failed"]
                .iter()
                .all(|result| metrics.contains(&format!("cloudwit_trace_spans_total{{result=\"{result}\"}} ")))
        })
        .await;
    let log = stage.log();
    assert_eq!(log.matches("trace export failed").count(), 1, "{log}");
    assert!(
        log.contains("it answers 401") && log.contains("trace export recovered"),
        "{log}"
    );
}

#[tokio::test]
async fn no_exporter_without_flag_and_no_span_at_zero_rate() {
    let stage = Ready::sim().await.start(&[]);
    stage
        .until("it is ready", || async { stage.page("/readyz").await == "ok" })
        .await;
    assert!(!stage.page("/metrics").await.contains("cloudwit_trace"));
    let threads = fs::read_dir(format!("/proc/{}/task", stage.process.pid())).unwrap();
    let names = threads.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    assert!(!names.into_iter().any(|name| name.starts_with("OpenTelemetry")));
    drop(stage);
    let collector = Collector::start().await;
    let endpoint = format!("--tracing-endpoint={}", collector.url);
    let mut stage = Ready::sim()
        .await
        .start(&[&endpoint, "--tracing-sampling-rate-per-million=0"]);
    stage.joins("node-1").await;
    stage.until_initialised("node-1").await;
    // The end sends what is left.
    stage.stop().await;
    assert_eq!(collector.spans().len(), 0);
}

#[tokio::test]
async fn the_last_spans_are_sent_at_the_end() {
    let collector = Collector::start().await;
    let mut stage = Ready::sending_after(600_000)
        .await
        .start(&[&format!("--tracing-endpoint={}", collector.url)]);
    stage.joins("node-1").await;
    stage.until_initialised("node-1").await;
    // The Node shows it before the process has its answer; with this line the work is done.
    let is_done = |line: &str| line.contains(": initialised") && line.contains("node-1");
    stage
        .until("the process knows it too", || async {
            stage.log().lines().any(is_done)
        })
        .await;
    stage.stop().await;
    assert!(Trace(collector.spans()).initialised("node-1").is_some());
}
