//! Machines behind Nodes: many in one aggregated list over all zones, a few one by one.
//!
//! ```text
//!   Nodes with a provider id -> project by project: one list with a filter of names (listing.rs) -> what is missing there: by_id.rs
//!   Nodes without            -> the same list, only zones of the cluster count
//! ```

mod by_id;
mod listing;
mod machine;

use std::collections::BTreeMap;

use cloudwit_guest_sdk::lookup::{Answers, Batch, Existing, Found, Id, Key, Machines, Name};
use cloudwit_guest_sdk::prelude::*;

use crate::Gce;
use crate::PROVIDER_ID_PREFIX;
use crate::links;
use crate::place::Place;

pub(crate) use by_id::parts;
pub use machine::Machine;

/// Up to so many are requested by id one by one: a list is one call, but a long one.
const FEW: usize = 2;

/// Names in the filter of one list: with 63 characters each the URL stays under the 8 KiB that servers take.
const NAMES: usize = 100;

/// A machine and the project that it is in.
pub struct Placed {
    pub machine: Machine,
    pub project: String,
}

impl Placed {
    /// `project/zone/name`, as in provider ids.
    fn id(&self) -> String {
        format!("{}/{}/{}", self.project, self.machine.zone(), self.machine.name)
    }
}

impl Machines for Gce {
    type Machine = Placed;

    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure> {
        let key = Key::of(node, PROVIDER_ID_PREFIX)?;
        match key {
            Key::Id(id) if by_id::parts(id).is_none() => {
                let text = format!("the provider id gce://{id} is not of the form gce://PROJECT/ZONE/NAME");
                Err(Failure::invalid(text))
            }
            key => Ok(key),
        }
    }

    fn batch(&self) -> Batch {
        Batch {
            ids: NAMES,
            names: NAMES,
            bytes: 6_000,
        }
    }

    fn by_ids(&self, ids: &[Id<'_>], answers: &mut Answers<'_, Placed>) -> Result<(), Failure> {
        let mut projects: BTreeMap<&str, Vec<Id<'_>>> = BTreeMap::new();
        for id in ids {
            let project = by_id::parts(id.as_str()).map_or("", |(project, ..)| project);
            projects.entry(project).or_default().push(*id);
        }
        for (project, ids) in projects {
            if ids.len() > FEW
                && let Err(failure) = self.by_listing(project, &ids, answers)
            {
                // A cloud that is unavailable fails all. A project that is wrong or foreign only fails its own machines.
                if matches!(failure.kind, FailureKind::Unavailable | FailureKind::RateLimited) {
                    return Err(failure);
                }
                ids.iter()
                    .for_each(|id| answers.failed(Key::Id(id.as_str()), failure.clone()));
                continue;
            }
            let missing = ids.iter().filter(|id| !answers.has(Key::Id(id.as_str())));
            for id in missing.copied().collect::<Vec<_>>() {
                self.by_id(id, answers)?;
            }
        }
        Ok(())
    }

    fn by_names(&self, names: &[Name<'_>], answers: &mut Answers<'_, Placed>) -> Result<(), Failure> {
        let place = Place::of(&self.config.global, self.context)?;
        let instances: Vec<&str> = names.iter().map(|name| instance_name(name.name)).collect();
        let global = &self.config.global;
        let whole_region = global.regional || global.multizone;
        let mut found = Vec::new();
        let complete = self.listed(&place.project, &instances, &mut |machine| {
            let zone = machine.zone();
            let ours = if whole_region {
                links::region_of(zone) == Some(&*place.region)
            } else {
                zone == place.zone
            };
            if ours {
                found.push(machine);
            }
        })?;
        for name in names {
            let of_node = found.iter().filter(|machine| machine.name == instance_name(name.name));
            for machine in of_node {
                let (machine, project) = (machine.clone(), place.project.clone());
                answers.found(Key::Name(name.name), Placed { machine, project });
            }
            if let Err(failure) = &complete {
                answers.failed(Key::Name(name.name), failure.clone());
            }
        }
        Ok(())
    }

    fn label(&self, machine: &Placed) -> String {
        machine.id()
    }

    fn describe(&self, found: &[Found<'_, Placed>]) -> Result<Vec<Result<Existing, Failure>>, Failure> {
        let ipv6_first = self.config.global.ipv6_first();
        let existing =
            |found: &Found<'_, Placed>| Ok(found.machine.machine.existing(&found.machine.project, ipv6_first));
        Ok(found.iter().map(existing).collect())
    }
}

/// A Node's name without its domain: a machine's name has no dots.
pub(crate) fn instance_name(node: &str) -> &str {
    node.split('.').next().unwrap_or(node)
}

#[cfg(test)]
mod tests;
