//! Machines behind Nodes: by id, and by the names or addresses of the project's machines.

use std::net::IpAddr;

use cloudwit_guest_sdk::lookup::{Existing, Key, Listing};
use cloudwit_guest_sdk::names::label_value;
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::config::is_id;
use crate::{PROVIDER_ID_PREFIX, Photon};

/// What is read of a virtual machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Machine {
    pub(crate) id: String,
    name: String,
    state: String,
    #[serde(default)]
    flavor: String,
}

impl Listing for Photon {
    type Machine = Machine;

    const NOTHING: &'static str = "no virtual machine at all is seen; are tenant and project right?";

    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure> {
        let key = Key::of(node, PROVIDER_ID_PREFIX)?;
        match key {
            Key::Id(id) if !is_id(id) => Err(Failure::invalid(format!(
                "the provider id {PROVIDER_ID_PREFIX}{id} is none of Photon Controller's"
            ))),
            key => Ok(key),
        }
    }

    fn each(&self, each: &mut dyn FnMut(Machine)) -> Result<(), Failure> {
        self.machines()?.into_iter().for_each(each);
        Ok(())
    }

    fn one(&self, id: &str) -> Result<Option<Machine>, Failure> {
        self.api.machine(id)
    }

    fn sees_any(&self) -> Result<bool, Failure> {
        Ok(!self.api.machines()?.is_empty())
    }

    fn id(machine: &Machine) -> &str {
        &machine.id
    }

    /// By its name, or by the address that the name is where the operator named Nodes so.
    fn is_called(&self, machine: &Machine, name: &str) -> Result<bool, Failure> {
        match name.parse::<IpAddr>() {
            Ok(address) if self.config.global.by_address() => {
                Ok(machine.state == "STARTED" && self.addresses(machine)?.contains(&address))
            }
            _ => Ok(machine.name.eq_ignore_ascii_case(name)),
        }
    }

    fn label(&self, machine: &Machine) -> String {
        format!("{} ({})", machine.id, machine.name)
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
