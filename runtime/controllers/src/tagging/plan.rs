//! What a Node's tags need: the digest on its label, and what a failure means for it. Pure.

use std::time::Duration;

use cloudwit_model::{Failure, ProviderIdentity, TagChange};

use crate::kube::node::Node;
use crate::kube::node::view::provider_id_text;

/// Label of a Node with the digest of the tags that its machine has, where the provider names no other.
pub const TAGS_LABEL: &str = "cloudwit.dev/tags";

/// So long after a Node's creation its machine may not be known to the cloud yet (upstream's `newNodeEventualConsistencyGracePeriod`).
const GRACE: Duration = Duration::from_secs(300);

/// Between the Node's name and the provider id in the key of a machine that is to lose its tags. No Node's name has one.
const GONE: char = '/';

/// The label under which a provider's Nodes show the digest.
pub fn label(provider: &ProviderIdentity) -> &str {
    provider.tagging_label.as_deref().unwrap_or(TAGS_LABEL)
}

/// Whether the Node's machine may lack the tags of this digest.
pub fn needs_tags(node: &Node, label: &str, digest: &str) -> bool {
    provider_id_text(node).is_some() && node.labels.get(label) != Some(digest)
}

/// Whether a change of the Node is a reason to tag its machine: one that waits or failed is in the queue already.
pub fn is_news(old: &Node, new: &Node, label: &str, digest: &str) -> bool {
    needs_tags(new, label, digest)
        && (!needs_tags(old, label, digest)
            || old.metadata.uid != new.metadata.uid
            || provider_id_text(old) != provider_id_text(new))
}

/// The key of the machine of a Node that is gone; none without a provider id.
pub fn gone_key(node: &Node) -> Option<String> {
    let name = node.metadata.name.as_deref()?;
    Some(format!("{name}{GONE}{}", provider_id_text(node)?))
}

/// What a key of the queue stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work<'a> {
    /// The Node's machine gets the tags.
    Tag {
        /// Its name.
        node: &'a str,
    },
    /// A machine loses them.
    Untag {
        /// The name that its Node had.
        node: &'a str,
        /// The machine.
        provider_id: &'a str,
    },
}

impl<'a> Work<'a> {
    /// What this key stands for.
    pub fn of(key: &'a str) -> Self {
        match key.split_once(GONE) {
            Some((node, provider_id)) => Self::Untag { node, provider_id },
            None => Self::Tag { node: key },
        }
    }

    /// The Node's name.
    pub fn node(self) -> &'a str {
        match self {
            Self::Tag { node } | Self::Untag { node, .. } => node,
        }
    }
}

/// Whether another try cannot help, as upstream decides it: the machine is gone, has an impossible id, or carries no tags. `age` is the Node's.
pub fn is_final(change: TagChange, failure: &Failure, age: Option<Duration>) -> bool {
    match failure {
        Failure::NotFound(_) => change == TagChange::Remove || age.is_none_or(|age| age >= GRACE),
        Failure::Invalid(_) | Failure::ImplementedElsewhere(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::node;

    fn labelled(value: &str) -> Node {
        let mut node = node("a", "True", &[]);
        node.labels = [(TAGS_LABEL, value)].into_iter().collect();
        node
    }

    #[test]
    fn node_needs_tags_until_its_label_has_the_digest() {
        let needs = |node: &Node| needs_tags(node, TAGS_LABEL, "d");
        assert!(needs(&node("a", "True", &[])) && needs(&labelled("other")));
        assert!(!needs(&labelled("d")));
        let mut new = node("a", "True", &[]);
        new.spec.get_or_insert_default().provider_id = None;
        assert!(!needs(&new), "no machine is known");
    }

    #[test]
    fn only_a_change_of_label_machine_or_node_is_news() {
        let news = |old: &Node, new: &Node| is_news(old, new, TAGS_LABEL, "d");
        let bare = node("a", "True", &[]);
        assert!(!news(&bare, &bare), "it waits already");
        assert!(news(&labelled("d"), &bare), "somebody took the label away");
        assert!(!news(&bare, &labelled("d")));
        let mut other = bare.clone();
        other.metadata.uid = Some("another".into());
        assert!(news(&bare, &other));
        let mut without = bare.clone();
        without.spec.get_or_insert_default().provider_id = None;
        assert!(news(&without, &bare), "its machine is known now");
    }

    #[test]
    fn keys_tell_nodes_from_machines_of_gone_nodes() {
        assert_eq!(Work::of("a"), Work::Tag { node: "a" });
        let key = gone_key(&node("a", "True", &[])).unwrap();
        let work = Work::of(&key);
        assert_eq!(
            work,
            Work::Untag {
                node: "a",
                provider_id: "sim://a"
            }
        );
        assert_eq!(work.node(), "a");
        let mut bare = node("a", "True", &[]);
        bare.spec.get_or_insert_default().provider_id = None;
        assert_eq!(gone_key(&bare), None);
    }

    /// Upstream's `tagEc2Instance` and `untagEc2Instance`.
    #[test]
    fn missing_machine_is_final_only_for_old_or_gone_nodes() {
        use TagChange::{Add, Remove};
        let missing = Failure::NotFound("no such instance".into());
        let after = |seconds| Some(Duration::from_secs(seconds));
        assert!(!is_final(Add, &missing, after(299)));
        assert!(is_final(Add, &missing, after(300)));
        assert!(is_final(Remove, &missing, None));
        for last in [
            Failure::Invalid("i-bad".into()),
            Failure::ImplementedElsewhere("Fargate".into()),
        ] {
            assert!(is_final(Add, &last, after(1)), "{last}");
        }
        for again in [Failure::Denied("no".into()), Failure::Unavailable("down".into())] {
            assert!(!is_final(Remove, &again, None), "{again}");
        }
    }
}
