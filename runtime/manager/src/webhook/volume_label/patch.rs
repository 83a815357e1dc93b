//! JSON patch with a PersistentVolume's labels and the affinity that follows from them. Pure.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{NodeSelectorTerm, PersistentVolume};
use serde_json::{Value, json};

use crate::webhook::volume_label::question::{BETA_ZONE, ZONE};

/// Between the zones of one label (`cloud-provider volume/constants.go`, `LabelMultiZoneDelimiter`).
const MANY_ZONES: &str = "__";

/// Terms of an affinity that get requirements; the scheduler would look at each of them for each Node and Pod.
const TERMS: usize = 256;

/// The patch for these labels of the cloud; empty without labels. Every label is set, whatever the user wrote.
///
/// Each label is a requirement of the Node, too. The terms of the affinity are alternatives, so each of them gets every requirement; but none is added when one of
/// the keys is required already, since the user has set it explicitly.
///
/// # Errors
/// When the value of a zone is no list of zones, or the affinity has too many terms.
pub fn patch(volume: &PersistentVolume, labels: &BTreeMap<String, String>) -> Result<Vec<Value>, String> {
    if labels.is_empty() {
        return Ok(Vec::new());
    }
    let requirements = requirements(labels)?;
    let mut patch = match &volume.metadata.labels {
        None => vec![add("/metadata/labels", json!(labels))],
        Some(_) => labels
            .iter()
            .map(|(key, value)| add(&format!("/metadata/labels/{}", escaped(key)), json!(value)))
            .collect(),
    };
    patch.extend(affinity(volume, labels, &requirements)?);
    Ok(patch)
}

/// One requirement for each label.
fn requirements(labels: &BTreeMap<String, String>) -> Result<Vec<Value>, String> {
    let one = |(key, value): (&String, &String)| {
        let values = match key.as_str() {
            ZONE | BETA_ZONE => zones(value)?,
            _ => BTreeSet::from([value.as_str()]),
        };
        Ok(json!({ "key": key, "operator": "In", "values": values }))
    };
    labels.iter().map(one).collect()
}

/// The zones of a label, in their order and each once.
fn zones(value: &str) -> Result<BTreeSet<&str>, String> {
    let zones: BTreeSet<&str> = value.split(MANY_ZONES).map(str::trim).collect();
    match zones.contains("") {
        true => Err(format!("the zone label {value:?} has an empty zone")),
        false => Ok(zones),
    }
}

fn affinity(
    volume: &PersistentVolume,
    labels: &BTreeMap<String, String>,
    requirements: &[Value],
) -> Result<Vec<Value>, String> {
    let affinity = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref());
    let new_terms = json!([{ "matchExpressions": requirements }]);
    let Some(affinity) = affinity else {
        let whole = json!({ "required": { "nodeSelectorTerms": new_terms } });
        return Ok(vec![add("/spec/nodeAffinity", whole)]);
    };
    let Some(required) = &affinity.required else {
        let required = json!({ "nodeSelectorTerms": new_terms });
        return Ok(vec![add("/spec/nodeAffinity/required", required)]);
    };
    let terms = &required.node_selector_terms;
    if terms.is_empty() {
        return Ok(vec![add("/spec/nodeAffinity/required/nodeSelectorTerms", new_terms)]);
    }
    if terms.len() > TERMS {
        return Err(format!(
            "its affinity has {} terms, at most {TERMS} are possible",
            terms.len()
        ));
    }
    let is_required = |term: &NodeSelectorTerm| {
        let mut keys = term.match_expressions.iter().flatten().map(|one| &one.key);
        keys.any(|key| labels.contains_key(key))
    };
    if terms.iter().any(is_required) {
        return Ok(Vec::new());
    }
    let terms = terms.iter().enumerate();
    Ok(terms.flat_map(|(at, term)| into_term(at, term, requirements)).collect())
}

/// What adds the requirements to one term.
fn into_term(at: usize, term: &NodeSelectorTerm, requirements: &[Value]) -> Vec<Value> {
    let path = format!("/spec/nodeAffinity/required/nodeSelectorTerms/{at}/matchExpressions");
    match term.match_expressions {
        None => vec![add(&path, json!(requirements))],
        Some(_) => requirements
            .iter()
            .map(|requirement| add(&format!("{path}/-"), requirement.clone()))
            .collect(),
    }
}

fn add(path: &str, value: Value) -> Value {
    json!({ "op": "add", "path": path, "value": value })
}

/// A key within a path (RFC 6901, section 3).
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests;
