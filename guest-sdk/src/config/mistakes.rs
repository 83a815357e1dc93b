//! Messages about mistakes in a cloud config. Independent of the type that is read.

use std::cell::RefCell;
use std::fmt::{self, Display};

use serde::de;
use serde_json::Value;

use crate::Problems;

/// The way to a value.
pub(crate) enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl Path<'_> {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Key(Path::Root, key) => (*key).into(),
            Self::Key(parent, key) => format!("{}.{key}", parent.text()),
            Self::Index(parent, index) => format!("{}[{index}]", parent.text()),
        }
    }
}

/// What was found so far, over all rounds.
pub(crate) struct Notes {
    /// Whether the last item of a list counts where one value is expected.
    pub(crate) repeats: bool,
    pub(crate) problems: RefCell<Problems>,
    /// Paths that get a stand-in.
    pub(crate) stand_ins: RefCell<Vec<String>>,
}

impl Notes {
    /// Notes what stopped the reading and puts a stand-in there. False when that cannot help.
    pub(crate) fn stand_in_for(&self, stop: Stop) -> bool {
        let Error { at, message, .. } = *stop.0;
        let at = at.unwrap_or_default();
        let mut stand_ins = self.stand_ins.borrow_mut();
        // Refused in spite of a stand-in there or above: the problem that led to the stand-in is noted already.
        let covers = |path: &String| {
            at.strip_prefix(path.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if stand_ins.iter().any(covers) {
            return false;
        }
        self.problems.borrow_mut().add(at.clone(), message);
        stand_ins.push(at);
        true
    }
}

/// What ends one round.
#[derive(Debug)]
pub(crate) struct Stop(Box<Error>);

#[derive(Debug)]
struct Error {
    /// Where; filled in as soon as the path is known.
    at: Option<String>,
    /// The key that is missing there.
    missing: Option<&'static str>,
    message: String,
}

impl Stop {
    pub(crate) fn at(mut self, path: &Path<'_>) -> Self {
        if self.0.at.is_none() {
            self.0.at = Some(match self.0.missing {
                Some(key) => Path::Key(path, key).text(),
                None => path.text(),
            });
        }
        self
    }
}

impl Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Stop {}

impl de::Error for Stop {
    fn custom<T: Display>(message: T) -> Self {
        Self(Box::new(Error {
            at: None,
            missing: None,
            message: message.to_string(),
        }))
    }

    fn missing_field(field: &'static str) -> Self {
        Self(Box::new(Error {
            at: None,
            missing: Some(field),
            message: "this key is missing".into(),
        }))
    }

    // The others would each bring number formatting for an unused text: stand-ins keep them from happening.
    fn invalid_type(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::custom(format_args!("this must be {expected}"))
    }

    fn invalid_value(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::custom(format_args!("this must be {expected}"))
    }

    fn invalid_length(_: usize, expected: &dyn de::Expected) -> Self {
        Self::custom(format_args!("this must be {expected}"))
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(format!("this must be one of {}", expected.join(", ")))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(unknown_key(field, expected))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::custom(format!("{field} is there twice"))
    }
}

/// A value as text for messages.
pub(crate) fn name(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => {
            let mut short: String = text.chars().take(40).collect();
            if short.len() < text.len() {
                short.push_str("...");
            }
            format!("the text \"{short}\"")
        }
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
    }
}

/// The message about an unknown key.
pub(crate) fn unknown_key(key: &str, known: &[&str]) -> String {
    match nearest(key, known.iter().copied()) {
        Some(nearest) => format!("there is no such key; did you mean \"{nearest}\"?"),
        None if known.is_empty() => "there is no such key; none is known here".into(),
        None => format!("there is no such key; there are {}", known.join(", ")),
    }
}

/// The nearest known word, if it is near enough to be meant.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let nearest = known.map(|known| (distance(word, known), known)).min();
    nearest
        .filter(|(distance, _)| *distance <= 1 + word.len() / 4)
        .map(|(_, nearest)| nearest)
}

/// Letters to change, add or drop to come from one word to the other (Levenshtein), upper case counting as lower.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, b) in row.iter_mut().skip(1).zip(other.bytes()) {
            let replaced = diagonal + usize::from(!a.eq_ignore_ascii_case(&b));
            diagonal = *cell;
            left = replaced.min(*cell + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}
