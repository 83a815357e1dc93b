//! What follows for a Node that is not Ready from what the cloud says about its machine. Pure.
//!
//! Upstream's decision table (`spec/node-lifecycle-controller.md` 4) with these differences: Nodes that wait for
//! initialisation and Nodes that are being deleted are never looked up; "does not exist" is only the beginning (see
//! [`lifecycle::brake`](crate::lifecycle::brake)); answers about a machine that is not looked up by id never delete.

use cloudwit_model::{Evidence, Presence, ProviderIdentity};
use k8s_openapi::api::core::v1::Taint;

use crate::kube::node::Node;
use crate::kube::node::view::{
    ABSENT, AUTOSCALER_DELETES, Readiness, SHUTDOWN, UNINITIALIZED, belongs_to, has_taint, provider_id, provider_label,
    readiness, taints,
};

/// What to do with a Node before the cloud is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// Nothing; the cloud is not called.
    Leave,
    /// It is Ready: take our taints away; the cloud is not called.
    Recovered,
    /// Look it up in the cloud.
    Ask,
}

/// What a Node is before the cloud is called. Ready Nodes are never looked up, even if the cloud would say that they
/// are gone.
pub fn before(node: &Node, provider: &ProviderIdentity) -> Before {
    if !belongs_to(node, provider) || node.metadata.deletion_timestamp.is_some() {
        return Before::Leave;
    }
    match readiness(node) {
        Readiness::Ready if plan_taints(node, Mark::None).is_some() => Before::Recovered,
        Readiness::NotReady if !has_taint(node, UNINITIALIZED) => Before::Ask,
        _ => Before::Leave,
    }
}

/// Whether the Node is one that [`lifecycle::brake_by_name`](crate::lifecycle::brake_by_name) is about: not Ready, never initialised, without a provider id.
/// `several` is whether there are other providers, any of which may have its machine unless its label says whose it is.
pub fn may_go_by_name(node: &Node, provider: &ProviderIdentity, several: bool) -> bool {
    node.metadata.deletion_timestamp.is_none()
        && provider_id(node).is_none()
        && has_taint(node, UNINITIALIZED)
        && readiness(node) == Readiness::NotReady
        && (!several || provider_label(node) == Some(&provider.name))
}

/// What the cloud's answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// The machine exists and runs. A shutdown taint stays until the Node is Ready, as upstream.
    Running,
    /// The machine exists and is stopped.
    Stopped,
    /// It is gone: a case for the guard.
    Gone,
    /// A search found nothing, or the id is not one of this provider's. Never deletes.
    Unclear,
}

/// What the cloud's answer means for this Node.
pub fn after(node: &Node, presence: &Presence, provider: &ProviderIdentity) -> After {
    match presence {
        Presence::Running(_) => After::Running,
        Presence::Stopped(_) => After::Stopped,
        Presence::Absent(Evidence::ById) if is_own(node, provider) => After::Gone,
        Presence::Absent(_) => After::Unclear,
    }
}

/// Whether the Node carries an id that this provider gave out. A provider without prefixes cannot prove that an id is
/// its own.
pub fn is_own(node: &Node, provider: &ProviderIdentity) -> bool {
    provider_id(node).is_some_and(|id| id.has_prefix(&provider.provider_id_prefixes))
}

/// Which of our taints a Node shall carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// None: it is Ready.
    None,
    /// Not the one for gone machines; the other as it is.
    NotAbsent,
    /// The one for stopped machines, and not the one for gone machines.
    Shutdown,
    /// The one for gone machines.
    Absent,
}

/// The Node's new taints; None when it has the right ones. Taints are distinguished by key and effect, as upstream.
pub fn plan_taints(node: &Node, mark: Mark) -> Option<Vec<Taint>> {
    let current = taints(node);
    let is = |taint: &Taint, key: &str| taint.key == key && taint.effect == "NoSchedule";
    let (set, remove): (Option<&str>, &[&str]) = match mark {
        Mark::None => (None, &[SHUTDOWN, ABSENT]),
        Mark::NotAbsent => (None, &[ABSENT]),
        Mark::Shutdown => (Some(SHUTDOWN), &[ABSENT]),
        Mark::Absent => (Some(ABSENT), &[]),
    };
    let mut wanted: Vec<Taint> = current
        .iter()
        .filter(|taint| !remove.iter().any(|key| is(taint, key)))
        .cloned()
        .collect();
    if let Some(key) = set {
        let taint = Taint {
            key: key.into(),
            effect: "NoSchedule".into(),
            ..Taint::default()
        };
        match wanted.iter_mut().find(|taint| is(taint, key)) {
            // Upstream compares value and time as well and replaces the taint where they differ.
            Some(present) => *present = taint,
            None => wanted.push(taint),
        }
    }
    (wanted != current).then_some(wanted)
}

/// Whether the Node's removal was announced by the cluster autoscaler.
pub fn is_announced(node: &Node) -> bool {
    has_taint(node, AUTOSCALER_DELETES)
}

/// Whether the Node, as the API server has it now, is still the one that was found to be gone.
pub fn may_still_go(fresh: &Node, judged: &Node, provider: &ProviderIdentity) -> bool {
    fresh.metadata.uid == judged.metadata.uid
        && provider_id(fresh) == provider_id(judged)
        && is_own(fresh, provider)
        && before(fresh, provider) == Before::Ask
}

/// The same for a Node that was found to be gone by its name.
pub fn may_still_go_by_name(fresh: &Node, judged: &Node, provider: &ProviderIdentity, several: bool) -> bool {
    fresh.metadata.uid == judged.metadata.uid && may_go_by_name(fresh, provider, several)
}

#[cfg(test)]
mod tests;
