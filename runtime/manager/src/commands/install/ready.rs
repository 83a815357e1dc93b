//! Waiting until what was applied works: one replica that is ready is enough.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use tokio::time::{Instant, sleep};

use crate::api::server;

/// Its names, by the manifests.
const NAME: &str = "cloudwit";
const PODS: &str = "app.kubernetes.io/name=cloudwit";

/// Between two looks.
const AGAIN: Duration = Duration::from_secs(1);

/// After so long, what is waited for is said again.
const STILL: Duration = Duration::from_secs(15);

/// Pods that are checked for why they are not ready.
const MOST_PODS: u32 = 20;

/// How far the rollout is.
#[derive(Debug, PartialEq, Eq)]
enum Rollout {
    /// So many of so many replicas are ready, and none is of yesterday.
    Ready(i32, i32),
    /// What is missing.
    Waiting(String),
}

/// Waits until a replica of what was applied is ready, and says what to do next. Progress goes to standard error.
///
/// # Errors
///
/// When none is ready in time, with what its Pods say; or the API server cannot be reached.
pub async fn wait(kubeconfig: Option<&Path>, namespace: &str, limit: Duration) -> anyhow::Result<()> {
    let client = server::connect(kubeconfig).await?;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let begun = Instant::now();
    let (mut said, mut said_at) = (String::new(), begun);
    loop {
        let deployment = deployments.get(NAME).await.context("reading the Deployment")?;
        let waiting = match rollout(&deployment) {
            Rollout::Ready(ready, wanted) => {
                println!("cloudwit is ready: {ready} of {wanted} replicas");
                println!("Next: kubectl -n {namespace} exec deployment/{NAME} -- cloudwit explain node NAME");
                return Ok(());
            }
            Rollout::Waiting(waiting) => waiting,
        };
        if begun.elapsed() >= limit {
            let pods: Api<Pod> = Api::namespaced(client, namespace);
            let params = ListParams::default().labels(PODS).limit(MOST_PODS);
            let listed = pods.list(&params).await.context("reading the Pods")?;
            let reasons: BTreeSet<String> = listed.items.iter().filter_map(trouble).collect();
            let reasons: Vec<String> = reasons.into_iter().collect();
            bail!(
                "everything is applied, but after {} s {waiting}{}{}; see `kubectl -n {namespace} describe pods -l {PODS}`",
                limit.as_secs(),
                if reasons.is_empty() { "" } else { ": " },
                reasons.join("; ")
            );
        }
        if waiting != said || said_at.elapsed() >= STILL {
            eprintln!("waiting: {waiting} ({} s)", begun.elapsed().as_secs());
            (said, said_at) = (waiting, Instant::now());
        }
        sleep(AGAIN).await;
    }
}

fn rollout(deployment: &Deployment) -> Rollout {
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let status = deployment.status.clone().unwrap_or_default();
    if status.observed_generation < deployment.metadata.generation {
        return Rollout::Waiting("the Deployment has not been read yet".into());
    }
    let count = |number: Option<i32>| number.unwrap_or_default();
    let (replicas, updated) = (count(status.replicas), count(status.updated_replicas));
    let ready = count(status.available_replicas);
    match (replicas - updated, ready) {
        _ if wanted == 0 => Rollout::Ready(0, 0),
        (1.., _) => Rollout::Waiting(format!(
            "{} of {replicas} replicas are still to be replaced",
            replicas - updated
        )),
        (_, 1..) => Rollout::Ready(ready, wanted),
        _ => Rollout::Waiting(format!("none of {wanted} replicas is ready")),
    }
}

/// Why a Pod is not ready, as far as it says.
fn trouble(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let conditions = status.conditions.iter().flatten();
    let mut unscheduled =
        conditions.filter(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    if let Some(condition) = unscheduled.next() {
        return Some(format!("Pending: {}", condition.message.clone().unwrap_or_default()));
    }
    let mut containers = status.container_statuses.iter().flatten();
    containers.find_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        let reason = waiting.reason.clone().unwrap_or_default();
        let ended = container
            .last_state
            .as_ref()
            .and_then(|state| state.terminated.as_ref());
        let message = ended
            .and_then(|ended| ended.message.clone())
            .or_else(|| waiting.message.clone());
        Some(format!("{reason}: {}", message.unwrap_or_default().trim()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rolled(generation: i64, status: Value) -> Rollout {
        let deployment = json!({
            "metadata": { "generation": generation },
            "spec": { "replicas": 2, "selector": {}, "template": {} },
            "status": status,
        });
        rollout(&serde_json::from_value(deployment).unwrap())
    }

    #[test]
    fn one_ready_replica_of_the_new_ones_is_enough() {
        let waiting = |text: &str| Rollout::Waiting(text.into());
        for (generation, status, expected) in [
            (1, Value::Null, waiting("the Deployment has not been read yet")),
            (
                2,
                json!({ "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2 }),
                waiting("the Deployment has not been read yet"),
            ),
            (
                2,
                json!({ "observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 2 }),
                waiting("1 of 2 replicas are still to be replaced"),
            ),
            (
                2,
                json!({ "observedGeneration": 2, "replicas": 2, "updatedReplicas": 2 }),
                waiting("none of 2 replicas is ready"),
            ),
            (
                2,
                json!({ "observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 1 }),
                Rollout::Ready(1, 2),
            ),
        ] {
            assert_eq!(rolled(generation, status.clone()), expected, "{status}");
        }
    }

    #[test]
    fn pods_report_why_they_are_not_ready() {
        let why = |status: Value| trouble(&serde_json::from_value(json!({ "status": status })).unwrap());
        let unscheduled = json!({ "conditions": [
            { "type": "PodScheduled", "status": "False", "message": "0/3 nodes are available" },
        ]});
        assert_eq!(why(unscheduled).unwrap(), "Pending: 0/3 nodes are available");
        let container = |last: Value| {
            json!({ "containerStatuses": [{
                "name": "cloudwit", "image": "i", "imageID": "", "ready": false, "restartCount": 1,
                "state": { "waiting": { "reason": "CrashLoopBackOff", "message": "back-off" } }, "lastState": last,
            }]})
        };
        assert_eq!(why(container(Value::Null)).unwrap(), "CrashLoopBackOff: back-off");
        let ended = json!({ "terminated": { "exitCode": 1, "message": "the secret token is missing\n" } });
        assert_eq!(
            why(container(ended)).unwrap(),
            "CrashLoopBackOff: the secret token is missing"
        );
        assert_eq!(
            why(json!({ "conditions": [{ "type": "PodScheduled", "status": "True" }] })),
            None
        );
    }
}
