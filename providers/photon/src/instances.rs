//! Machines behind Nodes: by id, and by the names or addresses of the project's machines.

use std::net::IpAddr;

use cloudwit_guest_sdk::lookup::{Answers, Existing, Found, Id, Key, Machines, Name, Wanted, ask_each_where_any};
use cloudwit_guest_sdk::names::label_value;
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::config::is_id;
use crate::{PROVIDER_ID_PREFIX, Photon};

/// So many machines are asked for one by one; more are taken from the project's list.
const FEW: usize = 3;

/// Machines are asked for by id at most so many in a call: more that are not in the list are no deleted machines but another project.
const MOST_MISSING: usize = 100;

/// What to check when the project has no machine.
const NOTHING: &str = "no virtual machine at all is seen; are tenant and project right?";

/// What is read of a virtual machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Machine {
    pub(crate) id: String,
    name: String,
    state: String,
    #[serde(default)]
    flavor: String,
}

impl Machines for Photon {
    type Machine = Machine;

    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure> {
        let key = Key::of(node, PROVIDER_ID_PREFIX)?;
        match key {
            Key::Id(id) if !is_id(id) => Err(Failure::invalid(format!(
                "the provider id {PROVIDER_ID_PREFIX}{id} is none of Photon Controller's"
            ))),
            key => Ok(key),
        }
    }

    fn find(&self, wanted: &Wanted<'_>, answers: &mut Answers<'_, Machine>) -> Result<(), Failure> {
        if !wanted.names.is_empty() || wanted.ids.len() > FEW {
            let machines = self.machines()?;
            for name in &wanted.names {
                self.note(name, &machines, answers);
            }
            answers.found_all(machines, |machine| Key::Id(&machine.id));
        }
        let missing = wanted.ids.iter().copied();
        let missing: Vec<Id<'_>> = missing.filter(|id| !answers.has(Key::Id(id.as_str()))).collect();
        self.by_ids(&missing, answers)
    }

    fn by_ids(&self, ids: &[Id<'_>], answers: &mut Answers<'_, Machine>) -> Result<(), Failure> {
        let machine = |id: &str| self.api.machine(id);
        let sees_any = || Ok(!self.api.machines()?.is_empty());
        ask_each_where_any(ids, MOST_MISSING, answers, machine, sees_any, NOTHING);
        Ok(())
    }

    fn by_names(&self, names: &[Name<'_>], answers: &mut Answers<'_, Machine>) -> Result<(), Failure> {
        let machines = self.machines()?;
        for name in names {
            self.note(name, &machines, answers);
        }
        Ok(())
    }

    fn label(&self, machine: &Machine) -> String {
        format!("{} ({})", machine.id, machine.name)
    }

    fn describe(&self, found: &[Found<'_, Machine>]) -> Result<Vec<Result<Existing, Failure>>, Failure> {
        Ok(found.iter().map(|found| self.existing(found.machine)).collect())
    }
}

impl Photon {
    /// The project's machines. One that cannot be read is left out.
    pub(crate) fn machines(&self) -> Result<Vec<Machine>, Failure> {
        let read = |item: Value| {
            let read = serde_json::from_value::<Machine>(item);
            read.inspect_err(|mistake| warn!("a machine is left out of the list, it cannot be read: {mistake}"))
                .ok()
        };
        Ok(self.api.machines()?.into_iter().filter_map(read).collect())
    }

    /// Notes the machines of this name, or of the address that the name is where the operator named Nodes so.
    fn note(&self, name: &Name<'_>, machines: &[Machine], answers: &mut Answers<'_, Machine>) {
        let key = Key::Name(name.name);
        let address = name
            .name
            .parse::<IpAddr>()
            .ok()
            .filter(|_| self.config.global.by_address());
        for machine in machines {
            let fits = match address {
                None => Ok(machine.name.eq_ignore_ascii_case(name.name)),
                Some(_) if machine.state != "STARTED" => Ok(false),
                Some(address) => self.addresses(machine).map(|found| found.contains(&address)),
            };
            match fits {
                Ok(true) => answers.found(key, machine.clone()),
                Ok(false) => {}
                Err(failure) => answers.failed(key, failure),
            }
        }
    }

    fn existing(&self, machine: &Machine) -> Result<Existing, Failure> {
        let mut instance = Instance::new(format!("{PROVIDER_ID_PREFIX}{}", machine.id));
        instance.instance_type = Some(label_value(&machine.flavor)).filter(|flavor| !flavor.is_empty());
        // Names of machines may be such that no host has. Where Nodes are named by their addresses, theirs are not those of machines.
        let is_host = |name: &&String| {
            let may_have = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
            !name.is_empty() && name.bytes().all(may_have) && !self.config.global.by_address()
        };
        let hostname = Some(&machine.name).filter(is_host);
        let hostname = hostname.map(|name| Address::new(AddressKind::Hostname, name));
        if matches!(machine.state.as_str(), "STOPPED" | "SUSPENDED" | "DELETED") {
            instance.addresses = hostname.into_iter().collect();
            return Ok(Existing::Stopped(instance));
        }
        let addresses = self.addresses(machine)?;
        if addresses.is_empty() {
            let Machine { name, id, state, .. } = machine;
            return Err(Failure::unavailable(format!(
                "the virtual machine {name} ({id}, {state}) has no address yet"
            )));
        }
        let internal = addresses
            .iter()
            .map(|ip| Address::new(AddressKind::InternalIp, ip.to_string()));
        instance.addresses = internal.chain(hostname).collect();
        Ok(Existing::Running(instance))
    }

    /// Its addresses; an interface without one has `-`.
    fn addresses(&self, machine: &Machine) -> Result<Vec<IpAddr>, Failure> {
        let connections = self.api.connections(&machine.id)?;
        let texts = connections.iter().filter_map(|one| one["ipAddress"].as_str());
        let mut addresses: Vec<IpAddr> = Vec::new();
        for ip in texts.filter_map(|text| text.parse().ok()) {
            if !addresses.contains(&ip) {
                addresses.push(ip);
            }
        }
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests;
