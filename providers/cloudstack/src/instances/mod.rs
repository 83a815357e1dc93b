//! Machines behind Nodes: by id and by name, many at once from the pages of a list.

pub mod machine;

use cloudwit_guest_sdk::lookup::{Answers, Existing, Found, Id, Key, Machines, Name, Wanted, ask_each_where_any};
use cloudwit_guest_sdk::prelude::*;

use crate::api::Call;
use crate::config::given;
use crate::{CloudStack, PROVIDER_ID_PREFIX, machine_id};
use machine::Machine;

/// So many machines are asked for one by one; more are taken from a list. One id that is gone spoils a list by ids.
const FEW: usize = 3;

/// Machines are asked for by id at most so many in a call: more that are not in the list are no deleted machines but a wrong project.
const MOST_MISSING: usize = 100;

/// What is told of each machine: interfaces with addresses, and the service offering. The rest costs the cloud more.
const DETAILS: &str = "min,nics,servoff";

impl Machines for CloudStack {
    type Machine = Machine;

    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure> {
        let Some(provider_id) = &node.provider_id else {
            return Ok(Key::Name(&node.name));
        };
        machine_id(provider_id).map(Key::Id).ok_or_else(|| {
            Failure::invalid(format!(
                "the provider id {provider_id} is none of CloudStack's; they look like \
                 {PROVIDER_ID_PREFIX}0b3a6a5c-5f0e-4c3e-9d5f-1a2b3c4d5e6f"
            ))
        })
    }

    fn find(&self, wanted: &Wanted<'_>, answers: &mut Answers<'_, Machine>) -> Result<(), Failure> {
        if wanted.ids.len() + wanted.names.len() <= FEW {
            self.by_names(&wanted.names, answers)?;
        } else {
            // A machine that is made while pages are read can move from one page to the next.
            let mut seen = std::collections::BTreeSet::new();
            self.api.each(self.machines(), "virtualmachine", |machine: Machine| {
                if seen.insert(machine.id.clone()) {
                    note(&wanted.names, machine.clone(), answers);
                    answers.found_all([machine], |machine| Key::Id(&machine.id));
                }
            })?;
        }
        let missing = wanted.ids.iter().copied();
        let missing: Vec<Id<'_>> = missing.filter(|id| !answers.has(Key::Id(id.as_str()))).collect();
        self.by_ids(&missing, answers)
    }

    fn by_ids(&self, ids: &[Id<'_>], answers: &mut Answers<'_, Machine>) -> Result<(), Failure> {
        let nothing = "no virtual machine at all is seen; is this the right project-id and user?";
        let machine = |id: &str| self.machine(id);
        ask_each_where_any(ids, MOST_MISSING, answers, machine, || self.sees_any(), nothing);
        Ok(())
    }

    fn by_names(&self, names: &[Name<'_>], answers: &mut Answers<'_, Machine>) -> Result<(), Failure> {
        for name in names {
            // The filter finds parts of names as well.
            let call = self.machines().field("name", name.name);
            let found: Vec<Machine> = self.api.list(call, "virtualmachine")?;
            for machine in found {
                note(std::slice::from_ref(name), machine, answers);
            }
        }
        Ok(())
    }

    fn label(&self, machine: &Machine) -> String {
        machine.id.clone()
    }

    fn describe(&self, found: &[Found<'_, Machine>]) -> Result<Vec<Result<Existing, Failure>>, Failure> {
        let region = given(&self.config.global.region);
        Ok(found.iter().map(|found| found.machine.existing(region)).collect())
    }
}

impl CloudStack {
    /// A list of machines.
    pub(crate) fn machines(&self) -> Call {
        self.api.all("listVirtualMachines").field("details", DETAILS)
    }

    /// The machine of this id. None only where CloudStack says that nothing has this id, or shows nothing for it as it does for one that was expunged.
    fn machine(&self, id: &str) -> Result<Option<Machine>, Failure> {
        let found: Result<Vec<Machine>, Failure> = self.api.list(self.machines().field("id", id), "virtualmachine");
        match found {
            Ok(found) => Ok(found.into_iter().find(|machine| machine.id.eq_ignore_ascii_case(id))),
            Err(failure) if failure.is_not_found() && failure.message.contains(id) => Ok(None),
            // Something else does not exist, such as the project.
            Err(failure) if failure.is_not_found() => Err(Failure::unavailable(failure.message)),
            Err(failure) => Err(failure),
        }
    }

    /// Whether there is any machine.
    fn sees_any(&self) -> Result<bool, Failure> {
        let call = self.machines().field("page", 1).field("pagesize", 1);
        let answer: serde_json::Value = self.api.send(&call)?;
        Ok(answer["virtualmachine"]
            .as_array()
            .is_some_and(|found| !found.is_empty()))
    }
}

/// Notes a machine for those names that it has, in whatever case: Nodes have small letters only.
fn note(names: &[Name<'_>], machine: Machine, answers: &mut Answers<'_, Machine>) {
    let mut fitting = names
        .iter()
        .filter(|name| name.name.eq_ignore_ascii_case(&machine.name));
    if let Some(name) = fitting.next() {
        answers.found(Key::Name(name.name), machine);
    }
}

#[cfg(test)]
mod tests;
