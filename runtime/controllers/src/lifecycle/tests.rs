//! How often the cloud is called, with time under control. What happens to Nodes is tested on a real API server in
//! `tests/suite`.

use cloudwit_model::{Cloud as _, Evidence, Failure, Instance, Presence};
use k8s_openapi::jiff::Timestamp;
use prometheus_client::encoding::text::encode;

use super::*;
use crate::options::Options;
use crate::testing::{FakeCloud, context, context_on, node, nowhere};

const CALLS: &str = "cloud_node_lifecycle_controller_cloud_provider_calls_total";

fn running() -> Presence {
    Presence::Running(Instance {
        provider_id: "sim://x".into(),
        ..Instance::default()
    })
}

/// A Node that is not Ready and has been there for long.
fn old(name: &str) -> Node {
    let mut node = node(name, "False", &[]);
    let long_ago = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH);
    node.metadata.creation_timestamp = Some(long_ago);
    node
}

async fn run(context: Context, nodes: Vec<Node>, seconds: u64) {
    context.nodes.fill(nodes);
    let shutdown = context.shutdown.clone();
    let task = tokio::spawn(super::run(context));
    sleep(Duration::from_secs(seconds)).await;
    shutdown.cancel();
    task.await.unwrap();
}

/// Lets the loop run on these Nodes for so long, and answers its metrics.
async fn run_for(cloud: &Arc<FakeCloud>, nodes: Vec<Node>, seconds: u64) -> String {
    let (context, registry) = context(cloud.clone(), Options::default());
    run(context, nodes, seconds).await;
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    text
}

#[tokio::test(start_paused = true)]
async fn caller_gets_missing_nodes_and_held_deletion() {
    let cloud = FakeCloud::new(Ok(Presence::Absent(Evidence::ById)));
    let (context, _registry) = context(cloud, Options::default());
    context.nodes.fill(vec![old("b"), old("a"), node("ready", "True", &[])]);
    let (reports, shutdown) = (context.reports.clone(), context.shutdown.clone());
    let task = tokio::spawn(super::run(context));
    sleep(Duration::from_secs(200)).await;
    let deletions = reports.deletions().remove(0);
    let names: Vec<(&str, bool)> = deletions
        .candidates
        .iter()
        .map(|one| (one.node.as_str(), one.held))
        .collect();
    assert_eq!(names, [("a", true), ("b", true)], "two seem gone, one may go");
    let (brake, engaged) = deletions.brake.unwrap();
    assert_eq!((brake.absent, deletions.allowed, deletions.deleted), (2, 1, 0));
    assert!(
        engaged.as_secs() >= 190,
        "from the first answers on, before they are confirmed: {engaged:?}"
    );
    assert!(
        deletions.candidates[0].since >= Duration::from_secs(190),
        "{deletions:?}"
    );
    shutdown.cancel();
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn caller_gets_cloud_outage_and_its_start() {
    let cloud = FakeCloud::new(Err(Failure::Unavailable("down".into()).into()));
    let (context, _registry) = context(cloud, Options::default());
    context.nodes.fill(vec![node("a", "True", &[])]);
    let mut ill = node("a", "False", &[]);
    ill.metadata.resource_version = Some("2".into());
    let (nodes, reports, shutdown) = (context.nodes.clone(), context.reports.clone(), context.shutdown.clone());
    let progress = || match reports.work(Controller::CloudNodeLifecycle) {
        crate::report::snapshot::Work::Begun(mut loops) => loops.remove(0),
        other => panic!("{other:?}"),
    };
    let task = tokio::spawn(super::run(context));
    sleep(Duration::from_secs(1)).await;
    assert_eq!((progress().trouble, progress().last_done.unwrap().as_secs()), (None, 1));
    nodes.observe(ill);
    sleep(Duration::from_secs(20)).await;
    let trouble = progress().trouble.unwrap();
    assert_eq!(&*trouble.cause.reason, "unavailable: down");
    assert!(
        progress().last_done.unwrap().as_secs() >= 20,
        "nothing was answered since"
    );
    shutdown.cancel();
    task.await.unwrap();
}

/// The design's number: 12 calls where upstream makes 24,000.
#[tokio::test(start_paused = true)]
async fn thousand_notready_nodes_cost_twelve_calls_a_minute() {
    let cloud = FakeCloud::new(Ok(running()));
    let nodes = (0..1000).map(|i| node(&format!("n{i}"), "Unknown", &[])).collect();
    run_for(&cloud, nodes, 59).await;
    assert_eq!(cloud.count(), 12);
}

#[tokio::test(start_paused = true)]
async fn ready_nodes_cost_no_call() {
    let cloud = FakeCloud::new(Ok(Presence::Absent(Evidence::ById)));
    run_for(&cloud, vec![node("a", "True", &[])], 60).await;
    assert_eq!(cloud.count(), 0);
}

/// `TestMonitorNodesMetrics`.
#[tokio::test(start_paused = true)]
async fn one_pass_counts_one_existence_and_one_shutdown_answer() {
    let cloud = FakeCloud::new(Ok(running()));
    let nodes = vec![node("a", "True", &[]), node("b", "True", &[]), node("c", "False", &[])];
    let text = run_for(&cloud, nodes, 4).await;
    for (operation, result) in [("instance_exists", "success"), ("instance_shutdown", "success")] {
        let line = format!("{CALLS}{{operation=\"{operation}\",result=\"{result}\"}} 1");
        assert!(text.contains(&line), "{line} is missing in:\n{text}");
    }
    assert!(
        text.contains("cloud_node_lifecycle_controller_monitor_nodes_duration_seconds_count 1"),
        "{text}"
    );
}

/// kubernetes/cloud-provider-vsphere#479: the password is wrong. That the machine cannot be confirmed means nothing.
#[tokio::test(start_paused = true)]
async fn cloud_that_fails_is_retried_ever_more_rarely() {
    let cloud = FakeCloud::new(Err(Failure::Unavailable("down".into()).into()));
    let text = run_for(&cloud, vec![node("a", "False", &[])], 600).await;
    // 10, 20, 40 and then 60 s apart.
    assert!((11..=14).contains(&cloud.count()), "{}", cloud.count());
    assert!(text.contains("cloudwit_node_deletion_candidates 0"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn cloud_requesting_a_pause_gets_no_call_before_its_end() {
    let limited = Failure::RateLimited {
        after: Some(Duration::from_secs(300)),
        message: "slow down".into(),
    };
    let cloud = FakeCloud::new(Err(limited.into()));
    run_for(&cloud, vec![node("a", "False", &[])], 299).await;
    assert_eq!(cloud.count(), 1);
}

/// The Events about these Nodes, none of which is Ready, within so many seconds: the Node's name and the message.
async fn told(cloud: Arc<FakeCloud>, nodes: Vec<Node>, seconds: u64) -> Vec<(String, String)> {
    let (context, mut writer, _registry) = context_on(nowhere(), cloud, Options::default());
    run(context, nodes, seconds).await;
    let events = writer.handed_over().into_iter();
    let told = events.map(|event| {
        assert_eq!(event.reason, "MachineLookupFailed");
        (event.object.name.unwrap_or_default(), event.message)
    });
    told.collect()
}

#[tokio::test(start_paused = true)]
async fn refusal_needing_a_person_is_an_event_every_five_minutes() {
    let denied = || FakeCloud::new(Err(Failure::Denied("the key is wrong".into()).into()));
    let nodes = || {
        vec![
            node("a", "False", &[]),
            node("ready", "True", &[]),
            node("b", "Unknown", &[]),
        ]
    };
    let first = told(denied(), nodes(), 200).await;
    let names: Vec<&str> = first.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(
        first[0].1.ends_with("so the Node is kept: denied: the key is wrong"),
        "{first:?}"
    );
    assert_eq!(
        told(denied(), nodes(), 500).await.len(),
        4,
        "once more after five minutes"
    );
}

#[tokio::test(start_paused = true)]
async fn an_outage_that_passes_by_itself_is_no_event_on_the_nodes() {
    let down = FakeCloud::new(Err(Failure::Unavailable("down".into()).into()));
    assert_eq!(told(down, vec![node("a", "False", &[])], 900).await, []);
}

/// kubernetes/kubernetes#63226: the loop ran before the provider id was set and deleted the Node.
#[tokio::test(start_paused = true)]
async fn node_that_waits_for_initialisation_is_not_looked_up() {
    let cloud = FakeCloud::new(Ok(Presence::Absent(Evidence::ById)));
    run_for(
        &cloud,
        vec![node("a", "False", &[crate::kube::node::view::UNINITIALIZED])],
        60,
    )
    .await;
    assert_eq!(cloud.count(), 0);
}

/// An API server that has this Node, and the deletions it got.
fn having(node: serde_json::Value, deletions: Arc<Mutex<Vec<String>>>) -> kube::Client {
    let server = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        if request.method() == http::Method::DELETE {
            lock(&deletions).push(request.uri().path().to_owned());
        }
        let answer = node.to_string().into_bytes();
        async move { Ok::<_, kube::Error>(http::Response::new(kube::client::Body::from(answer))) }
    });
    kube::Client::new(server, "default")
}

/// A Node that waits for its initialisation, has no provider id and is not Ready.
fn nameless(name: &str) -> Node {
    let mut node = old(name);
    let spec = node.spec.get_or_insert_default();
    spec.provider_id = None;
    spec.taints = node_with_taint().spec.and_then(|spec| spec.taints);
    node
}

fn node_with_taint() -> Node {
    node("a", "False", &[crate::kube::node::view::UNINITIALIZED])
}

/// The reasons of the Events about Node `a`, which never got a provider id, and whether it was deleted. Each minute `each_minute` can change the cloud.
async fn by_name(minutes: u64, each_minute: impl Fn(u64, &FakeCloud)) -> (Vec<String>, bool) {
    let cloud = FakeCloud::new(Ok(Presence::Absent(Evidence::ByName)));
    let deletions = Arc::<Mutex<Vec<String>>>::default();
    let body = serde_json::json!({
        "metadata": { "name": "a", "uid": "uid-a", "resourceVersion": "1" },
        "spec": { "taints": [{ "key": crate::kube::node::view::UNINITIALIZED, "effect": "NoSchedule" }] },
    });
    let client = having(body, deletions.clone());
    let (context, mut writer, _registry) = context_on(client, cloud.clone(), Options::default());
    context.nodes.fill(vec![nameless("a"), node("well", "True", &[])]);
    let shutdown = context.shutdown.clone();
    let task = tokio::spawn(super::run(context));
    for minute in 0..minutes {
        each_minute(minute, &cloud);
        sleep(Duration::from_secs(60)).await;
    }
    shutdown.cancel();
    task.await.unwrap();
    assert!(
        cloud.count() as u64 <= minutes / 5 + 3,
        "{} calls in {minutes} minutes",
        cloud.count()
    );
    let told = writer.handed_over().into_iter().map(|event| event.reason).collect();
    let deleted = lock(&deletions).iter().any(|path| path == "/api/v1/nodes/a");
    (told, deleted)
}

#[tokio::test(start_paused = true)]
async fn node_without_id_goes_after_an_hour_of_absences_by_name() {
    let (told, deleted) = by_name(59, |_, _| {}).await;
    assert_eq!((told, deleted), (vec!["MachineNotFound".to_owned()], false));
    let (told, deleted) = by_name(62, |_, _| {}).await;
    assert!(deleted);
    assert_eq!(told, ["MachineNotFound", "DeletingNode", "DeletedNode"]);
}

#[tokio::test(start_paused = true)]
async fn any_other_answer_in_between_starts_the_hour_over() {
    let absent = || Ok(Presence::Absent(Evidence::ByName));
    for other in [
        Ok(running()),
        Err(Failure::Unavailable("down".into()).into()),
        Err(crate::testing::fault(cloudwit_model::FaultKind::Trap)),
    ] {
        let in_between = |minute, cloud: &FakeCloud| {
            *lock(&cloud.answer) = if (30..36).contains(&minute) {
                other.clone()
            } else {
                absent()
            };
        };
        assert!(!by_name(85, in_between).await.1, "{other:?}");
        assert!(by_name(110, in_between).await.1, "{other:?}");
    }
    let swap = |minute, cloud: &FakeCloud| {
        if minute == 30 {
            *lock(&cloud.digest) = "another".into();
        }
    };
    assert!(!by_name(80, swap).await.1, "another provider");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_belonged_to_two_machines_deletes_nothing() {
    let two = |minute, cloud: &FakeCloud| {
        *lock(&cloud.answer) = Ok(match minute {
            0..6 => crate::testing::running("sim://1"),
            6..12 => crate::testing::running("sim://2"),
            _ => Presence::Absent(Evidence::ByName),
        });
    };
    let (told, deleted) = by_name(300, two).await;
    assert_eq!((told, deleted), (Vec::new(), false));
}

#[tokio::test(start_paused = true)]
async fn one_odd_machine_costs_no_other_node_its_fate() {
    let cloud = FakeCloud::new(Ok(Presence::Absent(Evidence::ById)));
    lock(&cloud.faulty).insert("n7".into());
    let (context, mut writer, _registry) = context_on(nowhere(), cloud.clone(), Options::default());
    let reports = context.reports.clone();
    run(context, (0..50).map(|number| old(&format!("n{number}"))).collect(), 20).await;
    let candidates = reports.deletions().remove(0).candidates;
    assert_eq!(candidates.len(), 49, "all others are found to be gone");
    assert!(candidates.iter().all(|one| one.node != "n7"));
    let unanswered: Vec<_> = writer
        .handed_over()
        .into_iter()
        .filter(|event| event.reason == "MachineLookupFailed")
        .map(|event| event.object.name.unwrap_or_default())
        .collect();
    assert_eq!(unanswered, ["n7"]);
    assert!(cloud.count() < 25, "{} calls", cloud.count());
}

#[tokio::test(start_paused = true)]
async fn swap_during_lookup_confirms_no_absence() {
    for swapped in [false, true] {
        let cloud = FakeCloud::new(Ok(Presence::Absent(Evidence::ById)));
        let (context, _registry) = context(cloud.clone(), Options::default());
        let mut lifecycle = Lifecycle::new(&context);
        let (nodes, provider) = ([Arc::new(old("a"))], cloud.identity());
        lifecycle.guard.set_digest(&provider.digest);
        assert!(lifecycle.look_up(&nodes, &provider).await.unwrap().is_empty());
        sleep(Duration::from_secs(200)).await;
        *lock(&cloud.swapped_for) = swapped.then(|| "another".into());
        let gone = lifecycle.look_up(&nodes, &provider).await.map(|gone| gone.len());
        assert_eq!(gone, (!swapped).then_some(1));
        assert_eq!(lifecycle.guard.candidates(), usize::from(!swapped), "begun anew");
    }
}
