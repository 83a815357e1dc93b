//! The writes of the node controller: plans become patches.
//!
//! Every patch names the Node's uid, so a Node that was re-created under the same name is never given another
//! machine's facts: the API server answers 409. The patch that takes the taint away also names the version it was
//! planned on, since it replaces the list of taints; on a conflict the Node is read from the API server, not from the
//! cache, and planned again.

use std::borrow::Cow;
use std::time::Duration;

use cloudwit_model::{Instance, ProviderIdentity, Retry};
use k8s_openapi::api::core::v1::{NodeAddress, Taint};
use kube::api::Patch;
use serde::Serialize;
use serde_json::json;
use thiserror::Error;
use tokio::time::sleep;

use crate::ambient::jitter;
use crate::kube::cache::Cache;
use crate::kube::node::Node;
use crate::kube::node::view::{UNINITIALIZED, WAITING, annotation, has_taint};
use crate::kube::writer::{Apply, Part, Target, WriteError};
use crate::node::addresses::AddressError;
use crate::node::labels::{Dropped, Labels};
use crate::node::plan::{
    IdentityError, Release, plan_addresses, plan_identity, plan_labels, plan_release, waits_in_vain,
};
use crate::report::cause::CauseKind;

/// Attempts against conflicts, and the pause between them, to which up to as much again is added
/// (`node_controller.go:UpdateNodeSpecBackoff`).
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// How the initialisation of a Node ended.
#[derive(Debug, PartialEq)]
pub enum Initialised {
    /// The taint is gone; these labels of the cloud were not set.
    Yes(Vec<Dropped>),
    /// Nothing was left to do: the taint was removed by others, or the Node is gone or was replaced.
    Moot,
    /// In a dry run.
    DryRun,
}

/// Why a Node was not initialised.
#[derive(Debug, Error)]
pub enum InitError {
    /// The kubelet's `--node-ip` does not fit.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The machine's id is not one to be written.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The API server did not take a write.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl InitError {
    /// Whose failure it is.
    pub fn kind(&self) -> CauseKind {
        match self {
            Self::Address(_) => CauseKind::Object,
            Self::Identity(_) => CauseKind::Fault,
            Self::Write(_) => CauseKind::ApiServer,
        }
    }

    /// When to try again.
    pub fn retry(&self) -> Retry {
        match self {
            // The cloud may list the address later, and the provider may be mended.
            Self::Address(_) | Self::Identity(_) => Retry::Backoff,
            Self::Write(error) => error.retry(),
        }
    }
}

/// Writes the data of a Node's machine and removes the taint. The cloud is not called again, however
/// many conflicts there are.
pub async fn initialise(
    apply: &Apply,
    cache: &Cache<Node>,
    node: &Node,
    instance: &Instance,
    provider: &ProviderIdentity,
) -> Result<Initialised, InitError> {
    let mut node = Cow::Borrowed(node);
    let mut attempt = 1;
    loop {
        let conflict = match attempt_to_initialise(apply, cache, &node, instance, provider).await {
            Err(InitError::Write(error @ WriteError::Conflict(_))) if attempt < ATTEMPTS => error,
            other => return other,
        };
        tracing::debug!(node = node.metadata.name, attempt, %conflict, "reading the Node again");
        attempt += 1;
        sleep(PAUSE.mul_f64(jitter(1.0..2.0))).await;
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
    provider: &ProviderIdentity,
) -> Result<Initialised, InitError> {
    // Before anything is written: an id that is wrong may mean that everything else is about another machine.
    plan_identity(node, instance, provider)?;
    let written = match plan_addresses(node, instance)? {
        Some(addresses) => write_addresses(apply, node, &addresses).await?,
        None => None,
    };
    let written = written.map(|written| cache.observed(written));
    // The answer is the newest state: taints that others added meanwhile are in it.
    let node = written.as_deref().unwrap_or(node);
    let release = plan_release(node, instance, provider)?;
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
    let patch = Patch::Merge(AddressPatch {
        metadata: MetadataPatch::of(node),
        status: AddressStatus { addresses },
    });
    apply
        .patch(Target::node(name), Part::Status, &patch, "set the addresses")
        .await
}

/// Notes on a Node why it is not initialised yet, unless that stands there.
pub async fn write_waiting(apply: &Apply, cache: &Cache<Node>, node: &Node, reason: &str) -> Result<(), WriteError> {
    write_annotation(apply, cache, node, (WAITING, reason), "say why it waits").await
}

/// Sets an annotation, unless it stands there. `why` is for the log of a dry run.
pub async fn write_annotation(
    apply: &Apply,
    cache: &Cache<Node>,
    node: &Node,
    (key, value): (&str, &str),
    why: &'static str,
) -> Result<(), WriteError> {
    if annotation(node, key) == Some(value) {
        return Ok(());
    }
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let metadata = json!({ "uid": node.metadata.uid, "annotations": { key: value } });
    let patch = Patch::Merge(json!({ "metadata": metadata }));
    let written = apply
        .patch::<Node>(Target::node(name), Part::Object, &patch, why)
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

/// Merge patches as types and not as trees of values: a wave of Nodes sends two for each.
#[derive(Debug, Serialize)]
struct AddressPatch<'a> {
    metadata: MetadataPatch<'a>,
    status: AddressStatus<'a>,
}

#[derive(Debug, Serialize)]
struct AddressStatus<'a> {
    addresses: &'a [NodeAddress],
}

#[derive(Debug, Serialize)]
struct ReleasePatch<'a> {
    metadata: MetadataPatch<'a>,
    spec: ReleaseSpec<'a>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct MetadataPatch<'a> {
    uid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<&'a Labels>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<NoLongerWaiting>,
}

impl<'a> MetadataPatch<'a> {
    fn of(node: &'a Node) -> Self {
        Self {
            uid: node.metadata.uid.as_deref(),
            ..Self::default()
        }
    }
}

/// Takes the annotation [`WAITING`] away.
#[derive(Debug, Serialize)]
struct NoLongerWaiting {
    #[serde(rename = "cloudwit.dev/waiting-for-cloud")]
    waiting: (),
}

#[derive(Debug, Serialize)]
struct ReleaseSpec<'a> {
    /// Null takes the list away.
    taints: Option<&'a [Taint]>,
    #[serde(rename = "providerID", skip_serializing_if = "Option::is_none")]
    provider_id: Option<&'a str>,
}

fn release_patch<'a>(node: &'a Node, release: &'a Release) -> ReleasePatch<'a> {
    ReleasePatch {
        metadata: MetadataPatch {
            resource_version: node.metadata.resource_version.as_deref(),
            labels: (!release.labels.is_empty()).then_some(&release.labels),
            annotations: annotation(node, WAITING).map(|_| NoLongerWaiting { waiting: () }),
            ..MetadataPatch::of(node)
        },
        spec: ReleaseSpec {
            taints: (!release.taints.is_empty()).then_some(&release.taints),
            provider_id: release.provider_id.as_deref(),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn waiting(annotations: &Value) -> Node {
        let metadata = json!({ "name": "a", "uid": "u", "resourceVersion": "7", "annotations": annotations });
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    #[test]
    fn release_names_its_plan_and_changes_only_differences() {
        let node = waiting(&Value::Null);
        let bare = json!({ "metadata": { "uid": "u", "resourceVersion": "7" }, "spec": { "taints": null } });
        assert_eq!(json!(release_patch(&node, &Release::default())), bare);

        let node = waiting(&json!({ WAITING: "why" }));
        let stays = Taint {
            key: "k".into(),
            effect: "NoExecute".into(),
            ..Taint::default()
        };
        let release = Release {
            provider_id: Some("sim://a".into()),
            labels: [("zone".to_owned(), "z".to_owned())].into(),
            taints: vec![stays],
            dropped: Vec::new(),
        };
        let full = json!({
            "metadata": { "uid": "u", "resourceVersion": "7", "labels": { "zone": "z" }, "annotations": { WAITING: null } },
            "spec": { "taints": [{ "key": "k", "effect": "NoExecute" }], "providerID": "sim://a" },
        });
        assert_eq!(json!(release_patch(&node, &release)), full);
    }
}
