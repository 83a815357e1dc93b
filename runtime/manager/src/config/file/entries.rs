//! The file of `--config` as it is written.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cloudwit_host::{Grants, Limits};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::registry::access::{RegistryAccess, Verification};

// What stands above a key here and in the host's types is what the reference page and editors say about it.
/// The providers of one process, their grants and limits, and the assignment of Nodes and Services to them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(title = "CloudwitConfiguration cloudwit.dev/v1alpha1")]
pub(crate) struct File {
    /// Version of this format.
    #[serde(rename = "apiVersion")]
    #[schemars(extend("enum" = ["cloudwit.dev/v1alpha1"]))]
    _api_version: String,
    /// What this file is.
    #[serde(rename = "kind")]
    #[schemars(extend("enum" = ["CloudwitConfiguration"]))]
    _kind: String,
    /// The providers. All run in one process.
    pub(super) providers: Vec<ProviderEntry>,
    /// Memory of all calls of all providers together, in bytes; twice `limits.memoryBytes` of each provider when left out. Each provider's share
    /// has room for one of its largest calls; the rest is divided equally. A call that does not fit into its provider's share waits.
    #[schemars(range(min = 1_u64 << 20, max = 1_u64 << 40))]
    pub(super) guest_memory_bytes: Option<u64>,
    /// Assignment of Nodes and Services to providers. Needed where there are several providers.
    #[serde(default)]
    pub(super) routing: RoutingEntry,
}

/// One provider.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ProviderEntry {
    /// Name of your choice: lower-case letters, digits, '-' and '.', at most 63. It is a label of metrics, and what Nodes and Services name in
    /// `cloudwit.dev/provider`.
    pub(super) name: String,
    /// The component's file. A relative path starts at this file's folder; a bare file name that is not there is looked for in --provider-dir. Or
    /// `oci://HOST[:PORT]/REPOSITORY@sha256:DIGEST` for one in a registry, which `cloudwit provider pin` prints.
    pub(super) component: String,
    /// How the registry is reached, for a component in one.
    pub(super) registry: Option<RegistryAccess>,
    /// What a component in a registry has to be signed with. Without it the digest alone says that it is the right one.
    pub(super) verify: Option<Verification>,
    /// The provider's own configuration, as text.
    pub(super) cloud_config: Option<String>,
    /// The file with the provider's own configuration, instead of `cloudConfig`. A relative path starts at this file's folder.
    pub(super) cloud_config_file: Option<PathBuf>,
    /// Single values for the provider.
    #[serde(default)]
    pub(super) values: BTreeMap<String, String>,
    /// What the provider may do. Nothing when left out.
    #[serde(default)]
    pub(super) grants: Grants,
    /// What the provider may use.
    #[serde(default)]
    pub(super) limits: Limits,
    /// Name of the CSI driver that serves its volumes, in place of the one that the provider gives; see --csi-socket-dir. PersistentVolumes keep the name
    /// they were made with.
    pub(super) csi_driver_name: Option<String>,
}

/// Which Nodes and Services belong to which provider.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(crate) struct RoutingEntry {
    /// The provider of what names no other: Services, and Nodes that have no provider id yet. Required where there are several; the only
    /// provider where there is one.
    pub(super) default: Option<String>,
    /// Assignment of provider ids to providers, where the declared prefixes do not suffice.
    pub(super) nodes: Vec<NodeRule>,
    /// Assignment of Services to providers, beside the annotation `cloudwit.dev/provider`.
    pub(super) services: Vec<ServiceRule>,
}

/// Nodes of a provider.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NodeRule {
    /// Name of the provider.
    pub(super) provider: String,
    /// How the provider ids of its Nodes begin. They stand in place of those that the provider itself says.
    #[serde(rename = "providerIDPrefixes")]
    pub(super) prefixes: Vec<String>,
}

/// Services of a provider.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ServiceRule {
    /// Name of the provider.
    pub(super) provider: String,
    /// Values of spec.loadBalancerClass. Services of all other classes are left alone.
    #[serde(default)]
    pub(super) classes: Vec<String>,
    /// Annotations, each of which makes a Service its.
    #[serde(default)]
    pub(super) annotations: BTreeMap<String, String>,
}
