//! Readers of Node fields that all loops share, and the view of a Node for providers.

use cloudwit_model::{Address, AddressKind, ClusterNode, NodeRef, ProviderId, ProviderIdentity};
use k8s_openapi::api::core::v1::{NodeAddress, Taint};

use crate::assign::PROVIDER;
use crate::kube::node::Node;

/// Key of the taint that marks a Node waiting for its cloud (`cloud-provider api/well_known_taints.go`). Matched by
/// key alone, whatever its value and effect.
pub const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
/// Key of the taint of a Node whose machine is stopped; its effect is `NoSchedule`.
pub const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";
/// Key of our taint for a Node whose machine is gone, where deletion is switched to tainting; its effect is
/// `NoSchedule`.
pub const ABSENT: &str = "cloudwit.dev/absent";
/// Key of the taint by which the cluster autoscaler announces that it removes a Node's machine.
pub const AUTOSCALER_DELETES: &str = "ToBeDeletedByClusterAutoscaler";
/// Annotation on a Node that still waits for its initialisation: why, in words. It goes together with the taint.
pub const WAITING: &str = "cloudwit.dev/waiting-for-cloud";
/// Annotation with the address of `--node-ip` (`cloud-provider api/well_known_annotations.go`).
pub const PROVIDED_NODE_IP: &str = "alpha.kubernetes.io/provided-node-ip";

/// Status of the `Ready` condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// `True`.
    Ready,
    /// `False`, `Unknown`, or no such condition.
    NotReady,
}

/// Whether the Node is Ready.
pub fn readiness(node: &Node) -> Readiness {
    let conditions = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    let ready = conditions
        .iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    if ready { Readiness::Ready } else { Readiness::NotReady }
}

/// Its taints.
pub fn taints(node: &Node) -> &[Taint] {
    node.spec
        .as_ref()
        .and_then(|spec| spec.taints.as_deref())
        .unwrap_or_default()
}

/// The value of an annotation.
pub fn annotation<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// Whether it carries a taint with this key.
pub fn has_taint(node: &Node, key: &str) -> bool {
    taints(node).iter().any(|taint| taint.key == key)
}

/// Its addresses.
pub fn addresses(node: &Node) -> &[NodeAddress] {
    node.status
        .as_ref()
        .and_then(|status| status.addresses.as_deref())
        .unwrap_or_default()
}

/// `spec.providerID`, unless it is empty.
pub fn provider_id(node: &Node) -> Option<ProviderId> {
    provider_id_text(node).and_then(ProviderId::new)
}

/// The same as it stands in the Node.
pub fn provider_id_text(node: &Node) -> Option<&str> {
    let id = node.spec.as_ref()?.provider_id.as_deref()?;
    Some(id).filter(|id| !id.is_empty())
}

/// Whether this provider looks after the Node: its provider id has one of the provider's prefixes. A Node without an
/// id, and a provider without prefixes, belong to each other as they do upstream.
pub fn belongs_to(node: &Node, provider: &ProviderIdentity) -> bool {
    provider.provider_id_prefixes.is_empty()
        || provider_id(node).is_none_or(|id| id.has_prefix(&provider.provider_id_prefixes))
}

/// The Node as a provider sees it. Addresses of unknown kinds are left out.
pub fn node_ref(node: &Node) -> NodeRef {
    NodeRef {
        name: node.metadata.name.clone().unwrap_or_default(),
        provider_id: provider_id(node).map(|id| id.as_str().to_owned()),
        system_uuid: system_uuid(node).map(str::to_owned),
        addresses: addresses(node)
            .iter()
            .filter_map(|address| Some(Address::new(AddressKind::parse(&address.type_)?, &address.address)))
            .collect(),
        provider: provider_label(node).map(str::to_owned),
    }
}

/// The machine's own number (SMBIOS), unless it is empty.
pub fn system_uuid(node: &Node) -> Option<&str> {
    let info = node.status.as_ref()?.node_info.as_ref()?;
    Some(info.system_uuid.as_str()).filter(|uuid| !uuid.is_empty())
}

/// Value of the label by which a Node without a provider id names its provider.
pub fn provider_label(node: &Node) -> Option<&str> {
    node.labels.get(PROVIDER)
}

/// The Node in the read-only view for providers.
pub fn cluster_node(node: &Node) -> ClusterNode {
    ClusterNode {
        node: node_ref(node),
        labels: node
            .labels
            .iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
        pod_cidrs: node
            .spec
            .as_ref()
            .and_then(|spec| spec.pod_cidrs.clone())
            .unwrap_or_default(),
    }
}
