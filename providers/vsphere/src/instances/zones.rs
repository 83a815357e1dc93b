//! Zone and region of a machine: tags of its host, else of its resource pool, else of itself, each with all that is above (upstream's `zones.go`).

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;

use crate::config::settings::Categories;
use crate::instances::machine::Machine;
use crate::table::Table;
use crate::vcenter::ancestors::Ancestors;
use crate::vcenter::session::Sessions;
use crate::vcenter::soap::Reference;
use crate::vcenter::tags::{Tag, Tags};

/// Zones are read again after this time. Labels of Nodes are written once, so they are not needed sooner.
const KEPT: Duration = Duration::from_secs(5 * 60);

/// Zone and region.
pub type Zone = (String, String);

/// Finds zones on one vCenter.
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

/// One way to find zones: where to start for each machine, and under which key the zone is kept.
struct Way {
    starts: fn(&Machine) -> [Option<&Reference>; 2],
    place: fn(&Machine) -> String,
}

/// First hosts and resource pools, of which there are few; machines themselves only where these have none.
const WAYS: [Way; 2] = [
    Way {
        starts: |machine| [machine.host.as_ref(), machine.pool.as_ref()],
        place: |machine| {
            let id = |reference: &Option<Reference>| reference.as_ref().map_or(String::new(), |it| it.value.clone());
            format!("{}/{}", id(&machine.host), id(&machine.pool))
        },
    },
    Way {
        starts: |machine| [Some(&machine.reference), None],
        place: |machine| machine.reference.value.clone(),
    },
];

impl Zones<'_> {
    /// The zone of each machine, in their order. A machine without one is a failure of its own.
    pub fn of(&self, machines: &[&Machine]) -> Vec<Result<Zone, Failure>> {
        let (key, state) = (format!("zones/{}", self.vcenter), self.context.state());
        let mut known = Table::kept(&state, &key);
        let told = WAYS.iter().try_for_each(|way| self.look(way, machines, &mut known));
        known.keep(&state, &key, KEPT);
        let answer = |machine: &&Machine| match (zone(&known, machine), &told) {
            (Some(zone), _) => Ok(zone),
            (None, Err(failure)) => Err(failure.clone().context("looking for its zone")),
            (None, Ok(())) => Err(Failure::not_found(self.untagged())),
        };
        machines.iter().map(answer).collect()
    }

    fn untagged(&self) -> String {
        let Categories { zone, region } = self.categories;
        format!(
            "neither its host nor its resource pool nor its folders have tags of both categories \"{zone}\" and \"{region}\"; tag one of them, or a cluster or datacenter above"
        )
    }

    /// Reads what each machine starts from and all above, and notes the zones that are found. Machines of one place are read once.
    fn look(&self, way: &Way, machines: &[&Machine], known: &mut Table) -> Result<(), Failure> {
        let mut places: Vec<(String, &Machine)> = Vec::new();
        let mut from: Vec<Reference> = Vec::new();
        for machine in machines.iter().filter(|machine| zone(known, machine).is_none()) {
            let place = (way.place)(machine);
            if places.iter().any(|(known, _)| *known == place) {
                continue;
            }
            places.push((place, machine));
            for start in (way.starts)(machine).into_iter().flatten() {
                if !from.contains(start) {
                    from.push(start.clone());
                }
            }
        }
        if from.is_empty() {
            return Ok(());
        }
        let above = self
            .sessions
            .with(|session| Ancestors::read(self.sessions, session, &from))?;
        let mut objects: Vec<&Reference> = Vec::new();
        for object in from.iter().flat_map(|start| above.chain(start)) {
            if !objects.contains(&object) {
                objects.push(object);
            }
        }
        let tags = self.tags.attached(&objects)?;
        for (place, machine) in &places {
            let chain = |start| choose(above.chain(start), &tags, self.categories);
            if let Some((zone, region)) = (way.starts)(machine).into_iter().flatten().find_map(chain) {
                known.set(place, &[&zone, &region]);
            }
        }
        Ok(())
    }
}

/// What is known of the machine's zone, by whichever way.
fn zone(known: &Table, machine: &Machine) -> Option<Zone> {
    let found = WAYS.iter().find_map(|way| known.get(&(way.place)(machine)))?;
    match found.as_slice() {
        [zone, region] => Some(((*zone).into(), (*region).into())),
        _ => None,
    }
}

/// The first tag of each category from the bottom up; none unless there are both.
pub(crate) fn choose<'a>(
    chain: impl Iterator<Item = &'a Reference>,
    tags: &[(Reference, Vec<Tag>)],
    categories: &Categories,
) -> Option<Zone> {
    let (mut zone, mut region) = (None, None);
    let of = |object: &Reference| tags.iter().find(|(tagged, _)| tagged == object);
    for tag in chain.filter_map(of).flat_map(|(_, tags)| tags) {
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
mod tests;
