//! [`section!`](crate::section) declares a section of the cloud config with few lines and little code: all sections share one reader, which asks a
//! section only where the value of a key belongs.
//!
//! serde's own derive makes a reader for each struct; with the forty keys of an upstream config that is a tenth of a component.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use std::collections::BTreeMap;

/// Where a value belongs.
#[doc(hidden)]
pub enum Slot<'a> {
    Text(&'a mut String),
    TextOr(&'a mut Option<String>),
    Texts(&'a mut Vec<String>),
    Flag(&'a mut bool),
    FlagOr(&'a mut Option<bool>),
    Port(&'a mut Option<u16>),
    Number(&'a mut Option<u32>),
    Section(&'a mut dyn Section),
    Sections(&'a mut dyn Sections),
    Ignored,
}

/// A section that is being read.
#[doc(hidden)]
pub trait Section {
    /// All keys.
    fn keys(&self) -> &'static [&'static str];
    /// Where the value of this key belongs.
    fn slot_of(&mut self, key: &str) -> Slot<'_>;
}

/// Sections of one kind.
#[doc(hidden)]
pub trait Sections {
    /// The section of this name.
    fn section_of(&mut self, name: String) -> &mut dyn Section;
}

/// What can be a field.
#[doc(hidden)]
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
    String: Text;
    Option<String>: TextOr;
    Vec<String>: Texts;
    bool: Flag;
    Option<bool>: FlagOr;
    Option<u16>: Port;
    Option<u32>: Number;
}

impl Field for IgnoredAny {
    fn slot(&mut self) -> Slot<'_> {
        Slot::Ignored
    }
}

impl<S: Section + Default> Field for BTreeMap<String, S> {
    fn slot(&mut self) -> Slot<'_> {
        Slot::Sections(self)
    }
}

impl<S: Section + Default> Sections for BTreeMap<String, S> {
    fn section_of(&mut self, name: String) -> &mut dyn Section {
        self.entry(name).or_default()
    }
}

/// Reads into a section.
#[doc(hidden)]
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
                Slot::TextOr(slot) => *slot = map.next_value()?,
                Slot::Texts(slot) => *slot = map.next_value()?,
                Slot::Flag(slot) => *slot = map.next_value()?,
                Slot::FlagOr(slot) => *slot = map.next_value()?,
                Slot::Port(slot) => *slot = map.next_value()?,
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

/// Declares structs that a cloud config is read into: each field may be left out and has its key as upstream writes it.
///
/// Fields are `String`, `bool`, options of these and of `u16` and `u32`, `Vec<String>`, other sections, and [`Map`](crate::map::Map)s of
/// sections by name. Unknown keys and wrong types are found as with serde's derive. `Debug` shows no values, since some are secrets. Where
/// keys are required, or a struct is one of a cloud's answers, derive `Deserialize` as usual.
///
/// ```
/// cloudwit_guest_sdk::section! {
///     /// `[Route]`.
///     pub struct Route {
///         /// The router whose routes are kept.
///         pub router_id: Option<String> = "router-id",
///         /// Whether others may change them.
///         pub shared: bool = "shared",
///     }
/// }
///
/// # use cloudwit_guest_sdk::json::from_slice;
/// let route: Route = from_slice(br#"{"router-id": "r1"}"#)?;
/// assert_eq!((route.router_id.as_deref(), route.shared), (Some("r1"), false));
/// # Ok::<(), String>(())
/// ```
#[macro_export]
macro_rules! section {
    ($($(#[$about:meta])* $outer:vis struct $name:ident { $($(#[$doc:meta])* $vis:vis $field:ident: $type:ty = $key:literal,)+ })+) => { $(
        $(#[$about])*
        #[derive(Clone, Default)]
        $outer struct $name { $($(#[$doc])* $vis $field: $type,)+ }

        impl $name {
            /// All keys.
            pub const KEYS: &'static [&'static str] = &[$($key),+];
        }

        impl $crate::config_section::Section for $name {
            fn keys(&self) -> &'static [&'static str] {
                Self::KEYS
            }

            fn slot_of(&mut self, key: &str) -> $crate::config_section::Slot<'_> {
                match key {
                    $($key => $crate::config_section::Field::slot(&mut self.$field),)+
                    _ => $crate::config_section::Slot::Ignored,
                }
            }
        }

        impl $crate::config_section::Field for $name {
            fn slot(&mut self) -> $crate::config_section::Slot<'_> {
                $crate::config_section::Slot::Section(self)
            }
        }

        impl<'de> $crate::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(deserializer: D) -> ::std::result::Result<Self, D::Error> {
                let mut section = Self::default();
                $crate::serde::de::DeserializeSeed::deserialize($crate::config_section::Into(&mut section), deserializer)?;
                Ok(section)
            }
        }

        /// Values are not shown: some are secrets.
        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    )+ };
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use crate::prelude::*;
    use crate::testing::FakeHost;

    section! {
        /// The whole.
        pub struct Settings {
            /// One.
            pub route: Route = "route",
            /// Many, by name.
            pub classes: BTreeMap<String, Route> = "class",
        }

        /// A part.
        pub struct Route {
            /// Text.
            pub id: String = "router-id",
            /// Number.
            pub batch: Option<u16> = "batch",
            /// Texts.
            pub names: Vec<String> = "names",
            /// Flag.
            pub strict: bool = "strict",
            /// Flag with a default elsewhere.
            pub quick: Option<bool> = "quick",
        }
    }

    struct Lab(Settings);

    impl Provider for Lab {
        type Config = Settings;

        fn describe(_: Option<&Settings>) -> Description {
            Description::new("lab", "1.2.3")
        }

        fn new(config: Settings, _: Context) -> Result<Self, Failure> {
            Ok(Self(config))
        }

        fn probe(&self) -> Result<(), Failure> {
            Ok(())
        }
    }

    #[test]
    fn what_is_left_out_has_its_default_and_keys_are_upstreams() {
        let host = FakeHost::new();
        host.config(r#"{"route": {"router-id": "r", "names": ["x"], "strict": true, "quick": false}, "class": {"a": {"batch": 7}, "b": {}}}"#);
        let Lab(settings) = host.provider();
        assert_eq!((settings.route.id.as_str(), settings.route.batch), ("r", None));
        assert_eq!(
            (
                settings.route.names.as_slice(),
                settings.route.strict,
                settings.route.quick
            ),
            (&["x".to_owned()][..], true, Some(false))
        );
        assert_eq!(settings.classes.get("a").and_then(|class| class.batch), Some(7));
        assert_eq!(settings.classes.len(), 2);
        assert_eq!(
            (Settings::KEYS, Route::KEYS),
            (
                &["route", "class"][..],
                &["router-id", "batch", "names", "strict", "quick"][..]
            )
        );
        assert_eq!(format!("{settings:?}"), "Settings", "no secret is shown");
    }

    #[test]
    fn unknown_keys_and_wrong_types_are_all_told_with_their_place() {
        let host = FakeHost::new();
        host.config(r#"{"rout": {}, "route": {"router-id": 1, "bach": 2}, "class": {"a": {"batch": 70000}}}"#);
        let problems: Vec<(String, String)> = host.check::<Lab>().into_iter().map(|it| (it.at, it.message)).collect();
        let places: Vec<&str> = problems.iter().map(|(at, _)| at.as_str()).collect();
        assert_eq!(places, ["rout", "route.bach", "route.router-id", "class.a.batch"]);
        assert!(problems[1].1.contains("did you mean \"batch\""), "{problems:?}");
    }
}
