//! When the route controller lists, and which failed changes it retries.

use cloudwit_model::{NewRoute, NodeRef, Route};
use ipnet::IpNet;

use super::*;
use crate::assign::{Provider, Providers, ServiceRules};
use crate::kube::writer::Apply;
use crate::leadership::Leadership;
use crate::options::Options;
use crate::report::explain::Explain;
use crate::testing::{FakeCloud, context_on, nowhere};

#[test]
fn lists_become_rarer_while_nothing_is_to_be_done() {
    let pauses = |period| [0, 1, 2, 3, 4, 5, 99].map(|quiet| list_pause(Duration::from_secs(period), quiet).as_secs());
    assert_eq!(pauses(10), [10, 20, 40, 80, 160, 300, 300]);
    assert_eq!(
        pauses(600),
        [600; 7],
        "never rarer than the operator wants, never more often"
    );
}

#[test]
fn a_failed_change_is_dropped_when_nodes_make_it_wrong() {
    let node = |uid: &str, range: &str| -> Arc<Node> {
        let node = serde_json::json!({ "metadata": { "name": "n1", "uid": uid }, "spec": { "podCIDRs": [range] } });
        Arc::new(serde_json::from_value(node).unwrap())
    };
    let network: IpNet = "10.0.1.0/24".parse().unwrap();
    let create = NewRoute {
        name_hint: "u1".into(),
        destination: network.to_string(),
        node: NodeRef {
            name: "n1".into(),
            ..NodeRef::default()
        },
    };
    let creation = RouteChange {
        network,
        delete: Vec::new(),
        create: Some(create),
    };
    assert!(still_wanted(&creation, |_| Some(node("u1", "10.0.1.0/24"))));
    assert!(!still_wanted(&creation, |_| None), "the Node is gone");
    let tainted = |_: &str| {
        let mut node = Arc::unwrap_or_clone(node("u1", "10.0.1.0/24"));
        let taint = k8s_openapi::api::core::v1::Taint {
            key: crate::kube::node::view::UNINITIALIZED.into(),
            ..Default::default()
        };
        node.spec.as_mut().unwrap().taints = Some(vec![taint]);
        Some(Arc::new(node))
    };
    assert!(
        !still_wanted(&creation, tainted),
        "the Node waits for its initialisation"
    );
    assert!(
        !still_wanted(&creation, |_| Some(node("u2", "10.0.1.0/24"))),
        "another Node of that name"
    );
    assert!(
        !still_wanted(&creation, |_| Some(node("u1", "10.0.2.0/24"))),
        "another range"
    );

    let route = Route {
        id: "r".into(),
        destination: network.to_string(),
        node: Some("n1".into()),
        next_hops: Vec::new(),
        blackhole: false,
    };
    let mut deletion = RouteChange {
        network,
        delete: vec![route],
        create: None,
    };
    assert!(still_wanted(&deletion, |_| None));
    assert!(
        !still_wanted(&deletion, |_| Some(node("u1", "10.0.1.0/24"))),
        "the Node came back"
    );
    deletion.delete[0].blackhole = true;
    assert!(
        still_wanted(&deletion, |_| Some(node("u1", "10.0.1.0/24"))),
        "a blackhole serves nobody"
    );
}

fn because(configure: bool, ranges: &[&str]) -> Option<String> {
    let cluster_cidrs = ranges.iter().map(|range| range.parse().unwrap()).collect();
    not_started_because(&RouteOptions {
        configure,
        cluster_cidrs,
        ..RouteOptions::default()
    })
}

#[test]
fn it_starts_with_one_range_of_each_family_at_most() {
    assert_eq!(because(true, &["10.0.0.0/8"]), None);
    assert_eq!(because(true, &["10.0.0.0/8", "fd00::/48"]), None);
    assert_eq!(
        because(false, &["10.0.0.0/8"]).unwrap(),
        "--configure-cloud-routes is false"
    );
    assert!(because(true, &[]).unwrap().starts_with("--cluster-cidr is not set: "));
    let error = because(true, &["10.0.0.0/8", "11.0.0.0/8"]).unwrap();
    assert!(
        error.starts_with("--cluster-cidr=10.0.0.0/8,11.0.0.0/8 has more than one range of a family"),
        "{error}"
    );
    assert!(because(true, &["10.0.0.0/8", "fd00::/48", "fd01::/48"]).is_some());
}

/// An API server that takes every write.
fn taking_all() -> kube::Client {
    let server = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        let answer = serde_json::json!({ "metadata": {} }).to_string().into_bytes();
        Ok::<_, kube::Error>(http::Response::new(kube::client::Body::from(answer)))
    });
    kube::Client::new(server, "default")
}

/// Two providers, whose Nodes are `a` and `b`, both with a Pod range.
struct TwoClouds {
    clouds: [Arc<FakeCloud>; 2],
    context: Context,
    /// One for each provider.
    contexts: Vec<Context>,
    writer: crate::kube::events::EventWriter,
}

impl TwoClouds {
    fn new() -> Self {
        let cloud = || FakeCloud::new(Err(cloudwit_model::Failure::Other("not asked".into()).into()));
        let clouds = [cloud(), cloud()];
        let names = ["left", "right"];
        let list = clouds.iter().zip(names).map(|(cloud, name)| Provider {
            name: name.into(),
            cloud: cloud.clone(),
            provider_id_prefixes: Some(vec![format!("{name}://")]),
            volumes: None,
        });
        let providers = Providers::new(list.collect(), "left", ServiceRules::default()).unwrap();
        let mut options = crate::options::Options::default();
        options.route.cluster_cidrs = vec!["10.0.0.0/16".parse().unwrap()];
        let (context, writer, _) = context_on(taking_all(), clouds[0].clone(), options);
        let contexts = Scope::all(&Arc::new(providers)).into_iter().map(|scope| Context {
            cloud: scope.provider().cloud.clone(),
            scope,
            ..context.clone()
        });
        let contexts = contexts.collect();
        let node = |name: &str, provider: &str, range: &str| -> Node {
            serde_json::from_value(serde_json::json!({
                "metadata": { "name": name, "uid": name, "resourceVersion": "1" },
                "spec": { "podCIDRs": [range], "providerID": format!("{provider}://{name}") },
            }))
            .unwrap()
        };
        context.nodes.fill(vec![
            node("a", "left", "10.0.1.0/24"),
            node("b", "right", "10.0.2.0/24"),
        ]);
        Self {
            clouds,
            context,
            contexts,
            writer,
        }
    }

    fn route(node: &str, destination: &str) -> Route {
        Route {
            id: node.into(),
            destination: destination.into(),
            node: Some(node.into()),
            next_hops: Vec::new(),
            blackhole: false,
        }
    }

    fn lists(&self) -> usize {
        self.clouds[1].lists.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn explained(&self, node: &str) -> String {
        let node = self.context.nodes.get(node).unwrap();
        let said = Explain::new(self.context.nodes.clone(), Arc::default(), self.context.reports.clone())
            .node(node.metadata.name.as_deref().unwrap());
        format!("{said:?}")
    }
}

#[tokio::test(start_paused = true)]
async fn route_list_failing_after_success_is_reported_and_backs_off() {
    let mut stage = TwoClouds::new();
    *lock(&stage.clouds[0].routes) = Ok(vec![TwoClouds::route("a", "10.0.1.0/24")]);
    *lock(&stage.clouds[1].routes) = Ok(vec![TwoClouds::route("b", "10.0.2.0/24")]);
    stage
        .contexts
        .iter()
        .for_each(|context| drop(tokio::spawn(run(context.clone()))));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(
        stage.explained("b").contains("has all its routes (10.0.2.0/24)."),
        "{}",
        stage.explained("b")
    );
    *lock(&stage.clouds[1].routes) = Err(cloudwit_model::Failure::Unavailable("down".into()).into());
    tokio::time::sleep(Duration::from_secs(600)).await;
    let before = stage.lists();
    let said = stage.explained("b");
    assert!(
        said.contains("could not be listed: provider \\\"right\\\": unavailable: down"),
        "{said}"
    );
    assert!(
        !stage.explained("a").contains("could not be listed"),
        "the other provider's Node is well"
    );
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let lists = stage.lists() - before;
    assert!((10..=14).contains(&lists), "{lists} lists in an hour: it backs off");
    let told: Vec<_> = stage
        .writer
        .handed_over()
        .into_iter()
        .filter(|event| event.reason == "RouteListFailed")
        .collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].object.name.as_deref(), Some("b"));
    *lock(&stage.clouds[1].routes) = Ok(vec![TwoClouds::route("b", "10.0.2.0/24")]);
    tokio::time::sleep(Duration::from_secs(301)).await;
    assert!(
        stage.explained("b").contains("has all its routes (10.0.2.0/24)."),
        "{}",
        stage.explained("b")
    );
}

#[tokio::test(start_paused = true)]
async fn one_odd_listed_route_is_left_out_and_the_others_are_compared() {
    let stage = TwoClouds::new();
    let odd = TwoClouds::route("odd", "10.0.9.0");
    *lock(&stage.clouds[0].routes) = Ok(vec![odd, TwoClouds::route("a", "10.0.1.0/24")]);
    stage
        .contexts
        .iter()
        .for_each(|context| drop(tokio::spawn(run(context.clone()))));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(
        stage.explained("a").contains("has all its routes (10.0.1.0/24)."),
        "{}",
        stage.explained("a")
    );
    assert_eq!(stage.context.metrics.route.ignored.get(), 1);
}

/// Nothing is applied then, so what is due stays due: coming back at once, it would never end.
#[tokio::test(start_paused = true)]
async fn a_due_retry_waits_while_the_process_does_not_lead() {
    let cloud = FakeCloud::new(Ok(cloudwit_model::Presence::Absent(cloudwit_model::Evidence::ById)));
    let (mut context, _writer, _registry) = context_on(nowhere(), cloud, Options::default());
    let (_term, leadership) = Leadership::elected(Arc::new(|| Duration::ZERO));
    context.apply = Apply::new(nowhere(), context.metrics.clone(), leadership, false);
    let queue = Queue::new(Backoff::SERVICE, context.metrics.queue("Routes"));
    let mut routes = NodeRoute::new(context, queue.clone());
    let route = Route {
        id: "r".into(),
        destination: "10.0.1.0/24".into(),
        node: Some("n1".into()),
        next_hops: Vec::new(),
        blackhole: false,
    };
    let change = RouteChange {
        network: "10.0.1.0/24".parse().unwrap(),
        delete: vec![route],
        create: None,
    };
    routes
        .retries
        .failed(change, Retry::Backoff, &"no".into(), Instant::now());
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(routes.retry().await, Outcome::Retry(Retry::After(routes.period())));
    assert!(queue.is_empty(), "nothing is queued besides");
}

/// A Node whose route takes the cloud so long, and what it is told about.
async fn slow(takes: Duration, runs: Duration) -> (TwoClouds, Vec<String>) {
    let mut stage = TwoClouds::new();
    for cloud in &stage.clouds {
        *lock(&cloud.routes_take) = Some(takes);
    }
    drop(tokio::spawn(run(stage.contexts[0].clone())));
    tokio::time::sleep(runs).await;
    let told = stage.writer.handed_over().into_iter();
    let told = told
        .map(|event| format!("{}: {}", event.reason, event.message))
        .collect();
    (stage, told)
}

#[tokio::test(start_paused = true)]
async fn a_route_that_takes_30_s_is_made_once_without_a_warning() {
    let (mut stage, told) = slow(Duration::from_secs(30), Duration::from_secs(12)).await;
    assert!(
        stage
            .explained("a")
            .contains("The cloud creates the route to 10.0.1.0/24"),
        "{}",
        stage.explained("a")
    );
    tokio::time::sleep(Duration::from_secs(48)).await;
    let cloud = &stage.clouds[0];
    assert_eq!(lock(&cloud.routes_begun).len(), 1, "no duplicate");
    let asked = lock(&cloud.routes_asked).clone();
    let again = std::iter::repeat_n(Some("0".to_owned()), 6);
    assert_eq!(asked, std::iter::once(None).chain(again).collect::<Vec<_>>());
    assert_eq!(lock(&cloud.routes).as_ref().unwrap().len(), 1);
    assert!(told.is_empty() && stage.writer.handed_over().is_empty(), "{told:?}");
    assert!(
        stage.explained("a").contains("has all its routes (10.0.1.0/24)."),
        "{}",
        stage.explained("a")
    );
}

#[tokio::test(start_paused = true)]
async fn a_route_pending_for_ten_minutes_is_given_up_with_an_event() {
    let (stage, told) = slow(Duration::from_secs(24 * 3600), Duration::from_secs(660)).await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("FailedToCreateRoute: ") && told[0].contains("not done after 10 minutes: it builds"),
        "{told:?}"
    );
    assert_eq!(
        lock(&stage.clouds[0].routes_begun).len(),
        2,
        "it is begun anew after that"
    );
}
