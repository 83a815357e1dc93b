//! Reads a type from a JSON tree and finds all mistakes instead of the first.
//!
//! A serde deserializer stops at the first error, so this one never lets an error happen where it can be avoided: a value of
//! the wrong type is noted and replaced by a stand-in (an empty text, nought, an empty list). A missing key can only be seen as an
//! error; it is noted and the whole is read again with a stand-in in its place. The result counts only if nothing was noted.
//!
//! serde makes a copy of the generic functions here for each type, so all that does not depend on the type is in functions that do not.

use std::cell::RefCell;
use std::fmt::{self, Display};

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, Visitor};

use crate::Problems;
use crate::json::Json;

/// More mistakes than this are not searched for; it also ends the search when a type refuses every stand-in.
const MAX_ROUNDS: usize = 100;

/// What to do with keys that a type does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// Nothing: a cloud may add keys to its answers.
    Ignored,
    /// It is a mistake: a person wrote it.
    Wrong,
}

/// Reads `T` from the tree. None when `problems` got something.
pub(crate) fn read<T: DeserializeOwned>(tree: &Json<'_>, unknown: Unknown, problems: &mut Problems) -> Option<T> {
    let notes = Notes {
        unknown,
        problems: RefCell::default(),
        stand_ins: RefCell::default(),
    };
    let mut result = None;
    for _ in 0..MAX_ROUNDS {
        match T::deserialize(Reader {
            value: Some(tree),
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

/// What was found so far, over all rounds.
struct Notes {
    unknown: Unknown,
    problems: RefCell<Problems>,
    /// Paths that get a stand-in.
    stand_ins: RefCell<Vec<String>>,
}

impl Notes {
    /// Notes what stopped the reading and puts a stand-in there. False when that cannot help.
    fn stand_in_for(&self, stop: Stop) -> bool {
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

/// The way to a value.
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
struct Stop(Box<Error>);

#[derive(Debug)]
struct Error {
    /// Where; filled in as soon as the path is known.
    at: Option<String>,
    /// The key that is missing there.
    missing: Option<&'static str>,
    message: String,
}

impl Stop {
    #[inline(never)]
    fn at(mut self, path: &Path<'_>) -> Self {
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

    #[inline(never)]
    fn missing_field(field: &'static str) -> Self {
        Self(Box::new(Error {
            at: None,
            missing: Some(field),
            message: "this key is missing".into(),
        }))
    }

    // The others would each bring number formatting for a text that nobody needs: stand-ins keep them from happening.
    #[inline(never)]
    fn invalid_type(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::custom(format_args!("this must be {expected}"))
    }

    #[inline(never)]
    fn invalid_value(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::custom(format_args!("this must be {expected}"))
    }

    #[inline(never)]
    fn invalid_length(_: usize, expected: &dyn de::Expected) -> Self {
        Self::custom(format_args!("this must be {expected}"))
    }

    #[inline(never)]
    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(["this must be one of ", &expected.join(", ")].concat())
    }

    #[inline(never)]
    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(unknown_key(field, expected))
    }

    #[inline(never)]
    fn duplicate_field(field: &'static str) -> Self {
        Self::custom([field, " is there twice"].concat())
    }
}

/// Reads one value; none stands for anything.
#[derive(Clone, Copy)]
struct Reader<'a> {
    value: Option<&'a Json<'a>>,
    path: &'a Path<'a>,
    notes: &'a Notes,
}

impl<'a> Reader<'a> {
    /// The value, or none if a stand-in is wanted here.
    #[inline(never)]
    fn value(&self) -> Option<&'a Json<'a>> {
        let value = self.value?;
        let stand_ins = self.notes.stand_ins.borrow();
        (stand_ins.is_empty() || !stand_ins.contains(&self.path.text())).then_some(value)
    }

    #[inline(never)]
    fn wrong(&self, wanted: &str, value: &Json<'_>) {
        let message = ["this must be ", wanted, ", not ", &name(value)].concat();
        self.notes.problems.borrow_mut().add(self.path.text(), message);
    }

    /// A whole number in this range, or nought: a JSON number, or text that is one, as values from the provider list are always text.
    #[inline(never)]
    fn unsigned(&self, most: u64) -> u64 {
        let Some(value) = self.value() else { return 0 };
        let number = number_text(value)
            .and_then(|text| text.parse::<u64>().ok())
            .filter(|number| *number <= most);
        number.unwrap_or_else(|| {
            self.wrong(&["a whole number from 0 to ", &most.to_string()].concat(), value);
            0
        })
    }

    /// The same for numbers that may be below nought.
    #[inline(never)]
    fn signed(&self, least: i64, most: i64) -> i64 {
        let Some(value) = self.value() else { return 0 };
        let number = number_text(value).and_then(|text| text.parse::<i64>().ok());
        number
            .filter(|number| (least..=most).contains(number))
            .unwrap_or_else(|| {
                self.wrong(
                    &["a whole number from ", &least.to_string(), " to ", &most.to_string()].concat(),
                    value,
                );
                0
            })
    }

    #[inline(never)]
    fn flag(&self) -> bool {
        let Some(value) = self.value() else { return false };
        match value {
            Json::Bool(flag) => return *flag,
            Json::Text(text) if text == "true" => return true,
            Json::Text(text) if text == "false" => return false,
            _ => self.wrong("true or false", value),
        }
        false
    }

    #[inline(never)]
    fn text(&self) -> &'a str {
        match self.value() {
            Some(Json::Text(text)) => text,
            Some(other) => {
                self.wrong("text", other);
                ""
            }
            None => "",
        }
    }

    #[inline(never)]
    fn items(&self) -> Items<'a> {
        let items = match self.value() {
            Some(Json::List(items)) => items.as_slice(),
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
    #[inline(never)]
    fn entries(&self) -> Entries<'a> {
        let mut entries = Vec::new();
        match self.value() {
            Some(Json::Object(object)) => {
                entries.extend(object.iter().map(|(key, value)| (key.as_ref(), Some(value))));
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
    #[inline(never)]
    fn fields(&self, fields: &'static [&'static str]) -> Entries<'a> {
        let mut entries: Vec<(&'a str, Option<&'a Json<'a>>)> = Vec::with_capacity(fields.len());
        match self.value() {
            Some(object @ Json::Object(keys)) => {
                let stand_ins = self.notes.stand_ins.borrow();
                for field in fields {
                    let value = object.get(field);
                    if value.is_some() || stand_ins.contains(&Path::Key(self.path, field).text()) {
                        entries.push((field, value));
                    }
                }
                if self.notes.unknown == Unknown::Wrong {
                    for (key, _) in keys.iter().filter(|(key, _)| !fields.contains(&key.as_ref())) {
                        let at = Path::Key(self.path, key).text();
                        self.notes.problems.borrow_mut().add(at, unknown_key(key, fields));
                    }
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
    #[inline(never)]
    fn variant(&self, variants: &'static [&'static str]) -> Variant<'a> {
        let known = |name: &str| variants.iter().copied().find(|variant| *variant == name);
        let value = self.value();
        let (name, content) = match value {
            Some(Json::Text(text)) => (known(text), None),
            Some(Json::Object(entries)) => match entries.as_slice() {
                [(key, content)] => (known(key), Some(content)),
                _ => (None, None),
            },
            _ => (None, None),
        };
        if let (None, Some(value)) = (name, value) {
            self.wrong(&["one of ", &variants.join(", ")].concat(), value);
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

/// What a number may be read from.
fn number_text<'a>(value: &'a Json<'_>) -> Option<&'a str> {
    match value {
        Json::Number(text) | Json::Text(text) => Some(text),
        _ => None,
    }
}

/// A value in words.
fn name(value: &Json<'_>) -> String {
    match value {
        Json::Null => "null".into(),
        Json::Bool(flag) => if *flag { "true" } else { "false" }.into(),
        Json::Number(number) => number.clone().into_owned(),
        Json::Text(text) => {
            let mut short: String = text.chars().take(40).collect();
            if short.len() < text.len() {
                short.push_str("...");
            }
            ["the text \"", &short, "\""].concat()
        }
        Json::List(_) => "a list".into(),
        Json::Object(_) => "an object".into(),
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

/// Each method hands the value, or its stand-in, to the visitor. A visitor's own refusal gets its path from whoever reads the value.
macro_rules! numbers {
    ($($method:ident $visit:ident $read:ident $type:ty: $($bound:expr),+;)+) => { $(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
            visitor.$visit(self.$read($($bound.into()),+) as $type)
        }
    )+ };
}

impl<'de> de::Deserializer<'de> for Reader<'_> {
    type Error = Stop;

    numbers! {
        deserialize_u8 visit_u8 unsigned u8: u8::MAX;
        deserialize_u16 visit_u16 unsigned u16: u16::MAX;
        deserialize_u32 visit_u32 unsigned u32: u32::MAX;
        deserialize_u64 visit_u64 unsigned u64: u64::MAX;
        deserialize_i8 visit_i8 signed i8: i8::MIN, i8::MAX;
        deserialize_i16 visit_i16 signed i16: i16::MIN, i16::MAX;
        deserialize_i32 visit_i32 signed i32: i32::MIN, i32::MAX;
        deserialize_i64 visit_i64 signed i64: i64::MIN, i64::MAX;
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        match self.value() {
            None | Some(Json::Null) => visitor.visit_unit(),
            Some(Json::Bool(flag)) => visitor.visit_bool(*flag),
            Some(Json::Number(text)) if text.contains(['.', 'e', 'E']) => self.deserialize_f64(visitor),
            Some(Json::Number(text)) if text.starts_with('-') => self.deserialize_i64(visitor),
            Some(Json::Number(_)) => self.deserialize_u64(visitor),
            Some(Json::Text(text)) => visitor.visit_str(text),
            Some(Json::List(_)) => visitor.visit_seq(self.items()),
            Some(Json::Object(_)) => visitor.visit_map(self.entries()),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        let number = self.value().map_or(Some(0.0), |value| {
            let number = number_text(value).and_then(|text| text.parse::<f64>().ok());
            if number.is_none() {
                self.wrong("a number", value);
            }
            number
        });
        visitor.visit_f64(number.unwrap_or_default())
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_bool(self.flag())
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_str(self.text())
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_str(self.text())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        match self.value() {
            None | Some(Json::Null) => visitor.visit_none(),
            Some(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_seq(self.items())
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_seq(self.items())
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Stop> {
        visitor.visit_seq(self.items())
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_map(self.entries())
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        visitor.visit_map(self.fields(fields))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        visitor.visit_enum(self.variant(variants))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! { i128 u128 char bytes byte_buf unit unit_struct identifier }
}

struct Items<'a> {
    items: &'a [Json<'a>],
    next: usize,
    path: &'a Path<'a>,
    notes: &'a Notes,
}

impl<'de> de::SeqAccess<'de> for Items<'_> {
    type Error = Stop;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Stop> {
        let Some(value) = self.items.get(self.next) else {
            return Ok(None);
        };
        let path = Path::Index(self.path, self.next);
        self.next += 1;
        match seed.deserialize(Reader {
            value: Some(value),
            path: &path,
            notes: self.notes,
        }) {
            Ok(value) => Ok(Some(value)),
            Err(stop) => Err(stop.at(&path)),
        }
    }
}

struct Entries<'a> {
    entries: Vec<(&'a str, Option<&'a Json<'a>>)>,
    next: usize,
    path: &'a Path<'a>,
    notes: &'a Notes,
}

impl<'de> de::MapAccess<'de> for Entries<'_> {
    type Error = Stop;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Stop> {
        let Some((key, _)) = self.entries.get(self.next) else {
            return Ok(None);
        };
        let key: StrDeserializer<'_, Stop> = (*key).into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Stop> {
        // serde asks for a value only after its key.
        let (key, value) = self.entries.get(self.next).copied().unwrap_or_default();
        self.next += 1;
        let path = Path::Key(self.path, key);
        match seed.deserialize(Reader {
            value,
            path: &path,
            notes: self.notes,
        }) {
            Ok(value) => Ok(value),
            Err(stop) => Err(stop.at(&path)),
        }
    }
}

struct Variant<'a> {
    name: &'static str,
    content: Reader<'a>,
}

impl<'de, 'a> de::EnumAccess<'de> for Variant<'a> {
    type Error = Stop;
    type Variant = Reader<'a>;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self::Variant), Stop> {
        let name: StrDeserializer<'_, Stop> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self.content))
    }
}

impl<'de> de::VariantAccess<'de> for Reader<'_> {
    type Error = Stop;

    fn unit_variant(self) -> Result<(), Stop> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Stop> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_seq(self.items())
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_map(self.fields(fields))
    }
}

#[cfg(test)]
#[path = "json_reader_tests.rs"]
mod tests;
