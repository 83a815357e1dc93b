//! YAML document as a tree with line numbers.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use crate::config::yaml;

/// A value and its line, counted from 1.
#[derive(Debug)]
pub struct Tree {
    /// Where it begins.
    pub line: u64,
    /// What it is.
    pub value: Value,
}

/// A YAML value.
#[derive(Debug)]
pub enum Value {
    /// `null`, `~` or nothing.
    Null,
    /// `true`, `false`.
    Flag,
    /// A number without a fraction.
    Whole(i128),
    /// Any other number.
    Decimal,
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Tree>),
    /// Keys with their lines, and values.
    Map(Vec<(String, u64, Tree)>),
}

impl Value {
    /// What it is, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Flag => "true or false",
            Self::Whole(_) | Self::Decimal => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }
}

impl Tree {
    /// Reads a document. The error names line and column.
    pub fn parse(text: &str) -> Result<Self, String> {
        yaml::read::<Located>(text).map(|located| located.0)
    }
}

struct Located(Tree);

impl<'de> Deserialize<'de> for Located {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self(Tree {
            line: spanned.referenced.line(),
            value: spanned.value,
        }))
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Flag)
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Whole(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Whole(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(Value::Whole(value))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Decimal)
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Located(item)) = list.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let Located(value) = map.next_value()?;
            entries.push((key.value, key.referenced.line(), value));
        }
        Ok(Value::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Tree {
        /// The value under a key of a map.
        pub fn get(&self, key: &str) -> Option<&Self> {
            match &self.value {
                Value::Map(entries) => entries.iter().find(|(name, ..)| name == key).map(|(_, _, tree)| tree),
                _ => None,
            }
        }

        /// The text, if it is one.
        pub fn text(&self) -> Option<&str> {
            match &self.value {
                Value::Text(text) => Some(text),
                _ => None,
            }
        }
    }

    #[test]
    fn every_key_and_value_has_its_line() {
        let tree = Tree::parse("a: 1\nb:\n  - x\n  - {c: 2.5, d: true}\ne:\n").unwrap();
        let Value::Map(entries) = &tree.value else {
            panic!("{tree:?}")
        };
        let keys: Vec<(&str, u64)> = entries.iter().map(|(key, line, _)| (key.as_str(), *line)).collect();
        assert_eq!(keys, [("a", 1), ("b", 2), ("e", 5)]);
        let Value::List(items) = &tree.get("b").unwrap().value else {
            panic!("{tree:?}")
        };
        assert_eq!((items[0].text(), items[1].line), (Some("x"), 4));
        assert!(matches!(items[1].get("c").unwrap().value, Value::Decimal));
        assert!(matches!(items[1].get("d").unwrap().value, Value::Flag));
        assert!(matches!(tree.get("e").unwrap().value, Value::Null));
    }

    #[test]
    fn what_is_no_yaml_is_reported_with_its_line() {
        let error = Tree::parse("a: [1\nb: 2\n").unwrap_err();
        assert!(error.contains("line"), "{error}");
    }
}
