//! Explanations of Nodes by the node controller. Pure; all of them continue `Node NAME `.

use cloudwit_model::ProviderIdentity;

use crate::kube::node::Node;
use crate::kube::node::view::{UNINITIALIZED, belongs_to, has_taint, provider_id, taints};
use crate::queue::KeyState;
use crate::report::explain::{next_try, span, times};
use crate::report::waiting::StillWaiting;

/// What the controller of first contact has to say.
pub fn initialisation(
    node: &Node,
    provider: &ProviderIdentity,
    waiting: Option<&StillWaiting>,
    queued: Option<KeyState>,
) -> String {
    let name = &provider.name;
    if !belongs_to(node, provider) {
        let id = provider_id(node).map(|id| id.to_string()).unwrap_or_default();
        return format!("is left alone: its provider id {id} is not one of provider {name}.");
    }
    if !has_taint(node, UNINITIALIZED) {
        return match taint_of_others(node) {
            Some(key) => {
                format!("is initialised. Its taint {key} is another one, which another controller takes away.")
            }
            None => "is initialised.".into(),
        };
    }
    let next = next_try(queued);
    match waiting {
        Some(StillWaiting {
            waited,
            attempts,
            cause,
        }) => {
            let reason = &cause.reason;
            let (waited, tries) = (span(*waited), times(*attempts));
            format!(
                "waits to be initialised since {waited}{tries}. Last answer of provider {name}: {reason}. \
                 {next}"
            )
        }
        None => format!("waits to be initialised; provider {name} has not answered about it yet. {next}"),
    }
}

/// A taint that looks like ours and is not: Cluster API has one too.
fn taint_of_others(node: &Node) -> Option<&str> {
    let mut keys = taints(node).iter().map(|taint| taint.key.as_str());
    keys.find(|key| *key != UNINITIALIZED && key.ends_with("/uninitialized"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::queue::KeyPlace;
    use crate::testing::node;

    fn provider() -> ProviderIdentity {
        ProviderIdentity {
            name: "sim".into(),
            provider_id_prefixes: vec!["sim://".into()],
            ..ProviderIdentity::default()
        }
    }

    fn queued(place: KeyPlace) -> Option<KeyState> {
        Some(KeyState {
            place,
            failures: 4,
            unfinished: Duration::from_secs(190),
        })
    }

    #[test]
    fn hcloud_611_another_uninitialized_taint_is_named() {
        let other = "node.cluster.x-k8s.io/uninitialized";
        let text = |taints: &[&str]| initialisation(&node("a", "True", taints), &provider(), None, None);
        assert_eq!(
            text(&[other]),
            "is initialised. Its taint node.cluster.x-k8s.io/uninitialized is another one, which another controller takes away."
        );
        assert!(text(&[other, UNINITIALIZED]).starts_with("waits to be initialised"));
        assert_eq!(text(&["example.com/other"]), "is initialised.");
    }

    #[test]
    fn waiting_node_shows_since_reason_and_next_attempt() {
        let waiting = StillWaiting {
            waited: Duration::from_secs(190),
            attempts: 4,
            cause: "unavailable: no route to host".into(),
        };
        let new = node("node-7", "False", &[UNINITIALIZED]);
        let next = queued(KeyPlace::Waiting(Duration::from_secs(42)));
        assert_eq!(
            initialisation(&new, &provider(), Some(&waiting), next),
            "waits to be initialised since 3 m 10 s (4 tries). Last answer of provider sim: unavailable: no route to host. \
             Next try in 42 s."
        );
        assert_eq!(
            initialisation(&new, &provider(), None, queued(KeyPlace::Ready)),
            "waits to be initialised; provider sim has not answered about it yet. It is worked on as soon as a worker is free."
        );
        let old = node("a", "True", &[]);
        assert_eq!(initialisation(&old, &provider(), None, None), "is initialised.");
        let mut foreign = node("a", "True", &[UNINITIALIZED]);
        foreign.spec.as_mut().unwrap().provider_id = Some("aws:///z/i-1".into());
        assert_eq!(
            initialisation(&foreign, &provider(), None, None),
            "is left alone: its provider id aws:///z/i-1 is not one of provider sim."
        );
    }
}
