//! What the patch makes of a PersistentVolume.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::PersistentVolume;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{TERMS, patch};

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(own).collect()
}

/// The object as the API server has it after the patch.
fn patched(object: &Value, labels: &BTreeMap<String, String>) -> Result<Value, String> {
    let volume: PersistentVolume = serde_json::from_value(object.clone()).unwrap();
    let patch: json_patch::Patch = serde_json::from_value(json!(patch(&volume, labels)?)).unwrap();
    let mut after = object.clone();
    json_patch::patch(&mut after, &patch).unwrap();
    Ok(after)
}

fn volume(labels: Value, affinity: Value) -> Value {
    let mut volume = json!({"metadata": {"name": "a"}, "spec": {"gcePersistentDisk": {"pdName": "d"}}});
    if !labels.is_null() {
        volume["metadata"]["labels"] = labels;
    }
    if !affinity.is_null() {
        volume["spec"]["nodeAffinity"] = affinity;
    }
    volume
}

fn expression(key: &str, values: &[&str]) -> Value {
    json!({"key": key, "operator": "In", "values": values})
}

fn terms(terms: &[&[Value]]) -> Value {
    let one = |expressions: &&[Value]| json!({"matchExpressions": expressions});
    json!({"required": {"nodeSelectorTerms": terms.iter().map(one).collect::<Vec<_>>()}})
}

#[test]
fn labels_and_affinity_of_a_volume_become_those_of_the_rows() {
    let both: &[(&str, &str)] = &[(ZONE, "a"), (REGION, "r")];
    let places = || [expression(REGION, &["r"]), expression(ZONE, &["a"])];
    let disk = expression("disk", &["ssd"]);
    let with = |first: &Value| [vec![first.clone()], places().to_vec()].concat();
    for (row, before, found, labels_after, affinity_after) in [
        (
            "no labels, no affinity",
            volume(Value::Null, Value::Null),
            both,
            json!({ZONE: "a", REGION: "r"}),
            terms(&[&places()]),
        ),
        (
            "the user's labels are overwritten, others stay",
            volume(json!({ZONE: "x", "own": "1"}), Value::Null),
            both,
            json!({ZONE: "a", REGION: "r", "own": "1"}),
            terms(&[&places()]),
        ),
        (
            "affinity without required",
            volume(Value::Null, json!({})),
            both,
            json!({ZONE: "a", REGION: "r"}),
            terms(&[&places()]),
        ),
        (
            "required without terms",
            volume(Value::Null, json!({"required": {"nodeSelectorTerms": []}})),
            both,
            json!({ZONE: "a", REGION: "r"}),
            terms(&[&places()]),
        ),
        (
            "every term gets every requirement",
            volume(Value::Null, terms(&[std::slice::from_ref(&disk), &[]])),
            both,
            json!({ZONE: "a", REGION: "r"}),
            terms(&[&with(&disk), &places()]),
        ),
        (
            "a term without expressions",
            volume(Value::Null, json!({"required": {"nodeSelectorTerms": [{}]}})),
            both,
            json!({ZONE: "a", REGION: "r"}),
            terms(&[&places()]),
        ),
        (
            "a key that is required already in any term: no requirement at all",
            volume(
                Value::Null,
                terms(&[std::slice::from_ref(&disk), &[expression(REGION, &["other"])]]),
            ),
            both,
            json!({ZONE: "a", REGION: "r"}),
            terms(&[std::slice::from_ref(&disk), &[expression(REGION, &["other"])]]),
        ),
        (
            "several zones, in their order and each once",
            volume(Value::Null, Value::Null),
            &[(ZONE, "c__a__ b __a")],
            json!({ZONE: "c__a__ b __a"}),
            terms(&[&[expression(ZONE, &["a", "b", "c"])]]),
        ),
        (
            "several zones under the older key",
            volume(Value::Null, Value::Null),
            &[(BETA_ZONE, "b__a")],
            json!({BETA_ZONE: "b__a"}),
            terms(&[&[expression(BETA_ZONE, &["a", "b"])]]),
        ),
        (
            "another key is one value",
            volume(Value::Null, Value::Null),
            &[("kind", "x__y")],
            json!({"kind": "x__y"}),
            terms(&[&[expression("kind", &["x__y"])]]),
        ),
    ] {
        let after = patched(&before, &labels(found)).unwrap();
        assert_eq!(after["metadata"]["labels"], labels_after, "{row}");
        assert_eq!(after["spec"]["nodeAffinity"], affinity_after, "{row}");
        assert_eq!(
            after["spec"]["gcePersistentDisk"], before["spec"]["gcePersistentDisk"],
            "{row}"
        );
    }
}

#[test]
fn without_labels_nothing_changes() {
    let before = volume(Value::Null, Value::Null);
    assert_eq!(patched(&before, &BTreeMap::new()), Ok(before));
}

#[test]
fn zone_that_is_empty_is_refused() {
    for zone in ["", "a__", "__a", "a____b", "a__ __b"] {
        let wrong = patched(&volume(Value::Null, Value::Null), &labels(&[(ZONE, zone)])).unwrap_err();
        assert!(wrong.contains("has an empty zone"), "{zone:?}: {wrong}");
    }
}

fn keys() -> impl Strategy<Value = String> {
    prop::sample::select(vec![ZONE, REGION, BETA_ZONE, "disk", "a~/b"]).prop_map(str::to_owned)
}

fn some_terms() -> impl Strategy<Value = Vec<Option<Vec<String>>>> {
    prop::collection::vec(prop::option::of(prop::collection::vec(keys(), 0..3)), 0..4)
}

proptest! {
    /// The patch fits the object, sets every label, and puts every requirement into every term or none into any; all else stays.
    #[test]
    fn applied_patch_is_what_was_planned(
        found in prop::collection::btree_map(keys(), "[a-c]{1,2}(__[a-c]{1,2}){0,2}", 1..4),
        own in prop::option::of(prop::collection::btree_map(keys(), "[a-c]", 0..3)),
        before in prop::option::of(some_terms()),
    ) {
        let affinity = before.as_ref().map_or(Value::Null, |terms| {
            let term = |keys: &Option<Vec<String>>| match keys {
                Some(keys) => json!({"matchExpressions": keys.iter().map(|key| expression(key, &["x"])).collect::<Vec<_>>()}),
                None => json!({}),
            };
            json!({"required": {"nodeSelectorTerms": terms.iter().map(term).collect::<Vec<_>>()}})
        });
        let object = volume(own.as_ref().map_or(Value::Null, |own| json!(own)), affinity);
        let after = patched(&object, &found).unwrap();
        let mut all = own.unwrap_or_default();
        all.extend(found.clone());
        prop_assert_eq!(&after["metadata"]["labels"], &json!(all));

        let before = before.unwrap_or_default();
        let known: BTreeSet<&String> = before.iter().flatten().flatten().collect();
        let terms = after["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"].as_array().unwrap();
        let conflict = found.keys().any(|key| known.contains(key));
        let empty = vec![None];
        let expected = if before.is_empty() { &empty } else { &before };
        prop_assert_eq!(terms.len(), expected.len());
        for (term, keys) in terms.iter().zip(expected) {
            let found_keys: Vec<&str> = term["matchExpressions"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|one| one["key"].as_str().unwrap())
                .collect();
            let mut wanted: Vec<&str> = keys.iter().flatten().map(String::as_str).collect();
            if !conflict {
                wanted.extend(found.keys().map(String::as_str));
            }
            prop_assert_eq!(found_keys, wanted);
        }
    }
}

#[test]
fn affinity_of_more_terms_than_anybody_writes_is_refused() {
    let with = |count: usize| {
        let terms = json!({"required": {"nodeSelectorTerms": vec![json!({}); count]}});
        let volume: PersistentVolume = serde_json::from_value(volume(Value::Null, terms)).unwrap();
        patch(&volume, &BTreeMap::from([(ZONE.to_owned(), "a".to_owned())]))
    };
    assert_eq!(with(TERMS).unwrap().len(), 1 + TERMS);
    assert!(with(TERMS + 1).unwrap_err().contains("257 terms"));
}
