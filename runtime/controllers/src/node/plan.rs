//! Node and machine in, changes out: what initialisation and refresh write. Pure.
//!
//! Initialisation is two writes, in this order: first the addresses (`nodes/status`), then everything else with the
//! taint ([`Release`]). So a Node without taint has its addresses (`spec/node-controller.md`, N5 describes what
//! happens otherwise). Both plans are made from the newest state of the Node and change nothing where nothing
//! differs, so they can be made again at any time.

use cloudwit_model::{Instance, ProviderId, ProviderIdentity};
use k8s_openapi::api::core::v1::{NodeAddress, Taint};
use thiserror::Error;

use crate::kube::node::Node;
use crate::kube::node::view::{self, PROVIDED_NODE_IP, UNINITIALIZED, WAITING};
use crate::node::addresses::{self, AddressError};
use crate::node::labels::{self, Dropped, Labels};

/// Everything that is written together with the removal of the taint.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Release {
    /// `spec.providerID`, where the Node has none. It is written once and never changed.
    pub provider_id: Option<String>,
    /// Labels to set.
    pub labels: Labels,
    /// All taints that stay, in their order.
    pub taints: Vec<Taint>,
    /// Labels of the cloud that are not set.
    pub dropped: Vec<Dropped>,
}

/// The addresses to write; None when the Node has them or the cloud reports none.
///
/// An error means that the kubelet's `--node-ip` does not fit: then nothing of the Node may be written.
pub fn plan_addresses(node: &Node, instance: &Instance) -> Result<Option<Vec<NodeAddress>>, AddressError> {
    let current = view::addresses(node);
    let provided = view::annotation(node, PROVIDED_NODE_IP);
    let wanted = addresses::wanted(current, &instance.addresses, provided)?;
    Ok(wanted.filter(|wanted| addresses::changed(current, wanted)))
}

/// Why the id that the provider gives for a Node's machine is not written.
///
/// The API server lets `spec.providerID` be set once and never changed, so a wrong one could only be mended by deleting the Node.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IdentityError {
    /// It begins with none of the prefixes that the provider declares: another provider, or none, would look after the Node.
    #[error(
        "the provider gives the machine the id {id:?}, which begins with none of its prefixes {prefixes}; the Node is left as it is"
    )]
    Foreign {
        /// The id, cut to [`ID_BYTES`].
        id: String,
        /// The prefixes, for people.
        prefixes: String,
    },
    /// There is none, and the Node has none either.
    #[error("the provider gives the machine no id; the Node is left as it is")]
    Missing,
}

/// More of an id is not shown.
const ID_BYTES: usize = 100;

/// The provider id to write; None when the Node has one already. A provider without prefixes may give out any id, as upstream.
///
/// An error means that nothing of the Node may be written: the answer may be about a foreign machine.
pub fn plan_identity(
    node: &Node,
    instance: &Instance,
    provider: &ProviderIdentity,
) -> Result<Option<String>, IdentityError> {
    let prefixes = &provider.provider_id_prefixes;
    let missing = view::provider_id(node).is_none();
    let Some(id) = ProviderId::new(instance.provider_id.as_str()) else {
        return if missing { Err(IdentityError::Missing) } else { Ok(None) };
    };
    if !prefixes.is_empty() && !id.has_prefix(prefixes) {
        let id = id.as_str();
        return Err(IdentityError::Foreign {
            id: id[..id.floor_char_boundary(ID_BYTES)].to_owned(),
            prefixes: prefixes.join(", "),
        });
    }
    Ok(missing.then(|| instance.provider_id.clone()))
}

/// What ends the initialisation of a Node; the error is that of [`plan_identity`].
pub fn plan_release(node: &Node, instance: &Instance, provider: &ProviderIdentity) -> Result<Release, IdentityError> {
    let (labels, dropped) = labels::for_instance(&node.labels, instance);
    let provider_id = plan_identity(node, instance, provider)?;
    let taints = view::taints(node)
        .iter()
        .filter(|taint| taint.key != UNINITIALIZED)
        .cloned()
        .collect();
    Ok(Release {
        provider_id,
        labels,
        taints,
        dropped,
    })
}

/// Labels to correct on a Node that is initialised; empty when there is nothing to do.
pub fn plan_labels(node: &Node) -> Labels {
    labels::reconciled(&node.labels)
}

/// Whether the Node is initialised and still carries the annotation that says why it is not: the taint was removed by others.
pub fn waits_in_vain(node: &Node) -> bool {
    !view::has_taint(node, UNINITIALIZED) && view::annotation(node, WAITING).is_some()
}

/// Whether a change of a Node can matter for its initialisation. Heartbeats, conditions and our own annotation cannot; without this
/// every one of them would cut a pause after a failure short.
pub fn matters(old: &Node, new: &Node) -> bool {
    old.metadata.uid != new.metadata.uid
        || old.labels != new.labels
        || view::annotation(old, PROVIDED_NODE_IP) != view::annotation(new, PROVIDED_NODE_IP)
        || view::taints(old) != view::taints(new)
        || view::addresses(old) != view::addresses(new)
        || view::provider_id_text(old) != view::provider_id_text(new)
        || view::system_uuid(old) != view::system_uuid(new)
        || old.metadata.name != new.metadata.name
}

#[cfg(test)]
mod tests;
