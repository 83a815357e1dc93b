//! Cloud configs in YAML, with the feature `yaml`, which adds some 110 KB to a component.
//!
//! Reads one document of YAML 1.2 (JSON is one too) into the tree that a `Config` is read from: plain `null`, `true`, `false` and
//! numbers are what they look like, everything else is text. Anchors and aliases work; tags, several documents, merge keys and keys
//! that are no texts are refused in words, for no upstream cloud config has them.

use std::borrow::Cow;

use granit_parser::{Event, Marker, Parser, ScalarStyle};

use crate::config::WHOLE;
use crate::json::Json;
use crate::types::Problem;

/// What aliases may blow a config up to, in values; a configuration has dozens.
const MOST_VALUES: usize = 10_000;

/// Lists and objects deeper than this are refused, as they would exhaust the stack of their readers.
const MAX_DEPTH: usize = 100;

/// Reads the text; [`Provider::parse_config`](crate::Provider::parse_config) may pass its own on to this.
///
/// # Errors
/// Line, column and what is wrong there.
pub fn parse(text: &str) -> Result<Json<'static>, Problem> {
    let mut builder = Builder::default();
    for next in Parser::new_from_str(text) {
        let read = match next {
            Ok((event, span)) => builder.take(event).map_err(|wrong| (span.start, Cow::Borrowed(wrong))),
            Err(error) => Err((*error.marker(), Cow::Owned(error.info()))),
        };
        read.map_err(|(marker, wrong)| problem(&marker, &wrong))?;
    }
    Ok(builder.document.unwrap_or(Json::Null))
}

fn problem(marker: &Marker, wrong: &str) -> Problem {
    let (line, column) = (marker.line().to_string(), (marker.col() + 1).to_string());
    let message = format!("this is no usable YAML: line {line}, column {column}: {wrong}");
    Problem::new(WHOLE, message)
}

/// A list or an object that is not finished yet, with the number of its anchor or 0.
enum Open {
    List(Vec<Json<'static>>, usize),
    Object(
        Vec<(Cow<'static, str>, Json<'static>)>,
        Option<Cow<'static, str>>,
        usize,
    ),
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: Vec<(usize, Json<'static>)>,
    document: Option<Json<'static>>,
    values: usize,
}

/// The error says what is wrong with the event.
type Taken = Result<(), &'static str>;

impl Builder {
    fn take(&mut self, event: Event<'_>) -> Taken {
        match event {
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, _, Some(_))
            | Event::MappingStart(_, _, Some(_)) => Err("tags like !!str have no meaning here; leave them out"),
            Event::DocumentStart(..) if self.document.is_some() => {
                Err("one document is enough; take out what follows ---")
            }
            Event::Scalar(text, style, anchor, None) => self.scalar(&text, style, anchor),
            Event::SequenceStart(_, anchor, None) => self.start(Open::List(Vec::new(), anchor)),
            Event::MappingStart(_, anchor, None) => self.start(Open::Object(Vec::new(), None, anchor)),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(items, anchor)) => self.value(Json::List(items), anchor),
                Some(Open::Object(entries, _, anchor)) => self.value(Json::Object(entries), anchor),
                None => Ok(()),
            },
            Event::Alias(anchor) => {
                let known = self.anchors.iter().rev().find(|(known, _)| *known == anchor);
                let (_, value) = known.ok_or("this alias stands inside of what it refers to")?;
                let value = value.clone();
                self.values += size(&value);
                self.value(value, 0)
            }
            _ => Ok(()),
        }
    }

    fn start(&mut self, open: Open) -> Taken {
        if self.open.len() == MAX_DEPTH {
            return Err("lists and objects are nested too deep");
        }
        if matches!(self.open.last(), Some(Open::Object(_, None, _))) {
            return Err("a key has to be a text");
        }
        self.open.push(open);
        Ok(())
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, anchor: usize) -> Taken {
        if let Some(Open::Object(entries, key @ None, _)) = self.open.last_mut() {
            if style == ScalarStyle::Plain && text == "<<" {
                return Err("merge keys are not known; write the keys out");
            }
            if entries.iter().any(|(known, _)| known == text) {
                return Err("this key is there twice");
            }
            *key = Some(Cow::Owned(text.into()));
            return Ok(());
        }
        let value = if style == ScalarStyle::Plain {
            plain(text)
        } else {
            Json::Text(Cow::Owned(text.into()))
        };
        self.value(value, anchor)
    }

    fn value(&mut self, value: Json<'static>, anchor: usize) -> Taken {
        self.values += 1;
        if self.values > MOST_VALUES {
            return Err("there are too many values");
        }
        if anchor != 0 {
            self.anchors.push((anchor, value.clone()));
        }
        match self.open.last_mut() {
            Some(Open::List(items, _)) => items.push(value),
            Some(Open::Object(entries, key, _)) => entries.push((key.take().ok_or("a key has to be a text")?, value)),
            None => self.document = Some(value),
        }
        Ok(())
    }
}

/// What a text without quotes is (YAML 1.2 core schema, numbers as JSON writes them).
fn plain(text: &str) -> Json<'static> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Json::Null,
        "true" | "True" | "TRUE" => Json::Bool(true),
        "false" | "False" | "FALSE" => Json::Bool(false),
        _ => match Json::parse(text) {
            Ok(Json::Number(_)) => Json::Number(Cow::Owned(text.into())),
            _ => Json::Text(Cow::Owned(text.into())),
        },
    }
}

/// How many values these are.
fn size(value: &Json<'_>) -> usize {
    match value {
        Json::List(items) | Json::Repeated(items) => 1 + items.iter().map(size).sum::<usize>(),
        Json::Object(entries) => 1 + entries.iter().map(|(_, value)| size(value)).sum::<usize>(),
        _ => 1,
    }
}

#[cfg(test)]
#[path = "yaml_tests.rs"]
mod tests;
