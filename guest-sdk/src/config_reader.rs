//! Reads a configuration from a JSON tree and finds all mistakes instead of the first.
//!
//! A serde deserializer stops at the first error, so this one never lets an error happen where it can be avoided: a value of
//! the wrong type is noted and replaced by a stand-in (an empty text, nought, an empty list). A missing key can only be seen as an
//! error; it is noted and the whole is read again with a stand-in in its place. The result counts only if nothing was noted.

use std::cell::RefCell;
use std::fmt::{self, Display};

use serde::de::value::StrDeserializer;
use serde::de::{self, Deserialize, DeserializeSeed, IntoDeserializer, Visitor};
use serde_json::Value;

use crate::Problems;

/// More mistakes than this are not searched for; it also ends the search when a type refuses every stand-in.
const MAX_ROUNDS: usize = 100;

/// Reads `T` from the tree. None when `problems` got something.
pub(crate) fn read<'de, T: Deserialize<'de>>(tree: &'de Value, problems: &mut Problems) -> Option<T> {
    let notes = Notes::default();
    let mut result = None;
    for _ in 0..MAX_ROUNDS {
        match T::deserialize(Reader {
            value: Some(tree),
            path: Path::Root,
            notes: &notes,
        }) {
            Ok(value) => {
                result = Some(value);
                break;
            }
            Err(stop) => {
                if !notes.stand_in_for(stop) {
                    break;
                }
            }
        }
    }
    let noted = notes.problems.into_inner();
    let clean = noted.is_empty();
    for problem in noted.iter() {
        problems.add(problem.at.clone(), problem.message.clone());
    }
    result.filter(|_| clean)
}

/// What was found so far, over all rounds.
#[derive(Default)]
struct Notes {
    problems: RefCell<Problems>,
    /// Paths that get a stand-in.
    stand_ins: RefCell<Vec<String>>,
}

impl Notes {
    fn add(&self, at: String, message: String) {
        self.problems.borrow_mut().add(at, message);
    }

    /// Notes what stopped the reading and puts a stand-in there. False when that cannot help.
    fn stand_in_for(&self, stop: Stop) -> bool {
        let at = stop.at.unwrap_or_default();
        let mut stand_ins = self.stand_ins.borrow_mut();
        // Refused in spite of a stand-in there or above: the problem that led to the stand-in is noted already.
        if stand_ins.iter().any(|path| {
            at.strip_prefix(path.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        }) {
            return false;
        }
        self.add(
            if at.is_empty() {
                "cloud-config".into()
            } else {
                at.clone()
            },
            stop.message,
        );
        stand_ins.push(at);
        true
    }
}

/// The way to a value.
#[derive(Clone, Copy)]
enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl Path<'_> {
    fn text(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Key(Path::Root, key) => (*key).into(),
            Self::Key(parent, key) => [&parent.text(), ".", key].concat(),
            Self::Index(parent, index) => [&parent.text(), "[", &index.to_string(), "]"].concat(),
        }
    }
}

/// What ends one round.
#[derive(Debug)]
struct Stop {
    /// Where; filled in by the first reader it passes.
    at: Option<String>,
    /// A missing key, until then.
    missing: Option<&'static str>,
    message: String,
}

impl Stop {
    fn at(mut self, path: &Path<'_>) -> Self {
        if self.at.is_none() {
            let mut at = path.text();
            if let Some(field) = self.missing {
                if !at.is_empty() {
                    at.push('.');
                }
                at.push_str(field);
            }
            self.at = Some(at);
        }
        self
    }
}

impl Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Stop {}

impl de::Error for Stop {
    fn custom<T: Display>(message: T) -> Self {
        Self {
            at: None,
            missing: None,
            message: message.to_string(),
        }
    }

    fn missing_field(field: &'static str) -> Self {
        Self {
            at: None,
            missing: Some(field),
            message: "this key is missing".into(),
        }
    }
}

/// Reads one value; none stands for anything.
#[derive(Clone, Copy)]
struct Reader<'de, 'a> {
    value: Option<&'de Value>,
    path: Path<'a>,
    notes: &'a Notes,
}

impl<'de, 'a> Reader<'de, 'a> {
    /// The value, or none if a stand-in is wanted here.
    fn value(&self) -> Option<&'de Value> {
        let value = self.value?;
        let stand_ins = self.notes.stand_ins.borrow();
        (stand_ins.is_empty() || !stand_ins.contains(&self.path.text())).then_some(value)
    }

    fn wrong(&self, wanted: &str, value: &Value) {
        self.notes.add(
            self.path.text(),
            ["this must be ", wanted, ", not ", &name(value)].concat(),
        );
    }

    fn child<'b>(&'b self, value: Option<&'de Value>, key: &'b str) -> Reader<'de, 'b> {
        Reader {
            value,
            path: Path::Key(&self.path, key),
            notes: self.notes,
        }
    }
}

/// A value in words.
fn name(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => if *value { "true" } else { "false" }.into(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => {
            let mut short: String = text.chars().take(40).collect();
            if short.len() < text.len() {
                short.push_str("...");
            }
            ["the text \"", &short, "\""].concat()
        }
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
    }
}

/// Whole numbers: a JSON number in range, or text that is one, since values from the provider list are always text.
macro_rules! whole_numbers {
    ($($method:ident $visit:ident $type:ty,)+) => { $(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
            let number = self.value().and_then(|value| {
                let number = match value {
                    Value::Number(number) => number
                        .as_i64()
                        .and_then(|number| <$type>::try_from(number).ok())
                        .or_else(|| number.as_u64().and_then(|number| <$type>::try_from(number).ok())),
                    Value::String(text) => text.parse().ok(),
                    _ => None,
                };
                if number.is_none() {
                    let (least, most) = (<$type>::MIN.to_string(), <$type>::MAX.to_string());
                    self.wrong(&["a whole number from ", &least, " to ", &most].concat(), value);
                }
                number
            });
            visitor.$visit(number.unwrap_or_default()).map_err(|stop: Stop| stop.at(&self.path))
        }
    )+ };
}

impl<'de> de::Deserializer<'de> for Reader<'de, '_> {
    type Error = Stop;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        match self.value() {
            None | Some(Value::Null) => visitor.visit_unit().map_err(|stop: Stop| stop.at(&self.path)),
            Some(Value::Bool(_)) => self.deserialize_bool(visitor),
            Some(Value::Number(number)) if number.is_f64() => self.deserialize_f64(visitor),
            Some(Value::Number(number)) if number.is_u64() => self.deserialize_u64(visitor),
            Some(Value::Number(_)) => self.deserialize_i64(visitor),
            Some(Value::String(_)) => self.deserialize_str(visitor),
            Some(Value::Array(_)) => self.deserialize_seq(visitor),
            Some(Value::Object(_)) => self.deserialize_map(visitor),
        }
    }

    whole_numbers! {
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64,
        deserialize_i8 visit_i8 i8,
        deserialize_i16 visit_i16 i16,
        deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64,
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        let number = self.value().and_then(|value| {
            let number = match value {
                Value::Number(number) => number.as_f64(),
                Value::String(text) => text.parse().ok(),
                _ => None,
            };
            if number.is_none() {
                self.wrong("a number", value);
            }
            number
        });
        visitor
            .visit_f64(number.unwrap_or_default())
            .map_err(|stop: Stop| stop.at(&self.path))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        let flag = self.value().and_then(|value| {
            let flag = match value {
                Value::Bool(flag) => Some(*flag),
                Value::String(text) => text.parse().ok(),
                _ => None,
            };
            if flag.is_none() {
                self.wrong("true or false", value);
            }
            flag
        });
        visitor
            .visit_bool(flag.unwrap_or_default())
            .map_err(|stop: Stop| stop.at(&self.path))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        let text = match self.value() {
            Some(Value::String(text)) => text.as_str(),
            Some(other) => {
                self.wrong("text", other);
                ""
            }
            None => "",
        };
        visitor
            .visit_borrowed_str(text)
            .map_err(|stop: Stop| stop.at(&self.path))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        match self.value() {
            None | Some(Value::Null) => visitor.visit_none(),
            Some(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        let items = match self.value() {
            Some(Value::Array(items)) => items.as_slice(),
            Some(other) => {
                self.wrong("a list", other);
                &[]
            }
            None => &[],
        };
        visitor
            .visit_seq(Items {
                items,
                next: 0,
                of: &self,
            })
            .map_err(|stop| stop.at(&self.path))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        let entries = match self.value() {
            Some(Value::Object(map)) => map.iter().map(|(key, value)| (key.as_str(), Some(value))).collect(),
            Some(other) => {
                self.wrong("an object with keys", other);
                Vec::new()
            }
            None => Vec::new(),
        };
        visitor
            .visit_map(Entries {
                entries,
                next: 0,
                of: &self,
            })
            .map_err(|stop| stop.at(&self.path))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        let entries = self.fields(fields);
        visitor
            .visit_map(Entries {
                entries,
                next: 0,
                of: &self,
            })
            .map_err(|stop| stop.at(&self.path))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        let stand_in = || variants.first().copied().unwrap_or_default();
        let (variant, content) = match self.value() {
            Some(Value::String(text)) if variants.contains(&text.as_str()) => (text.as_str(), None),
            Some(Value::Object(map)) if map.len() == 1 && map.keys().all(|key| variants.contains(&key.as_str())) => map
                .iter()
                .next()
                .map_or((stand_in(), None), |(key, value)| (key.as_str(), Some(value))),
            Some(other) => {
                self.wrong(&["one of ", &variants.join(", ")].concat(), other);
                (stand_in(), None)
            }
            None => (stand_in(), None),
        };
        visitor
            .visit_enum(Variant {
                name: variant,
                content: self.child(content, variant),
            })
            .map_err(|stop| stop.at(&self.path))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! { i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct identifier }
}

impl<'de> Reader<'de, '_> {
    /// The known keys of an object with their values, stand-ins included. Notes the unknown ones.
    fn fields(&self, fields: &'static [&'static str]) -> Vec<(&'de str, Option<&'de Value>)> {
        let Some(value) = self.value() else {
            return fields.iter().map(|field| (*field, None)).collect();
        };
        let Value::Object(map) = value else {
            self.wrong("an object with keys", value);
            return fields.iter().map(|field| (*field, None)).collect();
        };
        let mut entries = Vec::with_capacity(map.len());
        for (key, value) in map {
            if fields.contains(&key.as_str()) {
                entries.push((key.as_str(), Some(value)));
            } else {
                let at = self.child(None, key).path.text();
                self.notes.add(at, unknown_key(key, fields));
            }
        }
        let stand_ins = self.notes.stand_ins.borrow();
        for field in fields {
            if !map.contains_key(*field) && stand_ins.contains(&self.child(None, field).path.text()) {
                entries.push((field, None));
            }
        }
        entries
    }
}

/// What is said about a key that is none.
fn unknown_key(key: &str, known: &[&str]) -> String {
    let nearest = known.iter().map(|known| (distance(key, known), *known)).min();
    match nearest {
        Some((distance, nearest)) if distance <= 1 + key.len() / 4 => {
            ["there is no such key; did you mean \"", nearest, "\"?"].concat()
        }
        Some(_) => ["there is no such key; there are ", &known.join(", ")].concat(),
        None => "there is no such key; none is known here".into(),
    }
}

/// Letters to change, add or drop to come from one word to the other (Levenshtein), upper case counting as lower.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<u8> = other.bytes().map(|byte| byte.to_ascii_lowercase()).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(a.to_ascii_lowercase() != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

struct Items<'de, 'a> {
    items: &'de [Value],
    next: usize,
    of: &'a Reader<'de, 'a>,
}

impl<'de> de::SeqAccess<'de> for Items<'de, '_> {
    type Error = Stop;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Stop> {
        let Some(value) = self.items.get(self.next) else {
            return Ok(None);
        };
        let path = Path::Index(&self.of.path, self.next);
        self.next += 1;
        seed.deserialize(Reader {
            value: Some(value),
            path,
            notes: self.of.notes,
        })
        .map(Some)
    }
}

struct Entries<'de, 'a> {
    entries: Vec<(&'de str, Option<&'de Value>)>,
    next: usize,
    of: &'a Reader<'de, 'a>,
}

impl<'de> de::MapAccess<'de> for Entries<'de, '_> {
    type Error = Stop;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Stop> {
        let Some((key, _)) = self.entries.get(self.next) else {
            return Ok(None);
        };
        let key: StrDeserializer<'de, Stop> = (*key).into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Stop> {
        let (key, value) = self.entries[self.next];
        self.next += 1;
        let path = Path::Key(&self.of.path, key);
        seed.deserialize(Reader {
            value,
            path,
            notes: self.of.notes,
        })
        .map_err(|stop| stop.at(&path))
    }
}

struct Variant<'de, 'a> {
    name: &'de str,
    content: Reader<'de, 'a>,
}

impl<'de, 'a> de::EnumAccess<'de> for Variant<'de, 'a> {
    type Error = Stop;
    type Variant = Reader<'de, 'a>;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self::Variant), Stop> {
        let name: StrDeserializer<'de, Stop> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self.content))
    }
}

impl<'de> de::VariantAccess<'de> for Reader<'de, '_> {
    type Error = Stop;

    fn unit_variant(self) -> Result<(), Stop> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Stop> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Stop> {
        de::Deserializer::deserialize_seq(self, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Stop> {
        de::Deserializer::deserialize_struct(self, "", fields, visitor)
    }
}

#[cfg(test)]
#[path = "config_reader_tests.rs"]
mod tests;
