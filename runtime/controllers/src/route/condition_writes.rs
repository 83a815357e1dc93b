//! Writes the condition `NetworkUnavailable` of many Nodes.

use std::collections::BTreeMap;

use futures::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::Patch;
use tracing::warn;

use crate::ambient;
use crate::context::Context;
use crate::kube::node::Node;
use crate::kube::writer::{Part, Target, WriteError};
use crate::route::condition::condition_patch;
use crate::route::plan::waits;

/// Conditions that are written at the same time.
const AT_ONCE: usize = 16;

/// Brings the condition of each Node up to date; `created` says whether it has all its routes. Failures are seen again at the next tick.
pub(super) async fn write_conditions(context: &Context, created: BTreeMap<String, bool>) {
    let now = Time(ambient::now());
    let due = created.into_iter().filter_map(|(name, created)| {
        let node = context.nodes.get(&name).filter(|node| !waits(node))?;
        Some((name, condition_patch(&node, created, &now)?))
    });
    let writes = due.map(|(name, patch)| async move {
        let (target, patch) = (Target::node(&name), Patch::Strategic(patch));
        let purpose = "say whether the Node has its routes";
        let written = context.apply.patch::<Node>(target, Part::Status, &patch, purpose);
        match written.await {
            Ok(Some(node)) => context.nodes.observe(node),
            Ok(None) | Err(WriteError::NotFound | WriteError::NotLeading) => {}
            Err(error) => warn!(node = name, %error, "failed to write condition NetworkUnavailable"),
        }
    });
    futures::stream::iter(writes)
        .buffer_unordered(AT_ONCE)
        .collect::<()>()
        .await;
}
