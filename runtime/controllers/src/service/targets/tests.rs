//! Rows of upstream's `controllers/service/controller_test.go` about nodes (`docs/reference/upstream-tests.md`).

use cloudwit_model::short_list;

use super::*;
use crate::assign::PROVIDER;
use crate::kube::node::{NodeSpec, NodeStatus, NodeSystemInfo};
use k8s_openapi::api::core::v1::{NodeAddress, NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

/// A Node, changed by reading it as prose: `node("a").id("x").excluded("")`.
#[derive(Clone)]
struct Build(Node);

fn node(name: &str) -> Build {
    let mut node = Node {
        spec: Some(NodeSpec::default()),
        status: Some(NodeStatus::default()),
        ..Node::default()
    };
    node.metadata.name = Some(name.to_owned());
    Build(node)
}

impl Build {
    fn id(mut self, id: &str) -> Self {
        self.0.spec.get_or_insert_default().provider_id = (!id.is_empty()).then(|| id.to_owned());
        self
    }

    fn label(mut self, key: &str, value: &str) -> Self {
        let labels = self.0.labels.iter().chain([(key, value)]);
        self.0.labels = labels.collect();
        self
    }

    fn excluded(self, value: &str) -> Self {
        self.label(EXCLUSION_LABEL, value)
    }

    fn taint(mut self, key: &str) -> Self {
        let taint = Taint {
            key: key.to_owned(),
            effect: "NoSchedule".into(),
            ..Taint::default()
        };
        self.0
            .spec
            .get_or_insert_default()
            .taints
            .get_or_insert_default()
            .push(taint);
        self
    }

    fn condition(mut self, kind: &str, status: &str) -> Self {
        let conditions = self.0.status.get_or_insert_default().conditions.get_or_insert_default();
        conditions.push(NodeCondition {
            type_: kind.into(),
            status: status.into(),
            ..NodeCondition::default()
        });
        self
    }

    fn ready(self, status: &str) -> Self {
        self.condition("Ready", status)
    }

    fn deleted(mut self) -> Self {
        self.0.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        self
    }

    fn facts(&self) -> NodeFacts<'_> {
        NodeFacts::of(&self.0)
    }
}

fn set(nodes: &[Build]) -> TargetSet {
    TargetSet::of(nodes.iter().map(|node| &node.0))
}

fn names(nodes: &[Build]) -> String {
    short_list(&targets(nodes.iter().map(|node| &node.0)))
}

#[test]
fn the_stable_predicates_decide_who_receives_traffic() {
    for (node, expected, why) in [
        (node("a"), true, "no conditions"),
        (node("a").ready("True"), true, "ready"),
        (node("a").ready("True").id("x://1"), true, "ready, with provider id"),
        (node("a").ready("True").label("other", "x"), true, "another label"),
        (node("a").ready("False"), true, "readiness is for health checks"),
        (node("a").excluded(""), false, "exclusion label, empty"),
        (node("a").excluded("true"), false, "exclusion label, true"),
        (node("a").excluded("foo"), false, "exclusion label, no boolean"),
        (node("a").excluded("false"), true, "exclusion label, false"),
        (
            node("a").taint(AUTOSCALER_DELETES),
            false,
            "the autoscaler is about to remove it",
        ),
        (node("a").taint("other"), true, "another taint"),
        (node("a").deleted(), false, "being deleted"),
    ] {
        assert_eq!(eligible(&node.0), expected, "{why}");
    }
}

#[test]
fn the_exclusion_label_reads_booleans_as_go_does() {
    for value in ["", "true", "1", "t", "T", "TRUE", "yes", "no", "fALSE", "off", "00"] {
        assert!(!eligible(&node("a").excluded(value).0), "{value:?}");
    }
    for value in ["0", "f", "F", "false", "FALSE", "False"] {
        assert!(eligible(&node("a").excluded(value).0), "{value:?}");
    }
}

#[test]
fn target_sets_compare_names_and_provider_ids_and_nothing_else() {
    let two = [node("a").id("x://1"), node("b").id("x://2")];
    for (other, equal, why) in [
        (vec![node("b").id("x://2"), node("a").id("x://1")], true, "order"),
        (
            vec![node("a").id("x://1").ready("False"), node("b").id("x://2")],
            true,
            "became NotReady",
        ),
        (
            vec![node("a").id("x://1").ready("True"), node("b").id("x://2")],
            true,
            "became Ready",
        ),
        (
            vec![node("a").id("x://1").taint("other"), node("b").id("x://2")],
            true,
            "unrelated taint",
        ),
        (
            vec![node("a").id("x://1"), node("b").id("x://2"), node("c")],
            false,
            "node added",
        ),
        (vec![node("a").id("x://1")], false, "node gone"),
        (
            vec![node("a").id("x://1"), node("b").id("x://2").taint(AUTOSCALER_DELETES)],
            false,
            "autoscaler taint",
        ),
        (
            vec![node("a").id("x://1"), node("b").id("x://2").excluded("")],
            false,
            "exclusion label",
        ),
        (
            vec![node("a").id("x://1"), node("b").id("x://2").deleted()],
            false,
            "deletion timestamp",
        ),
        (
            vec![node("a").id("x://1"), node("c").id("x://2")],
            false,
            "one node replaced by another",
        ),
        (
            vec![node("a").id("x://1"), node("b").id("x://3")],
            false,
            "another machine under the same name",
        ),
    ] {
        assert_eq!(set(&two) == set(&other), equal, "{why}");
    }
    assert_ne!(set(&[node("a"), node("b")]), set(&two), "provider ids newly set");
}

/// Builds a Node from one that may already be tainted, excluded and so on.
type Base = fn(Build) -> Build;

#[test]
fn exclusion_label_and_provider_id_alone_trigger_update() {
    let alone: Base = |node| node;
    for (old, new, expected, why) in rows() {
        assert_eq!(
            old(alone(node("a"))).facts() != new(alone(node("a"))).facts(),
            expected,
            "{why}"
        );
    }
}

/// Weak spot S9: upstream takes such a Node out only when some other Node changes.
#[test]
fn node_marked_by_autoscaler_is_checked_and_so_is_a_spared_one() {
    let (before, after) = (node("a"), node("a").taint(AUTOSCALER_DELETES));
    assert_ne!(before.facts(), after.facts());
    assert_eq!(
        after.facts(),
        node("a").taint(AUTOSCALER_DELETES).taint("other").facts()
    );
}

#[test]
fn rule_holds_for_tainted_excluded_or_unready_nodes_too() {
    let bases: [(Base, &str); 3] = [
        (|node| node.taint(AUTOSCALER_DELETES), "tainted"),
        (|node| node.ready("False"), "not ready"),
        (|node| node.label("other", "x"), "without provider id"),
    ];
    for (base, name) in bases {
        for (old, new, expected, why) in rows() {
            assert_eq!(
                old(base(node("a"))).facts() != new(base(node("a"))).facts(),
                expected,
                "{name}: {why}"
            );
        }
    }
    let excluded = || node("a").excluded("");
    assert_ne!(excluded().facts(), node("a").facts(), "excluded: label taken off");
    assert_ne!(
        excluded().facts(),
        excluded().id("x://1").facts(),
        "excluded: provider id set"
    );
    for (other, why) in [
        (excluded().ready("False"), "becomes NotReady"),
        (excluded().ready("True"), "becomes Ready"),
        (excluded().deleted(), "deleted"),
    ] {
        assert_eq!(excluded().facts(), other.facts(), "excluded: {why}");
    }
}

type Row = (Base, Base, bool, &'static str);

fn rows() -> Vec<Row> {
    vec![
        (|n| n, |n| n, false, "nothing"),
        (|n| n, |n| n.excluded(""), true, "exclusion label on"),
        (|n| n.excluded(""), |n| n, true, "exclusion label off"),
        (
            |n| n.excluded(""),
            |n| n.excluded("true"),
            false,
            "exclusion label stays",
        ),
        (
            |n| n.excluded("false"),
            |n| n,
            false,
            "an exclusion label of false is none",
        ),
        (|n| n, |n| n.id("x://1"), true, "provider id set"),
        (|n| n.id(""), |n| n.id("x://1"), true, "provider id set, was empty"),
        (|n| n.id("x://1"), |n| n, true, "provider id unset"),
        (|n| n.id("x://1"), |n| n.id("x://2"), true, "provider id changed"),
        (|n| n, |n| n.taint("other"), false, "other taint on"),
        (|n| n.taint("other"), |n| n, false, "other taint off"),
        (|n| n, |n| n.label("other", "x"), false, "other label on"),
        (|n| n.label("other", "x"), |n| n, false, "other label off"),
        (|n| n.ready("False"), |n| n.ready("False"), false, "stays NotReady"),
        (|n| n.ready("False"), |n| n, false, "readiness unset"),
        (|n| n, |n| n.ready("False"), false, "becomes NotReady"),
        (|n| n.ready("False"), |n| n.ready("True"), false, "becomes Ready"),
        (|n| n.ready("True"), |n| n.ready("False"), false, "stops being Ready"),
        (
            |n| n.ready("True"),
            |n| n.ready("True").condition("Other", "True"),
            false,
            "other condition while Ready",
        ),
        (
            |n| n.ready("True").condition("Other", "True"),
            |n| n.ready("True").condition("Other", "False"),
            false,
            "it flips",
        ),
        (
            |n| n.ready("False"),
            |n| n.ready("False").condition("Other", "True"),
            false,
            "other condition while NotReady",
        ),
        (
            |n| n.ready("False").condition("Other", "True"),
            |n| n.ready("False"),
            false,
            "it goes",
        ),
        (|n| n, |n| n.deleted(), false, "deletion timestamp"),
    ]
}

#[test]
fn only_eligible_nodes_are_picked_whatever_their_order() {
    let nodes = [
        node("e"),
        node("b").excluded(""),
        node("a").id("x://1").ready("True"),
        node("d").deleted(),
        node("c"),
    ];
    let targets = targets(nodes.iter().map(|node| &node.0));
    let names: Vec<(&str, bool)> = targets
        .iter()
        .map(|target| (target.node.name.as_str(), target.ready))
        .collect();
    assert_eq!(names, [("a", true), ("c", false), ("e", false)]);
    assert_eq!(targets[0].node.provider_id.as_deref(), Some("x://1"));
    let picked = [node("a").id("x://1"), node("c"), node("e")];
    assert_eq!(set(&nodes), set(&picked), "the set and the list agree");
    assert_eq!(set(&nodes).len(), 3);
}

#[test]
fn at_most_twenty_node_names_are_listed() {
    let nodes = |count: usize| {
        (0..count)
            .map(|index| node(&format!("n{index:02}")))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), "");
    assert_eq!(names(&nodes(2)), "n00 n01");
    assert!(names(&nodes(20)).ends_with("n18 n19"));
    assert!(names(&nodes(27)).ends_with("n18 n19 <7 more>"));
}

#[test]
fn set_of_five_thousand_nodes_contains_each() {
    let nodes = || (0..5000).map(|index| node(&format!("n{index:04}")).id(&format!("x://{index}")));
    let all = set(&nodes().collect::<Vec<_>>());
    assert_eq!(all.len(), 5000);
    assert_eq!(all, set(&nodes().rev().collect::<Vec<_>>()), "in any order");
    let without = |gone: usize| {
        set(&nodes()
            .enumerate()
            .filter(|(at, _)| *at != gone)
            .map(|(_, node)| node)
            .collect::<Vec<_>>())
    };
    assert_ne!(without(2500), without(2501), "of two sets of one size");
    let mut renewed: Vec<Build> = nodes().collect();
    renewed[4999] = node("n4999").id("x://new");
    assert_ne!(all, set(&renewed), "another machine behind the last name");
    let swapped = [node("a").id("x://2"), node("b").id("x://1")];
    let straight = [node("a").id("x://1"), node("b").id("x://2")];
    assert_ne!(set(&swapped), set(&straight), "the same words, dealt otherwise");
}

#[test]
fn node_update_matters_if_provider_input_changes() {
    let address = |mut node: Build, ip: &str| {
        let address = NodeAddress {
            address: ip.into(),
            type_: "InternalIP".into(),
        };
        node.0.status.get_or_insert_default().addresses = Some(vec![address]);
        node
    };
    let uuid = |mut node: Build, uuid: &str| {
        let info = NodeSystemInfo {
            system_uuid: uuid.into(),
        };
        node.0.status.get_or_insert_default().node_info = Some(info);
        node
    };
    let old = address(uuid(node("a").id("x://1").ready("True"), "u1"), "10.0.0.1");
    for (new, same, why) in [
        (old.clone(), true, "nothing"),
        (old.clone().label("other", "x"), true, "another label"),
        (old.clone().taint("other"), true, "another taint"),
        (
            old.clone().condition("NetworkUnavailable", "False"),
            true,
            "another condition",
        ),
        (old.clone().id("x://2"), false, "provider id"),
        (old.clone().excluded(""), false, "exclusion label"),
        (old.clone().taint(AUTOSCALER_DELETES), false, "the autoscaler's taint"),
        (old.clone().deleted(), false, "deletion"),
        (address(old.clone(), "10.0.0.2"), false, "address"),
        (uuid(old.clone(), "u2"), false, "number of the machine"),
        (
            old.clone().label(PROVIDER, "x"),
            false,
            "label with the provider's name",
        ),
        (
            address(uuid(node("a").id("x://1").ready("False"), "u1"), "10.0.0.1"),
            false,
            "readiness",
        ),
    ] {
        assert_eq!(same_target(&old.0, &new.0), same, "{why}");
        let told = |node: &Build| targets([&node.0]);
        assert_eq!(told(&old) == told(&new), same, "{why}: what a provider is told");
    }
}
