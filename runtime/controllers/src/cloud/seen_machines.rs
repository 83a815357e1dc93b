//! Machines seen behind Nodes that have no provider id yet.
//!
//! A name that has belonged to more than one deletes no Node. Kept by both controllers of Nodes, read before a Node is deleted by its name
//! ([`lifecycle::brake_by_name`](crate::lifecycle::brake_by_name)).

use std::collections::HashMap;
use std::sync::Mutex;

use crate::sync::lock;

/// More Nodes are not remembered; of those that are not, nothing is known, and they are not deleted by name.
const REMEMBERED: usize = 100_000;

/// Machines by the Node's uid.
#[derive(Debug, Default)]
pub struct SeenMachines(Mutex<HashMap<String, SeenMachine>>);

#[derive(Debug, PartialEq, Eq)]
enum SeenMachine {
    One(String),
    Several,
}

impl SeenMachines {
    /// The cloud has a machine with this id under the name of the Node with this uid.
    pub fn see(&self, uid: &str, machine: &str) {
        let mut seen = lock(&self.0);
        let room = seen.len() < REMEMBERED;
        match seen.get_mut(uid) {
            Some(SeenMachine::One(known)) if known == machine => {}
            Some(known) => *known = SeenMachine::Several,
            None if room => drop(seen.insert(uid.to_owned(), SeenMachine::One(machine.to_owned()))),
            None => {}
        }
    }

    /// Whether more than one machine had that Node's name, or may have had: then the name says nothing about the Node's own.
    pub fn may_be_several(&self, uid: &str) -> bool {
        let seen = lock(&self.0);
        seen.get(uid) == Some(&SeenMachine::Several) || (seen.len() >= REMEMBERED && !seen.contains_key(uid))
    }

    /// The Node is gone, or has its provider id.
    pub fn forget(&self, uid: &str) {
        lock(&self.0).remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_two_machines_is_remembered_until_node_goes() {
        let seen = SeenMachines::default();
        assert!(!seen.may_be_several("u"));
        seen.see("u", "sim://1");
        seen.see("u", "sim://1");
        assert!(!seen.may_be_several("u"), "the same machine, twice");
        seen.see("u", "sim://2");
        seen.see("u", "sim://1");
        assert!(seen.may_be_several("u"));
        assert!(!seen.may_be_several("another"));
        seen.forget("u");
        assert!(!seen.may_be_several("u"));
    }
}
