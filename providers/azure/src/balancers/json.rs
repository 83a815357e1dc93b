//! Resources as the cloud returns them. They are written back as wholes, so fields that are not known here are kept.

use serde_json::{Map, Value};

/// A text below the properties, empty where there is none.
pub fn text<'a>(resource: &'a Value, key: &str) -> &'a str {
    let value = resource.get("properties").and_then(|properties| properties.get(key));
    value.and_then(Value::as_str).unwrap_or_default()
}

/// The id that a property refers to, empty where there is none.
pub fn reference<'a>(resource: &'a Value, key: &str) -> &'a str {
    let value = resource.get("properties").and_then(|properties| properties.get(key));
    value
        .and_then(|value| value.get("id"))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Its own name.
pub fn name(resource: &Value) -> &str {
    resource.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Its own id.
pub fn id(resource: &Value) -> &str {
    resource.get("id").and_then(Value::as_str).unwrap_or_default()
}

/// Its version.
pub fn etag(resource: &Value) -> &str {
    resource.get("etag").and_then(Value::as_str).unwrap_or_default()
}

/// A list below the properties.
pub fn items<'a>(resource: &'a Value, list: &str) -> &'a [Value] {
    let value = resource.get("properties").and_then(|properties| properties.get(list));
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A list below the properties, made where it is not there; none where the resource is no object.
pub fn items_mut<'a>(resource: &'a mut Value, list: &str) -> Option<&'a mut Vec<Value>> {
    let properties = resource
        .as_object_mut()?
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    let value = properties
        .as_object_mut()?
        .entry(list)
        .or_insert_with(|| Value::Array(Vec::new()));
    value.as_array_mut()
}

/// Merges the desired fields into a value and keeps the rest; whether that is a change. Ids are the same in any case.
pub fn merge(there: &mut Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => wanted.iter().fold(false, |changed, (key, value)| {
            let Some(now) = there.get_mut(key) else {
                there.insert(key.clone(), value.clone());
                return true;
            };
            merge(now, value) || changed
        }),
        (Value::String(there), Value::String(wanted))
            if wanted.starts_with("/subscriptions/") && there.eq_ignore_ascii_case(wanted) =>
        {
            false
        }
        (there, wanted) if there == wanted => false,
        (there, wanted) => {
            *there = wanted.clone();
            true
        }
    }
}

/// Makes a list have an item of this name with these properties; whether that is a change.
pub fn upsert(resource: &mut Value, list: &str, item_name: &str, properties: &Value) -> bool {
    let Some(items) = items_mut(resource, list) else {
        return false;
    };
    let wanted = serde_json::json!({ "properties": properties });
    if let Some(item) = items.iter_mut().find(|item| name(item).eq_ignore_ascii_case(item_name)) {
        return merge(item, &wanted);
    }
    items.push(serde_json::json!({ "name": item_name, "properties": properties }));
    true
}

/// Keeps the matching items of a list; whether that is a change.
pub fn retain(resource: &mut Value, list: &str, keep: impl Fn(&Value) -> bool) -> bool {
    if items(resource, list).iter().all(&keep) {
        return false;
    }
    if let Some(items) = items_mut(resource, list) {
        items.retain(keep);
    }
    true
}
