//! The loop on an API server that keeps labels, with virtual time.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use cloudwit_model::{Cloud, CloudError, Evidence, Failure, FaultKind, Presence, ReadOnly, TagChange, Tags};
use http::{Request, Response};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::*;
use crate::ambient::{Simulation, simulate};
use crate::kube::cache::Cache;
use crate::options::Options;
use crate::options::tagging::{Rate, TaggingOptions};
use crate::report::explain::Explain;
use crate::sync::lock;
use crate::tagging::plan::TAGS_LABEL;
use crate::testing::{FakeCloud, context_on, fault, node};

/// When the story begins.
const WALL: i64 = 1_795_251_600;

/// The controller at work.
struct Story {
    cloud: Arc<FakeCloud>,
    nodes: Arc<Cache<Node>>,
    /// The label that each Node got.
    labels: Arc<Mutex<Vec<(String, String)>>>,
    explain: Explain,
    registry: Registry,
    _wall: Simulation,
}

fn tags() -> Tags {
    Tags::from([("team".to_owned(), "blue".to_owned())])
}

fn options() -> Options {
    let tagging = TaggingOptions {
        tags: tags(),
        concurrent_syncs: 50,
        ..TaggingOptions::default()
    };
    Options {
        tagging,
        ..Options::default()
    }
}

impl Story {
    fn start(nodes: Vec<Node>) -> Self {
        Self::with(options(), nodes)
    }

    fn with(options: Options, nodes: Vec<Node>) -> Self {
        let wall = simulate(Timestamp::from_second(WALL).unwrap(), 1);
        let cloud = FakeCloud::new(Ok(Presence::Absent(Evidence::ById)));
        let labels = Arc::<Mutex<Vec<(String, String)>>>::default();
        let guarded: Arc<dyn Cloud> = match options.dry_run {
            true => Arc::new(ReadOnly::new(cloud.clone(), |_| {})),
            false => cloud.clone(),
        };
        let (context, _, registry) = context_on(keeping_labels(labels.clone()), guarded, options);
        let story = Self {
            cloud,
            nodes: context.nodes.clone(),
            labels,
            explain: Explain::new(context.nodes.clone(), context.services.clone(), context.reports.clone()),
            registry,
            _wall: wall,
        };
        tokio::spawn(run(context));
        story.nodes.fill(nodes);
        story
    }

    /// The names of the Nodes that got a label in this time.
    async fn labelled_within(&self, seconds: u64) -> Vec<String> {
        lock(&self.labels).clear();
        sleep(Duration::from_secs(seconds)).await;
        let mut names: Vec<String> = lock(&self.labels).iter().map(|(name, _)| name.clone()).collect();
        names.sort();
        names
    }

    /// What was asked since: how many machines in each call.
    fn calls(&self) -> Vec<(TagChange, usize)> {
        let calls = std::mem::take(&mut *lock(&self.cloud.tag_calls));
        calls.into_iter().map(|(change, names)| (change, names.len())).collect()
    }

    fn tags_of(&self, name: &str) -> Tags {
        let all = lock(&self.cloud.tags);
        all.get(&format!("sim://{name}")).cloned().unwrap_or_default()
    }

    fn metric(&self, line: &str) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).unwrap();
        let found = text.lines().find_map(|one| one.strip_prefix(line));
        found.unwrap_or_default().trim().to_owned()
    }

    fn says(&self, name: &str) -> String {
        let said = self.explain.node(name).unwrap().statements;
        said.into_iter().map(|one| one.text).collect()
    }
}

fn keeping_labels(written: Arc<Mutex<Vec<(String, String)>>>) -> Client {
    let server = tower::service_fn(move |request: Request<Body>| {
        let written = written.clone();
        async move {
            let name = request.uri().path().split('/').nth(4).unwrap_or_default().to_owned();
            let body = request.into_body().collect_bytes().await?;
            let patch: Value = serde_json::from_slice(&body).unwrap();
            let value = patch["metadata"]["labels"][TAGS_LABEL].as_str().unwrap();
            lock(&written).push((name.clone(), value.to_owned()));
            let node = json!({
                "metadata": {
                    "name": name, "uid": patch["metadata"]["uid"], "resourceVersion": "1000", "labels": { TAGS_LABEL: value },
                },
                "spec": { "providerID": format!("sim://{name}") },
            });
            Ok::<_, kube::Error>(Response::new(Body::from(node.to_string().into_bytes())))
        }
    });
    Client::new(server, "default")
}

/// A Node that was created so many seconds before the story.
fn aged(name: &str, seconds: i64) -> Node {
    let mut node = node(name, "True", &[]);
    node.metadata.creation_timestamp = Some(Time(Timestamp::from_second(WALL - seconds).unwrap()));
    node
}

fn nodes(count: usize) -> Vec<Node> {
    (0..count).map(|number| aged(&format!("n{number}"), 10)).collect()
}

/// As the API server has it after another write.
fn again(mut node: Node, version: &str) -> Node {
    node.metadata.resource_version = Some(version.into());
    node
}

#[tokio::test(start_paused = true)]
async fn machines_are_tagged_once_in_few_calls() {
    let story = Story::start(nodes(500));
    assert_eq!(story.labelled_within(1).await.len(), 500);
    assert_eq!(
        story.calls(),
        [200, 200, 100].map(|machines| (TagChange::Add, machines))
    );
    assert_eq!(story.tags_of("n499"), tags());
    assert!(lock(&story.labels).iter().all(|(_, label)| *label == digest(&tags())));
    assert_eq!(
        story.metric("tagging_controller_inital_node_tagging_delay_seconds_count"),
        "500"
    );

    assert_eq!(story.labelled_within(2000).await, [""; 0]);
    assert_eq!(story.calls(), [], "the label says that nothing is left to do");
    assert_eq!(story.says("n7"), "has the tags of --tags on its machine.");
}

#[tokio::test(start_paused = true)]
async fn machine_of_a_deleted_node_loses_the_tags() {
    let story = Story::start(nodes(3));
    story.labelled_within(1).await;
    lock(&story.cloud.tags)
        .get_mut("sim://n1")
        .unwrap()
        .insert("other".into(), "stays".into());
    story.calls();
    let left = ["n0", "n2"].map(|name| (*story.nodes.get(name).unwrap()).clone());
    story.nodes.fill(left.to_vec());
    story.labelled_within(1).await;
    assert_eq!(story.calls(), [(TagChange::Remove, 1)]);
    assert_eq!(
        story.tags_of("n1"),
        Tags::from([("other".to_owned(), "stays".to_owned())])
    );
    assert_eq!(story.tags_of("n0"), tags());
}

#[tokio::test(start_paused = true)]
async fn machine_of_a_replaced_node_keeps_the_tags() {
    let story = Story::start(nodes(1));
    story.labelled_within(1).await;
    story.calls();
    let mut new = again(aged("n0", 0), "2000");
    new.metadata.uid = Some("another".into());
    story.nodes.fill(Vec::new());
    story.nodes.fill(vec![new]);
    assert_eq!(story.labelled_within(1).await, ["n0"]);
    assert_eq!(story.calls(), [(TagChange::Add, 1)]);
    assert_eq!(story.tags_of("n0"), tags());
}

#[tokio::test(start_paused = true)]
async fn node_is_tagged_when_its_machine_is_known_and_no_foreign_one() {
    let mut new = aged("new", 0);
    new.spec.get_or_insert_default().provider_id = None;
    let mut foreign = aged("foreign", 0);
    foreign.spec.get_or_insert_default().provider_id = Some("aws:///eu/i-1".into());
    let story = Story::start(vec![new, foreign.clone()]);
    assert_eq!(story.labelled_within(1000).await, [""; 0]);
    assert_eq!(story.calls(), [], "neither is asked about");
    assert!(story.says("new").starts_with("has no provider id yet"));
    story.nodes.fill(vec![again(aged("new", 0), "2"), foreign]);
    assert_eq!(story.labelled_within(1).await, ["new"]);
    story.nodes.fill(Vec::new());
    story.labelled_within(1).await;
    assert_eq!(story.calls(), [(TagChange::Add, 1), (TagChange::Remove, 1)]);
}

#[tokio::test(start_paused = true)]
async fn label_that_is_gone_or_of_other_tags_means_new_tags() {
    let mut old = aged("old", 5000);
    old.labels = [(TAGS_LABEL, "0123456789abcdef0123456789abcdef")].into_iter().collect();
    let story = Story::start(vec![old]);
    assert_eq!(story.labelled_within(1).await, ["old"]);
    assert_eq!(
        story.metric("tagging_controller_inital_node_tagging_delay_seconds_count"),
        "0",
        "it was tagged before"
    );
    story.nodes.fill(vec![again(aged("old", 5000), "2000")]);
    assert_eq!(story.labelled_within(1).await, ["old"], "somebody took the label away");
}

#[tokio::test(start_paused = true)]
async fn machine_that_the_provider_faults_on_costs_no_other() {
    let story = Story::start(Vec::new());
    lock(&story.cloud.faulty).insert("n7".into());
    story.nodes.fill(nodes(100));
    let labelled = story.labelled_within(1).await;
    assert_eq!((labelled.len(), labelled.contains(&"n7".to_owned())), (99, false));
    let of_many = story.calls().into_iter().filter(|(_, machines)| *machines > 1).count();
    assert!(of_many <= 14, "{of_many}: halves, and not one by one");
}

#[tokio::test(start_paused = true)]
async fn missing_machine_of_a_young_node_is_tried_again() {
    let story = Story::start(Vec::new());
    let missing = Failure::NotFound("no such instance".into());
    lock(&story.cloud.untaggable).extend([("young".to_owned(), missing.clone()), ("old".to_owned(), missing)]);
    story.nodes.fill(vec![aged("young", 1), aged("old", 400)]);
    story.labelled_within(5).await;
    let calls = story.calls();
    assert_eq!(calls[0], (TagChange::Add, 2));
    assert!(
        calls.len() > 5 && calls[1..].iter().all(|(_, machines)| *machines == 1),
        "{calls:?}"
    );
    assert_eq!(
        story.says("old"),
        "has no tags on its machine, and none are tried now: not found: no such instance."
    );
    let said = story.says("young");
    assert!(
        said.starts_with("waits for its machine to be tagged since 4 s"),
        "{said}"
    );
    lock(&story.cloud.untaggable).remove("young");
    assert_eq!(story.labelled_within(10).await, ["young"]);
    story.calls();
    lock(&story.cloud.untaggable).clear();
    assert_eq!(
        story.labelled_within(300).await,
        ["old"],
        "it is looked at again now and then"
    );
}

#[tokio::test(start_paused = true)]
async fn impossible_machine_is_tried_once_a_period() {
    let story = Story::start(Vec::new());
    lock(&story.cloud.untaggable).extend([
        ("bad".to_owned(), Failure::Invalid("no id of this cloud".into())),
        ("fargate".to_owned(), Failure::ImplementedElsewhere("no tags".into())),
    ]);
    story.nodes.fill(vec![aged("bad", 1), aged("fargate", 1)]);
    story.labelled_within(299).await;
    assert_eq!(story.calls(), [(TagChange::Add, 2)]);
    story.labelled_within(300).await;
    assert_eq!(story.calls(), [(TagChange::Add, 2)]);
    let errors = "cloudprovider_aws_tagging_controller_work_item_errors_total";
    assert_eq!(story.metric(errors), "", "neither is an error");
}

#[tokio::test(start_paused = true)]
async fn failing_cloud_counts_as_upstream_counts_and_is_tried_on() {
    let story = Story::start(Vec::new());
    *lock(&story.cloud.tags_fail) = Some(CloudError::from(Failure::Unavailable("down".into())));
    story.nodes.fill(nodes(1));
    story.labelled_within(60).await;
    let errors = |kind: &str| {
        let line = format!("cloudprovider_aws_tagging_controller_work_item_errors_total{{error_type=\"{kind}\"}}");
        story.metric(&line)
    };
    assert_eq!(errors("total_errors"), "9");
    let exhausted: u64 = errors("errors_after_retries_exhausted").parse().unwrap();
    assert!((1..9).contains(&exhausted), "{exhausted}");
    let said = story.says("n0");
    assert!(
        said.contains("Last answer of provider : unavailable: down. Next try in"),
        "{said}"
    );
    *lock(&story.cloud.tags_fail) = None;
    *lock(&story.cloud.digest) = "a swap".into();
    assert_eq!(
        story.labelled_within(2).await,
        ["n0"],
        "new credentials are tried at once"
    );
}

#[tokio::test(start_paused = true)]
async fn tags_of_a_gone_machine_are_given_up_in_the_end() {
    let story = Story::start(nodes(1));
    story.labelled_within(1).await;
    story.calls();
    *lock(&story.cloud.tags_fail) = Some(CloudError::from(Failure::Unavailable("down".into())));
    story.nodes.fill(Vec::new());
    story.labelled_within(100_000).await;
    let tries = story.calls().len();
    assert_eq!(tries, 21);
    story.labelled_within(100_000).await;
    assert_eq!(story.calls(), []);
}

#[tokio::test(start_paused = true)]
async fn fault_of_one_half_leaves_the_other_untagged_machines_alone() {
    let story = Story::start(Vec::new());
    *lock(&story.cloud.tags_fail) = Some(fault(FaultKind::Deadline));
    story.nodes.fill(nodes(4));
    assert_eq!(story.labelled_within(1).await, [""; 0]);
    *lock(&story.cloud.tags_fail) = None;
    assert_eq!(story.labelled_within(60).await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn rate_limit_spreads_machines_over_time() {
    let mut options = options();
    options.tagging.rate = Some(Rate {
        per_second: 10.0,
        burst: 20,
    });
    let story = Story::with(options, nodes(100));
    let first = story.labelled_within(1).await.len();
    assert!((20..=31).contains(&first), "{first}");
    let next = story.labelled_within(2).await.len();
    assert!((18..=22).contains(&next), "{next}");
    story.labelled_within(10).await;
    assert_eq!(story.labelled_within(1).await, [""; 0]);
    assert_eq!(story.calls().iter().map(|(_, machines)| machines).sum::<usize>(), 100);
}

#[tokio::test(start_paused = true)]
async fn dry_run_changes_neither_machines_nor_nodes() {
    let options = Options {
        dry_run: true,
        ..options()
    };
    let story = Story::with(options, nodes(3));
    assert_eq!(story.labelled_within(10).await, [""; 0]);
    story.nodes.fill(Vec::new());
    story.labelled_within(10).await;
    assert_eq!(story.calls(), []);
}
