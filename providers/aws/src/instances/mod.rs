//! Machines behind Nodes: what each Node is looked up by, and the answer for it.
//!
//! ```text
//!   provider id  aws:///zone/i-…        -> by_id     at most 1,000 in a call; the only way to "absent, by id"
//!   name         i-….region.internal    -> by_id     absent only "by name": not proven to be the Node's machine
//!   name         ip-10-0-0-1.internal   -> by_name   private DNS name, and the cluster's tag
//!   provider id  aws:///zone/fargate-…  -> fargate   network interfaces; there is no instance
//! ```
//!
//! Labels of zone and network come last, for machines that run: `zones.rs`, `topology.rs`.

pub mod by_id;
mod by_name;
mod fargate;
pub mod machine;
pub mod topology;
pub mod zones;

use std::collections::BTreeMap;

use cloudwit_guest_sdk::lookup::{Answers, Batch, Existing, Found as Told, Id, Key, Machines, Name};
use cloudwit_guest_sdk::prelude::*;

use crate::api::error::AwsError;
use crate::instances::by_id::Found;
use crate::instances::by_name::MOST_VALUES;
use crate::instances::machine::{Machine, MachineState};
use crate::instances::zones::Zone;
use crate::{Aws, BARE_ID_PREFIX, PROVIDER_ID_PREFIX};

/// How the ids of Fargate's machines begin, which are no instances.
pub(crate) const FARGATE: &str = "fargate-";

/// The machine's id in a provider id: `aws:///zone/i-…`, `aws:////i-…` and `i-…` are the forms that upstream ever wrote or took.
pub(crate) fn machine_id(provider_id: &str) -> Option<&str> {
    let path = match provider_id.strip_prefix(PROVIDER_ID_PREFIX) {
        // Text between `//` and `/` would be a host; upstream never writes one and takes none.
        Some(rest) => rest.strip_prefix('/')?,
        None if provider_id.starts_with(BARE_ID_PREFIX) => provider_id,
        None => return None,
    };
    let last = path.rsplit('/').find(|part| !part.is_empty())?;
    (last.starts_with(BARE_ID_PREFIX) || last.starts_with(FARGATE)).then_some(last)
}

impl Machines for Aws {
    type Machine = Box<Machine>;

    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure> {
        let Some(provider_id) = &node.provider_id else {
            let id = node.name.split('.').next().filter(|id| id.starts_with("i-"));
            return Ok(id.map_or(Key::Name(&node.name), Key::Id));
        };
        machine_id(provider_id).map(Key::Id).ok_or_else(|| {
            let advice = " is none of AWS; those look like aws:///us-east-1a/i-0123456789abcdef0";
            Failure::invalid(format!("the provider id {provider_id}{advice}"))
        })
    }

    fn batch(&self) -> Batch {
        Batch {
            names: MOST_VALUES,
            bytes: usize::MAX,
            ..Batch::default()
        }
    }

    fn by_ids(&self, ids: &[Id<'_>], answers: &mut Answers<'_, Box<Machine>>) -> Result<(), Failure> {
        let texts = ids.iter().map(Id::as_str);
        let (fargate, instances): (Vec<&str>, Vec<&str>) = texts.partition(|id| id.starts_with(FARGATE));
        let mut found = self.find_by_ids(&instances)?;
        self.find_fargate(&fargate, &mut found)?;
        for id in ids {
            match found.remove(id.as_str()) {
                Some(Found::Machine(machine)) => answers.found(Key::Id(id.as_str()), machine),
                Some(Found::Gone) => answers.denied(*id),
                Some(Found::Failed(failure)) => answers.failed(Key::Id(id.as_str()), failure),
                None => {}
            }
        }
        Ok(())
    }

    fn by_names(&self, names: &[Name<'_>], answers: &mut Answers<'_, Box<Machine>>) -> Result<(), Failure> {
        Ok(self.find_by_names(names, answers)?)
    }

    fn label(&self, machine: &Box<Machine>) -> String {
        machine.id.clone()
    }

    fn describe(&self, found: &[Told<'_, Box<Machine>>]) -> Result<Vec<Result<Existing, Failure>>, Failure> {
        let machines: Vec<&Machine> = found.iter().map(|told| told.machine.as_ref()).collect();
        let labels = self.labels_of(&machines);
        let existing = |machine: &&Machine| Ok(self.existing(machine, &labels)?);
        Ok(machines.iter().map(existing).collect())
    }
}

/// Labels of a machine with this id, or why a label that has to be there is not.
type Labels<'a> = BTreeMap<&'a str, Result<Vec<Pair>, AwsError>>;

impl Aws {
    fn existing(&self, machine: &Machine, labels: &Labels<'_>) -> Result<Existing, AwsError> {
        let mut instance = machine.instance(&self.config.families(), self.config.region())?;
        if machine.state == MachineState::Stopped {
            return Ok(Existing::Stopped(instance));
        }
        if let Some(labels) = labels.get(machine.id.as_str()) {
            instance.labels = labels.clone()?;
        }
        Ok(Existing::Running(instance))
    }

    /// The labels of machines that run. A zone without an id fails its machines, as upstream does: the label is set once, at the
    /// beginning, and would be missing forever. Machines that are stopped need none and are not touched by that.
    fn labels_of<'a>(&self, machines: &[&'a Machine]) -> Labels<'a> {
        let running = machines.iter().filter(|machine| machine.state == MachineState::Running);
        // By their ids, so that each is requested once.
        let running: BTreeMap<&str, &Machine> = running.map(|machine| (machine.id.as_str(), *machine)).collect();
        if running.is_empty() {
            return Labels::new();
        }
        let running: Vec<&Machine> = running.into_values().collect();
        let zone_names: Vec<&str> = running.iter().map(|machine| machine.zone.as_str()).collect();
        let zones = self.zones(&zone_names);
        let mut topology = self.topology(&running);
        let label = |machine: &Machine| {
            let mut labels = vec![zone_label(&zones, &machine.zone)?];
            labels.append(&mut topology.remove(machine.id.as_str()).unwrap_or(Ok(Vec::new()))?);
            Ok(labels)
        };
        running
            .iter()
            .map(|machine| machine.id.as_str())
            .zip(running.iter().copied().map(label))
            .collect()
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
