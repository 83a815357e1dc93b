//! The only writer and the Events, straight on the API server.

use std::sync::{Arc, Mutex};

use anyhow::Result;
use cloudwit_controllers::Leadership;
use cloudwit_controllers::kube::node::Node;
use cloudwit_controllers::kube::writer::{Apply, Part, Target, Unchanged, WriteError};
use cloudwit_controllers::metrics::Metrics;
use cloudwit_model::{EventKind, EventSink, ObjectEvent, Retry, Subject};
use cloudwit_test_support::{ApiServer, NodeBuilder, eventually};
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::{ListParams, Patch};
use prometheus_client::registry::Registry;
use serde_json::json;

use crate::fake_cloud::{FakeCloud, Running, quick};
use crate::helpers::*;

#[tokio::test]
async fn writer_reports_what_a_refusal_means() -> Result<()> {
    let client = ApiServer::shared().await.client();
    let apply = Apply::new(
        client.clone(),
        Metrics::new(&mut Registry::default()),
        Leadership::always(),
        false,
    );
    let node = NodeBuilder::new("writer-1").initialised().create(&client).await?;
    let (name, target) = ("writer-1", Target::node("writer-1"));
    let patch = async |target, body| {
        apply
            .patch::<Node>(target, Part::Object, &Patch::Merge(body), "test")
            .await
    };

    let changed = patch(target, json!({ "metadata": { "labels": { "a": "b" } } }))
        .await?
        .unwrap();
    assert_eq!(changed.labels.get("a"), Some("b"));
    let old = json!({ "metadata": { "resourceVersion": node.metadata.resource_version, "labels": { "a": "c" } } });
    let error = patch(target, old).await.unwrap_err();
    assert!(
        matches!(error, WriteError::Conflict(_)) && error.retry() == Retry::Soon,
        "{error}"
    );
    let another = json!({ "metadata": { "uid": "another", "labels": { "a": "c" } } });
    let error = patch(target, another).await.unwrap_err();
    assert!(matches!(error, WriteError::Conflict(_)), "{error}");
    let error = patch(target, json!({ "metadata": { "labels": { "a": "not a value" } } }))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, WriteError::Refused(message) if message.contains("not a value")),
        "{error}"
    );
    let error = patch(Target::node("nobody"), json!({})).await.unwrap_err();
    assert!(matches!(error, WriteError::NotFound), "{error}");

    let fresh: Node = apply.read(target).await?.unwrap();
    let unchanged = |version: Option<String>, uid: Option<String>| Unchanged {
        uid: uid.unwrap(),
        resource_version: version.unwrap(),
    };
    let (version, uid) = (fresh.metadata.resource_version, fresh.metadata.uid);
    for stale in [
        unchanged(node.metadata.resource_version, uid.clone()),
        unchanged(version.clone(), Some("x".into())),
    ] {
        let error = apply.delete::<Node>(target, &stale, "test").await.unwrap_err();
        assert!(matches!(error, WriteError::Conflict(_)), "{error}");
    }
    assert!(nodes(&client).get_opt(name).await?.is_some());
    assert!(apply.delete::<Node>(target, &unchanged(version, uid), "test").await?);
    assert!(apply.read::<Node>(target).await?.is_none());
    Ok(())
}

#[tokio::test]
async fn provider_event_is_on_its_node_and_counted_on_repeat() -> Result<()> {
    let client = ApiServer::shared().await.client();
    let sink = Arc::<Mutex<Option<Arc<dyn EventSink>>>>::default();
    let keep = sink.clone();
    let running = Running::start_with(client.clone(), FakeCloud::new("says"), quick(), move |cluster| {
        *keep.lock().unwrap() = Some(cluster.event_sink());
        cluster
    });
    let node = NodeBuilder::new("says-1").initialised().create(&client).await?;
    eventually(LONG, "the Nodes are known", || async {
        running.metric("workqueue_depth{name=\"Nodes\"}") == 0.0
    })
    .await;
    let event = ObjectEvent {
        subject: Subject::Node("says-1".into()),
        kind: EventKind::Warning,
        reason: "DiskSlow".into(),
        message: "x".repeat(2000),
    };
    let sink = sink.lock().unwrap().clone().unwrap();
    (0..3).for_each(|_| sink.emit(event.clone()));
    let about = ListParams::default().fields("involvedObject.name=says-1,reason=DiskSlow");
    let events: Api<Event> = Api::namespaced(client.clone(), "default");
    let list = eventually(LONG, "it was said three times", || async {
        let list = events.list(&about).await?.items;
        anyhow::ensure!(list.iter().any(|event| event.count == Some(3)), "{list:?}");
        anyhow::Ok(list)
    })
    .await;
    assert_eq!(list.len(), 1);
    assert_eq!(list[0].type_.as_deref(), Some("Warning"));
    assert_eq!(list[0].involved_object.api_version.as_deref(), Some("v1"));
    assert_eq!(list[0].involved_object.kind.as_deref(), Some("Node"));
    let text = list[0].message.as_deref().unwrap_or_default();
    assert!(text.len() == 1024 && text.ends_with("x..."), "{text}");
    // Once the cache has the Node its uid is known too.
    let uid = node.metadata.uid;
    eventually(LONG, "the Node's uid", || async {
        sink.emit(ObjectEvent {
            message: "again".into(),
            ..event.clone()
        });
        let list = events.list(&about).await?.items;
        anyhow::ensure!(list.iter().any(|event| event.involved_object.uid == uid), "{list:?}");
        anyhow::Ok(())
    })
    .await;
    running.stop().await;
    Ok(())
}
