//! [`section!`](crate::section) declares a section of the cloud config with few lines and little code.

/// Declares structs that a cloud config is read into: each field may be left out and has its key as upstream writes it.
///
/// serde's own derive, with `#[serde(default)]`, makes five times as much code of the same; with the forty keys of an upstream config that is a tenth of
/// a component. Unknown keys and wrong types are found all the same. `Debug` shows no values, since some are secrets. Where keys are required, or a
/// struct is one of a cloud's answers, derive `Deserialize` as usual.
///
/// ```
/// cloudwit_guest_sdk::section! {
///     /// `[Route]`.
///     pub struct Route {
///         /// The router whose routes are kept.
///         pub router_id: Option<String> = "router-id",
///         /// How many at a time.
///         pub batch: u16 = "batch",
///     }
/// }
///
/// # use cloudwit_guest_sdk::json::from_slice;
/// let route: Route = from_slice(br#"{"router-id": "r1"}"#)?;
/// assert_eq!((route.router_id.as_deref(), route.batch), (Some("r1"), 0));
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

        /// Values are not shown: some are secrets.
        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(stringify!($name))
            }
        }

        impl<'de> $crate::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(deserializer: D) -> ::std::result::Result<Self, D::Error> {
                struct Visitor;
                impl<'de> $crate::serde::de::Visitor<'de> for Visitor {
                    type Value = $name;

                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str("a section")
                    }

                    fn visit_map<A: $crate::serde::de::MapAccess<'de>>(self, mut map: A) -> ::std::result::Result<$name, A::Error> {
                        let mut section = $name::default();
                        while let Some(key) = map.next_key::<::std::string::String>()? {
                            match key.as_str() {
                                $($key => section.$field = map.next_value()?,)+
                                _ => drop(map.next_value::<$crate::serde::de::IgnoredAny>()?),
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

#[cfg(test)]
mod tests {
    use crate::map::Map;
    use crate::prelude::*;
    use crate::testing::FakeHost;

    section! {
        /// The whole.
        pub struct Settings {
            /// One.
            pub route: Route = "route",
            /// Many, by name.
            pub classes: Map<String, Route> = "class",
        }

        /// A part.
        pub struct Route {
            /// Text.
            pub id: String = "router-id",
            /// Number.
            pub batch: Option<u16> = "batch",
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
        host.config(r#"{"route": {"router-id": "r"}, "class": {"a": {"batch": 7}, "b": {}}}"#);
        let Lab(settings) = host.provider();
        assert_eq!((settings.route.id.as_str(), settings.route.batch), ("r", None));
        assert_eq!(settings.classes.get("a").and_then(|class| class.batch), Some(7));
        assert_eq!(settings.classes.len(), 2);
        assert_eq!(
            (Settings::KEYS, Route::KEYS),
            (&["route", "class"][..], &["router-id", "batch"][..])
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
