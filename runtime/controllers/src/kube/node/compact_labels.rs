//! Labels of one of many objects, as one piece of text.
//!
//! A map of eight labels needs seventeen allocations and a kilobyte, this needs one and a third of it, and so does each reading of a Node from
//! the API server.
//!
//! The text has a line `key=value` for each label, in the order of the API server. Neither keys nor values can hold `=` or a line's end
//! (`apimachinery util/validation`).

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::kube::node::Text;

/// Room for the labels of a usual Node while they are read.
const USUAL: usize = 512;

/// Labels by key.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CompactLabels(Box<str>);

impl CompactLabels {
    /// The value of a label.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    /// Keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.lines().filter_map(|line| line.split_once('='))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// As a map.
impl fmt::Debug for CompactLabels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: AsRef<str>, V: AsRef<str>> FromIterator<(K, V)> for CompactLabels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(labels: I) -> Self {
        let mut text = String::new();
        for (key, value) in labels {
            push(&mut text, key.as_ref(), value.as_ref());
        }
        Self(text.into())
    }
}

impl<'de> Deserialize<'de> for CompactLabels {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Lines;
        impl<'de> Visitor<'de> for Lines {
            type Value = CompactLabels;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("labels")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(CompactLabels::default())
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut text = String::with_capacity(USUAL);
                while let Some((key, value)) = map.next_entry::<Text<'de>, Text<'de>>()? {
                    push(&mut text, &key, &value);
                }
                Ok(CompactLabels(text.into()))
            }
        }
        from.deserialize_any(Lines)
    }
}

impl Serialize for CompactLabels {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter())
    }
}

fn push(text: &mut String, key: &str, value: &str) {
    for part in [key, "=", value, "\n"] {
        text.push_str(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_found_by_their_whole_key() {
        let labels: CompactLabels = [("a/b", "1"), ("b", ""), ("c", "x.y")].into_iter().collect();
        let found = ["a/b", "b", "c", "a", "", "x.y"].map(|key| labels.get(key));
        assert_eq!(found, [Some("1"), Some(""), Some("x.y"), None, None, None]);
        assert_eq!(format!("{labels:?}"), r#"{"a/b": "1", "b": "", "c": "x.y"}"#);
        assert!(!labels.is_empty() && CompactLabels::default().is_empty());
    }

    #[test]
    fn they_are_read_and_written_as_the_map_that_they_are() {
        for text in [r#"{}"#, r#"{"a":"1","b":"","c\/d":"\u00e4"}"#] {
            let labels: CompactLabels = serde_json::from_str(text).unwrap();
            let map: std::collections::BTreeMap<String, String> = serde_json::from_str(text).unwrap();
            assert_eq!(
                serde_json::to_value(&labels).unwrap(),
                serde_json::to_value(&map).unwrap()
            );
            assert_eq!(labels, map.into_iter().collect());
        }
        assert!(serde_json::from_str::<CompactLabels>("null").unwrap().is_empty());
        assert!(serde_json::from_str::<CompactLabels>(r#"{"a":null}"#).is_err());
        assert!(serde_json::from_str::<CompactLabels>("[]").is_err());
    }
}
