//! The machines that load balancers may send traffic to, and their networks.

use std::cell::OnceCell;

use cloudwit_guest_sdk::prelude::*;

use crate::CloudStack;
use crate::instances::machine::Machine;

/// The machines of the project, listed when they are needed, and once.
pub struct Inventory<'a> {
    cloud: &'a CloudStack,
    machines: OnceCell<Vec<Machine>>,
}

impl<'a> Inventory<'a> {
    pub fn new(cloud: &'a CloudStack) -> Self {
        Self {
            cloud,
            machines: OnceCell::new(),
        }
    }

    fn machines(&self) -> Result<&[Machine], Failure> {
        if let Some(machines) = self.machines.get() {
            return Ok(machines);
        }
        let machines = self.cloud.api.list(self.cloud.machines(), "virtualmachine")?;
        Ok(self.machines.get_or_init(|| machines))
    }

    /// Those of these ids, which are sorted, that exist and are in the network.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn in_network(&self, ids: &[String], network: &str) -> Result<Vec<String>, Failure> {
        let machines = self.machines()?.iter();
        let there = machines.filter(|machine| machine.nic.iter().any(|nic| nic.networkid == network));
        let mut found: Vec<String> = there.map(|machine| machine.id.to_ascii_lowercase()).collect();
        found.retain(|id| ids.binary_search(id).is_ok());
        found.sort_unstable();
        Ok(found)
    }

    /// The network of these machines, that of their first interfaces.
    ///
    /// # Errors
    /// `failed-precondition` when there is none, or several; the cloud's error.
    pub fn network(&self, ids: &[String]) -> Result<String, Failure> {
        let machines = self.machines()?.iter();
        let own = machines.filter(|machine| ids.binary_search(&machine.id.to_ascii_lowercase()).is_ok());
        let mut networks: Vec<&str> = own
            .filter_map(|machine| Some(machine.nic.first()?.networkid.as_str()))
            .collect();
        networks.sort_unstable();
        networks.dedup();
        match networks.as_slice() {
            [network] => Ok((*network).to_owned()),
            [] => Err(Failure::failed_precondition(
                "a load balancer is in the network of its Nodes, and there is no Node with a virtual machine yet",
            )),
            several => Err(Failure::failed_precondition(format!(
                "the Nodes are in several networks ({}); a load balancer needs them in one, as their first interface",
                several.join(", ")
            ))),
        }
    }
}
