//! How Nodes become part of the cluster and keep their addresses.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use cloudwit_controllers::{Controller, ControllersError, Leadership, Options};
use cloudwit_model::{Address, AddressKind, Failure, Instance};
use cloudwit_test_support::objects::is_uninitialised;
use cloudwit_test_support::{ApiServer, NodeBuilder, eventually};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Taint;
use kube::Client;
use kube::api::PostParams;
use kube::client::Body;
use kube::runtime::{WatchStreamExt, watcher};
use tokio::time::timeout;

use crate::fake_cloud::{FakeCloud, Machine, Running, quick};
use crate::helpers::*;

#[tokio::test]
async fn joining_node_gets_id_labels_addresses_and_loses_taint() -> Result<()> {
    let client = ApiServer::shared().await.client();
    let cloud = FakeCloud::new("joins");
    let running = Running::start(client.clone(), &cloud, quick());
    cloud.run("joins-1");
    NodeBuilder::new("joins-1").node_ip("10.0.0.1").create(&client).await?;
    let node = eventually(LONG, "joins-1 is initialised", || is_initialised(&client, "joins-1")).await;
    assert_eq!(provider_id(&node), Some("joins://joins-1"));
    assert_eq!(
        address_list(&node),
        ["InternalIP 10.0.0.1", "ExternalIP 132.143.154.163", "Hostname joins-1"]
    );
    let labels = node.metadata.labels.unwrap_or_default();
    for (key, value) in [
        ("node.kubernetes.io/instance-type", "t1.micro"),
        ("beta.kubernetes.io/instance-type", "t1.micro"),
        ("topology.kubernetes.io/zone", "zone-a"),
        ("failure-domain.beta.kubernetes.io/zone", "zone-a"),
        ("topology.kubernetes.io/region", "region-1"),
        ("failure-domain.beta.kubernetes.io/region", "region-1"),
        ("kubernetes.io/hostname", "joins-1"),
    ] {
        assert_eq!(labels.get(key).map(String::as_str), Some(value), "{key}");
    }
    eventually(LONG, "the Event", || {
        has_event(&client, "joins-1", "Normal Synced: Node synced successfully")
    })
    .await;
    for metric in [
        "node_controller_cloud_provider_taint_removal_delay_seconds_count",
        "node_controller_initial_node_sync_delay_seconds_count",
        "running_managed_controllers{name=\"cloud-node\",manager=\"cloud-controller-manager\"}",
        "running_managed_controllers{name=\"cloud-node-lifecycle\",manager=\"cloud-controller-manager\"}",
    ] {
        eventually(LONG, metric, || async { running.metric(metric) == 1.0 }).await;
    }
    running.stop().await;
    Ok(())
}

/// The demand "1,000 tainted Nodes in one run with the number of cloud calls it took".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousand_nodes_take_few_calls_and_two_requests_each() -> Result<()> {
    const NODES: usize = 1000;
    let server = ApiServer::start().await?;
    let client = server.client();
    let cloud = FakeCloud::new("wave");
    let names: Vec<String> = (0..NODES).map(|i| format!("wave-{i:04}")).collect();
    stream::iter(&names)
        .map(|name| {
            cloud.run(name);
            NodeBuilder::new(name).create(&client)
        })
        .buffer_unordered(32)
        .try_collect::<Vec<_>>()
        .await?;
    let start = Instant::now();
    let running = Running::start(client.clone(), &cloud, init_only());
    let mut changes = pin!(watcher(nodes(&client), watcher::Config::default()).touched_objects());
    let mut initialised = HashSet::new();
    while initialised.len() < NODES {
        let node = timeout(LONG, changes.next()).await?.context("the watch ended")??;
        if !is_uninitialised(&node) {
            ensure!(address_list(&node).len() == 3, "without taint and without addresses");
            initialised.insert(node.metadata.name);
        }
    }
    let counted = || async { running.writes("nodes", "patch") >= NODES as f64 };
    eventually(LONG, "the last answer has arrived", counted).await;
    let (status, object) = (
        running.writes("nodes/status", "patch"),
        running.writes("nodes", "patch"),
    );
    println!(
        "{NODES} Nodes in {:.1} s: {} cloud calls, {status} PATCH nodes/status, {object} PATCH nodes",
        start.elapsed().as_secs_f64(),
        cloud.lookups(),
    );
    // One page holds a thousand; a write that the API server did not answer costs its Node another look.
    assert!(cloud.lookups() <= 3, "{} cloud calls", cloud.lookups());
    assert_eq!((status, object), (NODES as f64, NODES as f64), "two requests a Node");
    running.stop().await;
    Ok(())
}

#[tokio::test]
async fn the_api_server_may_restart_in_the_middle() -> Result<()> {
    let server = ApiServer::start().await?;
    let client = server.client();
    let cloud = FakeCloud::new("restart");
    let running = Running::start(client.clone(), &cloud, quick());
    for name in ["before", "during", "after"] {
        cloud.run(name);
    }
    NodeBuilder::new("before").create(&client).await?;
    eventually(LONG, "before is initialised", || is_initialised(&client, "before")).await;
    // The cloud answers while the API server is away: the writes fail and have to be repeated.
    let closed = cloud.gate.write().await;
    NodeBuilder::new("during").create(&client).await?;
    eventually(LONG, "the look-up has begun", || async { cloud.was_asked("during") }).await;
    server.stop().await?;
    drop(closed);
    eventually(LONG, "a write fails", || async {
        running.writes_with("nodes/status", "patch", "unreachable") > 0.0
    })
    .await;
    server.restart().await?;
    NodeBuilder::new("after").create(&client).await?;
    for name in ["during", "after"] {
        let node = eventually(LONG, "it is initialised", || is_initialised(&client, name)).await;
        assert_eq!(provider_id(&node), Some(cloud.id(name).as_str()));
    }
    running.stop().await;
    Ok(())
}

/// Right before each of our first writes to the Node itself somebody else adds a taint.
#[tokio::test]
async fn conflict_storm_costs_no_cloud_call_and_loses_no_taint() -> Result<()> {
    const CONFLICTS: usize = 5;
    let server = ApiServer::start().await?;
    let (client, cloud) = (server.client(), FakeCloud::new("storm"));
    cloud.run("storm-1");
    let (others, writes) = (client.clone(), Arc::<AtomicUsize>::default());
    let stormy = tower::service_fn(move |request: http::Request<Body>| {
        let (others, writes) = (others.clone(), writes.clone());
        async move {
            if request.method() == http::Method::PATCH && request.uri().path() == "/api/v1/nodes/storm-1" {
                let number = writes.fetch_add(1, Ordering::Relaxed);
                if number < CONFLICTS {
                    add_taint(&others, "storm-1", &format!("storm/{number}")).await?;
                }
            }
            others.send(request).await
        }
    });
    let running = Running::start(Client::new(stormy, "default"), &cloud, init_only());
    NodeBuilder::new("storm-1").create(&client).await?;
    let node = eventually(LONG, "storm-1 is initialised", || is_initialised(&client, "storm-1")).await;
    let added: Vec<String> = (0..CONFLICTS).map(|number| format!("storm/{number}")).collect();
    assert_eq!(taint_keys(&node), added, "no taint of others is lost");
    assert_eq!(running.writes_with("nodes", "patch", "conflict"), CONFLICTS as f64);
    assert_eq!((cloud.lookups(), provider_id(&node)), (1, Some("storm://storm-1")));
    running.stop().await;
    Ok(())
}

async fn add_taint(client: &Client, name: &str, key: &str) -> kube::Result<()> {
    let mut node = nodes(client).get(name).await?;
    let taint = Taint {
        key: key.into(),
        effect: "NoSchedule".into(),
        ..Taint::default()
    };
    node.spec
        .get_or_insert_default()
        .taints
        .get_or_insert_default()
        .push(taint);
    nodes(client).replace(name, &PostParams::default(), &node).await?;
    Ok(())
}

/// Rows 7 and 22 of `Test_syncNode`, and N7, N9: nothing is changed, an Event says why, and it goes on by itself.
#[tokio::test]
async fn node_without_machine_yet_waits_while_others_proceed() -> Result<()> {
    let client = ApiServer::shared().await.client();
    let cloud = FakeCloud::new("waits");
    cloud.run("waits-fine");
    cloud.set(
        "waits-failing",
        Machine::Fails(Failure::Denied("no permission to read machines".into())),
    );
    let running = Running::start(client.clone(), &cloud, init_only());
    let names = ["waits-late", "waits-failing", "waits-fine"];
    for name in names {
        NodeBuilder::new(name).create(&client).await?;
    }
    eventually(LONG, "the third is initialised", || {
        is_initialised(&client, "waits-fine")
    })
    .await;
    let text = eventually(LONG, "an Event", || {
        has_event(&client, "waits-late", "Warning InitializationFailed")
    })
    .await;
    assert!(
        text.contains("the cloud has no machine that matches this Node's name"),
        "{text}"
    );
    for name in ["waits-late", "waits-failing"] {
        let node = nodes(&client).get(name).await?;
        assert!(
            is_uninitialised(&node) && provider_id(&node).is_none() && address_list(&node).len() == 1,
            "{name}"
        );
    }
    cloud.run("waits-late");
    eventually(LONG, "the late one is initialised", || {
        is_initialised(&client, "waits-late")
    })
    .await;
    // What a person mended by swapping the provider or its secret is tried at once.
    cloud.run("waits-failing");
    cloud.swap("mended");
    eventually(LONG, "the failing one is initialised", || {
        is_initialised(&client, "waits-failing")
    })
    .await;
    running.stop().await;
    Ok(())
}

/// Row 10 of `Test_syncNode` and N8.
#[tokio::test]
async fn a_wrong_node_ip_keeps_the_taint_and_a_wrong_label_does_not() -> Result<()> {
    let client = ApiServer::shared().await.client();
    let cloud = FakeCloud::new("wrong");
    cloud.run("wrong-ip");
    let labels = [
        ("team".to_owned(), "not a label value".to_owned()),
        ("rack".to_owned(), "r1".to_owned()),
    ]
    .into();
    let odd = Instance {
        zone: Some("zone a".into()),
        labels,
        ..cloud.instance("wrong-label")
    };
    cloud.set("wrong-label", Machine::Runs(odd));
    let running = Running::start(client.clone(), &cloud, init_only());
    NodeBuilder::new("wrong-ip").node_ip("10.9.9.9").create(&client).await?;
    NodeBuilder::new("wrong-label").create(&client).await?;
    let node = eventually(LONG, "wrong-label is initialised", || {
        is_initialised(&client, "wrong-label")
    })
    .await;
    let labels = node.metadata.labels.unwrap_or_default();
    assert_eq!(labels.get("rack").map(String::as_str), Some("r1"));
    assert!(!labels.contains_key("team") && !labels.contains_key("topology.kubernetes.io/zone"));
    for label in ["team", "topology.kubernetes.io/zone"] {
        let part = format!("Warning InvalidLabel: Label {label}=");
        eventually(LONG, "an Event", || has_event(&client, "wrong-label", &part)).await;
    }
    let text = eventually(LONG, "an Event", || {
        has_event(&client, "wrong-ip", "names the address 10.9.9.9")
    })
    .await;
    assert!(
        text.contains("Warning InitializationFailed") && text.contains("it lists InternalIP 10.0.0.1"),
        "{text}"
    );
    let node = nodes(&client).get("wrong-ip").await?;
    assert!(
        is_uninitialised(&node) && provider_id(&node).is_none(),
        "nothing is written"
    );
    running.stop().await;
    Ok(())
}

/// kubernetes/cloud-provider-vsphere#501: the Node is replaced under the same name while the cloud is asked.
#[tokio::test]
async fn a_replaced_node_never_gets_its_predecessors_facts() -> Result<()> {
    let client = ApiServer::shared().await.client();
    let cloud = FakeCloud::new("replaced");
    let old = Instance {
        provider_id: cloud.id("old-machine"),
        ..cloud.instance("x")
    };
    cloud.set("replaced-1", Machine::Runs(old));
    let running = Running::start(client.clone(), &cloud, init_only());
    NodeBuilder::new("replaced-1").create(&client).await?;
    eventually(LONG, "the first is initialised", || {
        is_initialised(&client, "replaced-1")
    })
    .await;
    nodes(&client).delete("replaced-1", &Default::default()).await?;
    // The look-up for the second begins and waits; the third takes its place meanwhile.
    let closed = cloud.gate.write().await;
    let calls = cloud.lookups();
    let second = NodeBuilder::new("replaced-1").create(&client).await?;
    eventually(LONG, "the look-up has begun", || async { cloud.lookups() > calls }).await;
    nodes(&client).delete("replaced-1", &Default::default()).await?;
    let third = NodeBuilder::new("replaced-1")
        .label("third", "yes")
        .create(&client)
        .await?;
    assert_ne!(second.metadata.uid, third.metadata.uid);
    // The call for the second has not looked yet; it answers with what the cloud says now. What the third gets comes
    // from a call of its own.
    drop(closed);
    let node = eventually(LONG, "the third is initialised", || {
        is_initialised(&client, "replaced-1")
    })
    .await;
    assert_eq!(node.metadata.uid, third.metadata.uid);
    assert!(cloud.lookups() >= calls + 2, "the third was asked about for itself");
    running.stop().await;
    Ok(())
}

#[tokio::test]
async fn refresh_writes_only_nodes_that_changed_and_only_its_own() -> Result<()> {
    let client = ApiServer::shared().await.client();
    let cloud = FakeCloud::new("refresh");
    let dual = Instance {
        addresses: vec![
            Address::new(AddressKind::InternalIP, "10.0.0.1"),
            Address::new(AddressKind::InternalIP, "fc00::1"),
        ],
        ..cloud.instance("refresh-dual")
    };
    cloud.set("refresh-dual", Machine::Runs(dual.clone()));
    let running = Running::start(client.clone(), &cloud, only(Controller::CloudNode, quick()));
    NodeBuilder::new("refresh-dual").create(&client).await?;
    NodeBuilder::new("refresh-foreign")
        .initialised()
        .provider_id("elsewhere://a")
        .create(&client)
        .await?;
    eventually(LONG, "it is initialised", || is_initialised(&client, "refresh-dual")).await;
    let (calls, written) = (cloud.lookups(), running.writes("nodes/status", "patch"));
    eventually(LONG, "five periods", || async { cloud.lookups() >= calls + 5 }).await;
    assert_eq!(
        running.writes("nodes/status", "patch"),
        written,
        "a dual-stack Node without change costs no request"
    );
    let changed = Instance {
        addresses: vec![Address::new(AddressKind::InternalIP, "10.0.0.2")],
        ..dual
    };
    cloud.set("refresh-dual", Machine::Runs(changed));
    eventually(LONG, "the new address", || async {
        let addresses = address_list(&nodes(&client).get("refresh-dual").await?);
        ensure!(
            addresses == ["InternalIP 10.0.0.2", "Hostname refresh-dual"],
            "{addresses:?}"
        );
        anyhow::Ok(())
    })
    .await;
    eventually(LONG, "one write is counted", || async {
        running.writes("nodes/status", "patch") == written + 1.0
    })
    .await;
    let foreign = nodes(&client).get("refresh-foreign").await?;
    assert_eq!(address_list(&foreign), ["Hostname refresh-foreign"]);
    running.stop().await;
    Ok(())
}

#[tokio::test]
async fn deprecated_labels_are_copied_to_their_successors() -> Result<()> {
    let client = ApiServer::shared().await.client();
    let cloud = FakeCloud::new("labels");
    let running = Running::start(client.clone(), &cloud, init_only());
    NodeBuilder::new("labels-1")
        .initialised()
        .label("failure-domain.beta.kubernetes.io/zone", "foo")
        .label("topology.kubernetes.io/zone", "wrong")
        .label("beta.kubernetes.io/instance-type", "the-best-type")
        .create(&client)
        .await?;
    eventually(LONG, "its labels are right", || async {
        let labels = nodes(&client)
            .get("labels-1")
            .await?
            .metadata
            .labels
            .unwrap_or_default();
        let right = labels
            .get("topology.kubernetes.io/zone")
            .is_some_and(|zone| zone == "foo")
            && labels
                .get("node.kubernetes.io/instance-type")
                .is_some_and(|kind| kind == "the-best-type");
        ensure!(right, "{labels:?}");
        anyhow::Ok(())
    })
    .await;
    running.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_dry_run_and_a_replica_that_does_not_lead_write_nothing() -> Result<()> {
    // Alone: the controllers of other tests would note on the new Node that their clouds do not know it.
    let server = ApiServer::start().await?;
    let (client, cloud) = (server.client(), FakeCloud::new("silent"));
    cloud.run("silent-new");
    let before = NodeBuilder::new("silent-new").create(&client).await?;
    not_ready(&client, &cloud, "silent-gone").await?;
    cloud.remove("silent-gone");
    let mut dry = quick();
    dry.dry_run = true;
    let running = Running::start(client.clone(), &cloud, dry);
    eventually(LONG, "decisions", || async {
        running.writes_with("nodes", "patch", "dry_run") >= 1.0
            && running.writes_with("nodes", "delete", "dry_run") >= 1.0
    })
    .await;
    running.stop().await;
    let running = Running::start_with(client.clone(), cloud.clone(), quick(), |cluster| {
        cluster.led_by(ended())
    });
    eventually(LONG, "dropped writes", || async {
        running.writes_with("nodes/status", "patch", "not_leading") >= 1.0
            && running.writes_with("nodes", "delete", "not_leading") >= 1.0
    })
    .await;
    running.stop().await;
    let after = nodes(&client).get("silent-new").await?;
    assert_eq!(before.metadata.resource_version, after.metadata.resource_version);
    assert!(nodes(&client).get_opt("silent-gone").await?.is_some());
    assert_eq!(events(&client, "silent-gone").await?, Vec::<String>::new());
    Ok(())
}

/// A leadership that has begun, and is over.
fn ended() -> Leadership {
    let (term, leading) = Leadership::elected(Arc::new(|| Duration::from_secs(10)));
    term.renew(Duration::from_secs(9));
    leading
}

#[tokio::test]
async fn node_wait_reason_is_not_noted_in_dry_run_or_without_lead() -> Result<()> {
    let server = ApiServer::start().await?;
    let (client, cloud) = (server.client(), FakeCloud::new("mute"));
    let before = NodeBuilder::new("mute-1").create(&client).await?;
    let mut dry = init_only();
    dry.dry_run = true;
    // The only patch there is to make is the note, since the cloud does not know the machine.
    let running = Running::start(client.clone(), &cloud, dry);
    eventually(LONG, "a note that is not written", || async {
        running.writes_with("nodes", "patch", "dry_run") >= 1.0
    })
    .await;
    running.stop().await;
    let running = Running::start_with(client.clone(), cloud.clone(), init_only(), |cluster| {
        cluster.led_by(ended())
    });
    eventually(LONG, "a note that is dropped", || async {
        running.writes_with("nodes", "patch", "not_leading") >= 1.0
    })
    .await;
    running.stop().await;
    let after = nodes(&client).get("mute-1").await?;
    assert_eq!(before.metadata.resource_version, after.metadata.resource_version);
    let running = Running::start(client.clone(), &cloud, init_only());
    eventually(LONG, "the note is written otherwise", || async {
        let node = nodes(&client).get("mute-1").await?;
        let notes = node.metadata.annotations.unwrap_or_default();
        ensure!(notes.contains_key("cloudwit.dev/waiting-for-cloud"), "{notes:?}");
        anyhow::Ok(())
    })
    .await;
    running.stop().await;
    Ok(())
}

#[tokio::test]
async fn controllers_start_one_after_the_other_where_that_is_wanted() -> Result<()> {
    let client = ApiServer::shared().await.client();
    let cloud = FakeCloud::new("interval");
    cloud.run("interval-1");
    NodeBuilder::new("interval-1").create(&client).await?;
    let mut options = quick();
    options.start_interval = Duration::from_secs(3600);
    let running = Running::start(client.clone(), &cloud, options);
    eventually(LONG, "the first one has worked", || {
        is_initialised(&client, "interval-1")
    })
    .await;
    let runs = |name: &str| {
        running.metric(&format!(
            "running_managed_controllers{{name=\"{name}\",manager=\"cloud-controller-manager\"}}"
        ))
    };
    assert_eq!((runs("cloud-node"), runs("cloud-node-lifecycle")), (1.0, 0.0));
    running.stop().await;
    Ok(())
}

#[tokio::test]
async fn options_that_make_no_sense_start_nothing() {
    let client = ApiServer::shared().await.client();
    let mut options = Options::default();
    options.node.concurrent_syncs = 0;
    options.lifecycle.concurrent_syncs = 0;
    let error = Running::start(client, &FakeCloud::new("nonsense"), options)
        .failed()
        .await;
    assert!(
        matches!(&error, ControllersError::Options(mistakes) if mistakes.len() == 2),
        "{error}"
    );
}

#[tokio::test]
async fn a_loop_that_panics_ends_everything_with_its_name() -> Result<()> {
    let server = ApiServer::start().await?;
    let (client, cloud) = (server.client(), FakeCloud::new("panics"));
    cloud.set("panics-1", Machine::Panics);
    let running = Running::start(client.clone(), &cloud, init_only());
    NodeBuilder::new("panics-1").create(&client).await?;
    let error = timeout(LONG, running.failed()).await?;
    assert_eq!(error.to_string(), "cloud-node-controller panicked: the cloud panics");
    Ok(())
}
