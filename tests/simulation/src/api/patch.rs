//! Merge patches, and as much of strategic merge patches as Nodes and Services need.

use serde_json::{Map, Value};

/// RFC 7386.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    let target = object(target);
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key).or_insert(Value::Null), value);
        }
    }
}

/// Lists of finalizers are sets, lists of conditions have the key `type`, all others are replaced.
pub(crate) fn strategic(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    let target = object(target);
    for (key, value) in patch {
        if key.starts_with("$setElementOrder/") {
            continue;
        }
        if let Some(list) = key.strip_prefix("$deleteFromPrimitiveList/") {
            if let Some(Value::Array(items)) = target.get_mut(list) {
                items.retain(|item| !elements(value).contains(item));
            }
        } else if value.is_null() {
            target.remove(key);
        } else if key == "finalizers" {
            let items = list(target, key);
            for item in elements(value) {
                if !items.contains(item) {
                    items.push(item.clone());
                }
            }
        } else if key == "conditions" {
            let items = list(target, key);
            for condition in elements(value) {
                match items.iter_mut().find(|item| item["type"] == condition["type"]) {
                    Some(item) => merge(item, condition),
                    None => items.push(condition.clone()),
                }
            }
        } else {
            strategic(target.entry(key).or_insert(Value::Null), value);
        }
    }
}

fn elements(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn list<'a>(target: &'a mut Map<String, Value>, key: &str) -> &'a mut Vec<Value> {
    let slot = target.entry(key).or_insert(Value::Null);
    if !slot.is_array() {
        *slot = Value::Array(Vec::new());
    }
    slot.as_array_mut().expect("it was made a list above")
}

fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it was made an object above")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_merge_patch_removes_with_null_and_replaces_lists() {
        let mut target = json!({ "a": { "b": 1, "c": [1, 2] }, "d": 4 });
        merge(
            &mut target,
            &json!({ "a": { "c": [3], "e": { "f": null } }, "d": null }),
        );
        assert_eq!(target, json!({ "a": { "b": 1, "c": [3], "e": {} } }));
    }

    #[test]
    fn a_strategic_patch_keeps_entries_of_others() {
        let mut target =
            json!({ "finalizers": ["x"], "conditions": [{ "type": "Ready", "status": "True" }], "l": [1] });
        let patch = json!({
            "finalizers": ["y"], "$setElementOrder/finalizers": ["x", "y"],
            "conditions": [{ "type": "Net", "status": "False" }], "l": [2],
        });
        strategic(&mut target, &patch);
        let conditions = json!([{ "type": "Ready", "status": "True" }, { "type": "Net", "status": "False" }]);
        assert_eq!(
            target,
            json!({ "finalizers": ["x", "y"], "conditions": conditions, "l": [2] })
        );
        strategic(
            &mut target,
            &json!({ "$deleteFromPrimitiveList/finalizers": ["x"], "conditions": null }),
        );
        assert_eq!(target, json!({ "finalizers": ["y"], "l": [2] }));
    }
}
