//! Explanations of Nodes by the lifecycle controller. Pure; all of them continue `Node NAME `.

use std::time::Duration;

use cloudwit_model::ProviderIdentity;

use crate::kube::node::Node;
use crate::kube::node::view::{
    ABSENT, Readiness, SHUTDOWN, UNINITIALIZED, belongs_to, has_taint, provider_id, readiness,
};
use crate::lifecycle::brake::{Brake, SuspectedAbsence};
use crate::options::NodeDeletion;
use crate::report::explain::span;

/// State of the lifecycle controller beside the Node.
#[derive(Debug, Clone, Default)]
pub struct ExplainFacts {
    /// Time until the next look, when a look-up has failed, and why it did.
    pub failed: Option<(Duration, String)>,
    /// Whether the deletion brake is engaged.
    pub brake: Option<Brake>,
    /// For how long a machine has to be gone.
    pub confirm_after: Duration,
    /// What happens then.
    pub then: NodeDeletion,
}

/// What the lifecycle controller has to say; nothing about Nodes that it does not look at.
pub fn lifecycle(
    node: &Node,
    provider: &ProviderIdentity,
    seen: Option<&SuspectedAbsence>,
    known: &ExplainFacts,
) -> Option<String> {
    if node.metadata.deletion_timestamp.is_some() {
        let finalizers = node.metadata.finalizers.as_deref().unwrap_or_default();
        return Some(format!(
            "is being deleted and goes when its finalizers do: {}.",
            finalizers.join(", ")
        ));
    }
    if !belongs_to(node, provider) || has_taint(node, UNINITIALIZED) {
        return None;
    }
    if readiness(node) == Readiness::Ready {
        return Some("is Ready; its machine is not looked up.".into());
    }
    let mut text = match seen {
        Some(seen) => gone(node, seen, known),
        None if has_taint(node, SHUTDOWN) => "is not Ready; the cloud says that its machine is stopped.".into(),
        None if has_taint(node, ABSENT) => format!("is not Ready and carries the taint {ABSENT}."),
        None => "is not Ready; the cloud has not said that its machine is gone, so it stays.".into(),
    };
    if let Some((next, failure)) = &known.failed {
        text += &format!(" The last look-up failed: {failure}. Next try in {}.", span(*next));
    }
    Some(text)
}

fn gone(node: &Node, seen: &SuspectedAbsence, known: &ExplainFacts) -> String {
    let id = provider_id(node).map(|id| id.to_string()).unwrap_or_default();
    let times = if seen.answers == 1 {
        "once"
    } else {
        &format!("{} times", seen.answers)
    };
    let since = span(seen.since);
    let said = format!("is not Ready; the cloud said {times} since {since} that machine {id} does not exist;");
    let then = match (known.then, known.brake) {
        (NodeDeletion::Off, _) => "nothing will follow, deletion is switched off.".into(),
        (NodeDeletion::Taint, _) => format!(
            "it gets the taint {ABSENT} when this is confirmed after {}.",
            span(known.confirm_after)
        ),
        (NodeDeletion::Delete, Some(brake)) if seen.held => format!(
            "held by the deletion brake: {} Nodes seem gone and {} were deleted, {} may go. Check the cloud and its credentials; \
             if the machines are really gone, delete the Nodes by hand.",
            brake.absent, brake.deleted, brake.allowed
        ),
        (NodeDeletion::Delete, _) => match seen.not_before {
            Some(pause) => format!("deleting it has failed; next try in {}.", span(pause)),
            None => format!(
                "it will be deleted when this is confirmed after {}.",
                span(known.confirm_after)
            ),
        },
    };
    format!("{said} {then}")
}

/// What the lifecycle controller has to say about a Node that never got a provider id and whose machine it does not find by its name.
pub fn gone_by_name(seen: &SuspectedAbsence, grace: Duration) -> String {
    let times = match seen.answers {
        1 => "once".to_owned(),
        answers => format!("{answers} times"),
    };
    let since = span(seen.since);
    let said = format!(
        "is not Ready and never got a provider id; the cloud said {times} since {since} that it has no machine of this name;"
    );
    let then = match seen.not_before {
        _ if seen.held => "held by the deletion brake: too many Nodes seem gone. Check the cloud and its credentials; if the machines are \
                           really gone, delete the Nodes by hand."
            .to_owned(),
        Some(pause) => format!("deleting it has failed; next try in {}.", span(pause)),
        None => format!("it will be deleted when every check says so for {}.", span(grace)),
    };
    format!("{said} {then}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::node;

    fn provider() -> ProviderIdentity {
        ProviderIdentity {
            name: "sim".into(),
            provider_id_prefixes: vec!["sim://".into()],
            ..ProviderIdentity::default()
        }
    }

    #[test]
    fn node_whose_machine_is_gone_reports_what_follows() {
        let mut seen = SuspectedAbsence {
            answers: 3,
            since: Duration::from_secs(80),
            held: false,
            not_before: None,
        };
        let mut known = ExplainFacts {
            confirm_after: Duration::from_secs(120),
            then: NodeDeletion::Delete,
            ..ExplainFacts::default()
        };
        let dead = node("vm-3", "Unknown", &[]);
        let say =
            |seen: &SuspectedAbsence, known: &ExplainFacts| lifecycle(&dead, &provider(), Some(seen), known).unwrap();
        let begin = "is not Ready; the cloud said 3 times since 1 m 20 s that machine sim://vm-3 does not exist;";
        assert_eq!(
            say(&seen, &known),
            format!("{begin} it will be deleted when this is confirmed after 2 m.")
        );
        known.brake = Some(Brake {
            absent: 40,
            deleted: 0,
            allowed: 10,
        });
        seen.held = true;
        let held = format!("{begin} held by the deletion brake: 40 Nodes seem gone and 0 were deleted, 10 may go.");
        assert!(say(&seen, &known).starts_with(&held), "{}", say(&seen, &known));
        known.then = NodeDeletion::Off;
        known.failed = Some((Duration::from_secs(9), "unavailable: down".into()));
        assert_eq!(
            say(&seen, &known),
            format!(
                "{begin} nothing will follow, deletion is switched off. The last look-up failed: unavailable: down. Next try in 9 s."
            )
        );
    }

    #[test]
    fn node_that_is_not_found_by_name_reports_when_it_goes() {
        let mut seen = SuspectedAbsence {
            answers: 3,
            since: Duration::from_secs(600),
            held: false,
            not_before: None,
        };
        let begin = "is not Ready and never got a provider id; the cloud said 3 times since 10 m that it has no machine of this name;";
        let say = |seen: &SuspectedAbsence| gone_by_name(seen, Duration::from_secs(3600));
        assert_eq!(
            say(&seen),
            format!("{begin} it will be deleted when every check says so for 1 h.")
        );
        seen.not_before = Some(Duration::from_secs(9));
        assert_eq!(say(&seen), format!("{begin} deleting it has failed; next try in 9 s."));
        seen.held = true;
        assert!(say(&seen).starts_with(&format!("{begin} held by the deletion brake")));
    }

    #[test]
    fn ready_or_uninitialised_node_is_not_lifecycle_work() {
        let known = ExplainFacts::default();
        let say = |node: &Node| lifecycle(node, &provider(), None, &known);
        assert_eq!(
            say(&node("a", "True", &[])).unwrap(),
            "is Ready; its machine is not looked up."
        );
        assert_eq!(say(&node("a", "False", &[UNINITIALIZED])), None);
        let mut dying = node("a", "False", &[]);
        dying.metadata.deletion_timestamp = serde_json::from_value(serde_json::json!("2026-01-01T00:00:00Z")).unwrap();
        dying.metadata.finalizers = Some(vec!["x/y".into()]);
        assert_eq!(
            say(&dying).unwrap(),
            "is being deleted and goes when its finalizers do: x/y."
        );
        assert!(say(&node("a", "False", &[SHUTDOWN])).unwrap().contains("is stopped"));
    }
}
