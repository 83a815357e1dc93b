//! `section!` declares a section of the cloud config: a struct whose fields may all be left out, with the key of each as upstream writes it.
//!
//! serde's own derive makes a reader for each struct, which would be a tenth of the component; here all sections share one, which asks a section
//! only where the value of a key belongs.

use cloudwit_guest_sdk::map::Map;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

/// Where a value belongs.
pub enum Slot<'a> {
    /// A text.
    Text(&'a mut Option<String>),
    /// A text that may be there several times.
    Texts(&'a mut Vec<String>),
    /// `true` or `false`.
    Flag(&'a mut bool),
    /// The same with a default of its own.
    FlagOr(&'a mut Option<bool>),
    /// A whole number.
    Number(&'a mut Option<u32>),
    /// A section.
    Section(&'a mut dyn Section),
    /// Sections of one kind by their names.
    Sections(&'a mut dyn Sections),
    /// Nowhere.
    Ignored,
}

/// A section that is being read.
pub trait Section {
    /// All keys.
    fn keys(&self) -> &'static [&'static str];
    /// Where the value of this key belongs.
    fn slot_of(&mut self, key: &str) -> Slot<'_>;
}

/// Sections of one kind.
pub trait Sections {
    /// The section of this name.
    fn section_of(&mut self, name: String) -> &mut dyn Section;
}

/// What can be a field.
pub trait Field {
    /// Itself as the place for a value.
    fn slot(&mut self) -> Slot<'_>;
}

macro_rules! fields {
    ($($type:ty: $slot:ident;)+) => { $(
        impl Field for $type {
            fn slot(&mut self) -> Slot<'_> {
                Slot::$slot(self)
            }
        }
    )+ };
}

fields! {
    Option<String>: Text;
    Vec<String>: Texts;
    bool: Flag;
    Option<bool>: FlagOr;
    Option<u32>: Number;
}

impl Field for IgnoredAny {
    fn slot(&mut self) -> Slot<'_> {
        Slot::Ignored
    }
}

impl<S: Section + Default> Field for Map<String, S> {
    fn slot(&mut self) -> Slot<'_> {
        Slot::Sections(self)
    }
}

impl<S: Section + Default> Sections for Map<String, S> {
    fn section_of(&mut self, name: String) -> &mut dyn Section {
        self.or_default(name)
    }
}

/// Reads into a section.
pub struct Into<'a>(pub &'a mut dyn Section);

impl<'de> DeserializeSeed<'de> for Into<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_struct("section", self.0.keys(), self)
    }
}

impl<'de> Visitor<'de> for Into<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a section")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match self.0.slot_of(&key) {
                Slot::Text(slot) => *slot = map.next_value()?,
                Slot::Texts(slot) => *slot = map.next_value()?,
                Slot::Flag(slot) => *slot = map.next_value()?,
                Slot::FlagOr(slot) => *slot = map.next_value()?,
                Slot::Number(slot) => *slot = map.next_value()?,
                Slot::Section(slot) => map.next_value_seed(Into(slot))?,
                Slot::Sections(slot) => map.next_value_seed(IntoMany(slot))?,
                Slot::Ignored => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Reads sections by their names.
struct IntoMany<'a>(&'a mut dyn Sections);

impl<'de> DeserializeSeed<'de> for IntoMany<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for IntoMany<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sections")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            map.next_value_seed(Into(self.0.section_of(name)))?;
        }
        Ok(())
    }
}

/// Declares sections: `pub struct Route { /// The router. pub router_id: Option<String> = "router-id", }`.
macro_rules! section {
    ($($(#[$about:meta])* pub struct $name:ident { $($(#[$doc:meta])* $vis:vis $field:ident: $type:ty = $key:literal,)+ })+) => { $(
        $(#[$about])*
        #[derive(Clone, Default)]
        pub struct $name { $($(#[$doc])* $vis $field: $type,)+ }

        impl $name {
            /// All keys.
            pub const KEYS: &'static [&'static str] = &[$($key),+];
        }

        impl $crate::section::Section for $name {
            fn keys(&self) -> &'static [&'static str] {
                Self::KEYS
            }

            fn slot_of(&mut self, key: &str) -> $crate::section::Slot<'_> {
                match key {
                    $($key => $crate::section::Field::slot(&mut self.$field),)+
                    _ => $crate::section::Slot::Ignored,
                }
            }
        }

        impl $crate::section::Field for $name {
            fn slot(&mut self) -> $crate::section::Slot<'_> {
                $crate::section::Slot::Section(self)
            }
        }

        /// Values are not shown: some are secrets.
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    )+ };
}

pub(crate) use section;
