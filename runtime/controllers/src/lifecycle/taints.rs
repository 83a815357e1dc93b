//! Writes the taints of a Node.
//!
//! They are one list that is replaced as a whole, so the patch names the version it was planned on; on a conflict the Node is read from the
//! API server and planned again.

use std::time::Duration;

use k8s_openapi::api::core::v1::Taint;
use kube::api::Patch;
use serde_json::json;
use tokio::time::sleep;

use crate::ambient::jitter;
use crate::kube::cache::Cache;
use crate::kube::node::Node;
use crate::kube::writer::{Apply, Part, Target, WriteError};

/// Attempts against conflicts, and the pause between them, to which up to as much again is added
/// (`node/helpers/taints.go`).
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(100);

/// Writes the taints of `plan`; None from it means that they are right. No request is made then, and none
/// before the first write.
pub async fn write_taints(
    apply: &Apply,
    cache: &Cache<Node>,
    node: &Node,
    plan: impl Fn(&Node) -> Option<Vec<Taint>>,
) -> Result<(), WriteError> {
    let name = node.metadata.name.clone().unwrap_or_default();
    let mut read_again: Option<Node> = None;
    for attempt in 1.. {
        let current = read_again.as_ref().unwrap_or(node);
        let Some(taints) = plan(current) else { return Ok(()) };
        let patch = Patch::Merge(json!({
            "metadata": { "uid": current.metadata.uid, "resourceVersion": current.metadata.resource_version },
            "spec": { "taints": (!taints.is_empty()).then_some(taints) },
        }));
        match apply
            .patch::<Node>(Target::node(&name), Part::Object, &patch, "set taints")
            .await
        {
            Ok(written) => {
                written.into_iter().for_each(|written| cache.observe(written));
                return Ok(());
            }
            Err(WriteError::Conflict(_)) if attempt < ATTEMPTS => {}
            Err(error) => return Err(error),
        }
        sleep(PAUSE.mul_f64(jitter(1.0..2.0))).await;
        match apply.read::<Node>(Target::node(&name)).await? {
            Some(fresh) if fresh.metadata.uid == node.metadata.uid => read_again = Some(fresh),
            _ => return Ok(()),
        }
    }
    Ok(())
}
