//! What becomes of Nodes that are not Ready.

use anyhow::{Result, ensure};
use cloudwit_controllers::NodeDeletion;
use cloudwit_model::Failure;
use cloudwit_test_support::{ApiServer, NodeBuilder, eventually};
use kube::Client;
use kube::api::{Patch, PatchParams};
use kube::client::Body;
use kube::core::Status;
use serde_json::json;

use crate::fake_cloud::{FakeCloud, Machine, Running};
use crate::helpers::*;

const CALLS: &str = "cloud_node_lifecycle_controller_cloud_provider_calls_total";

/// `Test_NodesDeleted` and `Test_NodesShutdown` on the real thing.
#[tokio::test]
async fn gone_are_deleted_stopped_tainted_and_ready_untouched() -> Result<()> {
    let client = ApiServer::shared().await.client();
    let cloud = FakeCloud::new("fates");
    for name in [
        "fates-gone",
        "fates-stopped",
        "fates-running",
        "fates-failing",
        "fates-ready",
    ] {
        not_ready(&client, &cloud, name).await?;
    }
    cloud.remove("fates-gone");
    cloud.set("fates-stopped", Machine::Stopped(cloud.instance("fates-stopped")));
    cloud.set(
        "fates-failing",
        Machine::Fails(Failure::Unavailable("cloud is down".into())),
    );
    set_ready(&client, "fates-ready", Some(true)).await?;
    cloud.remove("fates-ready");
    let running = Running::start(client.clone(), &cloud, lifecycle_only());
    eventually(LONG, "fates-gone is deleted", || async {
        anyhow::Ok(nodes(&client).get_opt("fates-gone").await?.is_none()).and_then(|gone| {
            ensure!(gone, "it is there");
            Ok(())
        })
    })
    .await;
    for part in [
        "Warning MachineNotFound: ",
        "Normal DeletingNode: Deleting node fates-gone because it does not exist in the cloud provider",
        "Normal DeletedNode: ",
    ] {
        let text = eventually(LONG, "an Event", || has_event(&client, "fates-gone", part)).await;
        assert!(text.contains("fates://fates-gone"), "the evidence: {text}");
    }
    let stopped = nodes(&client).get("fates-stopped").await?;
    assert_eq!(taint_keys(&stopped), [SHUTDOWN]);
    for name in ["fates-running", "fates-failing", "fates-ready"] {
        assert_eq!(
            taint_keys(&nodes(&client).get(name).await?),
            Vec::<String>::new(),
            "{name}"
        );
    }
    let calls = cloud.lookups();
    eventually(LONG, "five periods", || async { cloud.lookups() >= calls + 5 }).await;
    assert_eq!(
        running.writes("nodes", "patch"),
        1.0,
        "one write for one change, none in each period"
    );
    set_ready(&client, "fates-stopped", Some(true)).await?;
    eventually(LONG, "the taint goes", || async {
        let keys = taint_keys(&nodes(&client).get("fates-stopped").await?);
        ensure!(keys.is_empty(), "{keys:?}");
        anyhow::Ok(())
    })
    .await;
    let result = |operation: &str, result: &str| {
        running.metric(&format!("{CALLS}{{operation=\"{operation}\",result=\"{result}\"}}"))
    };
    for (operation, outcome) in [
        ("instance_exists", "success"),
        ("instance_exists", "instance_not_found"),
        ("instance_exists", "error"),
        ("instance_shutdown", "success"),
    ] {
        assert!(result(operation, outcome) >= 1.0, "{operation} {outcome}");
    }
    running.stop().await;
    Ok(())
}

/// oracle/oci-cloud-controller-manager#57: half of the machines seem to be gone.
#[tokio::test]
async fn the_brake_holds_everything_until_the_others_turn_out_to_live() -> Result<()> {
    let client = ApiServer::shared().await.client();
    let cloud = FakeCloud::new("brake");
    let names: Vec<String> = (0..10).map(|i| format!("brake-{i}")).collect();
    for name in &names {
        not_ready(&client, &cloud, name).await?;
    }
    names[..5].iter().for_each(|name| cloud.remove(name));
    let running = Running::start(client.clone(), &cloud, lifecycle_only());
    eventually(LONG, "the brake", || async {
        running.metric("cloudwit_node_deletion_brake_engaged") == 1.0
    })
    .await;
    for name in &names[..5] {
        let text = eventually(LONG, "an Event", || {
            has_event(&client, name, "Warning NodeDeletionBraked")
        })
        .await;
        assert!(
            text.contains("5 Nodes missing") && text.contains("only 1 may go"),
            "{text}"
        );
    }
    // An outage changes nothing either way.
    cloud.outage(Some(Failure::Unavailable("down".into())));
    let calls = cloud.lookups();
    eventually(LONG, "failing look-ups", || async { cloud.lookups() >= calls + 2 }).await;
    cloud.outage(None);
    for name in &names {
        assert!(nodes(&client).get_opt(name).await?.is_some(), "{name}");
    }
    names[1..5].iter().for_each(|name| cloud.run(name));
    eventually(LONG, "the one that is really gone is deleted", || async {
        anyhow::Ok(nodes(&client).get_opt("brake-0").await?).and_then(|node| {
            ensure!(node.is_none(), "it is there");
            Ok(())
        })
    })
    .await;
    eventually(LONG, "the end of the brake and the deletion are counted", || async {
        let metrics = ["cloudwit_node_deletion_brake_engaged", "cloudwit_node_deletions_total"];
        metrics.map(|metric| running.metric(metric)) == [0.0, 1.0]
    })
    .await;
    running.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_node_held_by_a_finalizer_is_deleted_once() -> Result<()> {
    let client = ApiServer::shared().await.client();
    let cloud = FakeCloud::new("held");
    not_ready(&client, &cloud, "held-1").await?;
    let finalizer = |list: serde_json::Value| Patch::Merge(json!({ "metadata": { "finalizers": list } }));
    nodes(&client)
        .patch(
            "held-1",
            &PatchParams::default(),
            &finalizer(json!(["example.com/hold"])),
        )
        .await?;
    not_ready(&client, &cloud, "held-2").await?;
    cloud.remove("held-1");
    let running = Running::start(client.clone(), &cloud, lifecycle_only());
    eventually(LONG, "a delete", || async { running.writes("nodes", "delete") >= 1.0 }).await;
    let calls = cloud.lookups();
    // held-2 is still asked about, so periods go by.
    eventually(LONG, "many periods", || async { cloud.lookups() >= calls + 30 }).await;
    assert_eq!(running.writes("nodes", "delete"), 1.0);
    nodes(&client)
        .patch("held-1", &PatchParams::default(), &finalizer(json!(null)))
        .await?;
    running.stop().await;
    Ok(())
}

#[tokio::test]
async fn taint_and_off_replace_deletion() -> Result<()> {
    let client = ApiServer::shared().await.client();
    for (name, deletion) in [("soft-taint", NodeDeletion::Taint), ("soft-off", NodeDeletion::Off)] {
        let cloud = FakeCloud::new(name);
        not_ready(&client, &cloud, name).await?;
        cloud.remove(name);
        let mut options = lifecycle_only();
        options.lifecycle.node_deletion = deletion;
        let running = Running::start(client.clone(), &cloud, options);
        eventually(LONG, "an Event", || has_event(&client, name, "Warning MachineNotFound")).await;
        let calls = cloud.lookups();
        eventually(LONG, "well past the confirmation", || async {
            cloud.lookups() >= calls + 40
        })
        .await;
        let expected: &[&str] = if deletion == NodeDeletion::Taint {
            &["cloudwit.dev/absent"]
        } else {
            &[]
        };
        eventually(LONG, "the taint, or none", || async {
            let keys = taint_keys(&nodes(&client).get(name).await?);
            ensure!(keys == expected, "{keys:?}");
            anyhow::Ok(())
        })
        .await;
        cloud.run(name);
        eventually(LONG, "it is as before", || async {
            anyhow::Ok(taint_keys(&nodes(&client).get(name).await?)).and_then(|keys| {
                ensure!(keys.is_empty(), "{keys:?}");
                Ok(())
            })
        })
        .await;
        running.stop().await;
    }
    Ok(())
}

/// kubernetes/cloud-provider-openstack#3225: the verb `delete` is missing in the role, and nobody is told.
#[tokio::test]
async fn refused_delete_emits_one_event_and_backs_off() -> Result<()> {
    let client = ApiServer::shared().await.client();
    let cloud = FakeCloud::new("refused");
    not_ready(&client, &cloud, "refused-1").await?;
    cloud.remove("refused-1");
    let real = client.clone();
    let without_delete = tower::service_fn(move |request: http::Request<Body>| {
        let real = real.clone();
        async move {
            if request.method() != http::Method::DELETE {
                return real.send(request).await;
            }
            let status = Status::failure("nodes \"refused-1\" is forbidden", "Forbidden").with_code(403);
            let body = serde_json::to_vec(&status).map_err(kube::Error::SerdeError)?;
            let answer = http::Response::builder().status(403).body(Body::from(body));
            answer.map_err(kube::Error::HttpError)
        }
    });
    let running = Running::start(Client::new(without_delete, "default"), &cloud, lifecycle_only());
    let part = "Warning DeletingNodeFailed: Failed deleting node refused-1: ";
    let text = eventually(LONG, "an Event", || has_event(&client, "refused-1", part)).await;
    assert!(text.contains("is forbidden"), "{text}");
    let calls = cloud.lookups();
    eventually(LONG, "many periods", || async { cloud.lookups() >= calls + 30 }).await;
    assert_eq!(running.writes_with("nodes", "delete", "refused"), 1.0);
    running.stop().await;
    Ok(())
}

#[tokio::test]
async fn node_without_id_goes_when_no_machine_has_its_name() -> Result<()> {
    let server = ApiServer::start().await?;
    let client = server.client();
    let cloud = FakeCloud::new("leftover");
    let mut options = lifecycle_only();
    options.lifecycle.by_name_after = Some(std::time::Duration::from_secs(2));
    for name in ["leftover-gone", "leftover-there"] {
        NodeBuilder::new(name).ready(None).create(&client).await?;
    }
    cloud.run("leftover-there");
    let running = Running::start(client.clone(), &cloud, options);
    eventually(LONG, "leftover-gone is deleted", || async {
        let node = nodes(&client).get_opt("leftover-gone").await?;
        ensure!(node.is_none(), "it is there");
        anyhow::Ok(())
    })
    .await;
    for part in [
        "Warning MachineNotFound: No machine found by the name of this Node",
        "Normal DeletingNode: ",
        "Normal DeletedNode: ",
    ] {
        eventually(LONG, "an Event", || has_event(&client, "leftover-gone", part)).await;
    }
    assert!(nodes(&client).get_opt("leftover-there").await?.is_some());
    running.stop().await;
    Ok(())
}
