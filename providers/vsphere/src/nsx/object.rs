//! Objects of NSX as JSON: what is read of them, their tags, and whether they are as desired. Pure.

use serde_json::{Map, Value, json};

/// The text of a field; empty where there is none.
pub fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The texts of a list.
pub fn texts<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    items(object, field).filter_map(Value::as_str)
}

/// The items of a list.
pub fn items<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    object.get(field).and_then(Value::as_array).into_iter().flatten()
}

/// The tag of this scope.
pub fn tag<'a>(object: &'a Value, scope: &str) -> Option<&'a str> {
    let mut tags = items(object, "tags");
    let found = tags.find(|tag| text(tag, "scope") == scope)?;
    Some(text(found, "tag"))
}

/// Whether it has all of these tags.
pub fn has_tags(object: &Value, wanted: &[(&str, &str)]) -> bool {
    wanted.iter().all(|(scope, wanted)| tag(object, scope) == Some(wanted))
}

/// Tags as NSX takes them, in the order of their scopes.
pub fn tags<'a>(tags: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    let mut tags: Vec<(&str, &str)> = tags.into_iter().collect();
    tags.sort_unstable();
    tags.dedup_by_key(|(scope, _)| *scope);
    let tags = tags
        .into_iter()
        .map(|(scope, tag)| json!({ "scope": scope, "tag": tag }));
    tags.collect()
}

/// Whether every desired field is there with its value; NSX leaves out empty lists.
pub fn is_right(wanted: &Value, seen: &Value) -> bool {
    let fields = wanted.as_object().into_iter().flatten();
    fields.into_iter().all(|(name, value)| match seen.get(name) {
        None | Some(Value::Null) => value.as_array().is_some_and(Vec::is_empty),
        Some(seen) => seen == value,
    })
}

/// What is observed, with the desired fields: a PUT replaces the whole, and what it leaves out would be lost.
pub fn merged(seen: &Value, wanted: &Value) -> Value {
    let mut all: Map<String, Value> = seen.as_object().cloned().unwrap_or_default();
    let fields = wanted.as_object().into_iter().flatten();
    all.extend(fields.map(|(name, value)| (name.clone(), value.clone())));
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_by_their_scope_and_sorted() {
        let object = json!({ "tags": tags([("b", "2"), ("a", "1"), ("a", "9")]) });
        assert_eq!(
            object["tags"],
            json!([{ "scope": "a", "tag": "1" }, { "scope": "b", "tag": "2" }])
        );
        assert_eq!((tag(&object, "b"), tag(&object, "c")), (Some("2"), None));
        assert!(has_tags(&object, &[("a", "1"), ("b", "2")]) && !has_tags(&object, &[("a", "2")]));
        assert!(!has_tags(&json!({}), &[("a", "1")]) && has_tags(&json!({}), &[]));
    }

    #[test]
    fn only_wanted_fields_count_and_what_nobody_wants_is_kept() {
        let seen = json!({ "ports": ["80"], "_revision": 3, "rules": [1] });
        assert!(is_right(&json!({ "ports": ["80"], "active_monitor_paths": [] }), &seen));
        assert!(!is_right(&json!({ "ports": ["443"] }), &seen));
        assert!(!is_right(&json!({ "pool_path": "/p" }), &seen));
        let merged = merged(&seen, &json!({ "ports": ["443"] }));
        assert_eq!(merged, json!({ "ports": ["443"], "_revision": 3, "rules": [1] }));
    }
}
