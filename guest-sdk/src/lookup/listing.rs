//! Clouds that list all machines, and return one by its id.

use std::collections::BTreeSet;

use super::{Answers, Existing, Found, Id, Key, Machines, Name, Wanted, ask_each_where_any};
use crate::provider::Provider;
use crate::types::{Failure, NodeRef};

/// So many machines are fetched one by one; more are taken from the list.
const FEW: usize = 3;

/// Machines are looked up by id at most so many in a call: more that are not in the list are no deleted machines but another account.
const MOST_MISSING: usize = 100;

/// [`Machines`] of a cloud with a list of all machines, and an answer for one id, but without a filter for many ids. Every implementation of it has [`Machines`],
/// and with that `Instances`.
///
/// A few are fetched one by one; many are taken from the list, and only what is missing there is looked up by id. An id is denied only where the cloud shows
/// other machines, and denied it twice ([`ask_each_where_any`]).
pub trait Listing: Provider {
    /// A machine as the cloud returns it.
    type Machine: Clone;

    /// What to check when the cloud shows no machine at all: `no machine at all is seen; is this the right project?`.
    const NOTHING: &'static str;

    /// Whether [`named`](Self::named) fetches one name; else names are taken from the list.
    const HAS_NAME_FILTER: bool = false;

    /// By what the machine of this Node is found: often [`Key::of`] or [`Key::read`].
    ///
    /// # Errors
    /// This Node's failure, such as a provider id of another cloud.
    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure>;

    /// Every machine that Nodes may have, page by page. One that cannot be read is left out, and looked up by its id.
    ///
    /// # Errors
    /// The cloud's error.
    fn each(&self, each: &mut dyn FnMut(Self::Machine)) -> Result<(), Failure>;

    /// Machines that may have this name, further ones too.
    ///
    /// # Errors
    /// The cloud's error.
    fn named(&self, name: &str, each: &mut dyn FnMut(Self::Machine)) -> Result<(), Failure> {
        let _ = name;
        self.each(each)
    }

    /// The machine of this id. None only where the cloud reports it as not found.
    ///
    /// # Errors
    /// The cloud's error; when it answers about another one.
    fn one(&self, id: &str) -> Result<Option<Self::Machine>, Failure>;

    /// Whether there is any machine, by a small request.
    ///
    /// # Errors
    /// The cloud's error.
    fn sees_any(&self) -> Result<bool, Failure>;

    /// A machine's id, as in provider ids.
    fn id(machine: &Self::Machine) -> &str;

    /// Whether a Node of this name is the machine's.
    ///
    /// # Errors
    /// The name's failure, where more has to be requested.
    fn is_called(&self, machine: &Self::Machine, name: &str) -> Result<bool, Failure>;

    /// What operators identify a machine by: to distinguish several of one name. By default its id.
    fn label(&self, machine: &Self::Machine) -> String {
        Self::id(machine).to_owned()
    }

    /// As [`Machines::describe`], one machine at a time.
    ///
    /// # Errors
    /// The machine's failure.
    fn existing(&self, machine: &Self::Machine) -> Result<Existing, Failure>;
}

impl<P: Listing> Machines for P {
    type Machine = <P as Listing>::Machine;

    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure> {
        Listing::key(self, node)
    }

    fn find(&self, wanted: &Wanted<'_>, answers: &mut Answers<'_, Self::Machine>) -> Result<(), Failure> {
        let (ids, names) = (wanted.ids.len(), wanted.names.len());
        let one_by_one = ids + names <= FEW && (P::HAS_NAME_FILTER || names == 0);
        if one_by_one {
            self.by_names(&wanted.names, answers)?;
        } else {
            // A machine that is made while pages are read can move from one page to the next.
            let mut seen = BTreeSet::new();
            self.each(&mut |machine| {
                if seen.insert(P::id(&machine).to_owned()) {
                    note(self, &wanted.names, &machine, answers);
                    answers.found_all([machine], |machine| Key::Id(P::id(machine)));
                }
            })?;
        }
        let missing = answers.missing(&wanted.ids);
        self.by_ids(&missing, answers)
    }

    fn by_ids(&self, ids: &[Id<'_>], answers: &mut Answers<'_, Self::Machine>) -> Result<(), Failure> {
        let one = |id: &str| self.one(id);
        ask_each_where_any(ids, MOST_MISSING, answers, one, || self.sees_any(), P::NOTHING);
        Ok(())
    }

    fn by_names(&self, names: &[Name<'_>], answers: &mut Answers<'_, Self::Machine>) -> Result<(), Failure> {
        let ask = |name: &Name<'_>| {
            let own = std::slice::from_ref(name);
            self.named(name.name, &mut |machine| note(self, own, &machine, answers))
        };
        names.iter().try_for_each(ask)
    }

    fn label(&self, machine: &Self::Machine) -> String {
        Listing::label(self, machine)
    }

    fn describe(&self, found: &[Found<'_, Self::Machine>]) -> Result<Vec<Result<Existing, Failure>>, Failure> {
        Ok(found.iter().map(|found| self.existing(found.machine)).collect())
    }
}

/// Notes a machine for those names that it has.
fn note<P: Listing>(cloud: &P, names: &[Name<'_>], machine: &P::Machine, answers: &mut Answers<'_, P::Machine>) {
    for name in names {
        let key = Key::Name(name.name);
        match cloud.is_called(machine, name.name) {
            Ok(true) => answers.found(key, machine.clone()),
            Ok(false) => {}
            Err(failure) => answers.failed(key, failure),
        }
    }
}

#[cfg(test)]
mod tests;
