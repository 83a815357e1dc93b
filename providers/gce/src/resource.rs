//! Resources as JSON: whether the observed state is the desired one.
//!
//! The cloud adds fields of its own, writes links as whole URLs and leaves out what is empty, so only desired fields are compared.

use cloudwit_guest_sdk::serde_json::{Map, Value};

use crate::links;

/// Cannot be changed, or has no effect.
const NOT_COMPARED: [&str; 4] = ["name", "description", "network", "region"];

/// Whether every desired field of a resource is there with its value.
pub fn is_right(wanted: &Value, seen: &Value) -> bool {
    let fields = wanted.as_object().into_iter().flatten();
    fields
        .filter(|(name, _)| !NOT_COMPARED.contains(&name.as_str()))
        .all(|(name, value)| same(value, seen.get(name)))
}

/// Lists count as sets: the cloud does not keep their order.
fn same(wanted: &Value, seen: Option<&Value>) -> bool {
    let Some(seen) = seen else { return is_empty(wanted) };
    match (wanted, seen) {
        (Value::String(wanted), Value::String(seen)) => {
            wanted == seen || is_link(wanted) && links::tail(wanted) == links::tail(seen)
        }
        (Value::Array(wanted), Value::Array(seen)) => {
            let has = |one: &Value| seen.iter().any(|other| same(one, Some(other)));
            wanted.len() == seen.len() && wanted.iter().all(has)
        }
        (Value::Object(wanted), Value::Object(seen)) => wanted.iter().all(|(name, value)| same(value, seen.get(name))),
        (wanted, seen) => wanted == seen,
    }
}

fn is_link(text: &str) -> bool {
    text.contains("projects/")
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// The text of a field; empty where there is none.
pub fn text<'a>(resource: &'a Value, field: &str) -> &'a str {
    resource.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The texts of a list.
pub fn texts<'a>(resource: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    let items = resource.get(field).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str)
}

/// What is observed, with the desired fields: for updates of the whole, in which what is left out would be lost.
pub fn merged(seen: &Value, wanted: &Value) -> Value {
    let mut all: Map<String, Value> = seen.as_object().cloned().unwrap_or_default();
    let fields = wanted.as_object().into_iter().flatten();
    all.extend(fields.map(|(name, value)| (name.clone(), value.clone())));
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::serde_json::json;

    use super::*;

    #[test]
    fn only_wanted_fields_compare_and_link_hosts_are_ignored() {
        let wanted = json!({
            "name": "a", "description": "x", "target": "https://a/v1/projects/p/regions/r/targetPools/t", "ports": ["80", "443"],
            "allowGlobalAccess": false, "allowed": [{ "IPProtocol": "tcp", "ports": ["80"] }],
        });
        let seen = json!({
            "name": "a", "description": "y", "target": "https://b/v1/projects/p/regions/r/targetPools/t", "ports": ["443", "80"], "id": "1",
            "allowed": [{ "IPProtocol": "tcp", "ports": ["80"] }],
        });
        assert!(is_right(&wanted, &seen));
        for (field, value) in [
            ("target", json!("https://b/v1/projects/p/regions/r/targetPools/u")),
            ("ports", json!(["80"])),
            ("ports", json!(["80", "444"])),
            ("allowGlobalAccess", json!(true)),
            ("allowed", json!([{ "IPProtocol": "udp", "ports": ["80"] }])),
        ] {
            let other = merged(&seen, &json!({ field: value }));
            assert!(!is_right(&wanted, &other), "{field}");
        }
    }

    #[test]
    fn merge_keeps_unmanaged_fields() {
        let merged = merged(&json!({ "a": 1, "fingerprint": "f" }), &json!({ "a": 2 }));
        assert_eq!(merged, json!({ "a": 2, "fingerprint": "f" }));
        assert_eq!((text(&merged, "fingerprint"), text(&merged, "b")), ("f", ""));
        assert_eq!(texts(&json!({ "l": ["a", 1] }), "l").collect::<Vec<_>>(), ["a"]);
    }
}
