//! The writes of the node controller: plans become patches.
//!
//! Every patch names the Node's uid, so a Node that was re-created under the same name is never given another
//! machine's facts: the API server answers 409. The patch that takes the taint away also names the version it was
//! planned on, since it replaces the list of taints; on a conflict the Node is read from the API server, not from the
//! cache, and planned again.

use std::borrow::Cow;
use std::time::Duration;

use cloudwit_model::{Instance, Retry};
use k8s_openapi::api::core::v1::NodeAddress;
use kube::api::Patch;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::time::sleep;

use crate::apply::{Apply, Part, Target, WriteError};
use crate::cloud_node_plan::{Release, plan_addresses, plan_labels, plan_release, waits_in_vain};
use crate::node::Node;
use crate::node_addresses::AddressError;
use crate::node_labels::Dropped;
use crate::node_view::{UNINITIALIZED, WAITING, annotation, has_taint};
use crate::watch::Cache;

/// Attempts against conflicts, and the pause between them, to which up to as much again is added
/// (`node_controller.go:UpdateNodeSpecBackoff`).
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// How the initialisation of a Node ended.
#[derive(Debug, PartialEq)]
pub enum Initialised {
    /// The taint is gone; these labels of the cloud were not set.
    Yes(Vec<Dropped>),
    /// Nothing was left to do: somebody else took the taint away, or the Node is gone or was replaced.
    Moot,
    /// In a dry run.
    DryRun,
}

/// Why a Node was not initialised.
#[derive(Debug, Error)]
pub enum InitError {
    /// The address the kubelet was told does not fit.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The API server did not take a write.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl InitError {
    /// When to try again.
    pub fn retry(&self) -> Retry {
        match self {
            // The cloud may list the address later.
            Self::Address(_) => Retry::Backoff,
            Self::Write(error) => error.retry(),
        }
    }
}

/// Writes what the cloud knows about a Node's machine and takes the taint away. The cloud is not asked again, however
/// many conflicts there are.
pub async fn initialise(
    apply: &Apply,
    cache: &Cache<Node>,
    node: &Node,
    instance: &Instance,
) -> Result<Initialised, InitError> {
    let mut node = Cow::Borrowed(node);
    let mut attempt = 1;
    loop {
        let conflict = match attempt_to_initialise(apply, cache, &node, instance).await {
            Err(InitError::Write(error @ WriteError::Conflict(_))) if attempt < ATTEMPTS => error,
            other => return other,
        };
        tracing::debug!(node = node.metadata.name, attempt, %conflict, "reading the Node again");
        attempt += 1;
        sleep(PAUSE.mul_f64(rand::random_range(1.0..2.0))).await;
        let name = node.metadata.name.clone().unwrap_or_default();
        match apply.read::<Node>(Target::node(&name)).await? {
            Some(fresh) if fresh.metadata.uid == node.metadata.uid && has_taint(&fresh, UNINITIALIZED) => {
                node = Cow::Owned(fresh);
            }
            _ => return Ok(Initialised::Moot),
        }
    }
}

async fn attempt_to_initialise(
    apply: &Apply,
    cache: &Cache<Node>,
    node: &Node,
    instance: &Instance,
) -> Result<Initialised, InitError> {
    let written = match plan_addresses(node, instance)? {
        Some(addresses) => write_addresses(apply, node, &addresses).await?,
        None => None,
    };
    let written = written.map(|written| cache.observed(written));
    // The answer is the newest state: taints that others added meanwhile are in it.
    let node = written.as_deref().unwrap_or(node);
    let release = plan_release(node, instance);
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let patch = Patch::Merge(release_patch(node, &release));
    match apply
        .patch::<Node>(Target::node(name), Part::Object, &patch, "end the initialisation")
        .await?
    {
        Some(written) => {
            cache.observe(written);
            Ok(Initialised::Yes(release.dropped))
        }
        None => Ok(Initialised::DryRun),
    }
}

/// Writes a Node's addresses.
pub async fn write_addresses(
    apply: &Apply,
    node: &Node,
    addresses: &[NodeAddress],
) -> Result<Option<Node>, WriteError> {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let patch = Patch::Merge(json!({ "metadata": { "uid": node.metadata.uid }, "status": { "addresses": addresses } }));
    apply
        .patch(Target::node(name), Part::Status, &patch, "set the addresses")
        .await
}

/// Notes on a Node why it is not initialised yet, unless that stands there.
pub async fn write_waiting(apply: &Apply, cache: &Cache<Node>, node: &Node, reason: &str) -> Result<(), WriteError> {
    if annotation(node, WAITING) == Some(reason) {
        return Ok(());
    }
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let metadata = json!({ "uid": node.metadata.uid, "annotations": { WAITING: reason } });
    let patch = Patch::Merge(json!({ "metadata": metadata }));
    let written = apply
        .patch::<Node>(Target::node(name), Part::Object, &patch, "say why it waits")
        .await?;
    written.into_iter().for_each(|written| cache.observe(written));
    Ok(())
}

/// Makes the labels with new names equal to those with old names, and takes away the note of [`write_waiting`] where it is moot.
pub async fn write_labels(apply: &Apply, cache: &Cache<Node>, node: &Node) -> Result<(), WriteError> {
    let labels = plan_labels(node);
    let moot = waits_in_vain(node);
    if labels.is_empty() && !moot {
        return Ok(());
    }
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let mut metadata = json!({ "uid": node.metadata.uid });
    if !labels.is_empty() {
        metadata["labels"] = json!(labels);
    }
    if moot {
        metadata["annotations"] = json!({ WAITING: null });
    }
    let patch = Patch::Merge(json!({ "metadata": metadata }));
    if let Some(written) = apply
        .patch::<Node>(Target::node(name), Part::Object, &patch, "correct labels")
        .await?
    {
        cache.observe(written);
    }
    Ok(())
}

fn release_patch(node: &Node, release: &Release) -> Value {
    let mut metadata = json!({ "uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version });
    if !release.labels.is_empty() {
        metadata["labels"] = json!(release.labels);
    }
    if annotation(node, WAITING).is_some() {
        metadata["annotations"] = json!({ WAITING: null });
    }
    let mut spec = json!({ "taints": (!release.taints.is_empty()).then_some(&release.taints) });
    if let Some(provider_id) = &release.provider_id {
        spec["providerID"] = json!(provider_id);
    }
    json!({ "metadata": metadata, "spec": spec })
}
