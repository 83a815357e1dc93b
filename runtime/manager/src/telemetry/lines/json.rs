//! Lines for programs: one JSON object each; numbers are numbers, and each span is there once.

use serde_json::{Map, Value as Json, json};

use crate::telemetry::lines::Line;
use crate::telemetry::lines::fields::{Fields, Value};

/// What a line has anyway; a field of such a name gets an underscore behind it.
const OWN: [&str; 5] = ["timestamp", "level", "target", "message", "spans"];

pub(super) fn of(line: &Line) -> String {
    let mut object = Map::new();
    let at = line.at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
    object.insert("timestamp".into(), at.into());
    object.insert("level".into(), line.metadata.level().as_str().into());
    object.insert("target".into(), line.metadata.target().into());
    object.insert("message".into(), line.message.as_str().into());
    insert(&mut object, &line.fields, &OWN);
    if !line.spans.is_empty() {
        let spans = line.spans.iter().map(|span| {
            let mut object = Map::new();
            object.insert("name".into(), span.name.into());
            insert(&mut object, &span.fields, &["name"]);
            Json::Object(object)
        });
        object.insert("spans".into(), spans.collect());
    }
    Json::Object(object).to_string()
}

fn insert(object: &mut Map<String, Json>, fields: &Fields, taken: &[&str]) {
    for (name, value) in fields.iter() {
        let name = match taken.contains(&name) {
            true => format!("{name}_"),
            false => name.to_owned(),
        };
        object.insert(name, of_value(value));
    }
}

fn of_value(value: &Value) -> Json {
    match value {
        Value::Text(text) => text.as_str().into(),
        Value::Bool(value) => (*value).into(),
        Value::Signed(number) => (*number).into(),
        Value::Unsigned(number) => (*number).into(),
        // There is no JSON for what is no number.
        Value::Float(number) => json!(number),
    }
}
