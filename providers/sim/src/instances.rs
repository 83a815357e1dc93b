//! Machines behind Nodes, many in few requests.
//!
//! A Node with a provider id is looked up by that id and by nothing else; only then may the answer be "absent, by id", which
//! lets the controller delete the Node. A Node without one is searched by name, and finding nothing says little: the machine
//! may be in another region, or the Node may be called differently.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::{id_after, ip_address};

use crate::api::{Machine, MachineKey, MachineState, Network};
use crate::{PROVIDER_ID_PREFIX, Sim};

/// How a Node's machine is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Search<'a> {
    ById(&'a str),
    ByName(&'a str),
    /// The Node belongs to another cloud.
    Foreign(&'a str),
}

impl<'a> Search<'a> {
    fn of(node: &'a NodeRef) -> Self {
        match &node.provider_id {
            Some(provider_id) => {
                id_after(PROVIDER_ID_PREFIX, provider_id).map_or(Self::Foreign(provider_id), Self::ById)
            }
            None => Self::ByName(&node.name),
        }
    }
}

impl Instances for Sim {
    fn lookup(&self, nodes: &[NodeRef]) -> Result<Vec<Result<Presence, Failure>>, Failure> {
        let searches: Vec<Search<'_>> = nodes.iter().map(Search::of).collect();
        let by_id = self.find_machines(
            MachineKey::Id,
            searches.iter().filter_map(|search| match search {
                Search::ById(id) => Some(*id),
                _ => None,
            }),
        )?;
        let by_name = self.find_machines(
            MachineKey::Name,
            searches.iter().filter_map(|search| match search {
                Search::ByName(name) => Some(*name),
                _ => None,
            }),
        )?;
        debug!(
            nodes = nodes.len(),
            by_id = by_id.len(),
            by_name = by_name.len(),
            "looked machines up"
        );
        Ok(searches
            .into_iter()
            .map(|search| match search {
                Search::ById(id) => decide(by_id.get(id).map_or(&[], Vec::as_slice), Evidence::ById),
                Search::ByName(name) => decide(by_name.get(name).map_or(&[], Vec::as_slice), Evidence::ByName),
                Search::Foreign(id) => Err(Failure::invalid(format!(
                    "the provider id {id:?} does not begin with {PROVIDER_ID_PREFIX}"
                ))),
            })
            .collect())
    }
}

impl Sim {
    /// Asks for machines by id or name, a page of keys at a time. The answer is ordered by that key.
    fn find_machines<'a>(
        &self,
        by: MachineKey,
        keys: impl Iterator<Item = &'a str>,
    ) -> Result<BTreeMap<String, Vec<Machine>>, Failure> {
        let mut found = BTreeMap::<String, Vec<Machine>>::new();
        let keys: Vec<&str> = keys.collect();
        for page in keys.chunks(self.api.page_size()) {
            for machine in self.api.machines(by, page)? {
                let key = if by == MachineKey::Id {
                    &machine.id
                } else {
                    &machine.name
                };
                found.entry(key.clone()).or_default().push(machine);
            }
        }
        Ok(found)
    }
}

/// What the machines that were found for one Node say about it.
fn decide(machines: &[Machine], evidence: Evidence) -> Result<Presence, Failure> {
    match machines {
        [] => Ok(Presence::Absent(evidence)),
        [machine] => {
            let instance = instance(machine);
            Ok(match machine.state {
                MachineState::Running => Presence::Running(instance),
                MachineState::Stopped => Presence::Stopped(instance),
            })
        }
        // To guess would bind the Node to the wrong machine for ever.
        [first, ..] => {
            let ids: Vec<&str> = machines.iter().map(|machine| machine.id.as_str()).collect();
            Err(Failure::invalid(format!(
                "{} machines are named {:?} ({}); rename all but one, or set the Node's provider id",
                machines.len(),
                first.name,
                ids.join(", ")
            )))
        }
    }
}

/// A machine in the contract's words.
fn instance(machine: &Machine) -> Instance {
    let mut instance = Instance::new([PROVIDER_ID_PREFIX, &machine.id].concat());
    instance.instance_type = Some(machine.kind.clone());
    instance.zone = Some(machine.zone.clone());
    instance.region = Some(machine.region.clone());
    instance
        .addresses
        .push(Address::new(AddressKind::Hostname, machine.name.clone()));
    instance
        .addresses
        .extend(machine.addresses.iter().filter_map(|address| {
            let kind = match address.network {
                Network::Private => AddressKind::InternalIp,
                Network::Public => AddressKind::ExternalIp,
            };
            ip_address(kind, &address.ip)
        }));
    instance.labels = machine
        .labels
        .iter()
        .map(|(key, value)| Pair::new(key.clone(), value.clone()))
        .collect();
    instance
}
