//! Look-ups against a cloud with a handful of machines.

use std::cell::RefCell;

use super::*;
use crate::prelude::*;
use crate::testing::FakeHost;

/// The cloud's answer for an id or a name.
type Say = fn(&str) -> Vec<&str>;

/// Each machine is its id, a `/` and its name.
struct Lab {
    say: Say,
    asked: RefCell<Vec<String>>,
}

impl Provider for Lab {
    type Config = NoConfig;

    fn describe(_: Option<&NoConfig>) -> Description {
        Description::new("lab", "1")
    }

    fn new(_: NoConfig, _: Context) -> Result<Self, Failure> {
        Ok(lab(|_| vec![]))
    }

    fn probe(&self) -> Result<(), Failure> {
        Ok(())
    }
}

fn lab(say: Say) -> Lab {
    Lab {
        say,
        asked: RefCell::default(),
    }
}

impl Lab {
    fn ask(&self, keys: &[impl AsRef<str>]) {
        let keys: Vec<&str> = keys.iter().map(AsRef::as_ref).collect();
        self.asked.borrow_mut().push(keys.join(" "));
    }
}

impl Machines for Lab {
    type Machine = String;

    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure> {
        match node.name.strip_prefix("id-of-") {
            Some(id) if node.provider_id.is_none() => Ok(Key::Id(id)),
            _ => Key::of(node, "lab://"),
        }
    }

    fn batch(&self) -> Batch {
        Batch {
            ids: 2,
            bytes: 28,
            ..Batch::default()
        }
    }

    fn by_ids(&self, ids: &[Id<'_>], answers: &mut Answers<'_, String>) -> Result<(), Failure> {
        self.ask(ids);
        for id in ids {
            for word in (self.say)(id.as_str()) {
                match word {
                    "no" => answers.denied(*id),
                    "busy" => answers.failed(Key::Id(id.as_str()), Failure::unavailable("busy")),
                    "down" => return Err(Failure::unavailable("down")),
                    machine => answers.found(Key::Id(id.as_str()), machine.into()),
                }
            }
        }
        Ok(())
    }

    fn by_names(&self, names: &[Name<'_>], answers: &mut Answers<'_, String>) -> Result<(), Failure> {
        self.ask(names);
        for name in names {
            for machine in (self.say)(name.name) {
                answers.found(Key::Name(name.name), machine.into());
            }
        }
        // What was not requested is ignored.
        answers.found(Key::Name("stranger"), "s/stranger".into());
        Ok(())
    }

    fn label(&self, machine: &String) -> String {
        machine.split('/').next().unwrap().into()
    }

    fn describe(&self, found: &[Found<'_, String>]) -> Result<Vec<Result<Existing, Failure>>, Failure> {
        self.ask(&["describe", &found.len().to_string()]);
        let existing = |found: &Found<'_, String>| match found.machine.as_str() {
            "odd" => Err(Failure::other("odd")),
            machine if machine.contains("off") => Ok(Existing::Stopped(Instance::new("lab://own"))),
            machine => Ok(Existing::Running(Instance::new(format!("lab://{machine}")))),
        };
        let told = found.iter().filter(|found| !found.machine.contains("unspoken"));
        Ok(told.map(existing).collect())
    }
}

fn by_id(id: &str) -> NodeRef {
    NodeRef::named("n").with_provider_id(format!("lab://{id}"))
}

fn words(answers: Vec<Result<Presence, Failure>>) -> Vec<String> {
    let word = |answer| match answer {
        Ok(Presence::Running(instance)) => format!("{} runs", instance.provider_id),
        Ok(Presence::Stopped(instance)) => format!("{} stopped", instance.provider_id),
        Ok(Presence::Absent(evidence)) => format!("{evidence:?}"),
        Err(Failure { kind, message, .. }) => format!("{kind:?}: {message}"),
    };
    answers.into_iter().map(word).collect()
}

#[test]
fn answers_keep_order_and_each_key_is_requested_once_in_batches() {
    let _host = FakeHost::new();
    let cloud = lab(|key| match key {
        "1" => vec!["1/one"],
        "3" => vec!["off"],
        "two" => vec!["2/two"],
        _ => vec!["no"],
    });
    let nodes = [
        by_id("3"),
        NodeRef::named("two"),
        by_id("1"),
        by_id("9"),
        NodeRef::named("two"),
        by_id("3"),
    ];
    let answers = words(cloud.lookup(&nodes).unwrap());
    assert_eq!(
        answers,
        [
            "lab://3 stopped",
            "lab://2/two runs",
            "lab://1 runs",
            "Evidence::ById",
            "lab://2/two runs",
            "lab://3 stopped"
        ]
    );
    assert_eq!(*cloud.asked.borrow(), ["3 1", "9", "two", "describe 3"]);
}

#[test]
fn long_keys_take_more_requests() {
    let _host = FakeHost::new();
    let cloud = lab(|_| vec![]);
    let names = [
        "a-name-of-17-bytes",
        "b",
        "c",
        "a-name-that-is-longer-than-a-whole-batch",
        "d",
    ];
    let answers = cloud.lookup(&names.map(NodeRef::named)).unwrap();
    assert_eq!(words(answers), ["Evidence::ByName"; 5]);
    assert_eq!(
        *cloud.asked.borrow(),
        [
            "a-name-of-17-bytes b",
            "c",
            "a-name-that-is-longer-than-a-whole-batch",
            "d"
        ]
    );
}

#[test]
fn absence_by_id_needs_a_denial_of_the_nodes_own_id() {
    let _host = FakeHost::new();
    let cloud = lab(|key| match key {
        "gone" => vec!["no"],
        "busy" => vec!["no", "busy"],
        "back" => vec!["no", "busy", "4/back"],
        _ => vec![],
    });
    let nodes = [
        by_id("gone"),
        NodeRef::named("id-of-gone"),
        by_id("silent"),
        by_id("busy"),
        by_id("back"),
        NodeRef::named("nobody"),
    ];
    let answers = words(cloud.lookup(&nodes).unwrap());
    assert_eq!(
        answers,
        [
            "Evidence::ById",
            "Evidence::ByName",
            "FailureKind::Unavailable: the machine silent was neither described nor denied",
            "FailureKind::Unavailable: busy",
            "lab://back runs",
            "Evidence::ByName",
        ]
    );
}

#[test]
fn several_machines_of_one_name_are_a_failure_with_their_ids() {
    let _host = FakeHost::new();
    let cloud = lab(|key| match key {
        "twin" => vec!["a/twin", "b/twin"],
        _ => vec!["c/other"],
    });
    let answers = words(cloud.lookup(&["twin", "other"].map(NodeRef::named)).unwrap());
    assert!(
        answers[0].starts_with("FailureKind::Invalid: ") && answers[0].contains("twin: a, b"),
        "{answers:?}"
    );
    assert_eq!(answers[1], "lab://c/other runs");
    assert_eq!(cloud.asked.borrow()[1], "describe 1");
}

#[test]
fn a_failure_of_one_machine_stays_its_own() {
    let _host = FakeHost::new();
    let cloud = lab(|key| match key {
        "2" => vec!["odd"],
        _ => vec!["1/one"],
    });
    let foreign = NodeRef::named("n").with_provider_id("aws:///z/i-1");
    let answers = words(cloud.lookup(&[by_id("1"), by_id("2"), foreign]).unwrap());
    assert_eq!(
        answers,
        [
            "lab://1 runs",
            "FailureKind::Other: odd",
            "FailureKind::Invalid: the provider id aws:///z/i-1 does not begin with lab://"
        ]
    );
    let cloud = lab(|_| vec!["down"]);
    assert_eq!(cloud.lookup(&[by_id("1")]), Err(Failure::unavailable("down")));
}

#[test]
fn missing_description_is_unassigned() {
    let _host = FakeHost::new();
    let cloud = lab(|key| match key {
        "1" => vec!["1/unspoken"],
        _ => vec!["2/two"],
    });
    let failure = cloud.lookup(&[by_id("1"), by_id("2")]).unwrap_err();
    assert_eq!(failure, Failure::other("2 machines were to be described, and 1 are"));
}
