//! The Node type: only the fields that controllers read are decoded and kept.
//!
//! This type is what the API server's JSON is decoded into and what the cache holds, so managed fields, images,
//! resources and heartbeats are skipped as text and never become objects, and what a controller reads has to
//! be named here first. Names and shapes are those of core/v1; [`kube::node::view`](crate::kube::node::view) reads them.
//! It is never written back: all writes are patches ([`kube::writer`](crate::kube::writer)).

pub(crate) mod compact_labels;
mod resource;
pub mod view;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use cloudwit_model::volume::NODE_ANNOTATION;
use k8s_openapi::api::core::v1::{NodeAddress, NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::kube::node::compact_labels::CompactLabels;
use crate::kube::node::view::{PROVIDED_NODE_IP, WAITING};

/// Annotations that are kept.
const ANNOTATIONS: [&str; 3] = [PROVIDED_NODE_IP, WAITING, NODE_ANNOTATION];
/// Conditions that are kept: the route controller owns `NetworkUnavailable`, the others read `Ready`.
const CONDITIONS: [&str; 2] = ["Ready", "NetworkUnavailable"];

/// A Node.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(from = "Read")]
pub struct Node {
    /// Name, uid, version, three annotations, finalizers, and when it was made and is to go.
    pub metadata: ObjectMeta,
    /// Of its `metadata`, which has none itself.
    pub labels: CompactLabels,
    /// What is wanted.
    pub spec: Option<NodeSpec>,
    /// What is.
    pub status: Option<NodeStatus>,
}

/// The `spec` of a [`Node`].
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
pub struct NodeSpec {
    /// Ranges of its Pods.
    #[serde(rename = "podCIDRs", skip_serializing_if = "Option::is_none")]
    pub pod_cidrs: Option<Vec<String>>,
    /// The cloud's name of its machine.
    #[serde(rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// What keeps Pods away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taints: Option<Vec<Taint>>,
}

/// The `status` of a [`Node`].
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// Its addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<NodeAddress>>,
    /// `Ready` and `NetworkUnavailable`, without heartbeats.
    #[serde(default, deserialize_with = "conditions", skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<NodeCondition>>,
    /// Of its machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_info: Option<NodeSystemInfo>,
}

/// The kubelet's data about its machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
pub struct NodeSystemInfo {
    /// The machine's own number (SMBIOS); may be empty.
    #[serde(rename = "systemUUID", default, deserialize_with = "null_is_empty")]
    pub system_uuid: String,
}

impl Node {
    /// Gives back the room for elements that lists have left over from being read.
    pub fn fit(&mut self) {
        fn fit<T>(list: &mut Option<Vec<T>>) {
            list.iter_mut().for_each(Vec::shrink_to_fit);
        }
        fit(&mut self.metadata.finalizers);
        if let Some(spec) = &mut self.spec {
            fit(&mut spec.pod_cidrs);
            fit(&mut spec.taints);
        }
        if let Some(status) = &mut self.status {
            fit(&mut status.addresses);
            fit(&mut status.conditions);
        }
    }
}

/// A string that is borrowed from the text where the text has it without escapes.
#[derive(Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Text<'_> {
    fn owned(self) -> String {
        self.0.into_owned()
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

fn null_is_empty<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// A Node as the API server writes it.
#[derive(Deserialize)]
struct Read {
    metadata: Option<ReadMetadata>,
    spec: Option<NodeSpec>,
    status: Option<NodeStatus>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadMetadata {
    #[serde(default, deserialize_with = "annotations")]
    annotations: Option<BTreeMap<String, String>>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    finalizers: Option<Vec<String>>,
    #[serde(default)]
    labels: CompactLabels,
    name: Option<String>,
    resource_version: Option<String>,
    uid: Option<String>,
}

impl From<Read> for Node {
    fn from(read: Read) -> Self {
        let metadata = read.metadata.unwrap_or_default();
        Self {
            metadata: ObjectMeta {
                annotations: metadata.annotations,
                creation_timestamp: metadata.creation_timestamp,
                deletion_timestamp: metadata.deletion_timestamp,
                finalizers: metadata.finalizers,
                name: metadata.name,
                resource_version: metadata.resource_version,
                uid: metadata.uid,
                ..ObjectMeta::default()
            },
            labels: metadata.labels,
            spec: read.spec,
            status: read.status,
        }
    }
}

/// Those of [`ANNOTATIONS`]; None where there are none of them, since also an empty map takes memory.
fn annotations<'de, D: Deserializer<'de>>(from: D) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    struct Kept;
    impl<'de> Visitor<'de> for Kept {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("annotations")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(BTreeMap::new())
        }

        fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
            let mut kept = BTreeMap::new();
            while let Some(Text(key)) = map.next_key()? {
                if ANNOTATIONS.contains(&&*key) {
                    kept.insert(key.into_owned(), map.next_value()?);
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(kept)
        }
    }
    let kept = from.deserialize_any(Kept)?;
    Ok((!kept.is_empty()).then_some(kept))
}

/// Those of [`CONDITIONS`], without their heartbeats.
fn conditions<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<NodeCondition>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Read<'a> {
        #[serde(borrow, rename = "type")]
        kind: Option<Text<'a>>,
        #[serde(borrow)]
        status: Option<Text<'a>>,
        #[serde(borrow)]
        reason: Option<Text<'a>>,
        #[serde(borrow)]
        message: Option<Text<'a>>,
        last_transition_time: Option<Time>,
    }
    struct Kept;
    impl<'de> Visitor<'de> for Kept {
        type Value = Option<Vec<NodeCondition>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of conditions")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Self::Value, S::Error> {
            let mut kept = Vec::new();
            while let Some(read) = list.next_element::<Read<'_>>()? {
                let Some(Text(kind)) = read.kind else { continue };
                if CONDITIONS.contains(&&*kind) {
                    kept.push(NodeCondition {
                        type_: kind.into_owned(),
                        status: read.status.map(Text::owned).unwrap_or_default(),
                        reason: read.reason.map(Text::owned),
                        message: read.message.map(Text::owned),
                        last_transition_time: read.last_transition_time,
                        last_heartbeat_time: None,
                    });
                }
            }
            Ok(Some(kept))
        }
    }
    from.deserialize_any(Kept)
}

#[cfg(test)]
mod tests;
