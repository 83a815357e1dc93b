//! Machines in lists.

use std::collections::{BTreeMap, BTreeSet};

use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use super::machine::{Machine, View};
use super::place::Place;
use super::{FEW, WITH_VIEW};
use crate::Azure;
use crate::arm::{COMPUTE, ids};

impl Azure {
    /// All machines of a place. Those of a resource group come without how they run: [`views`](Self::views) has it.
    pub(super) fn listed(&self, place: &Place) -> Result<Vec<Machine>, Failure> {
        let query: &[_] = if place.scale_set.is_some() { &[WITH_VIEW] } else { &[] };
        let mut machines = Vec::new();
        self.arm.list(&place.machines(), COMPUTE, query, |value| {
            machines.push(Machine::read(&value)?);
            Ok(())
        })?;
        Ok(machines)
    }

    /// All machines of a resource group, with those of its uniform scale sets.
    pub(crate) fn in_group(&self, group: &str) -> Result<Vec<Machine>, Failure> {
        let mut place = Place {
            group: group.into(),
            scale_set: None,
        };
        let mut machines = self.listed(&place)?;
        if !self.config.has_scale_sets() {
            return Ok(machines);
        }
        let mut sets = Vec::new();
        let path = format!("{group}/providers/Microsoft.Compute/virtualMachineScaleSets");
        self.arm.list(&path, COMPUTE, &[], |set| {
            sets.extend(uniform(&set));
            Ok(())
        })?;
        for set in sets {
            place.scale_set = Some(set);
            match self.listed(&place) {
                Ok(more) => machines.extend(more),
                // Deleted since it was listed.
                Err(failure) if failure.is_not_found() => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(machines)
    }

    /// How those machines run that came without it: few are requested one by one, many in one list of their subscription.
    pub(super) fn views(&self, machines: &[&Machine]) -> Result<BTreeMap<String, View>, Failure> {
        let unknown: BTreeMap<String, &str> = machines
            .iter()
            .filter(|machine| !machine.view.known)
            .map(|machine| (ids::folded(&machine.id), machine.id.as_str()))
            .collect();
        let mut views = BTreeMap::new();
        if unknown.len() > FEW {
            let subscriptions: BTreeSet<&str> = unknown
                .values()
                .filter_map(|id| ids::part(id, "subscriptions"))
                .collect();
            for subscription in subscriptions {
                let path = format!("/subscriptions/{subscription}/providers/Microsoft.Compute/virtualMachines");
                let listed = self.arm.list(&path, COMPUTE, &[("statusOnly", "true")], |value| {
                    let machine = Machine::read(&value)?;
                    let id = ids::folded(&machine.id);
                    if unknown.contains_key(&id) && machine.view.known {
                        views.insert(id, machine.view);
                    }
                    Ok(())
                });
                match listed {
                    Ok(()) => {}
                    // The role is for the resource group alone.
                    Err(failure) if failure.kind == FailureKind::Denied => {}
                    Err(failure) => return Err(failure),
                }
            }
        }
        for (folded, id) in unknown {
            if let std::collections::btree_map::Entry::Vacant(entry) = views.entry(folded)
                // One that is gone by now is found out by the next look-up.
                && let Some(value) = self.arm.find(id, COMPUTE, &[WITH_VIEW])?
            {
                entry.insert(Machine::read(&value)?.view);
            }
        }
        Ok(views)
    }
}

/// The name of a scale set whose machines are not in the list of the group. Sets without the field are older than flexible ones.
fn uniform(set: &Value) -> Option<String> {
    let mode = set.pointer("/properties/orchestrationMode").and_then(Value::as_str);
    let flexible = mode.is_some_and(|mode| mode.eq_ignore_ascii_case("Flexible"));
    let name = set.get("name")?.as_str()?;
    (!flexible).then(|| name.to_owned())
}
