//! Machines behind Nodes: what each Node is looked up by, and the answer for it.
//!
//! ```text
//!   provider id  aws:///zone/i-…        -> instances_by_id     at most 1,000 in a call; the only way to "absent, by id"
//!   name         i-….region.internal    -> instances_by_id     absent only "by name": nobody said that this is the Node's machine
//!   name         ip-10-0-0-1.internal   -> instances_by_name   private DNS name, and the cluster's tag
//!   provider id  aws:///zone/fargate-…  -> instances_fargate   network interfaces; there is no instance
//! ```
//!
//! Labels of zone and network come last, for machines that run: `zones.rs`, `topology.rs`.

use cloudwit_guest_sdk::map::Map;
use cloudwit_guest_sdk::prelude::*;

use crate::instances_by_id::Found;
use crate::instances_machine::{Machine, MachineState};
use crate::zones::Zone;
use crate::{Aws, PROVIDER_ID_PREFIX};

/// How the ids of Fargate's machines begin, which are no instances.
pub(crate) const FARGATE: &str = "fargate-";

/// How a Node's machine is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Search<'a> {
    /// An instance by the id in the provider id.
    ById(&'a str),
    /// An instance by the id that is the Node's name.
    ByNameId(&'a str),
    /// An instance by its private DNS name.
    ByName(&'a str),
    /// A Fargate machine by the id in the provider id.
    Fargate(&'a str),
    /// The provider id is none of AWS.
    Foreign(&'a str),
}

impl<'a> Search<'a> {
    fn of(node: &'a NodeRef) -> Self {
        match &node.provider_id {
            Some(id) => match machine_id(id) {
                Some(id) if id.starts_with(FARGATE) => Self::Fargate(id),
                Some(id) => Self::ById(id),
                None => Self::Foreign(id),
            },
            None if node.name.starts_with("i-") => Self::ByNameId(node.name.split('.').next().unwrap_or(&node.name)),
            None => Self::ByName(&node.name),
        }
    }
}

/// The machine's id in a provider id: `aws:///zone/i-…`, `aws:////i-…` and `i-…` are the forms that upstream ever wrote or took.
pub(crate) fn machine_id(provider_id: &str) -> Option<&str> {
    let path = match provider_id.strip_prefix(PROVIDER_ID_PREFIX) {
        // What stands between `//` and `/` would be a host; upstream never writes one and takes none.
        Some(rest) => rest.strip_prefix('/')?,
        None if provider_id.starts_with("i-") => provider_id,
        None => return None,
    };
    let last = path.rsplit('/').find(|part| !part.is_empty())?;
    (last.starts_with("i-") || last.starts_with(FARGATE)).then_some(last)
}

impl Instances for Aws {
    fn lookup(&self, nodes: &[NodeRef]) -> Result<Vec<Result<Presence, Failure>>, Failure> {
        let searches: Vec<Search<'_>> = nodes.iter().map(Search::of).collect();
        let (mut ids, mut names, mut fargate) = (Vec::new(), Vec::new(), Vec::new());
        for search in &searches {
            match search {
                Search::ById(id) | Search::ByNameId(id) => ids.push(*id),
                Search::ByName(name) => names.push(*name),
                Search::Fargate(id) => fargate.push(*id),
                Search::Foreign(_) => {}
            }
        }
        let by_id = self.find_by_ids(&ids)?;
        let by_name = self.find_by_names(&names)?;
        let by_interface = self.find_fargate(&fargate)?;

        let found: Vec<Option<&Found>> = searches
            .iter()
            .map(|search| match search {
                Search::ById(id) | Search::ByNameId(id) => by_id.get(*id),
                Search::ByName(name) => by_name.get(*name),
                Search::Fargate(id) => by_interface.get(*id),
                Search::Foreign(_) => None,
            })
            .collect();
        let running = found.iter().flatten().filter_map(|found| found.running());
        let labels = self.labels_of(running.collect())?;
        let answers = nodes.iter().zip(searches).zip(found);
        Ok(answers
            .map(|((node, search), found)| self.answer(node, search, found, &labels))
            .collect())
    }
}

/// Labels by the machine's id, or why a label that has to be there is not.
type Labels<'a> = Map<&'a str, Result<Vec<Pair>, Failure>>;

impl Aws {
    fn answer(
        &self,
        node: &NodeRef,
        search: Search<'_>,
        found: Option<&Found>,
        labels: &Labels<'_>,
    ) -> Result<Presence, Failure> {
        let machine = match (found, search) {
            (_, Search::Foreign(id)) => {
                let text = [
                    "the provider id ",
                    id,
                    " is none of AWS; those look like aws:///us-east-1a/i-0123456789abcdef0",
                ];
                return Err(Failure::invalid(text.concat()));
            }
            (Some(Found::Machine(machine)), _) => machine,
            (Some(Found::Gone), Search::ById(_) | Search::Fargate(_)) => return Ok(Presence::Absent(Evidence::ById)),
            (Some(Found::Gone), _) => return Ok(Presence::Absent(Evidence::ByName)),
            (Some(Found::Failed(failure)), _) => return Err(failure.clone()),
            (None, _) => return Err(Failure::other("nothing was found out about this machine")),
        };
        let mut instance = machine.instance(&self.config.families(), self.config.region())?;
        if let Some(provider_id) = &node.provider_id {
            // As it stands: it can never be changed, and older ones were written without a zone.
            instance.provider_id.clone_from(provider_id);
        }
        match machine.state {
            MachineState::Stopped => Ok(Presence::Stopped(instance)),
            _ => {
                if let Some(labels) = labels.get(machine.id.as_str()) {
                    instance.labels = labels.clone()?;
                }
                Ok(Presence::Running(instance))
            }
        }
    }

    /// The labels of machines that run. A zone without an id fails its machines, as upstream does: the label is set once, at the
    /// beginning, and would be missing for ever. Machines that are gone or stopped need none and are not touched by that.
    fn labels_of<'a>(&self, machines: Vec<&'a Machine>) -> Result<Labels<'a>, Failure> {
        if machines.is_empty() {
            return Ok(Labels::new());
        }
        let zone_names: Vec<&str> = machines.iter().map(|machine| machine.zone.as_str()).collect();
        let zones = self.zones(&zone_names);
        let mut topology = self.topology(&machines);
        let mut labels = Labels::new();
        for machine in machines {
            let id = zone_label(&zones, &machine.zone);
            let network = topology.remove(machine.id.as_str()).unwrap_or_else(|| Ok(Vec::new()));
            let both = id.and_then(|id| network.map(|network| std::iter::once(id).chain(network).collect()));
            labels.insert(&machine.id, both);
        }
        Ok(labels)
    }
}

fn zone_label(zones: &Result<Vec<Zone>, Failure>, name: &str) -> Result<Pair, Failure> {
    let zones = zones.as_ref().map_err(Failure::clone)?;
    let zone = zones.iter().find(|zone| zone.name == name && !zone.id.is_empty());
    let zone = zone.ok_or_else(|| {
        Failure::other(
            [
                "AWS does not list the zone ",
                name,
                ", so its id for the label ",
                ZONE_ID,
                " is not known",
            ]
            .concat(),
        )
    })?;
    Ok(Pair::new(ZONE_ID, zone.id.clone()))
}

/// The label with the zone's id, which is the same in all accounts (upstream's `well_known_labels.go`).
const ZONE_ID: &str = "topology.k8s.aws/zone-id";

#[cfg(test)]
#[path = "instances_tests.rs"]
mod tests;
