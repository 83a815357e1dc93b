//! JSON schema and reference page of the configuration file, both from the table of keys.

use serde_json::{Map, Value, json};

use crate::config::keys::{FILE, Key, Shape};

/// The schema, draft 2020-12.
pub fn schema() -> Value {
    let mut schema = shape(&FILE);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("CloudwitConfiguration cloudwit.dev/v1alpha1");
    schema
}

fn shape(of: &Shape) -> Value {
    match of {
        Shape::Text => json!({ "type": "string" }),
        Shape::Word(words) => json!({ "type": "string", "enum": words }),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Whole(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Shape::Decimal => json!({ "type": "number" }),
        Shape::Duration(..) => json!({ "type": "string", "examples": ["5s", "500ms", "1m 30s"] }),
        Shape::List(items) => json!({ "type": "array", "items": shape(items) }),
        Shape::Texts => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        Shape::Keys(keys) => {
            let properties: Map<String, Value> = keys.iter().map(|key| (key.name.to_owned(), property(key))).collect();
            let required: Vec<&str> = keys.iter().filter(|key| key.required).map(|key| key.name).collect();
            json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
        }
    }
}

fn property(key: &Key) -> Value {
    let mut property = shape(&key.shape);
    let default = if key.default.is_empty() {
        String::new()
    } else {
        format!(" Default: {}.", key.default)
    };
    property["description"] = json!(format!("{}{default}", key.doc));
    property
}

/// The table of all keys for docs/reference/configuration.md.
#[cfg(test)]
pub fn table() -> String {
    let mut lines = "| key | what may stand there | default | meaning |\n| --- | --- | --- | --- |\n".to_owned();
    rows(&FILE, "", &mut lines);
    lines
}

#[cfg(test)]
fn rows(of: &Shape, path: &str, lines: &mut String) {
    match of {
        Shape::List(items) => rows(items, &format!("{path}[]"), lines),
        Shape::Keys(keys) => {
            for key in *keys {
                let path = if path.is_empty() {
                    key.name.to_owned()
                } else {
                    format!("{path}.{}", key.name)
                };
                let range = match key.shape {
                    Shape::Whole(least, u64::MAX) => format!(", at least {least}"),
                    Shape::Whole(least, most) => format!(", {least} to {most}"),
                    _ => String::new(),
                };
                let default = if key.required { "required" } else { key.default };
                let (kind, doc) = (key.shape.kind(), key.doc);
                lines.push_str(&format!("| `{path}` | {kind}{range} | {default} | {doc} |\n"));
                rows(&key.shape, &path, lines);
            }
        }
        _ => {}
    }
}
