//! The operator's configuration as the provider's own type, with all mistakes found at once.
//!
//! Two sources: the text of the cloud config, and single values from the operator's provider list, which win. A dot in a value's
//! key goes deeper: `loadBalancer.subnet`. Types, unknown keys and missing keys are checked while reading (`reader.rs`),
//! the rest by [`Provider::validate`].

mod checks;
pub mod gcfg;
pub(crate) mod mistakes;
pub(crate) mod reader;
mod reader_serde;
#[cfg(feature = "yaml")]
pub mod yaml;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::Provider;
use crate::host;
use crate::types::{Failure, Pair, Problem, Severity};

/// Where a problem of the whole text is reported.
pub(crate) const WHOLE: &str = "cloud-config";

/// For providers with nothing to configure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct NoConfig {}

/// Mistakes found so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Adds a mistake: at which key, and in one sentence what is wrong with which value and how to correct it.
    pub fn add(&mut self, at: impl Into<String>, message: impl Into<String>) {
        self.push(Problem::new(at, message));
    }

    /// Adds a warning: it is shown to the operator, and the configuration is used.
    pub fn warn(&mut self, at: impl Into<String>, message: impl Into<String>) {
        self.push(Problem::warning(at, message));
    }

    fn push(&mut self, problem: Problem) {
        if !self.0.contains(&problem) {
            self.0.push(problem);
        }
    }

    /// Whether the configuration cannot be used.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|problem| problem.severity == Severity::Error)
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
        let errors = self.0.iter().filter(|problem| problem.severity == Severity::Error);
        for (index, problem) in errors.enumerate() {
            text.push_str(if index == 0 { ": " } else { "; " });
            text.push_str(&problem.at);
            text.push_str(": ");
            text.push_str(&problem.message);
        }
        Failure::invalid(text)
    }
}

impl From<Problems> for Vec<Problem> {
    fn from(problems: Problems) -> Self {
        problems.0
    }
}

/// A cloud config that was read, before it becomes the provider's own type.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// Keys and values.
    pub value: Value,
    /// Whether a list is a variable that occurs several times, as in git-config: where one value is expected, the last one counts.
    pub repeats: bool,
}

impl Tree {
    /// The same with changed keys and values.
    pub fn map(self, change: impl FnOnce(Value) -> Value) -> Self {
        Self {
            value: change(self.value),
            ..self
        }
    }
}

impl From<Value> for Tree {
    fn from(value: Value) -> Self {
        Self { value, repeats: false }
    }
}

/// A value that is there and not blank: upstream's providers take an empty value for none.
///
/// ```
/// # use cloudwit_guest_sdk::config::given;
/// assert_eq!(given(&Some(" north ".into())), Some("north"));
/// assert_eq!(given(&Some(" ".into())), None);
/// ```
pub fn given(value: &Option<String>) -> Option<&str> {
    value.as_deref().map(str::trim_ascii).filter(|value| !value.is_empty())
}

/// What is between commas; empty entries do not count.
///
/// ```
/// # use cloudwit_guest_sdk::config::given_list;
/// let zones = Some("a, b,,".into());
/// assert_eq!(given_list(&zones).collect::<Vec<&str>>(), ["a", "b"]);
/// ```
pub fn given_list(value: &Option<String>) -> impl Iterator<Item = &str> {
    let entries = given(value).unwrap_or_default().split(',').map(str::trim_ascii);
    entries.filter(|entry| !entry.is_empty())
}

/// Reads JSON.
///
/// # Errors
/// What is wrong, with line and column.
pub fn parse_json(text: &str) -> Result<Tree, Problem> {
    serde_json::from_str::<Value>(text)
        .map(Tree::from)
        .map_err(|mistake| Problem::new(WHOLE, format!("this is no valid JSON: {mistake}")))
}

/// Reads whatever the text is: JSON when it starts with a brace, git-config syntax ([`gcfg`]) when with a section, else, with
/// the feature `yaml`, YAML. For providers whose operators come from upstream with either.
///
/// # Errors
/// Line and what was expected.
pub fn parse_any(text: &str) -> Result<Tree, Problem> {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = text.lines().map(str::trim_ascii_start);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    match first.and_then(|line| line.bytes().next()) {
        Some(b'{') => parse_json(text),
        Some(b'[') => crate::gcfg::parse(text),
        #[cfg(feature = "yaml")]
        _ => crate::yaml::parse(text).map(Tree::from),
        #[cfg(not(feature = "yaml"))]
        _ => crate::gcfg::parse(text),
    }
}

/// Reads and checks what the operator configured for this provider.
pub(crate) fn read<P: Provider>() -> Result<P::Config, Problems> {
    let mut problems = Problems::default();
    match read_noting::<P>(&mut problems) {
        Some(config) if !problems.has_errors() => Ok(config),
        _ => Err(problems),
    }
}

/// All that is wrong with it, and what is questionable.
pub(crate) fn check<P: Provider>() -> Vec<Problem> {
    let mut problems = Problems::default();
    let _ = read_noting::<P>(&mut problems);
    problems.into()
}

fn read_noting<P: Provider>(problems: &mut Problems) -> Option<P::Config> {
    let text = host::config_text();
    let parsed = if text.trim_ascii().is_empty() {
        None
    } else {
        Some(P::parse_config(&text))
    };
    let tree = merged(parsed, host::config_values(), problems);
    if !problems.is_empty() {
        return None;
    }
    let config = reader::read(&tree, problems)?;
    P::validate(&config, problems);
    Some(config)
}

/// Text and values as one tree.
fn merged(parsed: Option<Result<Tree, Problem>>, values: Vec<Pair>, problems: &mut Problems) -> Tree {
    let mut tree = Tree::from(Value::Object(Map::new()));
    match parsed {
        Some(Ok(read)) if read.value.is_object() => tree = read,
        Some(Ok(read)) if read.value.is_null() => {}
        None => {}
        Some(Ok(_)) => problems.add(WHOLE, "the outermost value must be an object with keys"),
        Some(Err(problem)) => problems.add(problem.at, problem.message),
    }
    for Pair { key, value } in values {
        if !put(&mut tree.value, &key, value) {
            problems.add(
                key,
                "this value cannot be set: a part of its key is no object in the cloud config",
            );
        }
    }
    tree
}

/// Puts a value where its dotted key leads. False when something that is no object is in the way.
fn put(tree: &mut Value, key: &str, text: String) -> bool {
    let Value::Object(entries) = tree else { return false };
    match key.split_once('.') {
        Some((first, rest)) => put(
            entries.entry(first).or_insert_with(|| Value::Object(Map::new())),
            rest,
            text,
        ),
        None => {
            entries.insert(key.into(), Value::String(text));
            true
        }
    }
}

/// The tree of single values alone, and how many had no place: for properties.
#[cfg(test)]
pub(crate) fn merged_values(values: Vec<Pair>) -> (Value, usize) {
    let mut problems = Problems::default();
    let tree = merged(None, values, &mut problems);
    (tree.value, problems.iter().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge(text: &str, values: &[(&str, &str)]) -> Result<Value, Problems> {
        let mut problems = Problems::default();
        let values = values.iter().map(|(key, value)| Pair::new(*key, *value)).collect();
        let parsed = if text.is_empty() { None } else { Some(parse_json(text)) };
        let tree = merged(parsed, values, &mut problems);
        if problems.is_empty() {
            Ok(tree.value)
        } else {
            Err(problems)
        }
    }

    #[test]
    fn single_values_win_over_the_text_and_may_go_deeper() {
        let expected = r#"{"endpoint": "b", "lb": {"subnet": "s", "class": "c"}, "new": {"deep": "d"}}"#;
        assert_eq!(
            merge(
                r#"{"endpoint": "a", "lb": {"subnet": "s"}}"#,
                &[("endpoint", "b"), ("lb.class", "c"), ("new.deep", "d")]
            ),
            Ok(serde_json::from_str(expected).unwrap())
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
    fn format_of_a_text_is_seen_from_its_beginning() {
        let expected = Tree::from(serde_json::json!({"global": {"url": "a"}}));
        for text in [
            r#" {"global": {"url": "a"}}"#,
            "# from upstream\nglobal:\n  url: a\n",
            "---\nglobal: {url: a}\n",
        ] {
            assert_eq!(parse_any(text), Ok(expected.clone()), "{text:?}");
        }
        let gcfg = parse_any("\u{feff}; from upstream\n# too\n\n  [Global]\nurl = a\n").unwrap();
        assert_eq!(gcfg.value, serde_json::json!({"global": {"url": ["a"]}}));
        assert!(gcfg.repeats);
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
