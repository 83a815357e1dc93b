//! Somebody else edits the port of a server at the same time.

use cloudwit_test_support::ServiceBuilder;
use cloudwit_test_support::clouds::openstack::Service as Cloud;
use cloudwit_test_support::gate::Point;
use cloudwit_test_support::gate::fault::Fault;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::stage::{Stage, word};

async fn groups(stage: &Stage, path: &str) -> Vec<Value> {
    let port = stage.scene.project.cloud.get(Cloud::Network, path).await.unwrap();
    port["port"]["security_groups"].as_array().unwrap().clone()
}

/// A person puts a group of their own on the port.
async fn a_person_adds_a_group(stage: &Stage, path: &str) -> Value {
    let project = &stage.scene.project;
    let group = json!({ "security_group": { "name": "a-persons", "project_id": project.id } });
    let made = project
        .cloud
        .post(Cloud::Network, "/v2.0/security-groups", group)
        .await
        .unwrap();
    let id = made["security_group"]["id"].clone();
    let mut all = groups(stage, path).await;
    all.push(id.clone());
    project
        .cloud
        .put(Cloud::Network, path, json!({ "port": { "security_groups": all } }))
        .await
        .unwrap();
    id
}

async fn ours(stage: &Stage) -> Value {
    let groups = stage.groups().await;
    assert_eq!(groups.len(), 1);
    groups[0]["id"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn late_port_edit_does_not_undo_manual_change() {
    let mut stage = Stage::new("manage-security-groups = true\n").await;
    let path = format!("/v2.0/ports/{}", stage.servers[0].port);
    let stop = stage
        .scene
        .gate(Cloud::Network)
        .stop_at(Point::before(Method::PUT, &path));
    stage.create(ServiceBuilder::new("web")).await;
    stop.reached().await;
    stage.kill();
    let theirs = a_person_adds_a_group(&stage, &path).await;
    // It was written for the port as it had been, and says so; Neutron decides.
    assert_eq!(stage.scene.gate(Cloud::Network).deliver(&stop).await, [412]);
    assert!(groups(&stage, &path).await.contains(&theirs));
    stage.start();
    stage.exposed("web").await;
    let both = [theirs.clone(), ours(&stage).await];
    stage
        .scene
        .settled("the port has both groups", || async {
            let found = groups(&stage, &path).await;
            if both.iter().all(|group| found.contains(group)) {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        })
        .await;
    stage.delete("web").await;
    stage.clean().await;
    assert!(
        groups(&stage, &path).await.contains(&theirs),
        "the person's group stays"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_that_comes_second_is_reported_once_and_made_again() {
    let stage = Stage::new("manage-security-groups = true\n").await;
    let path = format!("/v2.0/ports/{}", stage.servers[0].port);
    let refusal = r#"{"NeutronError": {"type": "RevisionNumberConstraintFailed", "message": "Constrained to 4, but current revision is 5", "detail": ""}}"#;
    let fault = Fault::status(StatusCode::PRECONDITION_FAILED).body("application/json", refusal);
    let fault = stage
        .scene
        .gate(Cloud::Network)
        .fail(Point::before(Method::PUT, &path), fault.times(1));
    let service = stage.create(ServiceBuilder::new("web")).await;
    stage.exposed("web").await;
    assert_eq!(fault.met(), 1);
    let ours = ours(&stage).await;
    assert!(groups(&stage, &path).await.contains(&ours));
    // Events are written by another task than the address.
    stage.told("web", "current revision is 5").await;
    let events = stage.events(&service).await;
    let failed: Vec<_> = events.iter().filter(|event| event.contains("Failed")).collect();
    assert!(
        failed.len() == 1 && failed[0].contains("current revision is 5"),
        "{events:?}"
    );
    stage.delete("web").await;
    stage.clean().await;
    assert!(
        !groups(&stage, &path)
            .await
            .iter()
            .any(|group| word(group) == word(&ours))
    );
}
