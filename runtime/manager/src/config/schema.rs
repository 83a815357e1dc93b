//! JSON schema of the configuration file from its types, and the reference page's table of keys.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use crate::config::file::entries::File;

/// The configuration file's.
pub fn configuration() -> Value {
    of::<File>()
}

/// A type's: draft 2020-12 in one piece, with the few keywords that `check` and the table support.
pub(crate) fn of<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let mut generator = settings.with_transform(RecursiveTransform(plain)).into_generator();
    generator.root_schema_for::<T>().into()
}

/// What may be left out is left out and not written as `null`; a word is one of a list; sentences are one line; what is required, or has keys of
/// its own, has no default.
fn plain(schema: &mut Schema) {
    let words = schema.get("oneOf").and_then(Value::as_array).map(|words| {
        let words = words.iter().map(|word| word["const"].clone());
        words.collect::<Vec<Value>>()
    });
    let Some(keys) = schema.as_object_mut() else { return };
    if let Some(words) = words {
        keys.remove("oneOf");
        keys.insert("type".into(), json!("string"));
        keys.insert("enum".into(), words.into());
    }
    keys.remove("format");
    if let Some([kind, ..]) = keys.get("type").and_then(Value::as_array).map(Vec::as_slice) {
        let kind = kind.clone();
        keys.insert("type".into(), kind);
    }
    if let Some(text) = keys.get("description").and_then(Value::as_str) {
        let line = text.lines().collect::<Vec<_>>().join(" ");
        keys.insert("description".into(), line.into());
    }
    let required = keys.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| {
        required
            .as_array()
            .is_some_and(|names| names.iter().any(|one| one == name))
    };
    if let Some(Value::Object(properties)) = keys.get_mut("properties") {
        for (name, property) in properties {
            let no_default = is_required(name) || property["default"].is_null() || property.get("properties").is_some();
            if let Some(property) = property.as_object_mut().filter(|_| no_default) {
                property.remove("default");
            }
        }
    }
}

/// What may stand where this schema is, in words.
pub(crate) fn kind(schema: &Value) -> String {
    match schema["type"].as_str().unwrap_or_default() {
        "string" if schema["x-milliseconds"].is_array() => "a duration such as 5s or 500ms".into(),
        "string" => match words(schema).as_slice() {
            [] => "a text".into(),
            words => words.join(" or "),
        },
        "boolean" => "true or false".into(),
        "integer" => "a whole number".into(),
        "number" => "a number".into(),
        "array" => "a list".into(),
        _ if schema.get("properties").is_none() => "a map of texts".into(),
        _ => "a map".into(),
    }
}

/// The words of which one has to stand there; none where any text may.
pub(crate) fn words(schema: &Value) -> Vec<&str> {
    let words = schema["enum"].as_array().into_iter().flatten();
    words.filter_map(Value::as_str).collect()
}

/// Whether a key of this map has to be there.
pub(crate) fn requires(schema: &Value, name: &str) -> bool {
    schema["required"]
        .as_array()
        .is_some_and(|names| names.iter().any(|one| one == name))
}

/// The table of all keys for docs/reference/configuration.md.
#[cfg(test)]
pub fn table() -> String {
    let mut lines = "| key | what may stand there | default | meaning |\n| --- | --- | --- | --- |\n".to_owned();
    rows(&configuration(), "", &mut lines);
    lines
}

#[cfg(test)]
fn rows(of: &Value, path: &str, lines: &mut String) {
    if of["type"] == "array" {
        rows(&of["items"], &format!("{path}[]"), lines);
    }
    for (name, property) in of["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        };
        let range = match (property["minimum"].as_u64(), property["maximum"].as_u64()) {
            (Some(least), Some(most)) => format!(", {least} to {most}"),
            (Some(least), None) => format!(", at least {least}"),
            _ => String::new(),
        };
        let default = match &property["default"] {
            _ if requires(of, name) => "required".to_owned(),
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            Value::Array(items) => format!(
                "[{}]",
                items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
            ),
            other => other.to_string(),
        };
        let (kind, doc) = (kind(property), property["description"].as_str().unwrap_or_default());
        lines.push_str(&format!("| `{path}` | {kind}{range} | {default} | {doc} |\n"));
        rows(property, &path, lines);
    }
}
