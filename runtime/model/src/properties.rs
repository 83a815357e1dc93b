//! Properties of provider ids and of the choice of a Node's provider.

use proptest::prelude::*;

use crate::owners::Owners;
use crate::provider_id::ProviderId;
use crate::{Abilities, ProviderIdentity};

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Providers named `p0`, `p1` and so on with these prefixes.
fn owners(prefixes: &[Vec<String>], default: usize) -> Owners {
    let provider = |(number, prefixes): (usize, &Vec<String>)| {
        let identity = ProviderIdentity {
            name: format!("p{number}"),
            provider_id_prefixes: prefixes.clone(),
            ..ProviderIdentity::default()
        };
        (identity, Abilities::default())
    };
    Owners::several(prefixes.iter().enumerate().map(provider).collect(), default)
}

/// Few letters, so that prefixes meet.
fn prefixes() -> impl Strategy<Value = Vec<Vec<String>>> {
    prop::collection::vec(prop::collection::vec("[ab]{1,3}", 0..3), 2..4)
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

    #[test]
    fn node_with_id_belongs_to_the_only_claimant(prefixes in prefixes(), id in "[ab]{1,4}", label in "p[0-3]") {
        let owners = owners(&prefixes, 0);
        let claims = |all: &Vec<String>| all.iter().any(|prefix| id.starts_with(prefix.as_str()));
        let claimants: Vec<usize> = (0..prefixes.len()).filter(|place| claims(&prefixes[*place])).collect();
        let expected = if let [only] = claimants[..] { Some(only) } else { None };
        prop_assert_eq!(owners.place(Some(&id), Some(&label)), expected);
        prop_assert_eq!(owners.place(Some(&id), None), expected, "a label decides nothing beside an id");
    }

    #[test]
    fn ids_clash_only_where_it_is_told(prefixes in prefixes(), id in "[ab]{1,4}") {
        let owners = owners(&prefixes, 0);
        let claimants = prefixes.iter().filter(|all| all.iter().any(|prefix| id.starts_with(prefix.as_str())));
        if claimants.count() > 1 {
            prop_assert!(!owners.clashes().is_empty());
        }
    }

    #[test]
    fn node_without_id_belongs_to_its_label_or_the_default(prefixes in prefixes(), default in 0usize..5, label in prop::option::of("p[0-5]")) {
        let owners = owners(&prefixes, default);
        let named = |label: &String| (0..prefixes.len()).find(|place| format!("p{place}") == *label);
        let expected = match &label {
            Some(label) => named(label),
            None => Some(default).filter(|place| *place < prefixes.len()),
        };
        prop_assert_eq!(owners.place(None, label.as_deref()), expected);
    }
}
