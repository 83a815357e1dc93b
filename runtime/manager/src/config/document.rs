//! Parser of configuration documents: mistakes by schema, each with its line, then the value.

use std::fmt;

use cloudwit_host::Grants;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::config::check;
use crate::config::schema;
use crate::config::tree::{Tree, Value};
use crate::config::yaml;

/// A parsed document, with positions.
#[derive(Debug)]
pub struct Document {
    name: String,
    tree: Tree,
}

impl Document {
    /// Reads a text, or finds all keys and values that cannot stand in a `T`. `name` is what messages call it. A text without any value is a
    /// map without keys.
    pub fn read<T: JsonSchema + DeserializeOwned>(name: String, text: &str) -> Result<(T, Self), Vec<String>> {
        let no_value = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
        let text = if text.lines().all(no_value) { "{}" } else { text };
        let tree = Tree::parse(text).map_err(|error| vec![format!("{name}: {error}")])?;
        let mistakes = check::mistakes(&name, &tree, &schema::of::<T>());
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let value = yaml::read(text).map_err(|error| vec![format!("{name}: {error}")])?;
        Ok((value, Self { name, tree }))
    }

    /// A mistake at this path, such as `providers[1].grants.http[0].host`, with the line of its nearest part that is written.
    pub fn mistake(&self, path: &str, what: impl fmt::Display) -> String {
        format!("{}:{}: {path}: {what}", self.name, self.line_of(path))
    }

    /// The mistakes of the grants at this path.
    pub fn grants(&self, path: &str, grants: &Grants) -> Vec<String> {
        let problems = grants.validate().err().unwrap_or_default().into_iter();
        problems
            .map(|problem| self.mistake(&format!("{path}.{}", problem.path), problem.what()))
            .collect()
    }

    fn line_of(&self, path: &str) -> u64 {
        let (mut at, mut line) = (&self.tree, self.tree.line);
        for part in path.split('.') {
            let (name, indexes) = part.split_once('[').unwrap_or((part, ""));
            let Value::Map(entries) = &at.value else { break };
            let Some((_, key_line, value)) = entries.iter().find(|(key, ..)| key == name) else {
                break;
            };
            (at, line) = (value, *key_line);
            let index = indexes.strip_suffix(']').and_then(|index| index.parse::<usize>().ok());
            if let (Some(index), Value::List(items)) = (index, &at.value)
                && let Some(item) = items.get(index)
            {
                (at, line) = (item, item.line);
            }
        }
        line
    }
}
