//! A map in little code: a list sorted by key.
//!
//! `BTreeMap` comes to 4 to 6 KB of component for each pair of types, this one to a tenth of it. Looking up is as fast; adding moves what is behind,
//! so fill it in order or by collecting where there are thousands of entries.

use alloc::borrow::Borrow;
use core::fmt;
use core::marker::PhantomData;

use crate::without_std::prelude::*;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// Values by key, in the order of the keys.
///
/// ```
/// use cloudwit_guest_sdk::map::Map;
///
/// let mut zones: Map<String, u32> = [("b".to_owned(), 2), ("a".to_owned(), 1)].into_iter().collect();
/// *zones.or_default("a".into()) += 10;
/// assert_eq!((zones.get("a"), zones.get("c")), (Some(&11), None));
/// assert_eq!(zones.keys().collect::<Vec<_>>(), ["a", "b"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map<K, V>(Vec<(K, V)>);

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord, V> Map<K, V> {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of this key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key).ok()?;
        self.0.get(place).map(|(_, value)| value)
    }

    /// The value of this key, to be changed.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key).ok()?;
        self.0.get_mut(place).map(|(_, value)| value)
    }

    /// Whether there is an entry of this key.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.place(key).is_ok()
    }

    /// Sets the value of this key and gives the one it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.place(&key) {
            Ok(place) => self.0.get_mut(place).map(|(_, known)| core::mem::replace(known, value)),
            Err(place) => {
                self.0.insert(place, (key, value));
                None
            }
        }
    }

    /// Takes the value of this key out.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key).ok()?;
        Some(self.0.remove(place).1)
    }

    /// The value of this key, to be changed; the type's default where there was none.
    pub fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        let place = self.place(&key).unwrap_or_else(|place| {
            self.0.insert(place, (key, V::default()));
            place
        });
        &mut self.0[place].1
    }

    /// Keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// Keys.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.iter().map(|(key, _)| key)
    }

    /// Values.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    /// Where the key is, else where it belongs.
    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        self.0.binary_search_by(|(known, _)| known.borrow().cmp(key))
    }
}

impl<K: Ord, V> Extend<(K, V)> for Map<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for Map<K, V> {
    /// Of equal keys the last one counts.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut entries: Vec<(K, V)> = entries.into_iter().collect();
        // Reversed and stable: of equal keys the last one comes first, which is the one that stays.
        entries.reverse();
        crate::sort::sort_by(&mut entries, |(a, _), (b, _)| a.cmp(b));
        entries.dedup_by(|(a, _), (b, _)| a == b);
        Self(entries)
    }
}

impl<K, V> IntoIterator for Map<K, V> {
    type Item = (K, V);
    type IntoIter = alloc::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, K, V> IntoIterator for &'a Map<K, V> {
    type Item = &'a (K, V);
    type IntoIter = core::slice::Iter<'a, (K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<K: Serialize + Ord, V: Serialize> Serialize for Map<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Deserialize<'de> for Map<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<K, V>(PhantomData<(K, V)>);
        impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Visitor<'de> for Entries<K, V> {
            type Value = Map<K, V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Map<K, V>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = access.next_entry()? {
                    entries.push(entry);
                }
                Ok(entries.into_iter().collect())
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The same steps with the standard library's map.
    #[test]
    fn it_does_what_a_btree_map_does() {
        let (mut ours, mut theirs) = (Map::new(), BTreeMap::new());
        for step in 0..2_000u32 {
            let key = (step * 7_919 % 97).to_string();
            match step % 3 {
                0 => assert_eq!(ours.remove(&key), theirs.remove(&key)),
                1 => assert_eq!(ours.insert(key.clone(), step), theirs.insert(key, step)),
                _ => {
                    *ours.or_default(key.clone()) += step;
                    *theirs.entry(key).or_default() += step;
                }
            }
            assert!(ours.iter().eq(theirs.iter()), "after step {step}");
        }
        assert!(ours.keys().eq(theirs.keys()) && ours.values().eq(theirs.values()));
        for key in ["1", "x", ""] {
            assert_eq!(ours.get(key), theirs.get(key));
            assert_eq!(ours.get_mut(key), theirs.get_mut(key));
            assert_eq!(ours.contains_key(key), theirs.contains_key(key));
        }
        assert_eq!((ours.len(), ours.is_empty()), (theirs.len(), theirs.is_empty()));
        assert!(ours.into_iter().eq(theirs));
    }

    #[test]
    fn of_equal_keys_the_last_one_counts() {
        let map: Map<&str, u32> = [("b", 1), ("a", 2), ("b", 3), ("a", 4), ("c", 5)].into_iter().collect();
        assert!(
            map.iter()
                .map(|(key, value)| (*key, *value))
                .eq([("a", 4), ("b", 3), ("c", 5)])
        );
    }

    #[test]
    fn it_is_an_object_in_json() {
        let map: Map<String, u32> = crate::json::from_slice(br#"{"b": 2, "a": 1}"#).unwrap();
        assert_eq!(serde_json::to_string(&map).unwrap(), r#"{"a":1,"b":2}"#);
        assert!(
            crate::json::from_slice::<Map<String, u32>>(br#"{"a": "x"}"#)
                .unwrap_err()
                .starts_with("a: ")
        );
    }
}
