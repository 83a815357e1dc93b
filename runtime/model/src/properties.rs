//! Properties of provider ids.

use proptest::prelude::*;

use crate::provider_id::ProviderId;

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn provider_id_is_kept_as_it_was_read(text in any::<String>()) {
        match ProviderId::new(text.as_str()) {
            None => prop_assert!(text.is_empty()),
            Some(id) => {
                prop_assert_eq!(id.as_str(), &text);
                prop_assert_eq!(id.to_string(), text.clone());
            }
        }
    }

    #[test]
    fn provider_id_has_prefix_iff_it_starts_with_one(text in "[ab]{1,4}", prefixes in prop::collection::vec("[ab]{1,3}", 0..3)) {
        let id = ProviderId::new(text.as_str()).unwrap();
        prop_assert_eq!(id.has_prefix(&prefixes), prefixes.iter().any(|prefix| text.starts_with(prefix.as_str())));
    }
}
