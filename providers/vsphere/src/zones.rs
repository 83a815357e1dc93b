//! Zone and region of a machine: tags of its host, else of its resource pool, else of itself, each with all that is above (upstream's `zones.go`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;

use crate::ancestors::Ancestors;
use crate::machine::Machine;
use crate::session::Sessions;
use crate::settings::Categories;
use crate::soap::Reference;
use crate::tags::{Tag, Tags};

/// Zones are looked for anew after this time. Labels of Nodes are written once, so nobody needs them sooner.
const KEPT: Duration = Duration::from_secs(5 * 60);

/// Zone and region.
pub type Zone = (String, String);

/// Zones known, by hosts with resource pools or by machines.
type Known = BTreeMap<String, Zone>;

/// Tells zones on one vCenter.
#[derive(Debug)]
pub struct Zones<'a> {
    /// How objects are read.
    pub sessions: &'a Sessions<'a>,
    /// How tags are read.
    pub tags: Tags<'a>,
    /// Which tags count.
    pub categories: &'a Categories,
    /// For what is kept.
    pub context: Context,
    /// The vCenter's name.
    pub vcenter: &'a str,
}

impl Zones<'_> {
    /// The zone of each machine, in their order. A machine without one is a failure of its own.
    pub fn of(&self, machines: &[&Machine]) -> Vec<Result<Zone, Failure>> {
        let key = ["zones/", self.vcenter].concat();
        let state = self.context.state();
        let mut known: Known = state.get(&key).map(|stored| stored.value).unwrap_or_default();
        let before = known.len();
        // First hosts and resource pools, of which there are few; machines themselves only where these say nothing.
        let mut told = self.walk(machines, &mut known, &|machine| [&machine.host, &machine.pool], &place);
        if told.is_ok() && machines.iter().any(|machine| zone(&known, machine).is_none()) {
            let rest: Vec<&Machine> = machines
                .iter()
                .filter(|machine| zone(&known, machine).is_none())
                .copied()
                .collect();
            told = self.walk_machines(&rest, &mut known);
        }
        if known.len() > before {
            state.put(&key, &known, Keep::at_most(KEPT));
        }
        let answer = |machine: &&Machine| match (zone(&known, machine), &told) {
            (Some(zone), _) => Ok(zone.clone()),
            (None, Err(failure)) => Err(failure.clone().context("looking for its zone")),
            (None, Ok(())) => Err(Failure::not_found(self.untagged())),
        };
        machines.iter().map(answer).collect()
    }

    fn untagged(&self) -> String {
        let Categories { zone, region } = self.categories;
        [
            "neither its host nor its resource pool nor its folders have tags of both categories \"",
            zone,
            "\" and \"",
            region,
            "\"; tag one of them, or a cluster or datacenter above",
        ]
        .concat()
    }

    fn walk_machines(&self, machines: &[&Machine], known: &mut Known) -> Result<(), Failure> {
        let starts: Vec<Vec<Reference>> = machines.iter().map(|machine| vec![machine.reference.clone()]).collect();
        self.look(&starts, machines, known, &|machine| machine.reference.value.clone())
    }

    fn walk(
        &self,
        machines: &[&Machine],
        known: &mut Known,
        starts: &dyn Fn(&Machine) -> [&Option<Reference>; 2],
        place: &dyn Fn(&Machine) -> String,
    ) -> Result<(), Failure> {
        let mut seen = BTreeSet::new();
        let mut new = machines.to_vec();
        new.retain(|machine| zone(known, machine).is_none() && seen.insert(place(machine)));
        let starts: Vec<Vec<Reference>> = new
            .iter()
            .map(|machine| starts(machine).into_iter().flatten().cloned().collect())
            .collect();
        self.look(&starts, &new, known, place)
    }

    /// Looks at each machine's starts and all above, and keeps the zones that are found.
    fn look(
        &self,
        starts: &[Vec<Reference>],
        machines: &[&Machine],
        known: &mut Known,
        place: &dyn Fn(&Machine) -> String,
    ) -> Result<(), Failure> {
        let all: BTreeSet<Reference> = starts.iter().flatten().cloned().collect();
        if all.is_empty() {
            return Ok(());
        }
        let from: Vec<Reference> = all.into_iter().collect();
        let above = self
            .sessions
            .with(|session| Ancestors::read(self.sessions, session, &from))?;
        let objects: BTreeSet<&Reference> = from.iter().flat_map(|start| above.chain(start)).collect();
        let tags = self.tags.attached(&objects)?;
        for (machine, starts) in machines.iter().zip(starts) {
            let found = starts
                .iter()
                .find_map(|start| choose(above.chain(start), &tags, self.categories));
            if let Some(zone) = found {
                known.insert(place(machine), zone);
            }
        }
        Ok(())
    }
}

/// Where a machine is as far as zones go.
fn place(machine: &Machine) -> String {
    let id = |reference: &Option<Reference>| reference.as_ref().map_or(String::new(), |it| it.value.clone());
    [&id(&machine.host), "/", &id(&machine.pool)].concat()
}

fn zone<'k>(known: &'k Known, machine: &Machine) -> Option<&'k Zone> {
    known
        .get(&place(machine))
        .or_else(|| known.get(&machine.reference.value))
}

/// The first tag of each category from the bottom up; none unless there are both.
fn choose<'a>(
    chain: impl Iterator<Item = &'a Reference>,
    tags: &BTreeMap<Reference, Vec<Tag>>,
    categories: &Categories,
) -> Option<Zone> {
    let (mut zone, mut region) = (None, None);
    for tag in chain.filter_map(|object| tags.get(object)).flatten() {
        if tag.category == categories.zone && zone.is_none() {
            zone = Some(tag.name.clone());
        }
        if tag.category == categories.region && region.is_none() {
            region = Some(tag.name.clone());
        }
    }
    zone.zip(region)
}

#[cfg(test)]
#[path = "zones_tests.rs"]
mod tests;
