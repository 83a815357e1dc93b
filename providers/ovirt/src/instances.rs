//! Machines behind Nodes: by id, and by the name that the guest agent reports; many at once from the pages of a list.

use std::collections::BTreeSet;

use cloudwit_guest_sdk::config::given;
use cloudwit_guest_sdk::lookup::{Answers, Existing, Found, Id, Key, Machines, Name, Wanted, ask_each_where_any};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::{id_after, is_plain_id};
use serde_json::Value;

use crate::machine::Machine;
use crate::{Ovirt, PROVIDER_ID_PREFIX};

/// So many machines are requested one by one; more are taken from a list.
const FEW: usize = 3;

/// Machines are requested by id at most so many in a call: more that are not in the list are no deleted machines but another engine.
const MOST_MISSING: usize = 100;

/// Machines in the engine's lists.
const VMS: (&str, &str) = ("/vms", "vm");

/// What to check when the engine shows no machine.
const NOTHING: &str =
    "no virtual machine at all is seen; is this the right engine, and has the user the role ReadOnlyAdmin?";

impl Machines for Ovirt {
    type Machine = Machine;

    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure> {
        let read = |id| id_after(PROVIDER_ID_PREFIX, id).filter(|id| is_plain_id(id));
        let example = "ovirt:///0b3a6a5c-5f0e-4c3e-9d5f-1a2b3c4d5e6f";
        Key::read(node, read, "oVirt's", example)
    }

    fn find(&self, wanted: &Wanted<'_>, answers: &mut Answers<'_, Machine>) -> Result<(), Failure> {
        let filter = given(&self.config.filters.vms);
        if wanted.ids.len() + wanted.names.len() <= FEW {
            self.by_names(&wanted.names, answers)?;
        } else {
            self.list(filter, |machine| {
                note(&wanted.names, &machine, answers);
                answers.found_all([machine], |machine| Key::Id(&machine.id));
            })?;
        }
        let mut ids = answers.missing(&wanted.ids);
        // Too many to request one by one, and the filter is about new Nodes alone.
        if filter.is_some() && ids.len() > MOST_MISSING {
            let outside: BTreeSet<&str> = ids.iter().map(Id::as_str).collect();
            self.list(None, |machine| {
                if outside.contains(machine.id.as_str()) {
                    answers.found_all([machine], |machine| Key::Id(&machine.id));
                }
            })?;
            ids = answers.missing(&wanted.ids);
        }
        self.by_ids(&ids, answers)
    }

    fn by_ids(&self, ids: &[Id<'_>], answers: &mut Answers<'_, Machine>) -> Result<(), Failure> {
        let follow = self.follow();
        let machine = |id: &str| self.api.optional(&format!("/vms/{id}"), &[("follow", &follow)]);
        // A proxy and an engine that is set up again answer 404 as well.
        let sees_any = || self.api.any_machine();
        ask_each_where_any(ids, MOST_MISSING, answers, machine, sees_any, NOTHING);
        Ok(())
    }

    fn by_names(&self, names: &[Name<'_>], answers: &mut Answers<'_, Machine>) -> Result<(), Failure> {
        let filter = given(&self.config.filters.vms);
        for name in names {
            let name_alone = format!("fqdn={}", name.name);
            let search = filter.map(|filter| format!("{filter} and {name_alone}"));
            self.list(Some(&search.unwrap_or(name_alone)), |machine| {
                note(std::slice::from_ref(name), &machine, answers);
            })?;
        }
        Ok(())
    }

    fn label(&self, machine: &Machine) -> String {
        format!("{} ({})", machine.id, machine.name)
    }

    fn describe(&self, found: &[Found<'_, Machine>]) -> Result<Vec<Result<Existing, Failure>>, Failure> {
        let machines: Vec<&Machine> = found.iter().map(|found| found.machine).collect();
        let places = self.places(&machines)?;
        let both = machines.iter().zip(places);
        Ok(both.map(|(machine, place)| machine.existing(&place?)).collect())
    }
}

impl Ovirt {
    /// Each machine that this search finds, once; all without one. One that cannot be read is left out.
    fn list(&self, search: Option<&str>, mut each: impl FnMut(Machine)) -> Result<(), Failure> {
        // A machine that is made while pages are read can move from one page to the next.
        let mut seen = BTreeSet::new();
        self.api.each(
            VMS,
            search.unwrap_or_default(),
            &self.follow(),
            |item: Value| match serde_json::from_value::<Machine>(item) {
                Ok(machine) if seen.insert(machine.id.clone()) => each(machine),
                Ok(_) => {}
                Err(mistake) => warn!("a machine is left out of the list, it cannot be read: {mistake}"),
            },
        )
    }

    /// What the engine returns with each machine: what the guest agent reports of the interfaces that the engine gave it, so without those of containers.
    fn follow(&self) -> String {
        let labels = self.config.zones.label_prefix().map(|_| ",affinitylabels");
        format!("nics.reporteddevices{}", labels.unwrap_or_default())
    }
}

/// Notes a machine for those names that its guest reports, in whatever case: Nodes have small letters only.
fn note(names: &[Name<'_>], machine: &Machine, answers: &mut Answers<'_, Machine>) {
    let Some(fqdn) = &machine.fqdn else { return };
    if let Some(name) = names.iter().find(|name| name.name.eq_ignore_ascii_case(fqdn)) {
        answers.found(Key::Name(name.name), machine.clone());
    }
}

#[cfg(test)]
mod tests;
