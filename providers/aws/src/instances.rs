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

use cloudwit_guest_sdk::prelude::*;

use crate::api_error::AwsError;
use crate::instances_by_id::{Answers, Found};
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
        let (mut ids, mut names, mut fargate) = (Vec::new(), Vec::new(), Vec::new());
        for node in nodes {
            match Search::of(node) {
                Search::ById(id) | Search::ByNameId(id) => ids.push(id),
                Search::ByName(name) => names.push(name),
                Search::Fargate(id) => fargate.push(id),
                Search::Foreign(_) => {}
            }
        }
        // No name begins as an id does, so all answers have room in one table.
        let mut answers = self.find_by_ids(&ids)?;
        self.find_by_names(&names, &mut answers)?;
        self.find_fargate(&fargate, &mut answers)?;
        let labels = self.labels_of(&answers);
        let mut found = Vec::with_capacity(nodes.len());
        for node in nodes {
            found.push(self.answer(node, &answers, &labels).map_err(Failure::from));
        }
        Ok(found)
    }
}

/// Labels of a machine with this id, or why a label that has to be there is not.
type Labels<'a> = Vec<(&'a str, Result<Vec<Pair>, AwsError>)>;

impl Aws {
    fn answer(&self, node: &NodeRef, answers: &Answers, labels: &Labels<'_>) -> Result<Presence, AwsError> {
        let search = Search::of(node);
        let (Search::ById(key) | Search::ByNameId(key) | Search::ByName(key) | Search::Fargate(key)) = search else {
            let id = node.provider_id.as_deref().unwrap_or_default();
            let advice = " is none of AWS; those look like aws:///us-east-1a/i-0123456789abcdef0";
            return Err(AwsError::invalid(format!("the provider id {id}{advice}")));
        };
        let machine = match answers.get(key) {
            Some(Found::Machine(machine)) => machine,
            Some(Found::Gone) => {
                let asked_by_id = matches!(search, Search::ById(_) | Search::Fargate(_));
                return Ok(Presence::Absent(if asked_by_id {
                    Evidence::ById
                } else {
                    Evidence::ByName
                }));
            }
            Some(Found::Failed(failure)) => return Err(failure.clone().into()),
            None => return Err(AwsError::other("nothing was found out about this machine".into())),
        };
        let mut instance = machine.instance(&self.config.families(), self.config.region())?;
        if let Some(provider_id) = &node.provider_id {
            // As it stands: it can never be changed, and older ones were written without a zone.
            instance.provider_id = provider_id.clone();
        }
        if machine.state == MachineState::Stopped {
            return Ok(Presence::Stopped(instance));
        }
        // They are in the order of their keys.
        if let Ok(at) = labels.binary_search_by(|(id, _)| (*id).cmp(key)) {
            instance.labels = labels[at].1.clone()?;
        }
        Ok(Presence::Running(instance))
    }

    /// The labels of machines that run. A zone without an id fails its machines, as upstream does: the label is set once, at the
    /// beginning, and would be missing for ever. Machines that are gone or stopped need none and are not touched by that.
    fn labels_of<'a>(&self, answers: &'a Answers) -> Labels<'a> {
        let mut running: Vec<(&str, &Machine)> = Vec::new();
        for (key, found) in answers {
            if let Found::Machine(machine) = found
                && machine.state == MachineState::Running
            {
                running.push((key, machine));
            }
        }
        let mut labels = Labels::new();
        if running.is_empty() {
            return labels;
        }
        let zone_names: Vec<&str> = running.iter().map(|(_, machine)| machine.zone.as_str()).collect();
        let zones = self.zones(&zone_names);
        let machines: Vec<&Machine> = running.iter().map(|(_, machine)| *machine).collect();
        let mut topology = self.topology(&machines);
        for (key, machine) in running {
            let mut both = zone_label(&zones, &machine.zone).map(|label| vec![label]);
            if let Ok(labels) = &mut both
                && let Some(network) = topology.remove(machine.id.as_str())
            {
                match network {
                    Ok(mut network) => labels.append(&mut network),
                    Err(failure) => both = Err(failure),
                }
            }
            labels.push((key, both));
        }
        labels
    }
}

fn zone_label(zones: &Result<Vec<Zone>, AwsError>, name: &str) -> Result<Pair, AwsError> {
    let zones = zones.as_ref().map_err(AwsError::clone)?;
    let zone = zones.iter().find(|zone| zone.name == name && !zone.id.is_empty());
    let zone = zone.ok_or_else(|| {
        AwsError::other(format!(
            "AWS does not list the zone {name}, so its id for the label {ZONE_ID} is not known"
        ))
    })?;
    Ok(Pair::new(ZONE_ID, zone.id.clone()))
}

/// The label with the zone's id, which is the same in all accounts (upstream's `well_known_labels.go`).
const ZONE_ID: &str = "topology.k8s.aws/zone-id";

#[cfg(test)]
mod tests;
