//! `cloudwit explain` and its pages on the real stack: the process with the provider `sim`, a real API server, the simulated cloud. What each
//! sentence looks like in every case is tested beside the code; here is that the controllers' memory reaches the person who asks.

use std::time::Duration;

use cloudwit_sim_cloud::{Fault, FaultKind, MachineState, NewMachine, Operation};
use cloudwit_suite::common::explaining;
use cloudwit_suite::hosting::TRIGGER;
use cloudwit_test_support::scenes::deployment::TOKEN;
use cloudwit_test_support::{NodeBuilder, ServiceBuilder};
use explaining::{NO_CLOUDWIT, NO_SUCH_OBJECT, Scene};
use k8s_openapi::api::core::v1::{Event, Node, Service};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

/// Nodes are looked at every second, and nothing is deleted while a test runs.
const WATCHFUL: [&str; 4] = [
    "--node-monitor-period=1s",
    "--route-reconciliation-period=1s",
    "--node-deletion-grace-period=0s",
    "--node-deletion-confirm-after=1h",
];

#[tokio::test(flavor = "multi_thread")]
async fn node_reports_what_it_waits_for_and_when_it_is_tried_again() {
    let scene = Scene::new(&WATCHFUL).await;
    scene.site.cloud.add_numbered_machines("known", 2);
    scene.site.cloud.set_state(["vm-2"], MachineState::Stopped);
    let node = |name: &str, id: &str| NodeBuilder::new(name).provider_id(id).initialised();
    let create = async |node: NodeBuilder| node.create(&scene.site.client).await.unwrap();
    create(NodeBuilder::new("unknown")).await;
    create(node("known-0", "sim://vm-1")).await;
    create(node("stopped", "sim://vm-2").ready(None)).await;
    create(node("gone", "sim://vm-99").ready(None)).await;
    create(node("foreign", "aws:///zone/i-1")).await;
    create(node("outside", "sim://vm-1").pod_cidr("10.99.0.0/24")).await;

    let waits = [
        "waits to be initialised since",
        "Last answer of provider sim: ",
        "Next try in",
        "[cloud-node-controller]",
    ];
    scene.until_said("node unknown", &waits).await;
    let fine = [
        "Node known-0 is initialised. [cloud-node-controller]",
        "Node known-0 is Ready; its machine is not looked up. [cloud-node-lifecycle-controller]",
        "Node known-0 has no Pod range (spec.podCIDRs), so it needs no route. [node-route-controller]",
    ];
    scene.until_said("node known-0", &fine).await;
    scene
        .until_said(
            "node stopped",
            &["is not Ready; the cloud says that its machine is stopped."],
        )
        .await;
    let gone = [
        "the cloud said ",
        "that machine sim://vm-99 does not exist; it will be deleted when this is confirmed after 1 h.",
    ];
    scene.until_said("node gone", &gone).await;
    let foreign = ["is left alone: its provider id aws:///zone/i-1 is not one of provider sim."];
    scene.until_said("node foreign", &foreign).await;
    let outside = [
        "lacks a route for its Pods",
        "Its Pod range 10.99.0.0/24 gets no route: it is outside",
    ];
    scene.until_said("node outside", &outside).await;

    let held = Patch::Merge(json!({ "metadata": { "finalizers": ["example.com/hold"] } }));
    let nodes = Api::<Node>::all(scene.site.client.clone());
    nodes.patch("known-0", &PatchParams::default(), &held).await.unwrap();
    nodes.delete("known-0", &DeleteParams::default()).await.unwrap();
    let dying = ["is being deleted and goes when its finalizers do: example.com/hold."];
    scene.until_said("node known-0", &dying).await;

    let (code, out, err) = scene.explain("node nobody");
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (NO_SUCH_OBJECT, "", "There is no Node nobody.\n")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn node_that_the_brake_holds_reports_it() {
    let brake = [
        "--node-monitor-period=1s",
        "--node-deletion-grace-period=0s",
        "--node-deletion-confirm-after=1s",
    ];
    let scene = Scene::new(&brake).await;
    let names = ["gone-1", "gone-2", "gone-3"];
    for (name, machine) in names
        .into_iter()
        .zip(scene.site.cloud.add_machines(names.map(NewMachine::named)))
    {
        let node = NodeBuilder::new(name).provider_id(&format!("sim://{}", machine.id));
        node.initialised().ready(None).create(&scene.site.client).await.unwrap();
    }
    // All machines go at once, when all Nodes are known: the first one that is gone alone may go.
    let lives = ["is not Ready; the cloud has not said that its machine is gone, so it stays."];
    for name in names {
        scene.until_said(&format!("node {name}"), &lives).await;
    }
    scene.site.cloud.delete_machines(names);
    let held = ["held by the deletion brake: 3 Nodes seem gone and 0 were deleted, 1 may go."];
    scene.until_said("node gone-2", &held).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_route_gives_reason_and_stale_route_is_reported() {
    let scene = Scene::new(&WATCHFUL).await;
    scene.site.cloud.add_numbered_machines("node", 1);
    let refused = Fault::status(403).on(Operation::ChangeRoutes);
    scene.site.cloud.set_faults([refused.clone()]);
    let node = NodeBuilder::new("node-0")
        .provider_id("sim://vm-1")
        .pod_cidr("10.244.1.0/24");
    node.initialised().create(&scene.site.client).await.unwrap();
    let lacks = [
        "lacks a route for its Pods (10.244.1.0/24). The route to 10.244.1.0/24 could not be created (1 try).",
        "Last answer of the provider: denied: ",
        "Next try in ",
    ];
    scene.until_said("node node-0", &lacks).await;

    scene
        .site
        .cloud
        .set_faults([Fault::status(500).on(Operation::ListRoutes)]);
    let unlisted = [
        "The routes of the cloud could not be listed: unavailable: ",
        "Next try in",
    ];
    scene.until_said("node node-0", &unlisted).await;

    scene.site.cloud.set_faults([]);
    // Another range: the refused one is tried no sooner than in minutes.
    let nodes = Api::<Node>::all(scene.site.client.clone());
    nodes.delete("node-0", &DeleteParams::default()).await.unwrap();
    let node = NodeBuilder::new("node-0")
        .provider_id("sim://vm-1")
        .pod_cidr("10.244.2.0/24");
    node.initialised().create(&scene.site.client).await.unwrap();
    scene
        .until_said("node node-0", &["has all its routes (10.244.2.0/24)."])
        .await;

    scene.site.cloud.set_faults([refused]);
    nodes.delete("node-0", &DeleteParams::default()).await.unwrap();
    let told = |event: &Event| {
        let message = event.message.as_deref().unwrap_or_default();
        event.reason.as_deref() == Some("FailedToDeleteRoute")
            && message.starts_with("Could not delete route ")
            && message.contains(" 10.244.2.0/24 for node node-0: denied: ")
    };
    scene.until_event("node-0", told).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn service_shows_reason_and_next_attempt() {
    let scene = Scene::new(&WATCHFUL).await;
    scene.site.cloud.add_numbered_machines("node", 1);
    scene.site.cloud.set_balancer_build_time(Duration::from_secs(3600));
    let node = NodeBuilder::new("node-0").provider_id("sim://vm-1").initialised();
    node.create(&scene.site.client).await.unwrap();
    let create = async |service: ServiceBuilder| service.create(&scene.site.client).await.unwrap();

    let other = |spec: &mut k8s_openapi::api::core::v1::ServiceSpec| {
        spec.load_balancer_class = Some("example.com/other".into());
    };
    create(ServiceBuilder::new("other").spec(other)).await;
    create(ServiceBuilder::new("inside").spec(|spec| spec.type_ = Some("ClusterIP".into()))).await;
    let classed = ["is left alone: its class example.com/other belongs to another controller."];
    scene.until_said("service default/other", &classed).await;
    scene
        .until_said(
            "service default/inside",
            &["is of type ClusterIP: there is nothing to do."],
        )
        .await;

    scene
        .site
        .cloud
        .set_faults([Fault::slow_down(2).on(Operation::CreateLoadBalancer)]);
    create(ServiceBuilder::new("limited")).await;
    let limited = [
        "has no load balancer yet since",
        "Last answer of the provider: rate limited: ",
        "Next try in ",
    ];
    scene.until_said("service default/limited", &limited).await;

    scene
        .site
        .cloud
        .set_faults([Fault::status(403).on(Operation::CreateLoadBalancer)]);
    create(ServiceBuilder::new("refused")).await;
    let refused = [
        "has no load balancer yet since",
        "(1 try). Last answer of the provider: denied: ",
        "Next try in ",
    ];
    scene.until_said("service default/refused", &refused).await;

    scene.site.cloud.set_faults([]);
    create(ServiceBuilder::new("web")).await;
    let waits = [
        "Service default/web waits for the cloud since",
        "next call in",
        "[service-lb-controller]",
    ];
    scene.until_said("service default/web", &waits).await;
    scene.site.cloud.finish_load_balancers();
    scene
        .until_said(
            "service default/web",
            &["has its load balancer at 198.51.100.", " with 1 Node behind it."],
        )
        .await;

    scene
        .site
        .cloud
        .set_faults([Fault::status(500).on(Operation::DeleteLoadBalancer)]);
    let services = Api::<Service>::default_namespaced(scene.site.client.clone());
    services.delete("web", &DeleteParams::default()).await.unwrap();
    let dying = [
        "is being deleted; its load balancer goes first since",
        "Last answer of the provider: unavailable: ",
        "Next try in ",
    ];
    scene.until_said("service default/web", &dying).await;
    let (code, _, err) = scene.explain("service default/nothing");
    assert_eq!(
        (code, err.as_str()),
        (NO_SUCH_OBJECT, "There is no Service default/nothing.\n")
    );
}

/// Whatever a cloud sends back: its words are shown, the token in them is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_the_cloud_sends_back_is_shown_nowhere() {
    let scene = Scene::new(&WATCHFUL).await;
    scene.site.cloud.set_faults([Fault::new(FaultKind::Echo)]);
    NodeBuilder::new("new").create(&scene.site.client).await.unwrap();
    let gone = NodeBuilder::new("gone")
        .provider_id("sim://vm-9")
        .initialised()
        .ready(None);
    gone.pod_cidr("10.244.1.0/24").create(&scene.site.client).await.unwrap();
    ServiceBuilder::new("web").create(&scene.site.client).await.unwrap();

    // The same words reach everybody: Nodes one by one, Services, the list of routes, Events, the log.
    for object in ["node new", "node gone", "service default/web"] {
        scene
            .until_said(object, &["nobody may come with", "Bearer [secret token]"])
            .await;
    }
    let told = |event: &Event| event.message.as_deref().unwrap_or_default().contains("[secret token]");
    scene.until_event("new", told).await;
    scene.until_event("web", told).await;
    let mut shown = vec![scene.log(), scene.page("/metrics").await];
    for object in ["node new", "node gone", "service default/web"] {
        let (_, out, err) = scene.explain(object);
        shown.extend([out, err]);
    }
    let events = Api::<Event>::all(scene.site.client.clone());
    for event in events.list(&ListParams::default()).await.unwrap() {
        shown.push(serde_json::to_string(&event).unwrap());
    }
    assert!(
        shown[0].contains("Bearer [secret token]"),
        "the log has the words: {}",
        shown[0]
    );
    for text in shown {
        assert!(!text.contains(TOKEN), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_get_json_from_the_command_and_from_the_page() {
    let scene = Scene::new(&WATCHFUL).await;
    NodeBuilder::new("unknown").create(&scene.site.client).await.unwrap();
    scene
        .until_said("node unknown", &["waits to be initialised since"])
        .await;
    let (code, out, err) = scene.explain("node unknown -o json");
    assert_eq!((code, err.as_str()), (0, ""));
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&answer["answeredBy"], &answer["object"]),
        (&json!("cloudwit"), &json!("Node unknown"))
    );
    assert_eq!(answer["statements"][0]["controller"], "cloud-node-controller");
    let said = answer["statements"][0]["text"].as_str().unwrap();
    assert!(said.starts_with("waits to be initialised since"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn provider_that_crashed_is_reported_with_its_last_words() {
    let scene = Scene::with_guest("panics", &WATCHFUL).await;
    NodeBuilder::new(TRIGGER).create(&scene.site.client).await.unwrap();
    let crashed = [
        "waits to be initialised since",
        "crashed: it panicked or aborted; its last output: ",
        "no idea what to do with",
        "Next try in",
    ];
    scene.until_said(&format!("node {TRIGGER}"), &crashed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_process_the_api_server_and_its_events_are_reported() {
    let mut scene = Scene::new(&WATCHFUL).await;
    NodeBuilder::new("unknown").create(&scene.site.client).await.unwrap();
    ServiceBuilder::new("web").create(&scene.site.client).await.unwrap();
    let failing = |event: &Event| event.reason.as_deref() == Some("InitializationFailed");
    scene.until_event("unknown", failing).await;
    let ensured = |event: &Event| event.reason.as_deref() == Some("EnsuredLoadBalancer");
    scene.until_event("web", ensured).await;
    scene.stop();

    let (code, out, err) = scene.explain("node unknown");
    assert_eq!(code, NO_CLOUDWIT, "{out}{err}");
    assert!(
        err.starts_with("No running Cloudwit was reached at --admin-address="),
        "{err}"
    );
    for part in [
        "Node unknown is Ready.\n",
        "Node unknown waits to be initialised: it carries the taint node.cloudprovider.kubernetes.io/uninitialized.\n",
        "Events:\n",
        " ago: Warning InitializationFailed",
        "Still waiting for cloud provider \"sim\" to initialise this Node",
    ] {
        assert!(out.contains(part), "{part} in {out}");
    }
    let (code, out, _) = scene.explain("service default/web -o json");
    assert_eq!(code, NO_CLOUDWIT);
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["answeredBy"], "api-server");
    assert_eq!(
        answer["statements"][0]["text"],
        "has its load balancer at 198.51.100.1."
    );
    let events = answer["events"].as_array().unwrap();
    assert!(
        events
            .iter()
            .any(|event| event.as_str().unwrap().contains("Normal EnsuredLoadBalancer")),
        "{events:?}"
    );
    let (code, out, err) = scene.explain("node nobody");
    assert_eq!((code, out.as_str()), (NO_SUCH_OBJECT, ""));
    assert!(err.ends_with("There is no Node nobody.\n"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_command_line_is_refused_before_any_request() {
    let program = tokio::task::spawn_blocking(cloudwit_test_support::programs::cloudwit)
        .await
        .unwrap();
    let run = |line: &str| explaining::run(&program, line.split(' '));
    for (line, part) in [
        ("explain", "Usage: cloudwit explain"),
        ("explain pod a", "unrecognized subcommand 'pod'"),
        (
            "explain service web",
            "it has to be NAMESPACE/NAME, such as default/web",
        ),
        ("explain node A_b", "a name has lower-case letters, digits, '-' and '.'"),
        ("explain node a -o yaml", "[possible values: text, json]"),
        ("explain node a --dry-run", "unexpected argument '--dry-run'"),
    ] {
        let (code, out, err) = run(line);
        assert_eq!(code, 2, "{line}: {out}{err}");
        assert!(err.contains(part), "{line}: {err}");
    }
    // The controllers' flags mean nothing to `explain`, and saying nothing about them would hide a mistake.
    let (code, _, err) = run("--dry-run explain node a");
    assert_eq!(code, 1, "{err}");
    assert!(
        err.contains("does not take any arguments, got [\"explain\", \"node\", \"a\"]"),
        "{err}"
    );
    let (code, _, err) = run("explain node a --kubeconfig=/no/such/file --admin-address=127.0.0.1:1");
    assert_eq!(code, 1, "nobody could be asked: {err}");
    assert!(err.contains("--kubeconfig=/no/such/file"), "{err}");
}
