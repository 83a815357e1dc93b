//! Whose a thing in AWS is: the cluster's tags.
//!
//! `kubernetes.io/cluster/ID` is today's tag, `KubernetesCluster` with the id as value the legacy one. Both count when something is read;
//! the legacy one is written only where the configuration uses it (upstream's `tags.go`).

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::xml::Element;

use crate::api::reading::text;
use crate::config::Config;

/// The legacy tag's key.
const LEGACY: &str = "KubernetesCluster";

/// How the keys of today's tags begin.
pub const CLUSTER_PREFIX: &str = "kubernetes.io/cluster/";

/// The cluster as its tags have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterTag {
    /// The cluster's id.
    pub id: String,
    /// Whether the legacy tag is written too.
    legacy: bool,
}

impl ClusterTag {
    /// The configured cluster: `KubernetesClusterTag`, else `KubernetesClusterID`, else `--cluster-name`.
    pub fn new(config: &Config, cluster_name: &str) -> Self {
        let global = &config.global;
        let legacy = !global.kubernetes_cluster_tag.is_empty();
        let names = [&global.kubernetes_cluster_tag, &global.kubernetes_cluster_id];
        let configured = names.into_iter().find(|name| !name.is_empty());
        Self {
            id: configured.map_or(cluster_name, String::as_str).into(),
            legacy,
        }
    }

    /// Key of today's tag.
    pub fn key(&self) -> String {
        format!("{CLUSTER_PREFIX}{}", self.id)
    }

    /// Keys of all tags that something of the cluster may carry, for filters; [`marks`](Self::marks) decides.
    pub fn keys(&self) -> [String; 2] {
        [self.key(), LEGACY.into()]
    }

    /// Whether something with these tags is the cluster's.
    pub fn marks(&self, tags: &[Pair]) -> bool {
        let key = self.key();
        tags.iter()
            .any(|tag| tag.key == key || (tag.key == LEGACY && tag.value == self.id))
    }

    /// Whether something with these tags is the cluster's alone, so that it may be deleted with what it was made for.
    pub fn owns(&self, tags: &[Pair]) -> bool {
        let key = self.key();
        tags.iter().any(|tag| tag.key == key && tag.value == "owned")
    }

    /// The tags of something that is made for this cluster.
    pub fn owned(&self) -> Vec<Pair> {
        let mut tags = Vec::new();
        if self.legacy {
            tags.push(Pair::new(LEGACY, self.id.clone()));
        }
        tags.push(Pair::new(self.key(), "owned"));
        tags
    }
}

/// The tags of an element of EC2: `tagSet/item(key, value)`.
pub fn ec2_tags(element: &Element) -> Vec<Pair> {
    let tag = |tag: &Element| Pair::new(text(tag, "key"), text(tag, "value"));
    element.all(&["tagSet", "item"]).map(tag).collect()
}

/// The value of a tag.
pub fn tag<'a>(tags: &'a [Pair], key: &str) -> Option<&'a str> {
    tags.iter().find(|tag| tag.key == key).map(|tag| tag.value.as_str())
}
