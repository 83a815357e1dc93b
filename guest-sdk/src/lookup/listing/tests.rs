use std::cell::RefCell;

use super::*;
use crate::provider::Instances;
use crate::testing::FakeHost;
use crate::types::{Description, Evidence, Instance, Presence};
use crate::{Context, NoConfig};

/// Machines, each its id, which is its name too: those of the list, and those that are returned by id alone.
struct Lab {
    listed: Vec<&'static str>,
    hidden: Vec<&'static str>,
    asked: RefCell<Vec<String>>,
}

/// The same with a filter for names.
struct Filters(Lab);

impl Lab {
    fn ask(&self, what: impl Into<String>) {
        self.asked.borrow_mut().push(what.into());
    }
}

impl Provider for Lab {
    type Config = NoConfig;

    fn describe(_: Option<&NoConfig>) -> Description {
        Description::new("lab", "0.1.0").prefix("lab://")
    }

    fn new(_: NoConfig, _: Context) -> Result<Self, Failure> {
        Ok(lab(&[], &[]))
    }

    fn probe(&self) -> Result<(), Failure> {
        Ok(())
    }
}

impl Provider for Filters {
    type Config = NoConfig;

    fn describe(_: Option<&NoConfig>) -> Description {
        Description::new("lab", "0.1.0").prefix("lab://")
    }

    fn new(_: NoConfig, _: Context) -> Result<Self, Failure> {
        Ok(Self(lab(&[], &[])))
    }

    fn probe(&self) -> Result<(), Failure> {
        Ok(())
    }
}

impl Listing for Lab {
    type Machine = String;
    const NOTHING: &'static str = "nothing is seen";

    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure> {
        Key::read(node, |id| id.strip_prefix("lab://"), "Lab's", "lab://1")
    }

    fn each(&self, each: &mut dyn FnMut(String)) -> Result<(), Failure> {
        self.ask("list");
        self.listed.iter().for_each(|id| each((*id).to_owned()));
        Ok(())
    }

    fn one(&self, id: &str) -> Result<Option<String>, Failure> {
        self.ask(id);
        let mut all = self.listed.iter().chain(&self.hidden);
        Ok(all.any(|known| *known == id).then(|| id.to_owned()))
    }

    fn sees_any(&self) -> Result<bool, Failure> {
        self.ask("any");
        Ok(!self.listed.is_empty())
    }

    fn id(machine: &String) -> &str {
        machine
    }

    fn is_called(&self, machine: &String, name: &str) -> Result<bool, Failure> {
        match name {
            "odd" => Err(Failure::unavailable("odd")),
            _ => Ok(machine.eq_ignore_ascii_case(name)),
        }
    }

    fn existing(&self, machine: &String) -> Result<Existing, Failure> {
        Ok(Existing::Running(Instance::new(format!("lab://{machine}"))))
    }
}

impl Listing for Filters {
    type Machine = String;
    const NOTHING: &'static str = "nothing is seen";
    const HAS_NAME_FILTER: bool = true;

    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure> {
        Listing::key(&self.0, node)
    }

    fn each(&self, each: &mut dyn FnMut(String)) -> Result<(), Failure> {
        self.0.each(each)
    }

    fn named(&self, name: &str, each: &mut dyn FnMut(String)) -> Result<(), Failure> {
        self.0.ask(format!("named {name}"));
        self.0.listed.iter().for_each(|id| each((*id).to_owned()));
        Ok(())
    }

    fn one(&self, id: &str) -> Result<Option<String>, Failure> {
        self.0.one(id)
    }

    fn sees_any(&self) -> Result<bool, Failure> {
        self.0.sees_any()
    }

    fn id(machine: &String) -> &str {
        machine
    }

    fn is_called(&self, machine: &String, name: &str) -> Result<bool, Failure> {
        self.0.is_called(machine, name)
    }

    fn existing(&self, machine: &String) -> Result<Existing, Failure> {
        self.0.existing(machine)
    }
}

fn lab(listed: &[&'static str], hidden: &[&'static str]) -> Lab {
    Lab {
        listed: listed.to_vec(),
        hidden: hidden.to_vec(),
        asked: RefCell::default(),
    }
}

/// Answers as words; Nodes with `=` in front have that id, others that name.
fn told(cloud: &impl Instances, nodes: &[&str]) -> Vec<String> {
    let nodes: Vec<NodeRef> = nodes
        .iter()
        .map(|text| match text.strip_prefix('=') {
            Some(id) => NodeRef::named("n").with_provider_id(format!("lab://{id}")),
            None => NodeRef::named(*text),
        })
        .collect();
    let word = |answer: Result<Presence, Failure>| match answer {
        Ok(Presence::Running(instance) | Presence::Stopped(instance)) => instance.provider_id,
        Ok(Presence::Absent(Evidence::ById)) => "gone".to_owned(),
        Ok(Presence::Absent(Evidence::ByName)) => "no such name".to_owned(),
        Err(failure) => failure.message,
    };
    cloud.lookup(&nodes).unwrap().into_iter().map(word).collect()
}

#[test]
fn few_ids_are_fetched_without_list() {
    let _host = FakeHost::new();
    let lab = lab(&["1", "2", "3", "4"], &[]);
    assert_eq!(told(&lab, &["=1", "=3"]), ["lab://1", "lab://3"]);
    assert_eq!(*lab.asked.borrow(), ["1", "3"]);
}

#[test]
fn many_ids_cost_one_list_and_what_is_missing_there() {
    let _host = FakeHost::new();
    let lab = lab(&["1", "2", "3"], &["9"]);
    assert_eq!(
        told(&lab, &["=1", "=2", "=3", "=8", "=9"]),
        ["lab://1", "lab://2", "lab://3", "gone", "lab://9"]
    );
    assert_eq!(*lab.asked.borrow(), ["list", "8", "any", "8", "9"]);
}

#[test]
fn names_are_taken_from_the_list_in_whatever_case() {
    let _host = FakeHost::new();
    let lab = lab(&["A", "b"], &[]);
    assert_eq!(told(&lab, &["a", "c"]), ["lab://A", "no such name"]);
    assert_eq!(*lab.asked.borrow(), ["list"]);
}

#[test]
fn few_names_are_fetched_by_filter() {
    let _host = FakeHost::new();
    let few = Filters(lab(&["a", "b"], &[]));
    assert_eq!(told(&few, &["a", "=b"]), ["lab://a", "lab://b"]);
    assert_eq!(*few.0.asked.borrow(), ["named a", "b"]);
    let many = Filters(lab(&["a", "b"], &[]));
    assert_eq!(told(&many, &["a", "b", "c", "d"])[..2], ["lab://a", "lab://b"]);
    assert_eq!(*many.0.asked.borrow(), ["list"]);
}

#[test]
fn machine_on_two_pages_is_one_and_two_of_a_name_are_none() {
    let _host = FakeHost::new();
    assert_eq!(told(&lab(&["a", "a"], &[]), &["a"]), ["lab://a"]);
    let twins = told(&lab(&["a", "A"], &[]), &["a"]);
    assert!(twins[0].contains("several machines fit a: a, A"), "{twins:?}");
}

#[test]
fn account_that_shows_nothing_denies_nothing() {
    let _host = FakeHost::new();
    assert_eq!(told(&lab(&[], &[]), &["=1"]), ["nothing is seen"]);
}

#[test]
fn failure_of_a_name_and_foreign_ids_stay_their_own() {
    let _host = FakeHost::new();
    let lab = lab(&["a"], &[]);
    assert_eq!(told(&lab, &["odd", "a"]), ["odd", "lab://a"]);
    let foreign = NodeRef::named("n").with_provider_id("aws:///z/i-1");
    let failure = lab.lookup(&[foreign]).unwrap().remove(0).unwrap_err();
    assert_eq!(
        failure,
        Failure::invalid("the provider id aws:///z/i-1 is none of Lab's; they look like lab://1")
    );
}
