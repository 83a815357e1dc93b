//! The operator's configuration as the provider's own type, with all mistakes found at once.
//!
//! Two sources: the text of the cloud config, and single values from the operator's provider list, which win. A dot in a value's
//! key goes deeper: `loadBalancer.subnet`. Types, unknown keys and missing keys are checked while reading (`json_reader.rs`),
//! the rest by [`Provider::validate`].

use std::borrow::Cow;

use serde::Deserialize;

use crate::Provider;
use crate::host;
use crate::json::Json;
use crate::json_mistakes::Unknown;
use crate::json_reader;
use crate::types::{Failure, Pair, Problem};

/// Where a problem of the whole text is reported.
pub(crate) const WHOLE: &str = "cloud-config";

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
pub fn parse_json(text: &str) -> Result<Json<'_>, Problem> {
    Json::parse(text).map_err(|mistake| Problem::new(WHOLE, format!("this is no valid JSON: {mistake}")))
}

/// Reads whatever the text is: JSON when it starts with a brace, git-config syntax ([`gcfg`](crate::gcfg)) when with a section, else, with
/// the feature `yaml`, YAML. For providers whose operators come from upstream with either.
///
/// # Errors
/// Line and what was expected.
pub fn parse_any(text: &str) -> Result<Json<'_>, Problem> {
    let mut lines = text.trim_start_matches('\u{feff}').lines().map(str::trim_ascii_start);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    match first.and_then(|line| line.bytes().next()) {
        Some(b'{') => parse_json(text),
        Some(b'[') => crate::gcfg::parse(text),
        #[cfg(feature = "yaml")]
        _ => crate::yaml::parse(text),
        #[cfg(not(feature = "yaml"))]
        _ => crate::gcfg::parse(text),
    }
}

/// Reads and checks what the operator configured for this provider.
pub(crate) fn read<P: Provider>() -> Result<P::Config, Problems> {
    let text = host::config_text();
    let mut problems = Problems::default();
    let parsed = if text.trim_ascii().is_empty() {
        None
    } else {
        Some(P::parse_config(&text))
    };
    let tree = merged(parsed, host::config_values(), &mut problems);
    if problems.is_empty()
        && let Some(config) = json_reader::read(&tree, Unknown::Wrong, &mut problems)
    {
        P::validate(&config, &mut problems);
        if problems.is_empty() {
            return Ok(config);
        }
    }
    Err(problems)
}

/// Text and values as one tree.
fn merged<'a>(parsed: Option<Result<Json<'a>, Problem>>, values: Vec<Pair>, problems: &mut Problems) -> Json<'a> {
    let mut tree = Json::Object(Vec::new());
    match parsed {
        Some(Ok(value @ Json::Object(_))) => tree = value,
        Some(Ok(Json::Null)) | None => {}
        Some(Ok(_)) => problems.add(WHOLE, "the outermost value must be an object with keys"),
        Some(Err(problem)) => problems.add(problem.at, problem.message),
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
fn put(tree: &mut Json<'_>, key: &str, value: String) -> bool {
    let Json::Object(entries) = tree else { return false };
    let (first, rest) = key
        .split_once('.')
        .map_or((key, None), |(first, rest)| (first, Some(rest)));
    let place = entries.iter().rposition(|(name, _)| name == first).unwrap_or_else(|| {
        entries.push((Cow::Owned(first.into()), Json::Object(Vec::new())));
        entries.len() - 1
    });
    let inner = &mut entries[place].1;
    match rest {
        Some(rest) => put(inner, rest, value),
        None => {
            *inner = Json::Text(Cow::Owned(value));
            true
        }
    }
}

/// The tree of single values alone, and how many had no place: for properties.
#[cfg(test)]
pub(crate) fn merged_values(values: Vec<Pair>) -> (Json<'static>, usize) {
    let mut problems = Problems::default();
    let tree = merged(None, values, &mut problems);
    (tree, problems.iter().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge<'a>(text: &'a str, values: &[(&str, &str)]) -> Result<Json<'a>, Problems> {
        let mut problems = Problems::default();
        let values = values.iter().map(|(key, value)| Pair::new(*key, *value)).collect();
        let parsed = if text.is_empty() { None } else { Some(parse_json(text)) };
        let tree = merged(parsed, values, &mut problems);
        if problems.is_empty() { Ok(tree) } else { Err(problems) }
    }

    #[test]
    fn single_values_win_over_the_text_and_may_go_deeper() {
        let expected = r#"{"endpoint": "b", "lb": {"subnet": "s", "class": "c"}, "new": {"deep": "d"}}"#;
        assert_eq!(
            merge(
                r#"{"endpoint": "a", "lb": {"subnet": "s"}}"#,
                &[("endpoint", "b"), ("lb.class", "c"), ("new.deep", "d")]
            ),
            Ok(Json::parse(expected).unwrap())
        );
        assert_eq!(merge("", &[]), Ok(Json::Object(vec![])));
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
    fn the_format_of_a_text_is_seen_from_its_beginning() {
        let expected = Json::parse(r#"{"global": {"url": "a"}}"#).unwrap();
        for text in [
            r#" {"global": {"url": "a"}}"#,
            "# from upstream\nglobal:\n  url: a\n",
            "---\nglobal: {url: a}\n",
        ] {
            assert_eq!(parse_any(text), Ok(expected.clone()), "{text:?}");
        }
        let gcfg = parse_any("\u{feff}; from upstream\n# too\n\n  [Global]\nurl = a\n").unwrap();
        let url = gcfg.get("global").and_then(|global| global.get("url"));
        assert_eq!(url.and_then(Json::as_text), Some("a"));
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
