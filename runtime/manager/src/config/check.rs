//! Check of a document against a schema: all mistakes at once, each with its line.

use jiff::SignedDuration;
use serde_json::Value as Schema;

use crate::config::schema;
use crate::config::tree::{Tree, Value};

/// Finds everything that cannot stand where it stands. `name` is what each mistake calls the document.
pub fn mistakes(name: &str, tree: &Tree, schema: &Schema) -> Vec<String> {
    let mut check = Check {
        name,
        mistakes: Vec::new(),
    };
    check.value(tree, schema, "");
    check.mistakes
}

struct Check<'a> {
    name: &'a str,
    mistakes: Vec<String>,
}

impl Check<'_> {
    fn wrong(&mut self, line: u64, path: &str, what: &str) {
        let path = if path.is_empty() { "the file" } else { path };
        self.mistakes.push(format!("{}:{line}: {path}: {what}", self.name));
    }

    fn value(&mut self, tree: &Tree, schema: &Schema, path: &str) {
        let line = tree.line;
        match (schema["type"].as_str().unwrap_or_default(), &tree.value) {
            ("object", Value::Map(entries)) => self.keys(line, entries, schema, path),
            ("array", Value::List(items)) => {
                for (at, item) in items.iter().enumerate() {
                    self.value(item, &schema["items"], &format!("{path}[{at}]"));
                }
            }
            ("string", Value::Text(text)) => self.text(line, path, text, schema),
            ("integer", Value::Whole(number)) => self.whole(line, path, *number, schema),
            ("boolean", Value::Flag) | ("number", Value::Whole(_) | Value::Decimal) => {}
            (kind, value) => {
                let written = matches!(value, Value::Whole(_) | Value::Decimal | Value::Flag);
                let is_text = kind == "string" && schema["x-milliseconds"].is_null();
                let quotes = if written && is_text { "; put it into quotes" } else { "" };
                let (value, expected) = (value.kind(), schema::kind(schema));
                self.wrong(
                    line,
                    path,
                    &format!("{value} is not allowed here; expected {expected}{quotes}"),
                );
            }
        }
    }

    fn whole(&mut self, line: u64, path: &str, number: i128, schema: &Schema) {
        let least = schema["minimum"].as_u64().unwrap_or(0);
        let most = schema["maximum"].as_u64().unwrap_or(u64::MAX);
        if !(i128::from(least)..=i128::from(most)).contains(&number) {
            self.wrong(line, path, &format!("{number} is out of range; give {least} to {most}"));
        }
    }

    fn text(&mut self, line: u64, path: &str, text: &str, schema: &Schema) {
        if let [least, most] = schema["x-milliseconds"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
        {
            return self.duration(line, path, text, (least.as_i64(), most.as_i64()));
        }
        let words = schema::words(schema);
        if !words.is_empty() && !words.contains(&text) {
            let (list, nearest) = (words.join(", "), nearest(text, &words));
            self.wrong(line, path, &format!("{text:?} is not known; write {list}{nearest}"));
        }
    }

    fn duration(&mut self, line: u64, path: &str, text: &str, range: (Option<i64>, Option<i64>)) {
        let Ok(duration) = text.parse::<SignedDuration>() else {
            let what = format!("{text:?} is not a valid duration; write for example 5s or 500ms");
            return self.wrong(line, path, &what);
        };
        let (least, most) = (range.0.unwrap_or(0), range.1.unwrap_or(i64::MAX));
        if !(i128::from(least)..=i128::from(most)).contains(&duration.as_millis()) {
            self.wrong(
                line,
                path,
                &format!("{text} is out of range; give {least} to {most} ms"),
            );
        }
    }

    fn keys(&mut self, line: u64, entries: &[(String, u64, Tree)], schema: &Schema, path: &str) {
        let Some(keys) = schema["properties"].as_object() else {
            for (name, _, value) in entries {
                self.value(value, &schema["additionalProperties"], &join(path, name));
            }
            return;
        };
        for (name, line, value) in entries {
            match keys.get(name) {
                Some(key) => self.value(value, key, &join(path, name)),
                None => {
                    let names: Vec<&str> = keys.keys().map(String::as_str).collect();
                    let what = format!("unknown key{}; known: {}", nearest(name, &names), names.join(", "));
                    self.wrong(*line, &join(path, name), &what);
                }
            }
        }
        for (name, key) in keys.iter().filter(|(name, _)| schema::requires(schema, name)) {
            if !entries.iter().any(|(written, ..)| written == name) {
                let expected = schema::kind(key);
                self.wrong(line, &join(path, name), &format!("is missing; expected {expected}"));
            }
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// The known word that was probably meant.
fn nearest(word: &str, known: &[&str]) -> String {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_'], "");
    let likeness = |one: &&str| strsim::jaro_winkler(&plain(word), &plain(one));
    let best = known
        .iter()
        .copied()
        .max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    best.filter(|best| likeness(best) > 0.75)
        .map(|best| format!(", did you mean {best}?"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
