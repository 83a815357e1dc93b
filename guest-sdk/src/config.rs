//! The operator's configuration as the provider's own type, with all mistakes found at once.
//!
//! Two sources: the text of the cloud config, and single values from the operator's provider list, which win. A dot in a value's
//! key goes deeper: `loadBalancer.subnet`. Types, unknown keys and missing keys are checked while reading (`config_reader.rs`),
//! the rest by [`Provider::validate`].

use serde::Deserialize;
use serde_json::Value;

use crate::Provider;
use crate::config_reader;
use crate::host;
use crate::types::{Failure, Pair, Problem};

/// Where a problem of the whole text is reported.
const WHOLE: &str = "cloud-config";

/// For providers with nothing to configure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct NoConfig {}

/// Mistakes found so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Adds a mistake: at which key, and in one sentence what is wrong with which value and how to put it right.
    pub fn add(&mut self, at: impl Into<String>, message: impl Into<String>) {
        let problem = Problem::new(at, message);
        if !self.0.contains(&problem) {
            self.0.push(problem);
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mistakes in the order in which they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    /// All of them in one failure.
    pub(crate) fn into_failure(self) -> Failure {
        let mut text = String::from("the configuration is wrong");
        for (index, problem) in self.0.iter().enumerate() {
            text.push_str(if index == 0 { ": " } else { "; " });
            text.push_str(&problem.at);
            text.push_str(": ");
            text.push_str(&problem.message);
        }
        Failure::Invalid(text)
    }
}

impl From<Problems> for Vec<Problem> {
    fn from(problems: Problems) -> Self {
        problems.0
    }
}

/// Reads JSON, with the place of a mistake.
///
/// # Errors
/// Line, column and what was expected.
pub fn parse_json(text: &str) -> Result<Value, Problem> {
    serde_json::from_str(text).map_err(|error| Problem::new(WHOLE, format!("this is no valid JSON: {error}")))
}

/// Reads and checks what the operator configured for this provider.
pub(crate) fn read<P: Provider>() -> Result<P::Config, Problems> {
    let mut problems = Problems::default();
    let value = merged(
        &host::config_text(),
        host::config_values(),
        P::parse_config,
        &mut problems,
    );
    if !problems.is_empty() {
        return Err(problems);
    }
    let config = config_reader::read(&value, &mut problems);
    match config {
        Some(config) => {
            P::validate(&config, &mut problems);
            if problems.is_empty() { Ok(config) } else { Err(problems) }
        }
        None => Err(problems),
    }
}

/// Text and values as one tree.
fn merged(
    text: &str,
    values: Vec<Pair>,
    parse: impl FnOnce(&str) -> Result<Value, Problem>,
    problems: &mut Problems,
) -> Value {
    let mut tree = Value::Object(serde_json::Map::new());
    if !text.trim().is_empty() {
        match parse(text) {
            Ok(value @ Value::Object(_)) => tree = value,
            Ok(_) => problems.add(WHOLE, "the outermost value must be an object with keys"),
            Err(problem) => problems.add(problem.at, problem.message),
        }
    }
    for Pair { key, value } in values {
        if !put(&mut tree, &key, value) {
            problems.add(
                key,
                "this value cannot be set: a part of its key is no object in the cloud config",
            );
        }
    }
    tree
}

/// Puts a value where its dotted key leads. False when something that is no object is in the way.
fn put(tree: &mut Value, key: &str, value: String) -> bool {
    let Value::Object(map) = tree else { return false };
    match key.split_once('.') {
        None => {
            map.insert(key.into(), Value::String(value));
            true
        }
        Some((first, rest)) => {
            let inner = map
                .entry(first)
                .or_insert_with(|| Value::Object(serde_json::Map::new()));
            put(inner, rest, value)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge(text: &str, values: &[(&str, &str)]) -> Result<Value, Problems> {
        let mut problems = Problems::default();
        let values = values.iter().map(|(key, value)| Pair::new(*key, *value)).collect();
        let tree = merged(text, values, parse_json, &mut problems);
        if problems.is_empty() { Ok(tree) } else { Err(problems) }
    }

    #[test]
    fn single_values_win_over_the_text_and_may_go_deeper() {
        assert_eq!(
            merge(
                r#"{"endpoint": "a", "lb": {"subnet": "s"}}"#,
                &[("endpoint", "b"), ("lb.class", "c"), ("new.deep", "d")]
            ),
            Ok(serde_json::json!({"endpoint": "b", "lb": {"subnet": "s", "class": "c"}, "new": {"deep": "d"}}))
        );
        assert_eq!(merge("", &[]), Ok(serde_json::json!({})));
    }

    #[test]
    fn malformed_text_and_impossible_keys_are_reported_together() {
        let problems = merge("{\n  \"endpoint\" 1}", &[("a", "1"), ("a.b", "2")]).unwrap_err();
        let places: Vec<&str> = problems.iter().map(|problem| problem.at.as_str()).collect();
        assert_eq!(places, ["cloud-config", "a.b"]);
        assert!(
            problems.iter().next().unwrap().message.contains("line 2"),
            "{problems:?}"
        );
        assert!(merge("[]", &[]).is_err());
    }

    #[test]
    fn the_failure_lists_every_problem() {
        let mut problems = Problems::default();
        problems.add("a", "is missing");
        problems.add("a", "is missing");
        problems.add("b", "must be a number");
        assert_eq!(
            problems.into_failure().message(),
            "the configuration is wrong: a: is missing; b: must be a number"
        );
    }
}
