//! Machines behind Nodes: standalone ones, those of scale sets with flexible orchestration (which are the same to the cloud), and those of scale sets
//! with uniform orchestration.
//!
//! ```text
//!   Nodes with a provider id -> place.rs: group by group, set by set -> few: one by one; many: listing.rs -> what is missing there: one by one
//!   Nodes without            -> all machines of the configured resource group, by name or by computer name
//!   both                     -> network.rs: interfaces and public addresses, in lists
//! ```

mod listing;
mod machine;
mod network;
mod place;

use std::collections::BTreeMap;

use cloudwit_guest_sdk::lookup::{Answers, Batch, Existing, Found, Id, Key, Machines, Name};
use cloudwit_guest_sdk::prelude::*;

use crate::arm::{COMPUTE, ids};
use crate::{Azure, PROVIDER_ID_PREFIX};

pub use machine::Machine;
use place::Place;

/// Up to so many of one place are requested one by one: a list is one call for machines, and one for how they run, but may be long.
const FEW: usize = 3;

/// With how a machine runs, and its fault domain.
const WITH_VIEW: (&str, &str) = ("$expand", "instanceView");

impl Machines for Azure {
    type Machine = Machine;

    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure> {
        let key = Key::of(node, PROVIDER_ID_PREFIX)?;
        match key {
            Key::Id(id) if Place::of(id).is_none() => Err(Failure::invalid(format!(
                "the provider id azure://{id} is of no virtual machine; it has to be of the form \
                 azure:///subscriptions/ID/resourceGroups/GROUP/providers/Microsoft.Compute/virtualMachines/NAME"
            ))),
            key => Ok(key),
        }
    }

    fn batch(&self) -> Batch {
        Batch {
            // No request carries them.
            bytes: usize::MAX,
            ..Batch::default()
        }
    }

    fn by_ids(&self, ids: &[Id<'_>], answers: &mut Answers<'_, Machine>) -> Result<(), Failure> {
        let mut places: BTreeMap<Place, Vec<Id<'_>>> = BTreeMap::new();
        for id in ids {
            if let Some(place) = Place::of(id.as_str()) {
                places.entry(place).or_default().push(*id);
            }
        }
        for (place, ids) in places {
            if let Err(failure) = self.in_place(&place, &ids, answers) {
                // A cloud that is unavailable fails all. A scope that is wrong or foreign only fails its own machines.
                if matches!(failure.kind, FailureKind::Unavailable | FailureKind::RateLimited) {
                    return Err(failure);
                }
                ids.iter()
                    .for_each(|id| answers.failed(Key::Id(id.as_str()), failure.clone()));
            }
        }
        Ok(())
    }

    fn by_names(&self, names: &[Name<'_>], answers: &mut Answers<'_, Machine>) -> Result<(), Failure> {
        let group = self.config.group(&self.config.resource_group);
        let mut nodes: BTreeMap<String, &str> = BTreeMap::new();
        for name in names {
            nodes.insert(name.name.to_ascii_lowercase(), name.name);
        }
        for machine in self.in_group(&group)? {
            let by_name = nodes.get(&machine.name.to_ascii_lowercase());
            if let Some(node) = by_name.or_else(|| nodes.get(&machine.computer_name)) {
                answers.found(Key::Name(node), machine);
            }
        }
        Ok(())
    }

    fn label(&self, machine: &Machine) -> String {
        machine.id.clone()
    }

    fn describe(&self, found: &[Found<'_, Machine>]) -> Result<Vec<Result<Existing, Failure>>, Failure> {
        let machines: Vec<&Machine> = found.iter().map(|found| found.machine).collect();
        let views = self.views(&machines)?;
        let network = self.network(&machines)?;
        let existing = |found: &Found<'_, Machine>| {
            let machine = found.machine;
            let view = views.get(&ids::folded(&machine.id)).unwrap_or(&machine.view);
            let addresses = network.addresses(machine, &found.node.name)?;
            Ok(machine.existing(view, addresses))
        };
        Ok(found.iter().map(existing).collect())
    }
}

impl Azure {
    /// Machines of one place: what a list does not have is requested by its id, since only that is a denial.
    fn in_place(&self, place: &Place, ids: &[Id<'_>], answers: &mut Answers<'_, Machine>) -> Result<(), Failure> {
        let by_id: BTreeMap<String, Id<'_>> = ids.iter().map(|id| (ids::folded(id.as_str()), *id)).collect();
        if ids.len() > FEW {
            match self.listed(place) {
                Ok(machines) => {
                    for machine in machines {
                        if let Some(id) = by_id.get(&ids::folded(&machine.id)) {
                            answers.found(Key::Id(id.as_str()), machine);
                        }
                    }
                }
                // The whole scale set or group is gone: each machine is requested.
                Err(failure) if failure.is_not_found() => {}
                Err(failure) => return Err(failure),
            }
        }
        for id in ids.iter().filter(|id| {
            by_id
                .get(&ids::folded(id.as_str()))
                .is_some_and(|first| first.as_str() == id.as_str())
        }) {
            if answers.has(Key::Id(id.as_str())) {
                continue;
            }
            match self.arm.find(id.as_str(), COMPUTE, &[WITH_VIEW]) {
                Ok(Some(value)) => match Machine::read(&value) {
                    Ok(machine) => answers.found(Key::Id(id.as_str()), machine),
                    Err(failure) => answers.failed(Key::Id(id.as_str()), failure),
                },
                Ok(None) => answers.denied(*id),
                Err(failure) if matches!(failure.kind, FailureKind::Unavailable | FailureKind::RateLimited) => {
                    return Err(failure);
                }
                Err(failure) => answers.failed(Key::Id(id.as_str()), failure),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
