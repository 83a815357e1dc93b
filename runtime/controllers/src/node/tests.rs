//! How often the cloud is called, with time under control. What happens to Nodes is
//! tested on a real API server in `tests/suite`.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cloudwit_model::{Address, AddressKind, CloudError, EventKind, Evidence, Failure, Instance, Presence};
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use tokio::time::sleep;

use super::*;
use crate::kube::cache::Cache;
use crate::leadership::Leadership;
use crate::options::Options;
use crate::testing::{FakeCloud, context, context_on, node};

fn absent() -> Presence {
    Presence::Absent(Evidence::ById)
}

struct Story {
    cloud: Arc<FakeCloud>,
    nodes: Arc<Cache<Node>>,
}

impl Story {
    /// The loop at work on these Nodes.
    fn start(answer: Result<Presence, CloudError>, nodes: Vec<Node>, options: Options) -> Self {
        let cloud = FakeCloud::new(answer);
        let (context, _) = context(cloud.clone(), options);
        let story = Self {
            cloud,
            nodes: context.nodes.clone(),
        };
        tokio::spawn(run(context));
        story.nodes.fill(nodes);
        story
    }

    async fn calls_within(&self, seconds: u64) -> usize {
        let before = self.cloud.count();
        sleep(Duration::from_secs(seconds)).await;
        self.cloud.count() - before
    }
}

fn tainted(count: usize) -> Vec<Node> {
    (0..count)
        .map(|i| node(&format!("n{i}"), "False", &[UNINITIALIZED]))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn five_thousand_nodes_are_five_calls_in_each_refresh() {
    let nodes = (0..5000).map(|i| node(&format!("n{i}"), "True", &[])).collect();
    let story = Story::start(Ok(absent()), nodes, Options::default());
    assert_eq!(story.calls_within(299).await, 5);
    assert_eq!(story.calls_within(300).await, 5);
    assert_eq!(story.cloud.nodes.load(Ordering::Relaxed), 10_000);
}

/// kubernetes-sigs/cloud-provider-azure#1700: a thousand Nodes that wait ask together, not each for itself.
#[tokio::test(start_paused = true)]
async fn nodes_failing_together_return_in_few_rarer_calls() {
    let story = Story::start(Ok(absent()), tainted(1000), Options::default());
    let early = story.calls_within(10).await;
    sleep(Duration::from_secs(3600)).await;
    let late = story.calls_within(3600).await;
    // Each for itself, they would make 3,600 calls in a late hour.
    assert!(early <= 60, "{early} calls in the first ten seconds");
    assert!(late <= 60, "{late} calls in a late hour");
}

/// kubernetes/kubernetes#75285: updates of a Node that waits must not ask the cloud again.
#[tokio::test(start_paused = true)]
async fn waiting_node_heartbeats_are_free_and_changes_cost_one_call() {
    let denied = Failure::Denied("no permission".into());
    let story = Story::start(Err(denied.into()), tainted(1), Options::default());
    assert_eq!(story.calls_within(30).await, 1);
    for version in 2..1000 {
        let mut heartbeat = tainted(1).remove(0);
        heartbeat.metadata.resource_version = Some(version.to_string());
        heartbeat.status.get_or_insert_default().conditions = None;
        story.nodes.fill(vec![heartbeat]);
    }
    assert_eq!(story.calls_within(10).await, 0);
    let mut moved = tainted(1).remove(0);
    moved.metadata.resource_version = Some("1000".into());
    moved.labels = [("rack", "2")].into_iter().collect();
    story.nodes.fill(vec![moved]);
    assert_eq!(story.calls_within(10).await, 1);
}

#[tokio::test(start_paused = true)]
async fn cloud_requesting_a_pause_is_retried_after_it() {
    let limited = Failure::RateLimited {
        after: Some(Duration::from_secs(100)),
        message: "slow down".into(),
    };
    let story = Story::start(Err(limited.into()), tainted(500), Options::default());
    assert_eq!(story.calls_within(99).await, 1);
    assert_eq!(story.calls_within(100).await, 1, "all of them together again");
}

#[tokio::test(start_paused = true)]
async fn nodes_of_other_providers_are_not_looked_up() {
    let mut foreign = tainted(1);
    foreign[0].spec.get_or_insert_default().provider_id = Some("aws:///eu/i-1".into());
    let mut initialised = node("other", "True", &[]);
    initialised.spec.get_or_insert_default().provider_id = Some("aws:///eu/i-2".into());
    foreign.push(initialised);
    let story = Story::start(Ok(absent()), foreign, Options::default());
    assert_eq!(story.calls_within(1000).await, 0);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_remembered_about_nodes_that_are_gone() {
    let cloud = FakeCloud::new(Ok(absent()));
    let (context, _registry) = context(cloud.clone(), Options::default());
    let controller = Arc::new(CloudNode::new(context.clone()));
    let running = controller.clone();
    tokio::spawn(async move { running.run().await });
    context.nodes.fill(tainted(1000));
    // By now they pause for minutes.
    sleep(Duration::from_secs(900)).await;
    let remembered = || (lock(&controller.waiting).keys().len(), controller.queue.len());
    assert_eq!(remembered(), (1000, 1000));
    let calls = cloud.count();
    context.nodes.fill(tainted(1));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(remembered(), (1, 1), "only about the one that is left");
    assert_eq!(cloud.count(), calls, "and nobody was asked about the others");
}

/// The Node is deleted while the cloud is called about it: what the attempt notes afterwards is dropped as well.
#[tokio::test(start_paused = true)]
async fn node_that_goes_during_its_attempt_is_dropped() {
    let cloud = FakeCloud::new(Ok(absent()));
    let (context, _registry) = context(cloud, Options::default());
    let controller = CloudNode::new(context.clone());
    context.nodes.fill(tainted(1));
    let batch = controller.queue.take_batch(10, Duration::ZERO).await.unwrap();
    let nodes = batch.into_iter().map(|taken| {
        let node = context.nodes.get(taken.key()).unwrap();
        (taken, node)
    });
    let nodes: Vec<_> = nodes.collect();
    context.nodes.fill(Vec::new());
    controller.initialise_nodes(nodes).await;
    assert_eq!(
        (lock(&controller.waiting).keys().len(), controller.queue.len()),
        (1, 1),
        "noted too late"
    );
    let batch = controller.queue.take_batch(10, Duration::ZERO);
    let batch = tokio::time::timeout(Duration::ZERO, batch)
        .await
        .expect("it comes at once");
    drop(controller.sort(batch.unwrap()));
    assert_eq!((lock(&controller.waiting).keys().len(), controller.queue.len()), (0, 0));
}

/// An API server that takes every write and notes its method and path.
fn taking_all(writes: Arc<Mutex<Vec<(Method, String)>>>) -> Client {
    let server = tower::service_fn(move |request: Request<Body>| {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let answer = match method {
            Method::POST => serde_json::json!({ "metadata": {}, "involvedObject": {} }),
            _ => serde_json::json!({ "metadata": { "name": path.split('/').nth(4) } }),
        };
        lock(&writes).push((method, path));
        async move { Ok::<_, kube::Error>(Response::new(Body::from(answer.to_string().into_bytes()))) }
    });
    Client::new(server, "default")
}

#[tokio::test(start_paused = true)]
async fn wave_of_1000_nodes_is_two_writes_each_and_few_events() {
    let machine = Instance {
        provider_id: "sim://a".into(),
        addresses: vec![Address::new(AddressKind::InternalIP, "10.0.0.1")],
        ..Instance::default()
    };
    let writes = Arc::<Mutex<Vec<(Method, String)>>>::default();
    let cloud = FakeCloud::new(Ok(Presence::Running(machine)));
    let (context, writer, _registry) = context_on(taking_all(writes.clone()), cloud, Options::default());
    let (nodes, metrics) = (context.nodes.clone(), context.metrics.clone());
    tokio::spawn(writer.run(Leadership::always(), false));
    tokio::spawn(run(context));
    nodes.fill(tainted(1000));
    sleep(Duration::from_secs(1)).await;
    let count = |wanted: Method, status: bool| {
        let of_kind = |(method, path): &&(Method, String)| *method == wanted && path.ends_with("/status") == status;
        lock(&writes).iter().filter(of_kind).count()
    };
    assert_eq!((count(Method::PATCH, true), count(Method::PATCH, false)), (1000, 1000));
    assert_eq!(count(Method::POST, false), 25, "all other Events are left out");
    assert_eq!(metrics.events_limited.get(), 975);
}

/// What was written about a Node and told on it, after a second.
struct Outcomes {
    writes: Vec<(Method, String)>,
    warned: Vec<(String, String)>,
    lookups: usize,
}

impl Outcomes {
    /// The names of Nodes whose status was written.
    fn initialised(&self) -> std::collections::BTreeSet<&str> {
        let status = self.writes.iter().filter(|(_, path)| path.ends_with("/status"));
        status.filter_map(|(_, path)| path.split('/').nth(4)).collect()
    }
}

async fn outcomes(cloud: Arc<FakeCloud>, nodes: Vec<Node>, time: Duration) -> Outcomes {
    let writes = Arc::<Mutex<Vec<(Method, String)>>>::default();
    let (context, mut writer, _registry) = context_on(taking_all(writes.clone()), cloud.clone(), Options::default());
    let cache = context.nodes.clone();
    cache.fill(nodes);
    let shutdown = context.shutdown.clone();
    let task = tokio::spawn(run(context));
    sleep(time).await;
    shutdown.cancel();
    task.await.unwrap();
    let warnings = writer
        .handed_over()
        .into_iter()
        .filter(|event| event.kind == EventKind::Warning);
    let warned = warnings
        .map(|event| (event.object.name.unwrap_or_default(), event.message))
        .collect();
    let writes = lock(&writes).clone();
    Outcomes {
        writes,
        warned,
        lookups: cloud.count(),
    }
}

#[tokio::test(start_paused = true)]
async fn one_odd_machine_costs_its_node_and_no_other() {
    let per_node = FakeCloud::new(Ok(crate::testing::running("sim://x")));
    let odd = Err(Failure::Other("the address \"pending\" is not an IP address".into()));
    lock(&per_node.known).insert("n7".into(), odd);
    let whole_call = FakeCloud::new(Ok(crate::testing::running("sim://x")));
    lock(&whole_call.faulty).insert("n7".into());
    for (cloud, most) in [(per_node, 10), (whole_call, 30)] {
        let outcomes = outcomes(cloud, tainted(200), Duration::from_secs(1)).await;
        let initialised = outcomes.initialised();
        assert_eq!((initialised.len(), initialised.contains("n7")), (199, false));
        assert!(!outcomes.warned.is_empty());
        assert!(
            outcomes.warned.iter().all(|(node, _)| node == "n7"),
            "{:?}",
            outcomes.warned
        );
        assert!(outcomes.lookups <= most, "{} calls", outcomes.lookups);
    }
}

#[tokio::test(start_paused = true)]
async fn one_odd_machine_costs_no_other_node_its_refresh() {
    let cloud = FakeCloud::new(Ok(crate::testing::running("sim://x")));
    lock(&cloud.faulty).insert("n7".into());
    let nodes = (0..200)
        .map(|number| node(&format!("n{number}"), "True", &[]))
        .collect();
    let outcomes = outcomes(cloud, nodes, Duration::from_secs(1)).await;
    assert_eq!(outcomes.initialised().len(), 199);
    assert_eq!(outcomes.warned, []);
}

#[tokio::test(start_paused = true)]
async fn node_of_no_provider_is_reported_and_unchanged() {
    let cloud = FakeCloud::new(Ok(crate::testing::running("sim://n0")));
    let mut strange = tainted(1);
    strange[0].spec.get_or_insert_default().provider_id = Some("aws:///eu/i-1".into());
    let outcomes = outcomes(cloud, strange, Duration::from_secs(200)).await;
    let [(node, message)] = outcomes.warned.as_slice() else {
        panic!("{:?}", outcomes.warned)
    };
    assert!(
        node == "n0" && message.contains("the provider id aws:///eu/i-1 is not of a configured provider"),
        "{message}"
    );
    assert_eq!((outcomes.writes.len(), outcomes.lookups), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn foreign_provider_id_is_reported_once_and_not_written() {
    let cloud = FakeCloud::new(Ok(crate::testing::running("other://1")));
    let mut new = tainted(1);
    new[0].spec.get_or_insert_default().provider_id = None;
    let outcomes = outcomes(cloud, new, Duration::from_secs(200)).await;
    let (node, message) = &outcomes.warned[0];
    assert!(
        node == "n0" && message.contains("the id \"other://1\", which begins with none"),
        "{message}"
    );
    assert_eq!(outcomes.warned.len(), 1);
    assert_eq!(
        outcomes
            .writes
            .iter()
            .map(|(_, path)| path.as_str())
            .collect::<Vec<_>>(),
        ["/api/v1/nodes/n0"],
        "the note why it waits, and nothing else"
    );
    assert!(outcomes.lookups < 30, "{} calls: it backs off", outcomes.lookups);
}
