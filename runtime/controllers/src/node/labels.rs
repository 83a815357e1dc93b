//! Labels that Nodes get from their cloud: allowed keys and values, old and new names kept equal. Pure.

use std::collections::BTreeMap;

use cloudwit_model::Instance;

use crate::kube::node::compact_labels::CompactLabels;

/// Labels to set, by key.
pub type Labels = BTreeMap<String, String>;

const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const ZONE: &str = "topology.kubernetes.io/zone";
const BETA_REGION: &str = "failure-domain.beta.kubernetes.io/region";
const REGION: &str = "topology.kubernetes.io/region";
const BETA_INSTANCE_TYPE: &str = "beta.kubernetes.io/instance-type";
const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";

/// Deprecated name and its successor. The deprecated one is the source of truth
/// (`controllers/node/node_controller.go:labelReconcileInfo`).
const TWINS: [(&str, &str); 3] = [
    (BETA_ZONE, ZONE),
    (BETA_REGION, REGION),
    (BETA_INSTANCE_TYPE, INSTANCE_TYPE),
];

/// A label of the cloud that is not set, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Why it is not set.
    pub reason: DropReason,
}

/// Why a label is not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DropReason {
    /// Its key is in a namespace that belongs to Kubernetes.
    Reserved,
    /// The Node has it already with this other value, which wins.
    Present(String),
    /// The API server would refuse it. Upstream sends it all the same and then never gets the Node initialised (N8).
    Invalid(&'static str),
}

/// The labels that initialisation sets or changes, and those it does not.
pub fn for_instance(current: &CompactLabels, instance: &Instance) -> (Labels, Vec<Dropped>) {
    let (mut wanted, mut dropped) = (Labels::new(), Vec::new());
    // The Node's labels are one text, which is searched from its beginning.
    let current: BTreeMap<&str, &str> = current.iter().collect();
    let facts = [
        (&instance.instance_type, [BETA_INSTANCE_TYPE, INSTANCE_TYPE]),
        (&instance.zone, [BETA_ZONE, ZONE]),
        (&instance.region, [BETA_REGION, REGION]),
    ];
    for (value, keys) in facts {
        let Some(value) = value.as_ref().filter(|value| !value.is_empty()) else {
            continue;
        };
        for key in keys {
            match invalid(key, value) {
                None => drop(wanted.insert(key.to_owned(), value.clone())),
                Some(reason) => dropped.push(drop_label(key, value, DropReason::Invalid(reason))),
            }
        }
    }
    for (key, value) in &instance.labels {
        let present = wanted.get(key).map(String::as_str);
        let present = present.or_else(|| current.get(key.as_str()).copied());
        let reason = if is_reserved(key) {
            DropReason::Reserved
        } else if let Some(present) = present {
            if present == value {
                continue;
            }
            DropReason::Present(present.to_owned())
        } else if let Some(reason) = invalid(key, value) {
            DropReason::Invalid(reason)
        } else {
            wanted.insert(key.clone(), value.clone());
            continue;
        };
        dropped.push(drop_label(key, value, reason));
    }
    wanted.retain(|key, value| current.get(key.as_str()).copied() != Some(value));
    (wanted, dropped)
}

/// What has to change so that each successor equals its deprecated twin; a successor alone is left alone.
pub fn reconciled(current: &CompactLabels) -> Labels {
    TWINS
        .iter()
        .filter_map(|(beta, stable)| {
            let value = current.get(beta)?;
            (current.get(stable) != Some(value)).then(|| ((*stable).to_owned(), value.to_owned()))
        })
        .collect()
}

/// Whether the key starts with, or has after a dot, `kubernetes.io/` or `k8s.io/`.
fn is_reserved(key: &str) -> bool {
    ["kubernetes.io/", "k8s.io/"].iter().any(|domain| {
        key.match_indices(domain)
            .any(|(at, _)| at == 0 || key.as_bytes()[at - 1] == b'.')
    })
}

/// Why the API server would refuse this label (`apimachinery util/validation`).
fn invalid(key: &str, value: &str) -> Option<&'static str> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if prefix.is_some_and(|prefix| !is_subdomain(prefix)) {
        return Some("the part of the key before the slash has to be a lower-case DNS name of at most 253 characters");
    }
    if !is_word(name) {
        return Some(
            "the name in the key has to be 1 to 63 letters, digits, '-', '_' or '.', letter or digit first and last",
        );
    }
    if !value.is_empty() && !is_word(value) {
        return Some("a value has to be at most 63 letters, digits, '-', '_' or '.', letter or digit first and last");
    }
    None
}

fn is_word(text: &str) -> bool {
    let outer = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && outer(bytes.first())
        && outer(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn is_subdomain(text: &str) -> bool {
    let outer = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    text.len() <= 253
        && text.split('.').all(|part| {
            let bytes = part.as_bytes();
            outer(bytes.first())
                && outer(bytes.last())
                && bytes
                    .iter()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-')
        })
}

fn drop_label(key: &str, value: &str, reason: DropReason) -> Dropped {
    Dropped {
        key: key.to_owned(),
        value: value.to_owned(),
        reason,
    }
}

#[cfg(test)]
mod tests;
