//! Which provider looks after which Node. A snapshot: taken once for a pass over all Nodes, then asked for each of them.
//!
//! A Node that carries a provider id belongs to the provider that gives out ids with such a prefix, and to nobody where there is
//! none. A Node without an id belongs to the provider named by its label [`PROVIDER`], else to the default. So a provider is never asked
//! about a machine of another cloud, and its "there is none" can never be about one.

use crate::{Abilities, NodeRef, ProviderIdentity};

/// Label of a Node that has no provider id yet, and annotation of a Service: the name of the provider that shall look after it.
pub const PROVIDER: &str = "cloudwit.dev/provider";

/// All providers of a process, with the Nodes that are theirs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owners {
    providers: Vec<ProviderIdentity>,
    abilities: Vec<Abilities>,
    default: usize,
}

impl Owners {
    /// One provider for everything but Nodes with ids that it does not give out. Without prefixes it has those as well, as upstream.
    pub fn single(provider: ProviderIdentity, abilities: Abilities) -> Self {
        Self {
            providers: vec![provider],
            abilities: vec![abilities],
            default: 0,
        }
    }

    /// Several providers; `default` is the place of the one that gets what names no other. Their names differ.
    pub fn several(providers: Vec<(ProviderIdentity, Abilities)>, default: usize) -> Self {
        let (providers, abilities) = providers.into_iter().unzip();
        Self {
            providers,
            abilities,
            default,
        }
    }

    /// All of them, always in the same order.
    pub fn providers(&self) -> &[ProviderIdentity] {
        &self.providers
    }

    /// Whether there is more than one.
    pub fn are_several(&self) -> bool {
        self.providers.len() > 1
    }

    /// What the provider at this place can be asked.
    pub fn abilities(&self, place: usize) -> Abilities {
        self.abilities.get(place).copied().unwrap_or_default()
    }

    /// The place of a Node's provider among [`providers`](Self::providers). `provider_id` is `spec.providerID`, `label` the value of the
    /// label [`PROVIDER`], which only matters with several providers. None: the Node is none of ours.
    pub fn place(&self, provider_id: Option<&str>, label: Option<&str>) -> Option<usize> {
        let place = match (provider_id, label) {
            (Some(id), _) => self.place_of_id(id),
            (None, Some(name)) if self.are_several() => self.providers.iter().position(|one| one.name == name),
            (None, _) => Some(self.default),
        };
        place.filter(|place| *place < self.providers.len())
    }

    /// The place of the provider of a Node as providers see it.
    pub(crate) fn place_of(&self, node: &NodeRef) -> Option<usize> {
        self.place(node.provider_id.as_deref(), node.provider.as_deref())
    }

    /// With several providers one without prefixes owns no id: nobody could tell its machines from those of the others. An id that two
    /// claim (a swap can bring that about) is nobody's, so that neither can say that the other's machine is gone.
    pub(crate) fn place_of_id(&self, id: &str) -> Option<usize> {
        if let [only] = self.providers.as_slice()
            && only.provider_id_prefixes.is_empty()
        {
            return Some(0);
        }
        let claims = |one: &ProviderIdentity| {
            one.provider_id_prefixes
                .iter()
                .any(|prefix| id.starts_with(prefix.as_str()))
        };
        let mut places = (0..self.providers.len()).filter(|place| claims(&self.providers[*place]));
        places.next().filter(|_| places.next().is_none())
    }

    /// Pairs of providers that would claim the same ids, in one sentence each. Empty when every id has one owner at most.
    pub fn clashes(&self) -> Vec<String> {
        let mut clashes = Vec::new();
        for (at, one) in self.providers.iter().enumerate() {
            for other in &self.providers[at + 1..] {
                let pairs = one
                    .provider_id_prefixes
                    .iter()
                    .flat_map(|mine| other.provider_id_prefixes.iter().map(move |theirs| (mine, theirs)));
                for (mine, theirs) in pairs.filter(|(mine, theirs)| overlap(mine, theirs)) {
                    let (one, other) = (&one.name, &other.name);
                    clashes.push(format!(
                        "providers {one:?} and {other:?} both give out provider ids that begin with {:?}; say which ids are whose \
                         with providerIDPrefixes under routing.nodes",
                        if mine.len() > theirs.len() { mine } else { theirs }
                    ));
                }
            }
        }
        clashes
    }
}

fn overlap(one: &str, other: &str) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(name: &str, prefixes: &[&str]) -> (ProviderIdentity, Abilities) {
        let identity = ProviderIdentity {
            name: name.into(),
            provider_id_prefixes: prefixes.iter().map(|prefix| (*prefix).to_owned()).collect(),
            ..ProviderIdentity::default()
        };
        (identity, Abilities::default())
    }

    fn name<'a>(owners: &'a Owners, id: Option<&str>, label: Option<&str>) -> Option<&'a str> {
        owners
            .place(id, label)
            .map(|place| owners.providers()[place].name.as_str())
    }

    #[test]
    fn an_id_decides_before_a_label_and_a_label_before_the_default() {
        let owners = Owners::several(vec![provider("a", &["a://", "old-a://"]), provider("b", &["b://"])], 1);
        assert_eq!(name(&owners, Some("a://1"), None), Some("a"));
        assert_eq!(name(&owners, Some("old-a://1"), Some("b")), Some("a"));
        assert_eq!(name(&owners, None, Some("a")), Some("a"));
        assert_eq!(name(&owners, None, None), Some("b"));
        assert_eq!(
            name(&owners, Some("c://1"), None),
            None,
            "nobody's id is not the default's"
        );
        assert_eq!(
            name(&owners, Some("c://1"), Some("a")),
            None,
            "a label does not make it anybody's"
        );
        assert_eq!(
            name(&owners, None, Some("c")),
            None,
            "a wrong name is not the default's"
        );
    }

    #[test]
    fn a_single_provider_without_prefixes_has_every_node_and_one_of_several_has_none_by_id() {
        let single = Owners::single(provider("a", &[]).0, Abilities::default());
        assert_eq!(name(&single, Some("x://1"), Some("b")), Some("a"));
        assert_eq!(
            name(&single, None, Some("b")),
            Some("a"),
            "there is nothing to choose from"
        );
        let several = Owners::several(vec![provider("a", &[]), provider("b", &["b://"])], 0);
        assert_eq!(name(&several, Some("x://1"), None), None);
        assert_eq!(name(&several, None, None), Some("a"));
        assert_eq!(name(&Owners::default(), None, None), None);
    }

    #[test]
    fn overlapping_prefixes_are_named_with_the_way_out() {
        let clashes = |a: &[&str], b: &[&str]| Owners::several(vec![provider("a", a), provider("b", b)], 0).clashes();
        assert!(clashes(&["a://"], &["b://"]).is_empty());
        assert!(clashes(&[], &["b://"]).is_empty());
        let both = Owners::several(vec![provider("a", &["os://"]), provider("b", &["os://b/"])], 0);
        assert_eq!(name(&both, Some("os://b/1"), None), None, "neither may judge it");
        let equal = clashes(&["os://"], &["b://", "os://"]);
        assert_eq!(equal.len(), 1, "{equal:?}");
        assert!(
            equal[0].contains("\"a\" and \"b\"") && equal[0].contains("\"os://\""),
            "{equal:?}"
        );
        assert!(clashes(&["os://"], &["os://north/"])[0].contains("os://north/"));
    }
}
