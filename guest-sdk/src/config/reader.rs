//! Reads a type from the tree of a cloud config and finds all mistakes instead of the first.
//!
//! A serde deserializer stops at the first error, so this one never lets an error happen where it can be avoided: a value of
//! the wrong type is noted and replaced by a stand-in (an empty text, nought, an empty list). A missing key can only be seen as an
//! error; it is noted and the whole is read again with a stand-in in its place. The result counts only if nothing was noted.
//!
//! `reader_serde.rs` has serde's side of it.

use std::cell::RefCell;

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Problems;
use crate::config::Tree;
use crate::config::mistakes::{Notes, Path, name, unknown_key};

/// More mistakes than this are not searched for; it also ends the search when a type refuses every stand-in.
const MAX_ROUNDS: usize = 100;

/// Reads `T` from the tree. None when `problems` got something.
pub(crate) fn read<T: DeserializeOwned>(tree: &Tree, problems: &mut Problems) -> Option<T> {
    let notes = Notes {
        repeats: tree.repeats,
        problems: RefCell::default(),
        stand_ins: RefCell::default(),
    };
    let mut result = None;
    for _ in 0..MAX_ROUNDS {
        match T::deserialize(Reader {
            value: Some(&tree.value),
            path: &Path::Root,
            notes: &notes,
        }) {
            Ok(value) => {
                result = Some(value);
                break;
            }
            Err(stop) => {
                if !notes.stand_in_for(stop.at(&Path::Root)) {
                    break;
                }
            }
        }
    }
    let noted = notes.problems.into_inner();
    if noted.is_empty() {
        return result;
    }
    *problems = noted;
    None
}

/// Reads one value; none for any.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) value: Option<&'a Value>,
    pub(crate) path: &'a Path<'a>,
    pub(crate) notes: &'a Notes,
}

impl<'a> Reader<'a> {
    /// The value, or none if a stand-in is used here.
    pub(crate) fn value(&self) -> Option<&'a Value> {
        match self.written() {
            Some(Value::Array(values)) if self.notes.repeats => values.last(),
            other => other,
        }
    }

    /// The same with all values of a repeated variable.
    fn written(&self) -> Option<&'a Value> {
        let value = self.value?;
        let stand_ins = self.notes.stand_ins.borrow();
        (stand_ins.is_empty() || !stand_ins.contains(&self.path.text())).then_some(value)
    }

    pub(crate) fn wrong(&self, wanted: &str, value: &Value) {
        let message = format!("this must be {wanted}, not {}", name(value));
        self.notes.problems.borrow_mut().add(self.path.text(), message);
    }

    /// A whole number in this range, or nought: a JSON number, or text that is one, as values from the provider list are always text.
    pub(crate) fn unsigned(&self, most: u64) -> u64 {
        let Some(value) = self.value() else { return 0 };
        let number = number_text(value)
            .and_then(|text| text.parse::<u64>().ok())
            .filter(|number| *number <= most);
        number.unwrap_or_else(|| {
            self.wrong(&format!("a whole number from 0 to {most}"), value);
            0
        })
    }

    /// The same for numbers that may be below nought.
    pub(crate) fn signed(&self, least: i64, most: i64) -> i64 {
        let Some(value) = self.value() else { return 0 };
        let number = number_text(value).and_then(|text| text.parse::<i64>().ok());
        number
            .filter(|number| (least..=most).contains(number))
            .unwrap_or_else(|| {
                self.wrong(&format!("a whole number from {least} to {most}"), value);
                0
            })
    }

    pub(crate) fn flag(&self) -> bool {
        let Some(value) = self.value() else { return false };
        match value {
            Value::Bool(flag) => return *flag,
            // Values from the provider list are always text, and git-config has these words.
            Value::String(text) if is_one_of(text, ["true", "yes", "on", "1"]) => return true,
            Value::String(text) if is_one_of(text, ["false", "no", "off", "0"]) => return false,
            _ => self.wrong("true or false", value),
        }
        false
    }

    pub(crate) fn text(&self) -> &'a str {
        match self.value() {
            Some(Value::String(text)) => text,
            Some(other) => {
                self.wrong("text", other);
                ""
            }
            None => "",
        }
    }

    pub(crate) fn items(&self) -> Items<'a> {
        let items = match self.written() {
            Some(Value::Array(items)) => items.as_slice(),
            Some(other) => {
                self.wrong("a list", other);
                &[]
            }
            None => &[],
        };
        Items {
            items,
            next: 0,
            path: self.path,
            notes: self.notes,
        }
    }

    /// All keys of an object.
    pub(crate) fn entries(&self) -> Entries<'a> {
        let mut entries = Vec::new();
        match self.value() {
            Some(Value::Object(object)) => {
                entries.extend(object.iter().map(|(key, value)| (key.as_str(), Some(value))));
            }
            Some(other) => self.wrong("an object with keys", other),
            None => {}
        }
        Entries {
            entries,
            next: 0,
            path: self.path,
            notes: self.notes,
        }
    }

    /// The known keys of an object, stand-ins included. Notes the unknown ones.
    pub(crate) fn fields(&self, fields: &'static [&'static str]) -> Entries<'a> {
        let mut entries: Vec<(&'a str, Option<&'a Value>)> = Vec::with_capacity(fields.len());
        match self.value() {
            Some(object @ Value::Object(keys)) => {
                let stand_ins = self.notes.stand_ins.borrow();
                for field in fields {
                    let value = object.get(field);
                    if value.is_some() || stand_ins.contains(&Path::Key(self.path, field).text()) {
                        entries.push((field, value));
                    }
                }
                for key in keys.keys().filter(|key| !fields.contains(&key.as_str())) {
                    let at = Path::Key(self.path, key).text();
                    self.notes.problems.borrow_mut().add(at, unknown_key(key, fields));
                }
            }
            other => {
                if let Some(other) = other {
                    self.wrong("an object with keys", other);
                }
                entries.extend(fields.iter().map(|field| (*field, None)));
            }
        }
        Entries {
            entries,
            next: 0,
            path: self.path,
            notes: self.notes,
        }
    }

    /// The variant's name and its content.
    pub(crate) fn variant(&self, variants: &'static [&'static str]) -> Variant<'a> {
        let known = |name: &str| variants.iter().copied().find(|variant| *variant == name);
        let value = self.value();
        let (name, content) = match value {
            Some(Value::String(text)) => (known(text), None),
            Some(Value::Object(entries)) if entries.len() == 1 => {
                let entry = entries.iter().next();
                (entry.and_then(|(key, _)| known(key)), entry.map(|(_, content)| content))
            }
            _ => (None, None),
        };
        if let (None, Some(value)) = (name, value) {
            self.wrong(&format!("one of {}", variants.join(", ")), value);
        }
        let name = name.or(variants.first().copied()).unwrap_or_default();
        Variant {
            name,
            content: Reader {
                value: content,
                ..*self
            },
        }
    }
}

/// The items of a list, one after the other.
pub(crate) struct Items<'a> {
    pub(crate) items: &'a [Value],
    pub(crate) next: usize,
    pub(crate) path: &'a Path<'a>,
    pub(crate) notes: &'a Notes,
}

/// Keys and values of an object, one after the other; none is a stand-in.
pub(crate) struct Entries<'a> {
    pub(crate) entries: Vec<(&'a str, Option<&'a Value>)>,
    pub(crate) next: usize,
    pub(crate) path: &'a Path<'a>,
    pub(crate) notes: &'a Notes,
}

/// A variant of an enum: its name and what it holds.
pub(crate) struct Variant<'a> {
    pub(crate) name: &'static str,
    pub(crate) content: Reader<'a>,
}

fn is_one_of(text: &str, words: [&str; 4]) -> bool {
    words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// What a number may be read from.
pub(crate) fn number_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Number(number) => Some(number.to_string().into()),
        Value::String(text) => Some(text.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
