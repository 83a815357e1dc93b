//! The tagging controller: instances get the operator's tags, and lose them when their Nodes are gone.

use std::collections::BTreeMap;

use cloudwit_test_support::NodeBuilder;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::scene::{Scene, refusal};

/// Upstream's label, and its digest of `team=blue`: `printf team=blue | md5sum`.
const LABEL: &str = "k8s.io/cloud-provider-aws";
const DIGEST: &str = "55235795f7518dcda5dc109eb759e43c";

const FLAGS: [&str; 3] = ["--controllers=*,tagging", "--tags=team=blue", "--resources=instance"];

/// The operator's tag on an instance, as moto has it.
async fn team(scene: &Scene, id: &str) -> Option<String> {
    let filter = json!({ "Filters": [{ "Name": "resource-id", "Values": [id] }] });
    let tags = scene.ask("describe_tags", filter).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let all = tags["Tags"].as_array().unwrap().iter();
    let all: BTreeMap<String, String> = all.map(|tag| (text(&tag["Key"]), text(&tag["Value"]))).collect();
    assert!(!all.is_empty(), "the tags of its creation stay");
    all.get("team").cloned()
}

async fn is_labelled(scene: &Scene, name: &str) -> Result<(), String> {
    let node = scene.node(name).await;
    let label = node.and_then(|node| node.labels().get(LABEL).cloned());
    match label.as_deref() {
        Some(DIGEST) => Ok(()),
        other => Err(format!("{name}: {other:?}")),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_have_the_tags_while_they_have_nodes() {
    let mut scene = Scene::new("tagged").await;
    let machines = [scene.joins("10.244.1.0/24").await, scene.joins("10.244.2.0/24").await];
    // One that AWS does not know, and one that upstream's controller has tagged.
    let forgotten = NodeBuilder::new("forgotten").provider_id("aws:///us-east-1a/i-0123456789abcdef0");
    forgotten.initialised().create(&scene.client).await.unwrap();
    let before = scene.cluster.machines(scene.moto, 0, 1).await.unwrap().remove(0);
    let upstreams = NodeBuilder::new(&before.private_dns).provider_id(&before.provider_id());
    upstreams
        .label(LABEL, DIGEST)
        .initialised()
        .create(&scene.client)
        .await
        .unwrap();
    scene.start(&FLAGS);
    for machine in &machines {
        scene
            .settled("the Node says that its instance is tagged", || {
                is_labelled(&scene, &machine.private_dns)
            })
            .await;
        assert_eq!(team(&scene, &machine.id).await.as_deref(), Some("blue"));
    }
    assert_eq!(
        team(&scene, &before.id).await,
        None,
        "its label says that nothing is left to do"
    );
    assert!(scene.count("CreateTags").await > 0);

    // Somebody takes the label away: the instance is tagged again.
    let again = &machines[0].private_dns;
    let calls = scene.count("CreateTags").await;
    let bare = Patch::Merge(json!({ "metadata": { "labels": { LABEL: null } } }));
    scene
        .nodes()
        .patch(again, &PatchParams::default(), &bare)
        .await
        .unwrap();
    scene
        .settled("it is labelled again", || is_labelled(&scene, again))
        .await;
    assert!(scene.count("CreateTags").await > calls);

    let gone = &machines[1];
    scene
        .nodes()
        .delete(&gone.private_dns, &DeleteParams::default())
        .await
        .unwrap();
    scene
        .settled("the instance of the Node that is gone loses the tag", || async {
            match team(&scene, &gone.id).await {
                None => Ok(()),
                Some(team) => Err(team),
            }
        })
        .await;
    assert_eq!(team(&scene, &machines[0].id).await.as_deref(), Some("blue"));
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_right_is_one_event_and_mended_by_the_right() {
    let mut scene = Scene::new("untagged").await;
    let machine = scene.joins("10.244.1.0/24").await;
    let denied = scene.fail("CreateTags", refusal(403, "UnauthorizedOperation"));
    scene.start(&[&FLAGS[..], &["--max-retry-pause=1s"]].concat());
    scene.initialised(&machine.private_dns).await;
    scene
        .warned(&machine.private_dns, "TaggingFailed", &["UnauthorizedOperation"])
        .await;
    assert_eq!(team(&scene, &machine.id).await, None);
    scene
        .settled("it is tried again", || async {
            match denied.met() {
                0 | 1 => Err(format!("{} times", denied.met())),
                _ => Ok(()),
            }
        })
        .await;
    scene.gate.open();
    scene
        .settled("it is tagged", || is_labelled(&scene, &machine.private_dns))
        .await;
    assert_eq!(team(&scene, &machine.id).await.as_deref(), Some("blue"));
}

#[tokio::test(flavor = "multi_thread")]
async fn dry_run_tags_nothing() {
    let mut scene = Scene::new("tags-dry").await;
    let machine = scene.cluster.machines(scene.moto, 0, 1).await.unwrap().remove(0);
    let node = NodeBuilder::new(&machine.private_dns).provider_id(&machine.provider_id());
    node.initialised().create(&scene.client).await.unwrap();
    scene.start(&[&FLAGS[..], &["--dry-run"]].concat());
    scene
        .settled("the log says what would be done", || async {
            match scene.log().contains("this machine would get these tags") {
                true => Ok(()),
                false => Err("nothing yet".to_owned()),
            }
        })
        .await;
    assert_eq!(
        (team(&scene, &machine.id).await, scene.count("CreateTags").await),
        (None, 0)
    );
}
