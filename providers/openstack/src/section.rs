//! `section!` declares a section of the cloud config: a struct whose fields may all be left out, with the key of each as upstream writes it.
//!
//! serde's own derive makes five times as much code of the same, which would be a tenth of the component.

/// Declares sections: `pub struct Route { /// The router. pub router_id: Option<String> = "router-id", }`. Every field type has a default
/// and can be read by serde.
macro_rules! section {
    ($($(#[$about:meta])* pub struct $name:ident { $($(#[$doc:meta])* $vis:vis $field:ident: $type:ty = $key:literal,)+ })+) => { $(
        $(#[$about])*
        #[derive(Clone, Default)]
        pub struct $name { $($(#[$doc])* $vis $field: $type,)+ }

        impl $name {
            /// All keys.
            pub const KEYS: &'static [&'static str] = &[$($key),+];
        }

        /// Values are not shown: some are secrets.
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($name))
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl<'de> serde::de::Visitor<'de> for Visitor {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a section")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        let mut section = $name::default();
                        while let Some(key) = map.next_key::<String>()? {
                            match key.as_str() {
                                $($key => section.$field = map.next_value()?,)+
                                _ => drop(map.next_value::<serde::de::IgnoredAny>()?),
                            }
                        }
                        Ok(section)
                    }
                }
                deserializer.deserialize_struct(stringify!($name), $name::KEYS, Visitor)
            }
        }
    )+ };
}

pub(crate) use section;
