//! Machines behind Nodes: by id and by name, many at once from the pages of a list.

pub mod machine;

use cloudwit_guest_sdk::lookup::{Existing, Key, Listing};
use cloudwit_guest_sdk::prelude::*;

use crate::api::Call;
use crate::config::given;
use crate::{CloudStack, machine_id};
use machine::Machine;

/// The requested details of each machine: interfaces with addresses, and the service offering. The rest costs the cloud more.
const DETAILS: &str = "min,nics,servoff";

/// One id that is gone spoils a list by ids, so there is none.
impl Listing for CloudStack {
    type Machine = Machine;
    const NOTHING: &'static str = "no virtual machine at all is seen; is this the right project-id and user?";
    const HAS_NAME_FILTER: bool = true;

    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure> {
        let example = "external-cloudstack://0b3a6a5c-5f0e-4c3e-9d5f-1a2b3c4d5e6f";
        Key::read(node, machine_id, "CloudStack's", example)
    }

    fn each(&self, each: &mut dyn FnMut(Machine)) -> Result<(), Failure> {
        self.api.each(self.machines(), "virtualmachine", each)
    }

    /// The filter finds parts of names as well.
    fn named(&self, name: &str, each: &mut dyn FnMut(Machine)) -> Result<(), Failure> {
        let call = self.machines().field("name", name);
        let found: Vec<Machine> = self.api.list(call, "virtualmachine")?;
        found.into_iter().for_each(each);
        Ok(())
    }

    /// The machine of this id. None only where CloudStack reports the id as not found, or shows nothing for it as it does for one that was expunged.
    fn one(&self, id: &str) -> Result<Option<Machine>, Failure> {
        let found: Result<Vec<Machine>, Failure> = self.api.list(self.machines().field("id", id), "virtualmachine");
        match found {
            Ok(found) => Ok(found.into_iter().find(|machine| machine.id.eq_ignore_ascii_case(id))),
            Err(failure) if failure.is_not_found() && failure.message.contains(id) => Ok(None),
            // Something else does not exist, such as the project.
            Err(failure) if failure.is_not_found() => Err(Failure::unavailable(failure.message)),
            Err(failure) => Err(failure),
        }
    }

    fn sees_any(&self) -> Result<bool, Failure> {
        let call = self.machines().field("page", 1).field("pagesize", 1);
        let answer: serde_json::Value = self.api.send(&call)?;
        Ok(answer["virtualmachine"]
            .as_array()
            .is_some_and(|found| !found.is_empty()))
    }

    fn id(machine: &Machine) -> &str {
        &machine.id
    }

    /// In whatever case: Nodes have small letters only.
    fn is_called(&self, machine: &Machine, name: &str) -> Result<bool, Failure> {
        Ok(machine.name.eq_ignore_ascii_case(name))
    }

    fn existing(&self, machine: &Machine) -> Result<Existing, Failure> {
        machine.existing(given(&self.config.global.region))
    }
}

impl CloudStack {
    /// A list of machines.
    pub(crate) fn machines(&self) -> Call {
        self.api.all("listVirtualMachines").field("details", DETAILS)
    }
}

#[cfg(test)]
mod tests;
